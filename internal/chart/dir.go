package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/ignore"
)

// maxDirs is the limit of nested directories in a chart. Each open directory costs a file descriptor.
const maxDirs = 100

// LoadDir loads a chart from a directory of the source, without the files that its .helmignore names. The archives of
// subcharts in it are unpacked under the same limits.
func (s Source) LoadDir(dir string) (*helmchart.Chart, error) {
	dir = clamp(dir)
	rules, err := s.ignoreRules(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot load ignore rules for chart: %w", err)
	}
	w := &walker{source: s, rules: rules, reading: newReading(s.Limits), chart: &contents{}}
	real, _, err := s.resolve(dir)
	if err == nil {
		err = w.directory("", real)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to load files from %s: %w", rooted(dir), err)
	}
	if !w.chart.found {
		return nil, fmt.Errorf("failed to load chart from %s: %s file is missing", rooted(dir), chartFile)
	}
	c, err := w.chart.load()
	if err != nil {
		return nil, fmt.Errorf("failed to load chart from %s: %w", rooted(dir), err)
	}
	return c, nil
}

// ignoreRules reads .helmignore. A file outside the source, behind a link, is ignored, as in source-controller.
func (s Source) ignoreRules(dir string) (*ignore.Rules, error) {
	rules := ignore.Empty()
	real, info, err := s.resolve(path.Join(dir, ignore.HelmIgnore))
	var outside *escapeError
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.As(err, &outside):
	case err != nil:
		return nil, err
	case info.Mode().IsRegular():
		data, err := s.readFile(real, ignore.HelmIgnore)
		if err != nil {
			return nil, err
		}
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return nil, err
		}
	}
	rules.AddDefaults()
	return rules, nil
}

// A walker reads the files of a chart directory, in the order of their names.
type walker struct {
	source  Source
	rules   *ignore.Rules
	reading *reading
	chart   *contents
	open    []string // the directories around the current file, resolved
}

// directory reads all files of a directory, which has the path name in the chart and the resolved path real.
func (w *walker) directory(name, real string) error {
	if slices.Contains(w.open, real) {
		return fmt.Errorf("cannot load '%s' directory: link leads back to '%s'", printable(name), printable(rooted(real)))
	}
	if len(w.open) >= maxDirs {
		return fmt.Errorf("cannot load '%s' directory: nested deeper than %d", printable(name), maxDirs)
	}
	w.open = append(w.open, real)
	defer func() { w.open = w.open[:len(w.open)-1] }()
	dir, err := w.source.Root.OpenRoot(filepath.FromSlash(real))
	if err != nil {
		return rootedError(real, err)
	}
	defer dir.Close()
	entries, err := readDir(dir, w.reading.entries+1)
	if err != nil {
		return rootedError(real, err)
	}
	if w.reading.entries -= len(entries); w.reading.entries < 0 {
		return w.reading.limits.entriesError()
	}
	for _, e := range entries {
		if err := w.entry(dir, e, path.Join(name, e.Name()), path.Join(real, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// entry applies the ignore rules first, so that they can leave out entries that would be refused.
func (w *walker) entry(dir *os.Root, e fs.DirEntry, name, real string) error {
	switch info := (entryInfo{e}); {
	case w.source.hidden(real, e.IsDir()):
		return nil
	case e.Type()&fs.ModeSymlink != 0:
		return w.link(name, real, info)
	case w.rules.Ignore(name, info):
		return nil
	}
	return w.load(dir, e.Name(), name, real, e.Type())
}

func (w *walker) link(name, at string, info fs.FileInfo) error {
	real, target, err := w.source.resolve(at)
	if err == nil {
		if w.rules.Ignore(name, target) {
			return nil
		}
		return w.load(w.source.Root, real, name, real, target.Mode())
	}
	// The target of the link is unknown: it is left out if the rules match a file or a directory of this name.
	if w.rules.Ignore(name, info) || w.rules.Ignore(name, asDir{info}) {
		return nil
	}
	if _, ok := errors.AsType[*escapeError](err); ok {
		return fmt.Errorf("cannot load '%s' file: %w", printable(name), err)
	}
	return fmt.Errorf("error evaluating symlink %s: %w", printable(name), err)
}

// entryInfo has the methods that the ignore rules call, with the data that listing a directory returns without another
// system call.
type entryInfo struct{ fs.DirEntry }

func (e entryInfo) Mode() fs.FileMode { return e.Type() }
func (entryInfo) Size() int64         { return 0 }
func (entryInfo) ModTime() time.Time  { return time.Time{} }
func (entryInfo) Sys() any            { return nil }

type asDir struct{ fs.FileInfo }

func (asDir) IsDir() bool { return true }

// load reads the file or directory at the path at of a root. name is its name in the chart, real its path in the source.
func (w *walker) load(root *os.Root, at, name, real string, mode fs.FileMode) error {
	if len(name) > maxNameLength {
		return fmt.Errorf("chart has a file with a name of %d bytes, more than %d", len(name), maxNameLength)
	}
	if mode.IsDir() {
		return w.directory(name, real)
	}
	if !mode.IsRegular() {
		return fmt.Errorf("cannot load irregular file %s as it has file mode type bits set", printable(name))
	}
	data, err := readRegular(root, at, w.reading.limits.File)
	if size, ok := errors.AsType[tooLarge](err); ok {
		return fmt.Errorf("cannot load file %s as file size (%d) exceeds limit (%d)", printable(name), int64(size), w.reading.limits.File)
	}
	if err != nil {
		return fmt.Errorf("cannot load file %s: %w", printable(name), rootedError(real, err))
	}
	if w.reading.unpacked -= int64(len(data)); w.reading.unpacked <= 0 {
		return w.reading.limits.unpackedError()
	}
	return w.chart.add(w.reading, name, int64(len(data)), inMemory{bytes.NewReader(data), data}, keepAll)
}
