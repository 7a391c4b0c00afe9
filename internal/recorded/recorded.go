// Package recorded reads the records of artifacts directories, removes records without an object, and joins directories.
package recorded

import (
	"errors"
	"fmt"
	"slices"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// A Directory is the artifacts directory of a command, with the parts of clusters in it.
type Directory struct {
	w      *session.Worker
	o      *session.StoreOptions
	root   *store.Store
	stores []*store.Store // the parts of clusters
}

// Open opens an artifacts directory. The caller must close it.
func Open(w *session.Worker, o *session.StoreOptions) (*Directory, error) {
	root, err := w.Artifacts(o)
	if err != nil {
		return nil, err
	}
	return &Directory{w: w, o: o, root: root}, nil
}

// Close closes the directory and the parts of clusters.
func (d *Directory) Close() error {
	var errs []error
	for _, st := range append(d.stores, d.root) {
		errs = append(errs, st.Close())
	}
	return errors.Join(errs...)
}

// of opens the part of a cluster.
func (d *Directory) of(cluster string) (*store.Store, error) {
	st, err := d.w.ArtifactsOf(cluster, d.o, d.root)
	if err == nil && st != d.root {
		d.stores = append(d.stores, st)
	}
	return st, err
}

// done closes the part of a cluster before the directory is closed.
func (d *Directory) done(st *store.Store) {
	if st != d.root {
		_ = st.Close() // no write is pending
		d.stores = slices.DeleteFunc(d.stores, func(other *store.Store) bool { return other == st })
	}
}

// Objects returns the records of a cluster, as objects of a report.
func (d *Directory) Objects(cluster string) ([]report.Object, error) {
	results, err := d.results(cluster)
	if err != nil {
		return nil, err
	}
	return objects(d.w, results)
}

func objects(w *session.Worker, results []*reconcile.Result) ([]report.Object, error) {
	var list []report.Object
	for _, r := range results {
		whole, err := r.Whole()
		if err != nil {
			return nil, err
		}
		list = append(list, w.ResultObject(whole))
	}
	return list, nil
}

// results reads the records of a cluster.
func (d *Directory) results(cluster string) ([]*reconcile.Result, error) {
	st, err := d.of(cluster)
	if err != nil {
		return nil, err
	}
	results, failures := reconcile.Outlines(st, d.o.AddressOf(cluster), d.w.Edges.Now)
	for _, err := range failures {
		d.w.ReportStorage(finding.OddStorage, err)
	}
	d.w.WarnUnknownKinds(st, d.o.DirOf(cluster))
	for _, r := range results {
		r.Cluster = cluster
	}
	return results, nil
}

// A Selection holds the records of the objects that a command selects.
type Selection struct {
	w *session.Worker

	Results []*reconcile.Result
	Missing []missing // the objects that were never fetched
	Code    int       // the exit code of the inputs and the missing objects
}

// missing is an object without a record, and the name of its cluster, if that is shown.
type missing struct {
	object  *manifest.Object
	cluster string
}

// Objects returns the selected objects for a report.
func (s *Selection) Objects() ([]report.Object, error) {
	list, err := objects(s.w, s.Results)
	if err != nil {
		return nil, err
	}
	for _, m := range s.Missing {
		o := session.NewReportObject(m.object)
		o.State, o.Cluster = report.StateFailed, m.cluster
		list = append(list, o)
	}
	return list, nil
}

// Select returns the records of the objects that the selectors and the namespace of the options select, in the
// clusters of the options.
func (d *Directory) Select(o *load.Options, selectors []load.Selector) (*Selection, error) {
	clusters, err := d.clusters(o)
	if err != nil {
		return nil, err
	}
	var all []*reconcile.Result
	for _, name := range clusters {
		results, err := d.results(name)
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	if len(all) == 0 && !o.AllowEmpty {
		return nil, &exit.UsageError{
			Err:    fmt.Errorf("nothing is recorded in %s", d.o.Dir),
			Advice: finding.OtherOrEmpty,
		}
	}
	var recorded []*manifest.Object
	for _, r := range all {
		recorded = append(recorded, r.Object.Object)
	}
	for _, s := range selectors {
		if !slices.ContainsFunc(recorded, s.Matches) {
			return nil, &exit.UsageError{Err: &load.NoObjectError{Selector: s}}
		}
		if err := s.Ambiguous(recorded); err != nil {
			return nil, err
		}
	}
	return &Selection{w: d.w, Results: slices.DeleteFunc(all, func(r *reconcile.Result) bool {
		obj := r.Object.Object
		selected := len(selectors) == 0 || slices.ContainsFunc(selectors, func(s load.Selector) bool { return s.Matches(obj) })
		return !selected || o.Namespace != "" && o.Namespace != obj.Namespace
	})}, nil
}

// Clusters returns the names of the clusters that have parts of the directory.
func (d *Directory) Clusters() ([]string, error) { return d.root.Parts(session.ClustersDir) }

// clusters returns the clusters of the directory that the options select; "" is the directory itself, without parts.
func (d *Directory) clusters(o *load.Options) ([]string, error) {
	names, err := d.Clusters()
	if err != nil {
		return nil, &exit.UsageError{Option: "artifacts-dir", Err: err}
	}
	all := []*load.Cluster{}
	for _, name := range names {
		all = append(all, &load.Cluster{Name: name})
	}
	if len(o.Clusters) == 0 {
		return append([]string{""}, names...), nil
	}
	chosen, err := o.Choose(all)
	return load.NamesOf(chosen), err
}

// fetched reports whether fetch would record a selected object.
func fetched(in *load.Input, obj *manifest.Object) bool {
	return in.Wanted(obj) && !reconcile.HasNoStatus(obj) && !isOwnRepository(in, obj)
}

// isOwnRepository reports whether an object that no argument names is the source of a cluster's own repository, with a login that is only in
// the cluster.
func isOwnRepository(in *load.Input, obj *manifest.Object) bool {
	adm, err := in.Inventory.Admit(obj)
	return err == nil && len(in.Selectors) == 0 && validate.Home(adm, in.Set)
}

// OfInputs returns the records of the objects of inputs, in their order. It reports objects without a record, except those that
// fetch leaves out.
func (d *Directory) OfInputs(inputs []*load.Input) (*Selection, error) {
	found := &Selection{w: d.w}
	return found, d.w.Each(load.WithoutLoose(inputs), func(in *load.Input) error {
		all, err := d.results(in.Cluster)
		found.Code = exit.Worst(found.Code, in.Code)
		recorded := map[load.RecordID]*reconcile.Result{}
		for _, r := range all {
			recorded[load.Recorded(r.Object.Object)] = r
		}
		objects := in.Inventory.Objects()
		// fetch leaves the repository's own source out unless there is nothing else.
		others := slices.ContainsFunc(objects, func(obj *manifest.Object) bool { return fetched(in, obj) })
		for _, obj := range objects {
			if !in.Wanted(obj) {
				continue
			}
			result, known := recorded[load.RecordOf(obj)]
			switch {
			case known:
				found.Results = append(found.Results, result)
			case fetched(in, obj) || !others && !reconcile.HasNoStatus(obj):
				found.Missing = append(found.Missing, missing{obj, in.Cluster})
				found.Code = exit.Worst(found.Code, exit.Failed)
				f := validate.New(obj, finding.NeverFetched, "nothing is recorded for it: it was never fetched into this artifacts directory", "", obj.Excerpt("metadata", "name"))
				d.w.Console.ReportAs(f, console.Presentation{At: console.ObjectSubject(obj), Brief: true})
			}
		}
		return err
	})
}
