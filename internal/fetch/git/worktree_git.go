package git

import (
	"bufio"
	"crypto/sha1" // Git names its objects so
	"errors"
	"fmt"
	git "github.com/go-git/go-git/v5"
	gitconfig "github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/go-git/go-git/v5/plumbing/object"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/file"
)

// A gitFile is a regular file as Git sees it.
type gitFile struct {
	hash       string
	executable bool
	keepMode   bool // the file system does not know
}

// A gitHead is the commit that is checked out.
type gitHead struct {
	revision string
	commit   *object.Commit
	files    map[string]gitFile
	modules  map[string]plumbing.Hash
}

// A gitStatus is the state of a working tree in Git's index and head, before its files are read.
type gitStatus struct {
	index    map[string]gitFile // by name; with an empty hash it is a submodule
	keepMode bool
	head     *gitHead // nil before the first commit
}

func readStatus(repo *git.Repository) (*gitStatus, error) {
	config, err := repo.Config()
	if err != nil {
		return nil, err
	}
	s := &gitStatus{index: map[string]gitFile{}, keepMode: strings.EqualFold(config.Raw.Section("core").Option("filemode"), "false")}
	index, err := repo.Storer.Index()
	if err != nil {
		return nil, fmt.Errorf("git index: %w", err)
	}
	for _, e := range index.Entries {
		switch {
		case e.Mode == filemode.Submodule:
			s.index[e.Name] = gitFile{}
		case e.Mode.IsRegular() || e.Mode == filemode.Executable || e.Mode == filemode.Deprecated:
			s.index[e.Name] = gitFile{hash: e.Hash.String(), executable: e.Mode == filemode.Executable, keepMode: s.keepMode}
		}
	}
	s.head, err = readHead(repo)
	return s, err
}

func readHead(repo *git.Repository) (*gitHead, error) {
	ref, err := repo.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	h := &gitHead{revision: "sha1:" + ref.Hash().String(), files: map[string]gitFile{}, modules: map[string]plumbing.Hash{}}
	if ref.Name().IsBranch() {
		h.revision = ref.Name().Short() + "@" + h.revision
	}
	if h.commit, err = repo.CommitObject(ref.Hash()); err != nil {
		return nil, fmt.Errorf("commit %s: %w", ref.Hash(), err)
	}
	t, err := h.commit.Tree()
	if err != nil {
		return nil, err
	}
	return h, h.list(t)
}

func (h *gitHead) list(t *object.Tree) error {
	walker := object.NewTreeWalker(t, true, nil)
	defer walker.Close()
	for {
		name, e, err := walker.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case e.Mode == filemode.Submodule:
			h.modules[name] = e.Hash
		case e.Mode == filemode.Regular || e.Mode == filemode.Executable || e.Mode == filemode.Deprecated:
			h.files[name] = gitFile{hash: e.Hash.String(), executable: e.Mode == filemode.Executable}
		}
	}
}

// newBlobHash hashes as Git does, whose object names are digests with a header.
func newBlobHash(size int64) hash.Hash {
	h := sha1.New()
	h.Write(fmt.Appendf(nil, "blob %d\x00", size))
	return h
}

// entry copies a file, or the needed files of a submodule. It returns the file as a commit would hold it, and nil if
// there is no file.
func (w *worktree) entry(name string, s *gitStatus) (*gitFile, error) {
	tracked, known := s.index[name]
	if known && tracked.hash == "" {
		return nil, w.module(name, s)
	}
	return w.file(name, &tracked)
}

// module copies a submodule, or the empty directory that a clone without submodules has in its place. If the submodule
// differs from the commit that the parent names, the parent differs too.
func (w *worktree) module(name string, s *gitStatus) error {
	if err := w.to.MkdirAll(name, 0o700); err != nil {
		return err
	}
	dir := filepath.Join(w.dir, filepath.FromSlash(name))
	if _, err := w.from.Lstat(path.Join(name, gitDirName)); err != nil || !w.options.RecurseSubmodules {
		if w.options.RecurseSubmodules {
			w.warnings = append(w.warnings, "submodule "+name+" is not checked out, and left out")
		}
		return nil
	}
	if w.depth++; w.depth > maxSubmoduleDepth {
		return tooLarge("depth of submodules", maxSubmoduleDepth)
	}
	defer func() { w.depth-- }()
	repo, err := openRepository(dir)
	if err != nil {
		return err
	}
	sub := &worktree{ctx: w.ctx, dir: dir, options: w.options, limits: w.limits, skip: skipped(dir, w.options.SkipDirs), depth: w.depth}
	if sub.from, err = w.from.OpenRoot(name); err != nil {
		return err
	}
	defer func() { _ = sub.from.Close() }()
	if sub.to, err = w.to.OpenRoot(name); err != nil {
		return err
	}
	defer func() { _ = sub.to.Close() }()
	head, err := sub.copy(repo)
	if err != nil {
		return fmt.Errorf("submodule %s: %w", name, err)
	}
	w.count += sub.count
	w.warnings = append(w.warnings, sub.warnings...)
	for _, text := range sub.unread {
		w.unread = append(w.unread, "submodule "+name+": "+text)
	}
	if head == nil || s.head != nil && head.commit.Hash != s.head.modules[name] {
		s.head = nil
	}
	return nil
}

// untracked lists the regular files that the index does not have and no pattern ignores. Without a status there is no
// Git: it lists all.
func (w *worktree) untracked(s *gitStatus, patterns []gitignore.Pattern) ([]string, error) {
	walk := &ignoreWalk{worktree: w, status: s}
	err := walk.dir(".", patterns, 0)
	return walk.names, err
}

type ignoreWalk struct {
	*worktree
	status *gitStatus
	names  []string
	seen   int
}

func (w *ignoreWalk) dir(dir string, patterns []gitignore.Pattern, depth int) error {
	if depth > maxDepth {
		return tooLarge("depth of directories", maxDepth)
	}
	entries, err := fs.ReadDir(w.from.FS(), dir)
	if err != nil {
		return err
	}
	if w.seen += len(entries); w.seen > 4*w.limits.Entries {
		return fmt.Errorf("there are more than %d files", w.seen)
	}
	if w.status != nil {
		if patterns, err = w.withFile(patterns, dir); err != nil {
			return err
		}
	}
	matcher := gitignore.NewMatcher(patterns)
	for _, e := range entries {
		if w.ctx.Err() != nil {
			return fetch.EndOf(w.ctx)
		}
		name := path.Join(dir, e.Name())
		if e.Name() == gitDirName || w.skip[name] || w.foreign(name, e) || w.status != nil && matcher.Match(strings.Split(name, "/"), e.IsDir()) {
			continue
		}
		if e.IsDir() {
			if err := w.dir(name, patterns, depth+1); err != nil {
				return err
			}
		} else if !e.Type().IsRegular() {
			w.leaveOut(name, e)
		} else if !w.tracked(name) {
			w.names = append(w.names, name)
		}
	}
	return nil
}

// leaveOut reports an entry that is left out of a tree because it is not a regular file. Links that stay inside are not
// reported: every artifact is without them.
func (w *worktree) leaveOut(name string, e fs.DirEntry) {
	err := error(file.ErrIrregular)
	if e.Type()&fs.ModeSymlink != 0 {
		root := RealPath(w.dir)
		if repository, ok := file.Repository(root); ok {
			root = repository
		}
		if real, failed := filepath.EvalSymlinks(filepath.Join(w.dir, filepath.FromSlash(name))); failed != nil || file.Below(RealPath(real), root) {
			return
		}
		err = file.ErrOutside
	}
	w.unread = append(w.unread, fmt.Sprintf("%s: %v", name, err))
}

func (w *ignoreWalk) tracked(name string) bool {
	if w.status == nil {
		return false
	}
	_, found := w.status.index[name]
	return found
}

// foreign reports whether a directory is another repository, which this one does not look into.
func (w *ignoreWalk) foreign(name string, e fs.DirEntry) bool {
	if w.status == nil || !e.IsDir() {
		return false
	}
	_, err := w.from.Lstat(path.Join(name, gitDirName))
	return err == nil
}

// withFile adds the patterns of a directory's .gitignore. Git does not follow a link there.
func (w *ignoreWalk) withFile(patterns []gitignore.Pattern, dir string) ([]gitignore.Pattern, error) {
	name := path.Join(dir, ".gitignore")
	fi, err := w.from.Lstat(name)
	if file.Missing(err) || err == nil && fi.IsDir() {
		return patterns, nil
	}
	if err == nil && !fi.Mode().IsRegular() {
		w.leaveOut(name, fs.FileInfoToDirEntry(fi))
		return patterns, nil
	}
	f, err := file.OpenIn(w.from, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var domain []string
	if dir != "." {
		domain = strings.Split(dir, "/")
	}
	return readPatterns(slices.Clip(patterns), f, domain)
}

const maxIgnoreFile = 1 << 20

func readPatterns(patterns []gitignore.Pattern, from io.Reader, domain []string) ([]gitignore.Pattern, error) {
	lines := bufio.NewScanner(io.LimitReader(from, maxIgnoreFile))
	lines.Buffer(nil, maxIgnoreFile)
	for lines.Scan() {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			patterns = append(patterns, gitignore.ParsePattern(line, domain))
		}
	}
	return patterns, lines.Err()
}

// userPatterns reads the ignore files that are not in the working tree: the repository's own and the user's.
func (w *worktree) userPatterns(repo *git.Repository) ([]gitignore.Pattern, error) {
	var patterns []gitignore.Pattern
	for _, name := range w.globalIgnore(repo) {
		if name == os.DevNull {
			continue // no pattern is needed
		}
		var err error
		if patterns, err = w.addPatterns(patterns, name, file.Open); err != nil {
			return nil, err
		}
	}
	return w.addPatterns(patterns, filepath.Join(w.dir, gitDirName, "info", "exclude"), file.OpenInside)
}

// addPatterns adds the patterns of a file, if it exists. A file that cannot be opened is recorded in w.unread.
func (w *worktree) addPatterns(patterns []gitignore.Pattern, name string, open func(string) (*os.File, error)) ([]gitignore.Pattern, error) {
	f, err := open(name)
	if file.Missing(err) {
		return patterns, nil
	}
	if err != nil {
		w.unread = append(w.unread, fmt.Sprintf("%s: %v", name, withoutPath(err, name)))
		return patterns, nil
	}
	defer f.Close()
	if patterns, err = readPatterns(patterns, f, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return patterns, nil
}

// globalIgnore returns the file of core.excludesFile, or Git's default if it is not set.
func (w *worktree) globalIgnore(repo *git.Repository) []string {
	getenv := w.options.Getenv
	if getenv == nil {
		return nil
	}
	home, config := getenv("HOME"), getenv("XDG_CONFIG_HOME")
	if config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	excludes := ""
	for _, name := range []string{filepath.Join(config, "git", "config"), filepath.Join(home, ".gitconfig")} {
		if f, err := file.Open(name); err == nil && filepath.IsAbs(name) {
			if c, err := gitconfig.ReadConfig(io.LimitReader(f, maxIgnoreFile)); err == nil && c.Raw.Section("core").HasOption("excludesfile") {
				excludes = c.Raw.Section("core").Option("excludesfile")
			}
			_ = f.Close()
		}
	}
	if c, err := repo.Config(); err == nil && c.Raw.Section("core").HasOption("excludesfile") {
		excludes = c.Raw.Section("core").Option("excludesfile")
	}
	switch {
	case strings.HasPrefix(excludes, "~/"):
		return []string{filepath.Join(home, excludes[2:])}
	case excludes != "":
		return []string{excludes}
	case config != "":
		return []string{filepath.Join(config, "git", "ignore")}
	}
	return nil
}
