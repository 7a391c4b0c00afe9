package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/session"
)

// base is where the manifests are that others are compared with: below dir, in the place of the files below root.
type base struct {
	root, dir string
	// whole is a directory that holds manifests and nothing else: it is read in the place of all others.
	whole bool
	// shown is what the files of a revision are called, "" for a directory.
	shown string
	// named are the files of the base, by what those of the input are called.
	named map[string]string
	close func()
}

// original is what the input calls a file of the base.
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

// openBase finds what --against names.
func (a *app) openBase(ctx context.Context, o *planOptions, given arguments) (*base, error) {
	name := o.against
	named := slices.Concat(splitNames(o.run.input.files), given.dirs, given.files)
	if isDir(name) && !calledDirectory(name) {
		if top, ok := topOf(named); ok && git.HasRevision(top, name) {
			return nil, &exit.UsageError{
				Err:    fmt.Errorf("--against %s: there is a directory and a revision of that name", name),
				Advice: fmt.Sprintf("write ./%s for the directory, or refs/heads/%s for a branch", name, name),
			}
		}
	}
	if isDir(name) {
		return directoryBase(name, named)
	}
	if calledDirectory(name) {
		return nil, exit.Usagef("--against %s: no such directory", name)
	}
	return a.revisionBase(ctx, o.shared, name, named)
}

// topOf is the repository that the input is in.
func topOf(named []string) (string, bool) {
	for _, name := range named {
		if name != "-" {
			return git.Top(name)
		}
	}
	return git.Top(".")
}

// directoryBase takes a directory for a copy of the repository if it is a working tree, or has one of the files.
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
		if at, ok := b.locate(name); ok && len(matches(at)) > 0 && !sameFile(at, name) {
			return b, nil
		}
	}
	b.whole = true
	return b, nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func (a *app) revisionBase(ctx context.Context, shared *session.Session, revision string, named []string) (*base, error) {
	top, ok := topOf(named)
	if !ok {
		return nil, &exit.UsageError{
			Err:    fmt.Errorf("--against %s: there is no such directory, and the manifests are in no Git repository", revision),
			Advice: "name a directory with the manifests as they were",
		}
	}
	parent, err := shared.Dir()
	if err != nil {
		return nil, err
	}
	t, err := git.OpenRevision(ctx, top, revision, parent)
	var missing *git.RevisionError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &missing):
		return nil, &exit.UsageError{Err: fmt.Errorf("--against: %w", err), Advice: missing.Hint()}
	case err != nil:
		return nil, err
	}
	return &base{root: top, dir: t.Dir(), shown: revision, named: map[string]string{}, close: func() {
		if err := t.Close(); err != nil {
			a.console.Debug(console.Subject{}, err.Error())
		}
	}}, nil
}

// locate returns where a file of the input is in the base. It is false for one outside of the repository.
func (b *base) locate(name string) (string, bool) {
	rel, err := filepath.Rel(b.root, git.RealPath(name))
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.Join(b.dir, rel), true
}

// matches are the files that a name or a pattern means.
func matches(name string) []string {
	if exists(name) {
		return []string{name}
	}
	found, err := filepath.Glob(name)
	if err != nil {
		return nil
	}
	return found
}

// options are those of the input, for the base. It is nil if the base has none of the files.
func (b *base) options(o *planOptions, given arguments) (*inputOptions, []string, error) {
	mapped := o.run.input
	mapped.files, mapped.LookupDirs = nil, nil
	var args []string
	for _, s := range given.selectors {
		args = append(args, s.Text)
	}
	if b.whole {
		mapped.files = []string{b.dir}
		return &mapped, args, nil
	}
	for _, name := range slices.Concat(splitNames(o.run.input.files), given.dirs) {
		if name == "-" {
			return nil, nil, &exit.UsageError{Err: errors.New("--against: standard input has no earlier state"), Advice: "name files with -f"}
		}
		at, ok := b.locate(name)
		if !ok {
			return nil, nil, &exit.UsageError{
				Err:    fmt.Errorf("--against %s: %s is not in the repository %s", o.against, name, filepath.Base(b.root)),
				Advice: "name a directory with the manifests as they were",
			}
		}
		mapped.files = append(mapped.files, matches(at)...)
		b.named[at] = name
	}
	for _, name := range given.files {
		if at, ok := b.locate(name); ok && exists(at) {
			args = append(args, at)
			b.named[at] = name
		}
	}
	for _, dir := range o.run.input.LookupDirs {
		if at, ok := b.locate(dir); ok && isDir(at) {
			mapped.LookupDirs = append(mapped.LookupDirs, at)
		} else if !ok {
			mapped.LookupDirs = append(mapped.LookupDirs, dir)
		}
	}
	if len(mapped.files) == 0 && len(args) == len(given.selectors) {
		return nil, nil, nil
	}
	return &mapped, args, nil
}

// sources are the values of --source for the base: what is in the repository is there as it was.
func (b *base) sources(values []string) []string {
	var list []string
	for _, text := range values {
		ref, path, ok := strings.Cut(text, "=")
		if !ok {
			continue
		}
		if at, inside := b.locate(path); inside && !b.whole {
			if !exists(at) {
				continue
			}
			path = at
		}
		list = append(list, ref+"="+path)
	}
	return list
}

// apart is an app that prints errors alone, with the files of the base as they are called there, and keeps what it
// found to itself.
func (a *app) apart(b *base, silent bool) *app {
	other := *a
	other.console = a.console.Apart(func(w io.Writer) io.Writer {
		switch {
		case silent:
			return io.Discard
		case b.shown != "":
			return &renaming{w, b}
		}
		return w
	})
	other.worker.Console = other.console
	return &other
}

// renaming shows the files of a revision as REVISION:FILE.
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

// adopt takes over what was found in the base. It is in no file that a reader of a report could open.
func (a *app) adopt(b *base, other *app) {
	found, _ := other.console.Findings()
	for _, f := range found {
		if f.Severity != finding.Error {
			continue
		}
		f.Message, f.Fix = b.rename(f.Message), b.rename(f.Fix)
		if f.Pos.File != "" && b.shown != "" {
			f.Message = b.rename(f.Pos.String()) + ": " + f.Message
			f.Pos, f.Line, f.Related = manifest.Pos{}, "", nil
		}
		a.console.Keep(f)
	}
	a.worker.Unreadable, a.worker.Unusable = other.worker.Unreadable, other.worker.Unusable
}
