package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// maxTop bounds how far up the top of a working tree is looked for.
const maxTop = 100

// Top returns the top of the working tree that a file or directory is in, with links resolved. It returns false for
// names outside of working trees.
func Top(name string) (string, bool) {
	at := RealPath(name)
	for range maxTop {
		if _, err := os.Lstat(filepath.Join(at, gitDirName)); err == nil {
			return at, true
		}
		parent := filepath.Dir(at)
		if parent == at {
			break
		}
		at = parent
	}
	return "", false
}

// RevisionError is a revision that cannot be read from a working tree's repository.
type RevisionError struct {
	Revision string
	Err      error
	hint     string
}

func (e *RevisionError) Error() string { return fmt.Sprintf("revision %q: %v", e.Revision, e.Err) }

func (e *RevisionError) Unwrap() error { return e.Err }

// Hint returns advice on how to get the revision.
func (e *RevisionError) Hint() string { return e.hint }

var (
	errNoRevision  = errors.New("the repository has no such revision")
	errNotInClone  = errors.New("the clone does not contain it")
	errNoFileThere = errors.New("the clone does not contain its files")
)

// HasRevision reports whether the repository of a working tree has a revision that can be read.
func HasRevision(top, revision string) bool {
	repo, err := openRepository(top)
	if err != nil {
		return false
	}
	_, err = repo.ResolveRevision(plumbing.Revision(revision))
	return err == nil
}

// OpenRevision writes the files of a revision of a working tree's repository into a temporary directory below parent.
// The directory counts as a working tree of that repository. Links that lead out of it are left out; submodules are empty
// directories. An error about the revision is a [*RevisionError].
func OpenRevision(ctx context.Context, top, revision, parent string) (*fetch.Tree, error) {
	repo, commit, err := findRevision(top, revision)
	if err != nil {
		return nil, err
	}
	t, err := fetch.NewTree(parent)
	if err != nil {
		return nil, err
	}
	k := &checkout{objects: repo.Storer, root: t.Root, limits: Limits{Files: tree.DefaultEntries, Unpacked: tree.DefaultTotal}, links: true}
	err = k.write(ctx, commit.TreeHash, nil)
	if err == nil {
		err = linkGitDir(t.Root, top)
	}
	if err != nil {
		return nil, errors.Join(revisionError(top, revision, err), t.Close())
	}
	t.Files, t.Revision, t.Time = k.files, "sha1:"+commit.Hash.String(), commit.Committer.When
	return t, nil
}

func findRevision(top, revision string) (*git.Repository, *object.Commit, error) {
	repo, err := openRepository(top)
	if err != nil {
		return nil, nil, &RevisionError{Revision: revision, Err: err}
	}
	hash, err := repo.ResolveRevision(plumbing.Revision(revision))
	if err != nil {
		return nil, nil, missingRevision(repo, top, revision, err)
	}
	commit, err := repo.CommitObject(*hash)
	if err != nil {
		return nil, nil, missingRevision(repo, top, revision, err)
	}
	return repo, commit, nil
}

// missingRevision returns the error for a missing revision: a clone may be shallow, or know a branch of its remote only.
func missingRevision(repo *git.Repository, top, revision string, err error) error {
	e := &RevisionError{Revision: revision, Err: errNoRevision}
	// A commit that has no parent to go back to is an io.EOF.
	if !errors.Is(err, plumbing.ErrReferenceNotFound) && !errors.Is(err, plumbing.ErrObjectNotFound) && !errors.Is(err, io.EOF) {
		e.Err = fmt.Errorf("%w: %w", errNoRevision, err)
	}
	if _, found := repo.ResolveRevision(plumbing.Revision("origin/" + revision)); found == nil {
		e.hint = "the clone has it as origin/" + revision
		return e
	}
	if shallow(top) {
		e.Err, e.hint = errNotInClone, unshallow
		return e
	}
	e.hint = "name a branch, a tag or a commit of the repository, such as origin/main or HEAD~1"
	return e
}

const unshallow = "the clone is shallow: 'git fetch --unshallow' completes it, and so does 'fetch-depth: 0' of actions/checkout"

// revisionError adds the likely reason to the error of a missing object.
func revisionError(top, revision string, err error) error {
	if !errors.Is(err, plumbing.ErrObjectNotFound) {
		return &RevisionError{Revision: revision, Err: err}
	}
	e := &RevisionError{Revision: revision, Err: errNoFileThere, hint: "the clone is a partial one: 'git checkout' of the revision fetches what is missing"}
	if shallow(top) {
		e.hint = unshallow
	}
	return e
}

func shallow(top string) bool {
	dir, err := gitDir(top)
	if err != nil {
		return false
	}
	if common := commonDir(dir); common != "" {
		dir = common
	}
	info, err := os.Stat(filepath.Join(dir, "shallow"))
	return err == nil && info.Size() > 0
}

// maxGitPath is longer than any path.
const maxGitPath = 64 << 10

// gitDir returns the Git directory of a working tree: a worktree or a submodule names its directory in a file.
func gitDir(top string) (string, error) {
	at := filepath.Join(top, gitDirName)
	text, err := file.ReadInside(at, maxGitPath)
	if errors.Is(err, file.ErrDirectory) {
		return at, nil
	}
	if err != nil {
		return "", err
	}
	dir, ok := strings.CutPrefix(string(text), "gitdir:")
	if !ok {
		return "", fmt.Errorf("%s: not a Git directory", at)
	}
	if dir = strings.TrimSpace(dir); !filepath.IsAbs(dir) {
		dir = filepath.Join(top, dir)
	}
	return dir, nil
}

// linkGitDir makes the directory a working tree of the repository: programs that ask for its origin get the same answer
// as in the working tree that is checked out.
func linkGitDir(root *os.Root, top string) error {
	dir, err := gitDir(top)
	if err != nil {
		return err
	}
	return root.WriteFile(gitDirName, []byte("gitdir: "+dir+"\n"), 0o600)
}
