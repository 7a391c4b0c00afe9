package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/helmsrc/helmsrc/internal/fetch"
)

// maxDepth bounds how deep directories are nested: every access to a file costs a step for each directory above it.
const maxDepth = 128

// A selection lists the paths of a repository that are wanted; nil has all.
type selection []string

func newSelection(o Options) selection {
	if len(o.SparseCheckout) == 0 {
		return o.Only
	}
	var s selection
	for _, name := range o.SparseCheckout {
		s = append(s, path.Clean(strings.TrimPrefix(name, "./")))
	}
	return s
}

// partial reports whether not everything is wanted.
func (s selection) partial() bool { return s != nil }

// file reports whether a file is wanted: it is listed, or is in a directory that is.
func (s selection) file(name string) bool { return !s.partial() || within(name, s) }

// dir reports whether something in a directory may be wanted.
func (s selection) dir(name string) bool { return s.file(name) || above(name, s) }

func within(name string, list []string) bool {
	return slices.ContainsFunc(list, func(wanted string) bool {
		return wanted == "." || name == wanted || strings.HasPrefix(name, wanted+"/")
	})
}

func above(name string, list []string) bool {
	return slices.ContainsFunc(list, func(wanted string) bool { return strings.HasPrefix(wanted, name+"/") })
}

// gitWalk visits the selected entries below a tree, up to a limit of entries.
type gitWalk struct {
	ctx      context.Context
	objects  storer.EncodedObjectStorer
	selected selection
	visit    func(string, object.TreeEntry) error
	seen     int
	limit    int
}

// tree visits a tree. Directories come before their entries.
func (w *gitWalk) tree(hash plumbing.Hash, dir string, depth int) error {
	if depth > maxDepth {
		return tooLarge("depth of directories", maxDepth)
	}
	t, err := object.GetTree(w.objects, hash)
	if err != nil {
		return fmt.Errorf("tree %s: %w", hash, err)
	}
	for _, e := range t.Entries {
		if w.ctx.Err() != nil {
			return fetch.EndOf(w.ctx)
		}
		if err := checkEntryName(e.Name); err != nil {
			return err
		}
		if err := w.entry(path.Join(dir, e.Name), e, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *gitWalk) entry(name string, e object.TreeEntry, depth int) error {
	// Entries that are not selected count too: a tree that contains itself a hundred times on each level has no end.
	if w.seen++; w.seen > w.limit {
		return tooLarge("number of files", int64(w.limit))
	}
	isDir := e.Mode == filemode.Dir
	if isDir && !w.selected.dir(name) || !isDir && !w.selected.file(name) {
		return nil
	}
	if err := w.visit(name, e); err != nil || !isDir {
		return err
	}
	return w.tree(e.Hash, name, depth+1)
}

// checkEntryName refuses the names that Git refuses to check out.
func checkEntryName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || strings.EqualFold(name, ".git") ||
		!filepath.IsLocal(name) {
		return fmt.Errorf("the repository contains a file with the invalid name %q", name)
	}
	return nil
}

// blobs lists the files that are selected.
func (s *gitStore) blobs(ctx context.Context, hash plumbing.Hash, selected selection) ([]plumbing.Hash, error) {
	var list []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	w := &gitWalk{ctx: ctx, objects: s.objects, selected: selected, limit: s.limits.Files, visit: func(_ string, e object.TreeEntry) error {
		if e.Mode.IsFile() && !seen[e.Hash] {
			seen[e.Hash] = true
			list = append(list, e.Hash)
		}
		return nil
	}}
	err := w.tree(hash, "", 0)
	return list, err
}

// checkout writes the selected files of a commit, and of its submodules.
func (c *clone) checkout(ctx context.Context, store *gitStore, commit *object.Commit, into *fetch.Tree) error {
	k := &checkout{objects: store.objects, root: into.Root, limits: c.options.Limits}
	if err := k.write(ctx, commit.TreeHash, newSelection(c.options)); err != nil {
		return err
	}
	into.Files += k.files
	if err := checkSparse(into.Root, c.options.SparseCheckout); err != nil {
		return err
	}
	if !c.options.RecurseSubmodules || len(k.modules) == 0 {
		return nil
	}
	return c.submodules(ctx, store, commit, k.modules, into)
}

func checkSparse(root *os.Root, dirs []string) error {
	for _, dir := range dirs {
		name := path.Clean(strings.TrimPrefix(dir, "./"))
		if !filepath.IsLocal(name) {
			return NoDirectory(dir)
		}
		switch _, err := root.Stat(name); {
		case errors.Is(err, fs.ErrNotExist):
			return NoDirectory(dir)
		case err != nil:
			return err
		}
	}
	return nil
}

// KeepOnly removes all files from a tree that a sparse checkout of its commit would not have. Without directories it removes
// nothing.
func KeepOnly(root *os.Root, dirs []string) error {
	if err := checkSparse(root, dirs); err != nil || len(dirs) == 0 {
		return err
	}
	return newSelection(Options{SparseCheckout: dirs}).keep(root, ".")
}

func (s selection) keep(root *os.Root, dir string) error {
	entries, err := fs.ReadDir(root.FS(), dir)
	for _, e := range entries {
		switch name := path.Join(dir, e.Name()); {
		case err != nil:
			return err
		case s.file(name):
		case e.IsDir() && s.dir(name):
			err = s.keep(root, name)
		default:
			err = root.RemoveAll(name)
		}
	}
	return err
}

// checkout writes files below a root, and never outside it.
type checkout struct {
	objects storer.EncodedObjectStorer
	root    *os.Root
	limits  Limits
	links   bool // symbolic links that stay inside are created

	size    int64
	files   int
	modules []gitModule
}

type gitModule struct {
	path string
	hash plumbing.Hash
}

// write writes the selected entries below a tree.
func (k *checkout) write(ctx context.Context, tree plumbing.Hash, selected selection) error {
	w := &gitWalk{ctx: ctx, objects: k.objects, selected: selected, visit: k.entry, limit: k.limits.Files}
	return w.tree(tree, "", 0)
}

func (k *checkout) entry(name string, e object.TreeEntry) error {
	switch e.Mode {
	case filemode.Dir:
		return k.root.MkdirAll(name, 0o700)
	case filemode.Regular, filemode.Deprecated:
		return k.file(name, e.Hash, 0o600)
	case filemode.Executable:
		return k.file(name, e.Hash, 0o700)
	case filemode.Submodule:
		k.modules = append(k.modules, gitModule{name, e.Hash})
		return k.root.MkdirAll(name, 0o700)
	case filemode.Symlink:
		// Artifacts have no links. As in source-controller, they are silently left out.
		if k.links {
			return k.link(name, e.Hash)
		}
	}
	return nil
}

// open opens the content of a file, which counts.
func (k *checkout) open(name string, hash plumbing.Hash) (r io.ReadCloser, size int64, err error) {
	o, err := k.objects.EncodedObject(plumbing.BlobObject, hash)
	if err == nil {
		size = o.Size()
		r, err = o.Reader()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", name, err)
	}
	if k.size += size; k.size > k.limits.Unpacked {
		return nil, 0, errors.Join(tooLarge("unpacked size", k.limits.Unpacked), r.Close())
	}
	return r, size, nil
}

func (k *checkout) file(name string, hash plumbing.Hash, mode os.FileMode) error {
	r, size, err := k.open(name, hash)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	flag := os.O_TRUNC
	if k.links { // no file is written through a link
		flag = os.O_EXCL
	}
	f, err := k.root.OpenFile(name, os.O_CREATE|os.O_WRONLY|flag, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.LimitReader(r, size))
	k.files++
	return errors.Join(err, f.Close())
}

// link creates a link with a target inside the checkout. Where the system does not support links, it is left out.
func (k *checkout) link(name string, hash plumbing.Hash) error {
	r, size, err := k.open(name, hash)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if size > maxGitPath {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	target := string(text)
	if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) {
		return nil
	}
	if err := k.root.Symlink(filepath.FromSlash(target), name); errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
