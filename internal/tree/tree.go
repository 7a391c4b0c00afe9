// Package tree walks, filters, archives and unpacks trees of files inside a root. It does not know the origin of a tree or
// the content of its files.
package tree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// The default limits. They are well above the size of real sources of charts, and stop a hostile source before it fills the
// disk.
const (
	DefaultEntries = 500_000
	DefaultFile    = 512 << 20
	DefaultTotal   = 2 << 30
)

// maxDepth is the limit of nested directories: every access to a file costs a step for each directory above it.
const maxDepth = 128

// Limits are the limits of a tree. A zero means the default.
type Limits struct {
	Entries int   // files and directories
	File    int64 // bytes of one file
	Total   int64 // bytes of all files; for an archive, all uncompressed bytes
}

func (l Limits) withDefaults() Limits {
	l.Entries = cmp.Or(l.Entries, DefaultEntries)
	l.File = cmp.Or(l.File, DefaultFile)
	l.Total = cmp.Or(l.Total, DefaultTotal)
	return l
}

// limitError returns an error about a tree that exceeds a limit, which an option can raise.
func limitError(format string, args ...any) error {
	return &finding.Problem{Class: finding.Large, Text: fmt.Sprintf(format, args...)}
}

// A Choice decides about a file or a directory.
type Choice int

const (
	Keep    Choice = iota
	Drop           // but visit the files below it
	DropAll        // and all files below it
)

// A Filter chooses the files of a tree. The name is relative to the root and slash-separated. A nil Filter keeps
// everything.
type Filter func(name string, dir bool) Choice

// All returns a filter that keeps files that all of the filters keep.
func All(filters ...Filter) Filter {
	return func(name string, dir bool) Choice {
		choice := Keep
		for _, f := range filters {
			choice = max(choice, f.choose(name, dir))
		}
		return choice
	}
}

func (f Filter) choose(name string, dir bool) Choice {
	if f == nil {
		return Keep
	}
	return f(name, dir)
}

// walk visits the regular files and the directories below a root in the order of their names, a directory before its
// content. It skips everything else, symbolic links, too.
type walk struct {
	ctx     context.Context
	root    *os.Root
	filter  Filter
	visit   func(name string, dir bool) error
	entries int // the number that may still follow
}

func (w *walk) dir(name string, depth int) error {
	if depth > maxDepth {
		return limitError("%q is nested more than %d directories deep", name, maxDepth)
	}
	entries, err := w.read(name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		if err := w.entry(path.Join(name, e.Name()), e, depth); err != nil {
			return err
		}
	}
	return nil
}

// read lists a directory, or fails if it has more entries than may follow.
func (w *walk) read(name string) ([]fs.DirEntry, error) {
	d, err := w.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(w.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if w.entries -= len(entries); w.entries < 0 {
		return nil, limitError("there are too many files and directories")
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func (w *walk) entry(name string, e fs.DirEntry, depth int) error {
	if !e.IsDir() && !e.Type().IsRegular() {
		return nil
	}
	choice := w.filter.choose(name, e.IsDir())
	if choice == Keep {
		if err := w.visit(name, e.IsDir()); err != nil {
			return err
		}
	}
	if e.IsDir() && choice != DropAll {
		return w.dir(name, depth+1)
	}
	return nil
}

// A budget counts down to a limit, and fails beyond it.
type budget struct {
	left int64
	err  error
}

func newBudget(limit int64, format string) *budget {
	return &budget{left: limit, err: limitError(format, limit)}
}

func (b *budget) spend(n int64) error {
	if b.left -= n; b.left < 0 {
		return b.err
	}
	return nil
}

type interrupted struct {
	ctx context.Context
	r   io.Reader
}

func (i interrupted) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, context.Cause(i.ctx)
	}
	return i.r.Read(p)
}

// List returns the paths of the regular files below a root that the options keep, and those of the directories, in the
// order of a walk. It skips symbolic links.
func List(ctx context.Context, root *os.Root, o Options) (files, dirs []string, err error) {
	steps := &walk{ctx: ctx, root: root, filter: o.Filter, entries: o.Limits.withDefaults().Entries}
	steps.visit = func(name string, dir bool) error {
		if dir {
			dirs = append(dirs, name)
		} else {
			files = append(files, name)
		}
		return nil
	}
	err = steps.dir(".", 0)
	return files, dirs, err
}
