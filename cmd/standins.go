package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
)

// standIns adds to the directories what --source-dir holds of the sources of the input, and returns the archives of its
// Helm repositories. A --source for the same object counts more. What was rendered from it is part of it, though it may be
// of no source of the input.
func (a *app) standIns(in *input, o *runOptions, rendered, directories map[store.Key]string) (map[store.Key][]string, error) {
	dir := o.fetch.sourceDir
	st, err := a.openSourceDir(o)
	if st == nil {
		return nil, err
	}
	defer st.Close()
	found, failures := reconcile.StandIns(st, a.now)
	if len(failures) > 0 {
		return nil, fmt.Errorf("--source-dir %s: %w", dir, errors.Join(failures...))
	}
	archives := map[store.Key][]string{}
	used := len(rendered)
	for key, archive := range rendered {
		if _, named := directories[key]; !named {
			directories[key] = archive
		}
	}
	for _, obj := range in.replaceable() {
		key := store.NewKey(obj.Kind, obj.Namespace, obj.Name)
		standIn, ok := found[storedKey(obj)]
		if !ok {
			continue
		}
		used++
		if _, named := directories[key]; named {
			continue
		}
		directories[key] = standIn.Path
		if standIn.Archives != nil {
			archives[key] = standIn.Archives
		}
	}
	if used == 0 {
		return nil, &usageError{
			err:  fmt.Errorf("--source-dir %s: it holds nothing of any source in the input", dir),
			hint: "name the artifacts directory that 'helmsrc fetch' wrote for these manifests, with its hidden directory .helmsrc",
		}
	}
	return archives, nil
}

// openSourceDir opens the directory of --source-dir, nil if there is none.
func (a *app) openSourceDir(o *runOptions) (*store.Store, error) {
	dir := o.fetch.sourceDir
	if dir == "" {
		return nil, nil
	}
	if err := readable(dir, o.store.dir); err != nil {
		return nil, err
	}
	st, err := store.Open(dir, store.Options{Kinds: reconcile.Kinds().Names(), Shared: reconcile.Kinds().WithoutArtifact(), Now: a.now})
	if err != nil {
		return nil, unusableStore("--source-dir", err)
	}
	if err := st.Load(); err != nil {
		return nil, usagef("--source-dir: %v", err)
	}
	return st, nil
}

// readable refuses what is no directory to read from: one that is missing, and the one that the run writes to.
func readable(dir, artifacts string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return usagef("--source-dir %s: no such directory", dir)
	case err != nil:
		return usagef("--source-dir: %v", err)
	case !info.IsDir():
		return usagef("--source-dir %s: it is not a directory", dir)
	}
	own, err := os.Stat(artifacts)
	if err == nil && os.SameFile(info, own) {
		return &usageError{
			err:  fmt.Errorf("--source-dir %s: it is the artifacts directory of this run", filepath.ToSlash(dir)),
			hint: "write to another one with --artifacts-dir",
		}
	}
	return nil
}
