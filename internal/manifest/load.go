package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// maxFileSize is the limit of one file, in bytes.
const maxFileSize = 32 << 20

// StdinName is the file name of standard input in positions.
const StdinName = "<stdin>"

// Options holds the options of Read.
type Options struct {
	Files            []string // files, directories and globs; "-" is Stdin
	Offered          []string // files that need not be manifests, like the files of a directory
	LookupDirs       []string // directories that Lookup and Secret search too, at every depth
	Recursive        bool     // descend into directories
	Stdin            io.Reader
	DefaultNamespace string   // for objects without one; "default" if empty
	SkipDirs         []string // directories that are never descended into

	// Untrusted is true if the user did not choose the names: a name that leads over a link out of its repository is
	// refused.
	Untrusted bool

	// Secrets collects the values of Secrets, so that they are not shown.
	Secrets *conceal.Values
}

// Load reads every file that the options name, and builds nothing from them: see Read.
func Load(ctx context.Context, o Options) (*Set, []error) { return Read(ctx, o).Set(nil) }

// Read reads every file that the options name, once. The files that cannot be read hold their errors.
func Read(ctx context.Context, o Options) *Input {
	l := &loader{ctx: ctx, options: o, in: &Input{namespace: o.DefaultNamespace}, seen: &files{}, parsing: &parsing{namespace: o.DefaultNamespace, secrets: o.Secrets}}
	for _, dir := range o.SkipDirs {
		if info, err := os.Stat(dir); err == nil {
			l.skip = append(l.skip, info)
		}
	}
	for _, name := range o.Files {
		l.argument(name)
	}
	l.lookupDirs(o.LookupDirs)
	if l.surrounded() {
		l.surround()
	}
	for _, name := range o.Offered {
		if o.Untrusted && file.Outside(name) {
			l.fail(&FileError{name, file.ErrOutside})
			continue
		}
		l.beside(name)
		l.found(name, false)
	}
	l.parse(l.read)
	l.in.Files = l.read
	l.readBeside()
	if l.surrounded() {
		l.in.Roots, l.in.Passed = l.in.lookup, o.Offered
	} else {
		l.readAround()
	}
	return l.in
}

type loader struct {
	ctx     context.Context
	options Options
	in      *Input
	seen    *files
	parsing *parsing
	skip    []os.FileInfo
	stdin   bool // standard input has been read
	read    []*File
}

// fail records an error without the name of the system call: the file and the reason are enough.
func (l *loader) fail(err error) {
	l.read = append(l.read, &File{errs: []error{plain(err)}})
}

func plain(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return &FileError{pathErr.Path, pathErr.Err}
	}
	return err
}

func (l *loader) argument(name string) {
	switch name {
	case "-":
		l.readStdin()
		return
	case "": // for example an unset variable of a shell
		l.fail(errors.New("-f: the name is empty"))
		return
	}
	if _, err := os.Lstat(name); err == nil {
		l.named(name)
		return
	} else if scheme, _, ok := strings.Cut(name, "://"); ok && scheme != "" {
		// The URL itself may contain a password and is not printed.
		l.fail(errors.New(finding.PipeURL))
		return
	} else if !strings.ContainsAny(name, "*?[") {
		l.fail(err)
		return
	}
	if strings.Contains(name, "**") {
		l.fail(fmt.Errorf(finding.NoDoubleStar, name))
		return
	}
	matches, err := filepath.Glob(name)
	if err == nil && len(matches) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		l.fail(fmt.Errorf("%s: no match: %w", name, err))
	}
	inside := slices.DeleteFunc(slices.Clone(matches), func(match string) bool { return l.in.bounds.out(literalDir(name), match) })
	if len(inside) == 0 && len(matches) > 0 {
		l.fail(fmt.Errorf("%s: every match is a link that leads out of the repository", name))
	}
	for _, match := range inside {
		l.named(match)
	}
}

func (l *loader) readStdin() {
	if l.stdin {
		return
	}
	l.stdin = true
	if l.options.Stdin == nil {
		l.fail(errors.New("no standard input"))
		return
	}
	data, err := sized(file.ReadAll(l.ctx, l.options.Stdin, maxFileSize))
	if err != nil {
		l.fail(err)
		return
	}
	l.add(&File{Name: StdinName}, data)
}

// add keeps a file until all files are parsed.
func (l *loader) add(f *File, data []byte) {
	l.read = append(l.read, f)
	if f.offered && isTemplate(f.Name, data) {
		f.skips = append(f.skips, Skip{File: f.Name, Reason: "a template of a Helm chart"})
		return
	}
	f.data = data
}

// isTemplate reports whether a file has to be rendered first: it is among the templates of a chart, and contains an
// action.
func isTemplate(name string, data []byte) bool {
	if !bytes.Contains(data, []byte("{{")) {
		return false
	}
	for dir := filepath.Dir(name); filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "templates" {
			_, err := os.Stat(filepath.Join(filepath.Dir(dir), "Chart.yaml"))
			return err == nil
		}
	}
	return false
}

// named reads a file or directory that the user named, whatever its extension.
func (l *loader) named(name string) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		l.fail(err)
	case l.options.Untrusted && file.Outside(name):
		l.fail(&FileError{name, file.ErrOutside})
	case info.IsDir():
		l.in.bounds.name(name)
		l.in.Roots = append(l.in.Roots, name)
		l.directory(name)
	default:
		l.beside(name)
		if l.seen.first(info) {
			data, err := read(l.ctx, name)
			if err != nil {
				l.fail(err)
				return
			}
			l.add(&File{Name: name}, data)
		}
	}
}

// beside marks the directory of a named file as a place to look for siblings.
func (l *loader) beside(name string) {
	if dir := filepath.Dir(name); !slices.Contains(l.in.dirs, dir) {
		l.in.dirs = append(l.in.dirs, dir)
	}
}

// directory reads the manifests of a directory, in the order of their names.
func (l *loader) directory(dir string) {
	entries, err := file.ReadDir(dir)
	if err != nil {
		l.fail(err)
		return
	}
	l.enter(dir, entries)
	for _, e := range entries {
		if l.ctx.Err() != nil {
			l.fail(l.ctx.Err())
			return
		}
		name := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir() && l.options.Recursive && !skipDir(e, l.skip):
			l.directory(name)
		case isLink(e) && l.options.Recursive && !isManifestName(name):
			l.linked(dir, name, e)
		case !e.IsDir() && isManifestName(name) && !l.outside(dir, name, e):
			l.found(name, true)
		}
	}
}

// enter remembers a directory that has a kustomization file.
func (l *loader) enter(dir string, entries []os.DirEntry) {
	for _, e := range entries {
		if !e.IsDir() && IsKustomizationFile(e.Name()) {
			l.in.Dirs = append(l.in.Dirs, dir)
			return
		}
	}
}

// skipDir reports whether to leave out a directory: .git and other hidden directories, and those that the caller excludes.
func skipDir(e fs.DirEntry, skip []os.FileInfo) bool {
	if strings.HasPrefix(e.Name(), ".") {
		return true
	}
	info, err := e.Info()
	return err != nil || slices.ContainsFunc(skip, func(s os.FileInfo) bool { return os.SameFile(s, info) })
}

func isManifestName(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// found reads a file that the user did not name. It need not be a manifest at all: a directory with a Helm chart is
// full of templates that only look like YAML.
func (l *loader) found(name string, walked bool) {
	if info, err := os.Stat(name); file.Missing(err) || err == nil && info.IsDir() {
		// Editors use dangling links as locks.
		l.read = append(l.read, &File{skips: []Skip{{File: name, Reason: "not a regular file"}}})
		return
	}
	data, err := l.other(name)
	switch {
	case err != nil:
		l.fail(err)
	case data != nil:
		l.add(&File{Name: name, Walked: walked, offered: true}, data)
	}
}

// read reads a file up to one byte more than the limit, so that the excess shows.
func read(ctx context.Context, name string) ([]byte, error) {
	return sized(file.Read(ctx, name, maxFileSize))
}

func sized(data []byte, err error) ([]byte, error) {
	if _, large := errors.AsType[*file.SizeError](err); large {
		return data, nil
	}
	return data, err
}

// files records which files were read. One file has many names: links, other spellings, other cases.
type files struct {
	bySize map[sizeTime][]os.FileInfo
}

// sizeTime narrows down the files that are worth comparing.
type sizeTime struct {
	size int64
	time time.Time
}

func (f *files) has(info os.FileInfo) bool {
	return slices.ContainsFunc(f.bySize[sizeTime{info.Size(), info.ModTime()}], func(other os.FileInfo) bool { return os.SameFile(other, info) })
}

// first records a file and reports whether it was not seen before.
func (f *files) first(info os.FileInfo) bool {
	if f.bySize == nil {
		f.bySize = map[sizeTime][]os.FileInfo{}
	}
	if f.has(info) {
		return false
	}
	k := sizeTime{info.Size(), info.ModTime()}
	f.bySize[k] = append(f.bySize[k], info)
	return true
}
