package session

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
)

// Replaced holds the replacements of the sources of an input.
type Replaced = map[store.Key]reconcile.StandIn

// Replace finds the sources that the options replace in each cluster. It is an error if a replacement is unused in all
// clusters. Archives of the directory that were already rendered count as used, even without a source in the input.
func (w *Worker) Replace(o *Options, inputs []*load.Input, rendered map[*load.Input]map[store.Key]string) (map[*load.Input]Replaced, error) {
	all := map[*load.Input]Replaced{}
	used, said, filled := map[load.Source]bool{}, map[string]bool{}, false
	var failed error
	for _, in := range inputs {
		r := Replaced{}
		for _, s := range o.Load.Sources {
			key, err := replacedBy(in, s)
			dir, unknown := filepath.Abs(s.Dir)
			if err = cmp.Or(err, unknown); err != nil {
				failed = sourceError(s, err, "")
				continue
			}
			r[key], used[s] = reconcile.StandIn{Path: dir}, true
		}
		for _, s := range in.Rendered.Here {
			if key := store.NewKey(s.Kind, s.Namespace, s.Name); r[key].Path == "" {
				r[key] = reconcile.StandIn{Path: s.Dir}
			}
		}
		w.checkouts(in, r, said)
		count, err := w.standIns(in, o, rendered[in], r)
		if err != nil {
			return nil, err
		}
		filled = filled || count > 0
		all[in] = r
	}
	switch {
	case slices.ContainsFunc(o.Load.Sources, func(s load.Source) bool { return !used[s] }):
		return all, failed
	case o.SourceDir != "" && !filled:
		return all, &exit.UsageError{
			Option: "source-dir", Value: o.SourceDir, Err: errors.New("it contains no artifact of a source in the input"),
			Advice: "name the artifacts directory that 'helmsrc fetch' wrote for these manifests, with its hidden directory .helmsrc",
		}
	}
	return all, nil
}

// checkouts replaces sources of Flux 1 that are the input's own repository by its checkout, and reports each URL once.
func (w *Worker) checkouts(in *load.Input, r Replaced, said map[string]bool) {
	for _, obj := range in.Replaceable() {
		key := store.NewKey(obj.Kind, obj.Namespace, obj.Name)
		if obj.Kind != sourcev1.GitRepositoryKind || obj.Origin == nil || r[key].Path != "" {
			continue
		}
		root := in.Rendered.CheckoutOf(obj.Origin)
		if root == "" {
			continue
		}
		r[key] = reconcile.StandIn{Path: root}
		if url := auth.RedactText(fmt.Sprint(obj.Content["spec"].(map[string]any)["url"])); !said[url] {
			said[url] = true
			w.Console.Info(console.Subject{}, url+" is this repository: HelmReleases of Flux 1 take their charts from the files here")
		}
	}
}

func sourceError(s load.Source, err error, advice string) error {
	if _, ok := errors.AsType[*exit.UsageError](err); ok {
		return err
	}
	return &exit.UsageError{Option: "source", Value: s.Text + "=" + s.Dir, Err: err, Advice: advice}
}

// replacedBy returns the object that a directory replaces. It is an error if there is not exactly one.
func replacedBy(in *load.Input, s load.Source) (store.Key, error) {
	var found []string
	var key store.Key
	for _, obj := range in.Replaceable() {
		if s.Matches(obj) {
			found, key = append(found, obj.CalledText()), store.NewKey(obj.Kind, obj.Namespace, obj.Name)
		}
	}
	switch taken := takenAlone(in, s.Selector); {
	case len(found) == 1:
		return key, nil
	case len(found) > 1:
		slices.Sort(found)
		e := &exit.UsageError{
			Option: "source", Value: s.Text + "=" + s.Dir,
			Err: errors.New("several objects match: " + strings.Join(found, ", ")), Advice: "name its namespace: KIND/NAMESPACE/NAME=PATH",
		}
		return key, e
	case len(taken) == 1:
		return store.NewKey(s.Kind, taken[0], s.Name), nil
	case in.Rendered.Used(s.Rendered()): // Kustomizations or artifacts are built from it
		return store.NewKey(s.Kind, s.Namespace, s.Name), nil
	}
	return key, errors.New("no such object in the input")
}

// takenAlone returns the namespaces of the GitRepository that a source names, if only generators of the input refer to it: the
// object may exist only in the cluster.
func takenAlone(in *load.Input, s load.Selector) []string {
	if s.Kind != sourcev1.GitRepositoryKind {
		return nil
	}
	taken := in.Inventory.Taken(s.Kind, s.Name)
	return slices.DeleteFunc(taken, func(namespace string) bool { return s.Namespace != "" && s.Namespace != namespace })
}

// standIns adds the replacements from the source directory for an input, and returns their number. A source that is replaced
// by name takes precedence.
func (w *Worker) standIns(in *load.Input, o *Options, rendered map[store.Key]string, r Replaced) (int, error) {
	st, err := w.openSourceDir(o, in.Cluster)
	if st == nil {
		return 0, err
	}
	defer st.Close()
	found, failures := reconcile.StandIns(st, w.Edges.Now)
	if len(failures) > 0 {
		return 0, &exit.OptionError{Option: "source-dir", Value: o.SourceDir, Err: errors.Join(failures...)}
	}
	used := len(rendered)
	for key, archive := range rendered {
		if _, named := r[key]; !named {
			r[key] = reconcile.StandIn{Path: archive}
		}
	}
	for _, obj := range in.Replaceable() {
		key := store.NewKey(obj.Kind, obj.Namespace, obj.Name)
		standIn, ok := found[load.StoredKey(obj)]
		if !ok {
			continue
		}
		used++
		if _, named := r[key]; !named {
			r[key] = standIn
		}
	}
	return used, nil
}

// openSourceDir opens the directory that replaces sources, or returns nil. A cluster has its own part of it, if that exists.
func (w *Worker) openSourceDir(o *Options, cluster string) (*store.Store, error) {
	dir := o.SourceDir
	if dir == "" {
		return nil, nil
	}
	if err := readable(dir, o.Store.Dir); err != nil {
		return nil, err
	}
	if part := ClusterDir(dir, cluster); cluster != "" && file.IsDir(part) {
		dir = part
	}
	st, err := w.openStore(dir, store.Options{})
	if err != nil {
		return nil, Unusable("source-dir", err)
	}
	if err := st.Load(); err != nil {
		return nil, &exit.UsageError{Option: "source-dir", Err: err}
	}
	return st, nil
}

// readable returns an error for a missing directory, a file, and the directory that the run writes to.
func readable(dir, artifacts string) error {
	e := &exit.UsageError{Option: "source-dir", Value: dir}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		e.Err = errors.New("no such directory")
		return e
	case err != nil:
		e.Err, e.Value = err, ""
		return e
	case !info.IsDir():
		e.Err = errors.New("it is not a directory")
		return e
	}
	own, err := os.Stat(artifacts)
	if err == nil && os.SameFile(info, own) {
		e.Value, e.Err, e.Advice = filepath.ToSlash(dir), errors.New("it is the artifacts directory of this run"), finding.OtherArtifacts
		return e
	}
	return nil
}
