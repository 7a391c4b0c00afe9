package git

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	git "github.com/go-git/go-git/v5"
	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// WorktreeOptions say how a local directory takes the place of a Git repository or a bucket.
type WorktreeOptions struct {
	// Plain takes all files, as for a bucket, regardless of Git.
	Plain             bool
	RecurseSubmodules bool
	// SkipDirs are left out, with all files in them. They need not be in the directory.
	SkipDirs []string
	// Getenv locates the user's own ignore patterns; with nil they are not read.
	Getenv  func(string) string
	TempDir string
}

// OpenWorktree copies the files that a commit of everything in a directory would hold: the files that Git tracks, and
// the files that it does not ignore. If they are equal to the checked-out commit, byte by byte, the revision is the
// commit's, else a digest of the content. A directory that is not the top of a working tree is taken as a whole,
// without the files of version control.
func OpenWorktree(ctx context.Context, dir string, o WorktreeOptions) (*fetch.Tree, error) {
	t, err := openWorktree(ctx, dir, o)
	if err != nil {
		return nil, fmt.Errorf("failed to read directory '%s': %w", dir, withoutPath(err, dir))
	}
	return t, nil
}

// withoutPath keeps an error from naming the directory twice.
func withoutPath(err error, dir string) error {
	var e *fs.PathError
	if errors.As(err, &e) && (e.Path == dir || e.Path == ".") {
		return e.Err
	}
	return err
}

func openWorktree(ctx context.Context, dir string, o WorktreeOptions) (*fetch.Tree, error) {
	from, err := file.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	t, err := fetch.NewTree(o.TempDir)
	if err != nil {
		return nil, err
	}
	if err := readWorktree(ctx, t, dir, from, o); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func readWorktree(ctx context.Context, t *fetch.Tree, dir string, from *os.Root, o WorktreeOptions) error {
	allowed := fetch.TreeLimits(tree.Limits{})
	limits := worktreeLimits{allowed, allowed.Entries, allowed.Total}
	w := &worktree{ctx: ctx, dir: dir, from: from, to: t.Root, options: o, limits: &limits, skip: skipped(dir, append(slices.Clone(o.SkipDirs), t.Dir()))}
	var repo *git.Repository
	if _, err := from.Lstat(gitDirName); err == nil && !o.Plain {
		if repo, err = openRepository(dir); err != nil {
			return err
		}
	}
	head, err := w.copy(repo)
	if err != nil {
		return err
	}
	t.Files, t.Warnings, t.Unread = w.count, w.warnings, w.unread
	if head != nil {
		t.Revision, t.Time = head.revision, head.commit.Committer.When
		t.Subject, _, _ = strings.Cut(head.commit.Message, "\n")
		return nil
	}
	sum, err := tree.Sum(ctx, godigest.SHA256, t.Root, tree.Options{Limits: limits.Limits})
	t.Revision = sum.String()
	return err
}

const gitDirName = ".git"

// skipped returns the names of the skipped directories that are below dir.
func skipped(dir string, skip []string) map[string]bool {
	names := map[string]bool{}
	for _, d := range skip {
		if name, ok := below(dir, d); ok && name != "." {
			names[name] = true
		}
	}
	return names
}

func below(dir, other string) (string, bool) {
	rel, err := filepath.Rel(RealPath(dir), RealPath(other))
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// RealPath returns a path as an absolute one without links, as far as there are files.
func RealPath(name string) string {
	abs, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	parent := filepath.Dir(abs)
	if parent == abs {
		return abs
	}
	return filepath.Join(RealPath(parent), filepath.Base(abs))
}

// worktreeLimits count down over submodules.
type worktreeLimits struct {
	tree.Limits
	entries int
	total   int64
}

// worktree copies one working tree, or a submodule's.
type worktree struct {
	ctx     context.Context
	dir     string
	from    *os.Root
	to      *os.Root // nil where the files are only compared
	options WorktreeOptions
	limits  *worktreeLimits
	skip    map[string]bool
	depth   int

	count    int
	warnings []string
	unread   []string
}

// copy returns the commit that the copy is equal to, or nil.
func (w *worktree) copy(repo *git.Repository) (*gitHead, error) {
	if repo == nil {
		names, err := w.untracked(nil, nil)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if _, err := w.file(name, nil); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	status, err := readStatus(repo)
	if err != nil {
		return nil, err
	}
	names, err := w.names(repo, status)
	if err != nil {
		return nil, err
	}
	clean := true
	copied := map[string]bool{}
	for _, name := range names {
		f, err := w.entry(name, status)
		if err != nil {
			return nil, err
		}
		if f == nil {
			continue
		}
		copied[name] = true
		clean = clean && status.head != nil && status.head.files[name] == *f
	}
	if !clean || status.head == nil || !w.whole(status.head, copied) {
		return nil, nil
	}
	return status.head, nil
}

// whole reports whether no file of the commit is missing.
func (w *worktree) whole(head *gitHead, copied map[string]bool) bool {
	for name := range head.files {
		if !copied[name] && !w.skips(name) {
			return false
		}
	}
	return true
}

func (w *worktree) skips(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if w.skip[name] {
			return true
		}
	}
	return false
}

// names lists the files that Git tracks, and the files that it does not ignore.
func (w *worktree) names(repo *git.Repository, status *gitStatus) ([]string, error) {
	patterns, err := w.userPatterns(repo)
	if err != nil {
		return nil, err
	}
	names, err := w.untracked(status, patterns)
	if err != nil {
		return nil, err
	}
	for name := range status.index {
		if !w.skips(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// file copies one file. It returns nil if the file is missing or not a regular file.
func (w *worktree) file(name string, tracked *gitFile) (*gitFile, error) {
	fi, err := w.from.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !fi.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := w.limits.spend(name, fi.Size()); err != nil {
		return nil, err
	}
	f, err := file.OpenIn(w.from, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if now, err := f.Stat(); err != nil || !os.SameFile(fi, now) {
		return nil, errors.Join(fmt.Errorf("%s: changed while it was read", name), err)
	}
	// The executable bit is that of the index, where the file system has no such bit.
	got := &gitFile{executable: fi.Mode()&0o111 != 0}
	if tracked != nil && tracked.keepMode {
		got.executable = tracked.executable
	}
	got.hash, err = w.copyFile(name, f, fi.Size(), got.executable)
	w.count++
	return got, err
}

func (w *worktree) copyFile(name string, f *os.File, size int64, executable bool) (string, error) {
	hash := newBlobHash(size)
	if w.to == nil {
		return w.copyTo(hash, hash, name, f, size)
	}
	if err := w.to.MkdirAll(path.Dir(name), 0o700); err != nil {
		return "", err
	}
	mode := os.FileMode(0o600)
	if executable {
		mode = 0o700
	}
	to, err := w.to.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	sum, err := w.copyTo(io.MultiWriter(to, hash), hash, name, f, size)
	return sum, errors.Join(err, to.Close())
}

// copyTo copies a file, and returns its hash.
func (w *worktree) copyTo(to io.Writer, sum hash.Hash, name string, f *os.File, size int64) (string, error) {
	n, err := io.CopyBuffer(to, io.LimitReader(interruptedFile{f, w.ctx}, size+1), make([]byte, copyBuffer))
	if err == nil && n != size {
		err = fmt.Errorf("%s: changed while it was read", name)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), err
}

const copyBuffer = 64 << 10

func (l *worktreeLimits) spend(name string, size int64) error {
	if size > l.File {
		return fmt.Errorf("%s: has %d bytes, more than %d", name, size, l.File)
	}
	if l.entries--; l.entries < 0 {
		return fmt.Errorf("there are more than %d files", l.Entries)
	}
	if l.total -= size; l.total < 0 {
		return fmt.Errorf("the files have more than %d bytes", l.Total)
	}
	return nil
}
