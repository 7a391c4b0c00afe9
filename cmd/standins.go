package cmd

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
)

// replaced is what is in the place of the sources of an input: directories, and of Helm repositories the archives in them that
// count.
type replaced struct {
	directories map[store.Key]string
	archives    map[store.Key][]string
}

// replaceSources finds what --source and --source-dir replace in each cluster. Each of them has to replace something in one.
// What was rendered from --source-dir is part of it, though it may be of no source of the input.
func (a *app) replaceSources(o *runOptions, inputs []*load.Input, rendered map[*load.Input]map[store.Key]string) (map[*load.Input]replaced, error) {
	all := map[*load.Input]replaced{}
	used, filled := map[string]bool{}, false
	var failed error
	for _, in := range inputs {
		r := replaced{directories: map[store.Key]string{}, archives: map[store.Key][]string{}}
		for _, text := range o.fetch.sources {
			found, err := directoriesOf(in, []string{text})
			if err != nil {
				failed = err
				continue
			}
			used[text] = true
			maps.Copy(r.directories, found)
		}
		for _, s := range in.Rendered.Here {
			if key := store.NewKey(s.Kind, s.Namespace, s.Name); r.directories[key] == "" {
				r.directories[key] = s.Dir
			}
		}
		count, err := a.standIns(in, o, rendered[in], r)
		if err != nil {
			return nil, err
		}
		filled = filled || count > 0
		all[in] = r
	}
	switch {
	case slices.ContainsFunc(o.fetch.sources, func(text string) bool { return !used[text] }):
		return all, failed
	case o.fetch.sourceDir != "" && !filled:
		return all, &exit.UsageError{
			Err:    fmt.Errorf("--source-dir %s: it holds nothing of any source in the input", o.fetch.sourceDir),
			Advice: "name the artifacts directory that 'helmsrc fetch' wrote for these manifests, with its hidden directory .helmsrc",
		}
	}
	return all, nil
}

// standIns adds what --source-dir holds of the sources of an input, and returns how many that are. A --source for the same
// object counts more.
func (a *app) standIns(in *load.Input, o *runOptions, rendered map[store.Key]string, r replaced) (int, error) {
	dir := o.fetch.sourceDir
	st, err := a.openSourceDir(o, in.Cluster)
	if st == nil {
		return 0, err
	}
	defer st.Close()
	found, failures := reconcile.StandIns(st, a.now)
	if len(failures) > 0 {
		return 0, fmt.Errorf("--source-dir %s: %w", dir, errors.Join(failures...))
	}
	used := len(rendered)
	for key, archive := range rendered {
		if _, named := r.directories[key]; !named {
			r.directories[key] = archive
		}
	}
	for _, obj := range in.Replaceable() {
		key := store.NewKey(obj.Kind, obj.Namespace, obj.Name)
		standIn, ok := found[load.StoredKey(obj)]
		if !ok {
			continue
		}
		used++
		if _, named := r.directories[key]; named {
			continue
		}
		r.directories[key] = standIn.Path
		if standIn.Archives != nil {
			r.archives[key] = standIn.Archives
		}
	}
	return used, nil
}

// openSourceDir opens the directory of --source-dir, nil if there is none. Of a cluster that is its part, if it has one.
func (a *app) openSourceDir(o *runOptions, cluster string) (*store.Store, error) {
	dir := o.fetch.sourceDir
	if dir == "" {
		return nil, nil
	}
	if err := readable(dir, o.store.dir); err != nil {
		return nil, err
	}
	if part := clusterDir(dir, cluster); cluster != "" && isDir(part) {
		dir = part
	}
	st, err := store.Open(dir, store.Options{Kinds: reconcile.Kinds().Names(), Shared: reconcile.Kinds().WithoutArtifact(), Now: a.now})
	if err != nil {
		return nil, unusableStore("--source-dir", err)
	}
	if err := st.Load(); err != nil {
		return nil, exit.Usagef("--source-dir: %v", err)
	}
	return st, nil
}

// readable refuses what is no directory to read from: one that is missing, and the one that the run writes to.
func readable(dir, artifacts string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return exit.Usagef("--source-dir %s: no such directory", dir)
	case err != nil:
		return exit.Usagef("--source-dir: %v", err)
	case !info.IsDir():
		return exit.Usagef("--source-dir %s: it is not a directory", dir)
	}
	own, err := os.Stat(artifacts)
	if err == nil && os.SameFile(info, own) {
		return &exit.UsageError{
			Err:    fmt.Errorf("--source-dir %s: it is the artifacts directory of this run", filepath.ToSlash(dir)),
			Advice: "write to another one with --artifacts-dir",
		}
	}
	return nil
}
