package git

import (
	"context"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// ChangedSince compares the files of a working tree with a revision of its repository, by content. It returns the files that are new or
// different, and those missing from the working tree, relative to the top and with slashes. Files that Git ignores are left out, and so
// are links and submodules. An error about the revision is a [*RevisionError]; limits of trees hold for the files.
func ChangedSince(ctx context.Context, top, revision string, getenv func(string) string) (changed, gone []string, err error) {
	repo, commit, err := findRevision(top, revision)
	if err != nil {
		return nil, nil, err
	}
	t, err := commit.Tree()
	if err != nil {
		return nil, nil, revisionError(top, revision, err)
	}
	before := &gitHead{files: map[string]gitFile{}, modules: map[string]plumbing.Hash{}}
	if err := before.list(t); err != nil {
		return nil, nil, revisionError(top, revision, err)
	}
	status, err := readStatus(repo)
	if err != nil {
		return nil, nil, err
	}
	from, err := file.OpenRoot(top)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = from.Close() }()
	limits := fetch.TreeLimits(tree.Limits{})
	w := &worktree{ctx: ctx, dir: top, from: from, options: WorktreeOptions{Getenv: getenv}, limits: &worktreeLimits{limits, limits.Entries, limits.Total}}
	names, err := w.names(repo, status)
	if err != nil {
		return nil, nil, err
	}
	there := map[string]bool{}
	for _, name := range names {
		f, err := w.file(name, nil)
		if err != nil {
			return nil, nil, err
		}
		if f == nil {
			continue
		}
		if there[name] = true; before.files[name].hash != f.hash {
			changed = append(changed, name)
		}
	}
	for name := range before.files {
		if !there[name] {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return changed, gone, nil
}
