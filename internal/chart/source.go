package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// maxLinks is the limit of symbolic links followed to reach one file, as on Linux.
const maxLinks = 40

// errNoFile is the error for a path without a regular file.
var errNoFile = errors.New("no file")

// Source is the tree of files that contains a chart: the files of a Git repository or of a bucket. Paths in it are
// slash-separated; they may begin with a slash and contain "..", but never lead out of it. Symbolic links are followed
// within it. Its maker keeps Root open as long as it is used, and nothing changes the files meanwhile.
type Source struct {
	Root *os.Root
	// Filter chooses the files of Root that belong to the source. It may be nil.
	Filter tree.Filter
	Limits Limits
}

func (s Source) limits() Limits { return s.Limits.withDefaults() }

// hidden reports whether a file, or a directory with all its contents, does not belong to the source.
func (s Source) hidden(name string, dir bool) bool {
	if s.Filter == nil {
		return false
	}
	choice := s.Filter(name, dir)
	return choice == tree.DropAll || choice == tree.Drop && !dir
}

// clamp makes a path relative to the root of the source; a path that climbs above the root stops there.
func clamp(p string) string {
	p = path.Clean("/" + filepath.ToSlash(p))
	if p == "/" {
		return "."
	}
	return p[1:]
}

// rooted returns a path as messages spell it, from the root of the source.
func rooted(name string) string { return "/" + strings.TrimPrefix(name, ".") }

// escapeError reports that a link leads out of the source.
type escapeError struct{ to string }

func (e *escapeError) Error() string {
	return "absolute path traverses outside root boundary: relative path to root " + printable(e.to)
}

// resolve follows the symbolic links in the path of a file and returns its real path. A hidden file does not exist. It
// only resolves the path: os.Root confines every access.
func (s Source) resolve(name string) (string, fs.FileInfo, error) {
	todo, done, links := strings.Split(name, "/"), ".", 0
	info, err := s.lstat(".")
	for len(todo) > 0 && err == nil {
		part := todo[0]
		todo = todo[1:]
		if part == ".." && done == "." {
			return "", nil, &escapeError{to: path.Join(append([]string{".."}, todo...)...)}
		}
		next := path.Join(done, part)
		if info, err = s.lstat(next); err != nil {
			break
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", nil, fmt.Errorf("%s: too many links", rooted(name))
		}
		var target []string
		if target, err = s.readlink(next); err == nil {
			todo = append(target, todo...)
		}
	}
	if err != nil {
		return "", nil, rootedError(name, err)
	}
	return done, info, nil
}

func (s Source) lstat(name string) (fs.FileInfo, error) {
	info, err := s.Root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	if name != "." && s.hidden(name, info.IsDir()) {
		return nil, &fs.PathError{Op: "lstatat", Err: fs.ErrNotExist}
	}
	return info, nil
}

func (s Source) readlink(name string) ([]string, error) {
	target, err := s.Root.Readlink(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	slashed := filepath.ToSlash(target)
	if filepath.IsAbs(target) || path.IsAbs(slashed) || filepath.VolumeName(target) != "" {
		return nil, &escapeError{to: slashed}
	}
	return strings.Split(slashed, "/"), nil
}

// rootedError replaces the path in an error of the file system with the path in the source.
func rootedError(name string, err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		op := strings.TrimPrefix(strings.TrimSuffix(at.Op, "at"), "l")
		return &fs.PathError{Op: op, Path: rooted(name), Err: at.Err}
	}
	return err
}

// tooLarge is the size of a file that exceeds the limit.
type tooLarge int64

func (t tooLarge) Error() string { return fmt.Sprintf("file of %d bytes is too large", int64(t)) }

// readFile reads a file at a resolved path, unless it is larger than the limit. The name is for the error.
func (s Source) readFile(real, name string) ([]byte, error) {
	data, err := readRegular(s.Root, real, s.limits().File)
	if _, large := errors.AsType[tooLarge](err); large {
		return nil, s.limits().fileError(name)
	}
	return data, rootedError(real, err)
}

func readRegular(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, tooLarge(info.Size())
	}
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if size := int64(data.Len()); size > limit {
		return nil, tooLarge(size)
	}
	return data.Bytes(), nil
}

// readDir returns up to most entries of a directory, sorted by name.
func readDir(dir *os.Root, most int) ([]fs.DirEntry, error) {
	d, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Found describes a chart in a source.
type Found struct {
	// Path is the path of the chart, relative to the root of the source.
	Path string
	// Dir is true for a directory, false for an archive.
	Dir      bool
	Metadata *helmchart.Metadata
	Warnings []string
}

// Find reads the metadata of the chart at a path of the source. An archive is checked as a whole.
func (s Source) Find(chartPath string) (*Found, error) {
	name := clamp(chartPath)
	real, info, err := s.resolve(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &finding.Problem{Err: err, Advice: s.nearby(name)}
	}
	if err != nil {
		return nil, err
	}
	found := &Found{Path: name, Dir: info.IsDir()}
	switch {
	case found.Dir:
		found.Metadata, err = s.metadata(name)
	case info.Mode().IsRegular():
		err = s.withArchive(real, func(f *os.File, l Limits) error {
			found.Metadata, found.Warnings, err = Check(f, l)
			return err
		})
	default:
		err = fmt.Errorf("'%s' is neither a directory nor a file", printable(rooted(name)))
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// nearby returns a hint at the entry of the source that a missing path may mean, "" if no entry is similar.
func (s Source) nearby(name string) string {
	dir := path.Dir(name)
	real, _, err := s.resolve(dir)
	if errors.Is(err, fs.ErrNotExist) && dir != "." {
		return s.nearby(dir)
	}
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range s.neighbours(real) {
		if !s.hidden(path.Join(dir, e.Name()), e.IsDir()) {
			names = append(names, e.Name())
		}
	}
	near, ok := finding.Nearest(path.Base(name), names)
	if !ok {
		return ""
	}
	return fmt.Sprintf("did you mean %s?", printable(path.Join(dir, near)))
}

// Load loads the chart at a path of the source, which may be a directory or an archive.
func (s Source) Load(chartPath string) (*helmchart.Chart, error) {
	name := clamp(chartPath)
	real, info, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return s.LoadDir(name)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("'%s' is neither a directory nor a file", printable(rooted(name)))
	}
	var c *helmchart.Chart
	err = s.withArchive(real, func(f *os.File, l Limits) error {
		c, err = Load(f, l)
		return err
	})
	return c, err
}

// Open opens an archive that Find has found.
func (s Source) Open(found *Found) (*os.File, error) {
	real, info, err := s.resolve(found.Path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("'%s' is not a regular file", printable(rooted(found.Path)))
	}
	f, err := s.Root.Open(filepath.FromSlash(real))
	return f, rootedError(real, err)
}

func (s Source) withArchive(real string, read func(*os.File, Limits) error) error {
	f, err := s.Root.Open(filepath.FromSlash(real))
	if err != nil {
		return rootedError(real, err)
	}
	defer f.Close()
	return read(f, s.Limits.Named(path.Base(real)))
}

// metadata reads Chart.yaml of a directory, overridden by requirements.yaml. Like source-controller, it ignores
// .helmignore.
func (s Source) metadata(dir string) (*helmchart.Metadata, error) {
	c := &contents{found: true}
	for _, name := range []string{chartFile, requirementsFile} {
		data, err := s.metadataFile(path.Join(dir, name))
		if name == requirementsFile && errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		c.own = append(c.own, &loader.BufferedFile{Name: name, Data: data})
	}
	return c.metadata()
}

func (s Source) metadataFile(name string) ([]byte, error) {
	real, info, err := s.resolve(name)
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		at.Op = "open" // source-controller's text
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("'%s' is not a regular file", printable(rooted(name)))
	}
	return s.readFile(real, path.Base(name))
}

// ReadFile reads a file of the source. Neither its path nor a link in it may lead out of the source.
func (s Source) ReadFile(name string) ([]byte, error) {
	real, _, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	return s.readFile(real, name)
}
