package foresee

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/session"
)

// base locates the manifests of the older side: files below dir replace the files below root.
type base struct {
	root, dir string
	// whole reports that dir contains only manifests: it is read instead of all files of the input.
	whole bool
	// shown is the displayed name of a revision, "" for a directory.
	shown string
	// named maps files and directories of the base to their names in the input.
	named map[string]string
	close func()
}

// original returns the name in the input of a file in the base.
func (b *base) original(name string) string {
	best, found := "", ""
	for at, called := range b.named {
		if rel, err := filepath.Rel(at, name); err == nil && filepath.IsLocal(rel) && len(at) > len(best) {
			best, found = at, filepath.Join(called, rel)
		}
	}
	if best == "" {
		return b.rename(name)
	}
	return found
}

// openBase opens the directory or revision that the input is compared with.
func (f *Foresight) openBase(ctx context.Context) (*base, error) {
	name := f.o.Against
	named := slices.Concat(f.Options.Load.Names, f.Options.Load.Offered)
	if file.IsDir(name) && !load.CalledDirectory(name) {
		if top, ok := topOf(named); ok && git.HasRevision(top, name) {
			return nil, &exit.UsageError{
				Option: "against", Value: name, Err: errors.New("there is a directory and a revision of that name"),
				Advice: fmt.Sprintf("write ./%s for the directory, or refs/heads/%s for a branch", name, name),
			}
		}
	}
	if file.IsDir(name) {
		return directoryBase(name, named)
	}
	if load.CalledDirectory(name) {
		return nil, &exit.UsageError{Option: "against", Value: name, Err: errors.New("no such directory")}
	}
	if strings.HasSuffix(name, ".lock") { // no reference of Git ends with it
		return nil, &exit.UsageError{Option: "against", Value: name, Err: errors.New("no such file")}
	}
	return f.revisionBase(ctx, name, named)
}

// topOf returns the root of the repository of the input.
func topOf(named []string) (string, bool) {
	for _, name := range named {
		if name != "-" {
			return git.Top(name)
		}
	}
	return git.Top(".")
}

// directoryBase returns the base of a directory: a copy of the repository if it is a working tree or has a file of the input.
func directoryBase(dir string, named []string) (*base, error) {
	b := &base{dir: dir, named: map[string]string{}, close: func() {}}
	top, ok := topOf(named)
	if !ok {
		var err error
		if top, err = filepath.Abs("."); err != nil {
			return nil, err
		}
		top = git.RealPath(top)
	}
	b.root = top
	if at, ok := git.Top(dir); ok && at == git.RealPath(dir) {
		return b, nil
	}
	for _, name := range named {
		if at, ok := b.locate(name); ok && len(matches(at)) > 0 && !file.Same(at, name) {
			return b, nil
		}
	}
	b.whole = true
	return b, nil
}

func (f *Foresight) revisionBase(ctx context.Context, revision string, named []string) (*base, error) {
	top, ok := topOf(named)
	if !ok {
		return nil, &exit.UsageError{
			Option: "against", Value: revision, Err: errors.New("there is no such directory, and the manifests are not in a Git repository"),
			Advice: "name a directory with the earlier manifests",
		}
	}
	parent, err := f.Shared.Dir()
	if err != nil {
		return nil, err
	}
	t, err := git.OpenRevision(ctx, top, revision, parent)
	var missing *git.RevisionError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &missing):
		return nil, &exit.UsageError{Option: "against", Err: err, Advice: missing.Hint()}
	case err != nil:
		return nil, err
	}
	return &base{root: top, dir: t.Dir(), shown: revision, named: map[string]string{}, close: func() {
		if err := t.Close(); err != nil {
			f.Worker.Console.Debug(console.Subject{}, err.Error())
		}
	}}, nil
}

// locate returns the path in the base of a file of the input. It returns false for a file outside of the repository.
func (b *base) locate(name string) (string, bool) {
	rel, err := filepath.Rel(b.root, git.RealPath(name))
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.Join(b.dir, rel), true
}

// matches returns the files that a name or pattern matches.
func matches(name string) []string {
	if file.Exists(name) {
		return []string{name}
	}
	found, err := filepath.Glob(name)
	if err != nil {
		return nil
	}
	return found
}

// options returns the options of the input for the base, nil if the base has no file of the input.
func (b *base) options(o *session.Options, against string) (*load.Options, error) {
	given := o.Load
	mapped := *given
	mapped.Names, mapped.Offered, mapped.LookupDirs, mapped.Sources = nil, nil, nil, b.sources(given.Sources)
	artifacts, _ := b.locate(o.Store.Dir)
	mapped.SkipDirs = []string{artifacts}
	if b.whole {
		mapped.Names = []string{b.dir}
		return &mapped, nil
	}
	for _, name := range given.Names {
		if name == "-" {
			return nil, &exit.UsageError{Option: "against", Err: errors.New("standard input has no earlier state"), Advice: finding.NameFiles}
		}
		at, ok := b.locate(name)
		if !ok {
			return nil, &exit.UsageError{
				Option: "against", Value: against, Err: fmt.Errorf("%s is not in the repository %s", name, filepath.Base(b.root)),
				Advice: "name a directory with the earlier manifests",
			}
		}
		mapped.Names = append(mapped.Names, matches(at)...)
		b.named[at] = name
	}
	for _, name := range given.Offered {
		if at, ok := b.locate(name); ok && file.Exists(at) {
			mapped.Offered = append(mapped.Offered, at)
			b.named[at] = name
		}
	}
	for _, dir := range given.LookupDirs {
		if at, ok := b.locate(dir); ok && file.IsDir(at) {
			mapped.LookupDirs = append(mapped.LookupDirs, at)
		} else if !ok {
			mapped.LookupDirs = append(mapped.LookupDirs, dir)
		}
	}
	if len(mapped.Names)+len(mapped.Offered) == 0 {
		return nil, nil
	}
	return &mapped, nil
}

// sources returns the sources of the input for the base: directories in the repository are replaced by those of the base.
func (b *base) sources(given []load.Source) []load.Source {
	var list []load.Source
	for _, s := range given {
		if at, inside := b.locate(s.Dir); inside && !b.whole {
			if !file.Exists(at) {
				continue
			}
			s.Dir = at
		}
		list = append(list, s)
	}
	return list
}

// apart returns a worker that prints only errors, with the base's names of files, and keeps its findings separate. A silent worker
// prints no messages.
func apart(w *session.Worker, b *base, silent bool) *session.Worker {
	other := *w
	other.Console = w.Console.Apart(func(w io.Writer) io.Writer {
		switch {
		case silent:
			return io.Discard
		case b.shown != "":
			return &renaming{w, b}
		}
		return w
	})
	return &other
}

// Silent returns the same work without messages.
func (w Work) Silent() Work {
	w.Worker = apart(w.Worker, nil, true)
	return w
}

// renaming is a writer that shows the files of a revision as REVISION:FILE.
type renaming struct {
	w    io.Writer
	base *base
}

func (r *renaming) Write(p []byte) (int, error) {
	_, err := io.WriteString(r.w, r.base.rename(string(p)))
	return len(p), err
}

func (b *base) rename(text string) string {
	if b == nil || b.shown == "" {
		return text
	}
	text = strings.ReplaceAll(text, b.dir+string(filepath.Separator), b.shown+":")
	text = strings.ReplaceAll(text, filepath.ToSlash(b.dir)+"/", b.shown+":")
	return strings.ReplaceAll(text, b.dir, b.shown)
}

// adopt adds the errors found in the base to the worker. Readers of a report cannot open their files, so positions become text.
func adopt(w *session.Worker, b *base, other *session.Worker) {
	found, _ := other.Console.Findings()
	for _, f := range found {
		if f.Severity != finding.Error {
			continue
		}
		f.Message, f.Fix = b.rename(f.Message), b.rename(f.Fix)
		if f.Pos.File != "" && b.shown != "" {
			f.Message = b.rename(f.Pos.String()) + ": " + f.Message
			f.Pos, f.Line, f.Related = manifest.Pos{}, "", nil
		}
		w.Console.Keep(f)
	}
	w.Unreadable, w.Unusable = other.Unreadable, other.Unusable
}
