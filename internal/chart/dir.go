package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/ignore"
)

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

// ignoreRules reads .helmignore. One that a link puts outside the source counts as none, as in source-controller.
func (s Source) ignoreRules(dir string) (*ignore.Rules, error) {
	rules := ignore.Empty()
	real, info, err := s.resolve(path.Join(dir, ignore.HelmIgnore))
	var outside *escapeError
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.As(err, &outside):
	case err != nil:
		return nil, err
	case info.Mode().IsRegular():
		data, err := s.readFile(real)
		if errors.Is(err, errTooLarge) {
			return nil, s.limits().fileError(ignore.HelmIgnore)
		}
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

// walker reads the files of a chart directory, in the order of their names.
type walker struct {
	source  Source
	rules   *ignore.Rules
	reading *reading
	chart   *contents
	open    []string // the directories around the current file, resolved
}

// directory reads all files of a directory, which is called name in the chart and really is at real.
func (w *walker) directory(name, real string) error {
	if slices.Contains(w.open, real) {
		return fmt.Errorf("cannot load '%s' directory: link leads back to '%s'", printable(name), printable(rooted(real)))
	}
	w.open = append(w.open, real)
	defer func() { w.open = w.open[:len(w.open)-1] }()
	entries, err := w.source.readDir(real, w.reading.entries+1)
	if err != nil {
		return err
	}
	if w.reading.entries -= len(entries); w.reading.entries < 0 {
		return w.reading.limits.entriesError()
	}
	for _, e := range entries {
		if err := w.entry(path.Join(name, e.Name()), path.Join(real, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// entry asks the ignore rules before anything else, so that they can leave out what would be refused.
func (w *walker) entry(name, at string) error {
	info, err := w.source.Root.Lstat(filepath.FromSlash(at))
	if err != nil {
		return rootedError(at, err)
	}
	if w.source.hidden(at, info.IsDir()) {
		return nil
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return w.link(name, at, info)
	}
	if w.rules.Ignore(name, info) {
		return nil
	}
	return w.load(name, at, info)
}

func (w *walker) link(name, at string, info fs.FileInfo) error {
	real, target, err := w.source.resolve(at)
	if err == nil {
		if w.rules.Ignore(name, target) {
			return nil
		}
		return w.load(name, real, target)
	}
	// What the link leads to is not known: it is left out if it would be as a file or as a directory.
	if w.rules.Ignore(name, info) || w.rules.Ignore(name, asDir{info}) {
		return nil
	}
	var outside *escapeError
	if errors.As(err, &outside) {
		return fmt.Errorf("cannot load '%s' file: %w", printable(name), err)
	}
	return fmt.Errorf("error evaluating symlink %s: %w", printable(name), err)
}

// asDir is the same file as if it were a directory.
type asDir struct{ fs.FileInfo }

func (asDir) IsDir() bool { return true }

func (w *walker) load(name, real string, info fs.FileInfo) error {
	if len(name) > maxNameLength {
		return fmt.Errorf("chart has a file with a name of %d bytes, more than %d", len(name), maxNameLength)
	}
	if info.IsDir() {
		return w.directory(name, real)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("cannot load irregular file %s as it has file mode type bits set", printable(name))
	}
	if limit := w.reading.limits.File; info.Size() > limit {
		return fmt.Errorf("cannot load file %s as file size (%d) exceeds limit (%d)", printable(name), info.Size(), limit)
	}
	data, err := w.source.readFile(real)
	if err != nil {
		return fmt.Errorf("cannot load file %s: %w", printable(name), err)
	}
	size := int64(len(data))
	if w.reading.unpacked -= size; w.reading.unpacked <= 0 {
		return w.reading.limits.unpackedError()
	}
	return w.chart.add(w.reading, name, size, bytes.NewReader(data), keepAll)
}
