package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/helmsrc/helmsrc/internal/file"
)

// maxHeldObject is the size in bytes from which an object is streamed.
const maxHeldObject = 1 << 20

// openRepository opens the repository of a working tree, also of one of `git worktree add`. It does not wait for pipes or
// devices: an index, a reference or an object that is one is an error.
func openRepository(top string) (*git.Repository, error) {
	repo, err := openStorage(top)
	if err != nil {
		return nil, fmt.Errorf("not a Git working tree that can be read: %w", err)
	}
	return repo, nil
}

func openStorage(top string) (*git.Repository, error) {
	dir, err := gitDir(top)
	if err != nil {
		return nil, err
	}
	if _, err := file.ReadInside(filepath.Join(dir, "HEAD"), maxGitPath); err != nil && !file.Missing(err) {
		return nil, err // go-git would say that there is no repository
	}
	var own billy.Filesystem = regular{osfs.New(dir)}
	if common := commonDir(dir); common != "" {
		own = dotgit.NewRepositoryFilesystem(own, regular{osfs.New(common)})
	}
	storage := filesystem.NewStorageWithOptions(own, cache.NewObjectLRUDefault(), filesystem.Options{LargeObjectThreshold: maxHeldObject})
	return git.Open(storage, osfs.New(top))
}

// commonDir returns the directory that a worktree of `git worktree add` shares with its repository, "" if it has no such file.
func commonDir(dir string) string {
	text, err := file.ReadInside(filepath.Join(dir, "commondir"), maxGitPath)
	common := strings.TrimSpace(string(text))
	if err != nil || common == "" || filepath.IsAbs(common) {
		return common
	}
	return filepath.Join(dir, common)
}

// regular opens only regular files, because others can block forever, and follows no link that leads out of the
// repository.
type regular struct{ billy.Filesystem }

func (r regular) Open(name string) (billy.File, error) { return r.OpenFile(name, os.O_RDONLY, 0) }

func (r regular) OpenFile(name string, flag int, mode os.FileMode) (billy.File, error) {
	f, err := file.OpenInside(filepath.Join(r.Root(), name))
	if err == nil {
		err = f.Close()
	}
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return r.Filesystem.OpenFile(name, flag, mode)
}
