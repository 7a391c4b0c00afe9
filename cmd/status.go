package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"

	"github.com/helmsrc/helmsrc/internal/session"
)

func newStatusCommand(a *app) *cobra.Command {
	var in inputOptions
	var out outputOptions
	var reports reportOptions
	storage := storeOptions{}
	c := &cobra.Command{
		Use:     "status [-f FILE...] [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupArtifacts,
		Short:   "Print the recorded status, each artifact checked on disk",
		Long: `Print what earlier runs left in the artifacts directory: of all objects, or of
those in the manifests given with -f. Nothing is fetched and nothing is written.

Exit code 1 tells that an object is not ready or was never fetched, 3 that a
stored artifact is altered.`,
		Example: `  helmsrc status
  helmsrc status -f helmchart.yaml -o table`,
	}
	in.add(c.Flags())
	in.render.addSources(c.Flags())
	out.addFormat(c.Flags())
	reports.add(c.Flags())
	storage.addDir(c.Flags())
	storage.addAddress(c.Flags())
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := out.check(a.env); err != nil {
			return exit.Usage, err
		}
		if err := reports.check(true); err != nil {
			return exit.Usage, err
		}
		if err := storage.check(a); err != nil {
			return exit.Usage, err
		}
		return a.status(ctx, &in, &out, &storage, &reports, args)
	})
	return c
}

func (a *app) status(ctx context.Context, o *inputOptions, out *outputOptions, storage *storeOptions, reports *reportOptions, args []string) (int, error) {
	root, err := a.worker.Artifacts(&storage.StoreOptions)
	if err != nil {
		return exit.Usage, err
	}
	defer root.Close()
	found := &remembered{}
	defer found.close()
	if err := a.selectRemembered(ctx, o, storage, root, args, found); err != nil {
		return exit.Usage, err
	}
	for _, r := range found.results {
		a.console.ConcealNames([]*manifest.Object{r.Object.Object})
	}
	code := found.code
	var failures []finding.Finding
	for _, r := range found.results {
		if f, ok := r.FailureFinding(); ok && r.State == reconcile.Failed {
			failures = append(failures, f)
		}
		code = exit.Worst(code, session.CodeOf(r))
	}
	a.console.ReportAlike(finding.Fold(failures), console.Presentation{})
	a.console.Unite()
	printed := a.printDocuments(out)(found.results)
	if o.exitZero && code != exit.Usage {
		code = exit.OK
	}
	if printed != nil {
		printed = fmt.Errorf("stdout: %w", printed)
	}
	objects, err := a.rememberedObjects(found, reports)
	code = a.report(ctx, reports, a.newReport(objects), nil, code)
	return code, errors.Join(printed, err)
}

// rememberedObjects are the objects of a report, none if there is no report.
func (a *app) rememberedObjects(found *remembered, reports *reportOptions) ([]report.Object, error) {
	if !a.reports(reports) {
		return nil, nil
	}
	objects, err := a.wholeObjects(found.results)
	if err != nil {
		return nil, err
	}
	for _, obj := range found.missing {
		o := session.NewReportObject(obj)
		o.State = report.StateFailed
		objects = append(objects, o)
	}
	return objects, nil
}

func (a *app) wholeObjects(results []*reconcile.Result) ([]report.Object, error) {
	var objects []report.Object
	for _, r := range results {
		whole, err := r.Whole()
		if err != nil {
			return nil, err
		}
		objects = append(objects, a.worker.ResultObject(whole))
	}
	return objects, nil
}

// remembered is what status is about.
type remembered struct {
	results []*reconcile.Result
	missing []*manifest.Object // that were never fetched
	code    int                // of what went wrong on the way
	stores  []*store.Store     // of clusters
}

func (r *remembered) close() {
	for _, st := range r.stores {
		_ = st.Close() // nothing was written through it
	}
}

// remembered reads what an artifacts directory remembers of a cluster.
func (a *app) remembered(storage *storeOptions, root *store.Store, cluster string, found *remembered) ([]*reconcile.Result, error) {
	st, err := a.worker.ArtifactsOf(cluster, &storage.StoreOptions, root)
	if err != nil {
		return nil, err
	}
	if st != root {
		found.stores = append(found.stores, st)
	}
	results, failures := reconcile.Outlines(st, storage.AddressOf(cluster), a.now)
	for _, err := range failures {
		a.worker.ReportStorage(finding.OddStorage, err)
	}
	a.worker.WarnUnknownKinds(st, storage.DirOf(cluster))
	for _, r := range results {
		r.Cluster = cluster
	}
	return results, nil
}

// selectRemembered keeps what the arguments, the namespace and the manifests ask
// for, in the order of the manifests if there are any.
func (a *app) selectRemembered(ctx context.Context, o *inputOptions, storage *storeOptions, root *store.Store, args []string, found *remembered) error {
	given, err := splitArguments(args, false) // without -f an argument is what is recorded
	if err != nil {
		return err
	}
	selectors, dir := given.selectors, storage.Dir
	if len(o.files)+len(given.files)+len(given.dirs) > 0 {
		return a.rememberedOfInput(ctx, o, storage, root, args, found)
	}
	var all []*reconcile.Result
	clusters, err := o.stored(root)
	if err != nil {
		return err
	}
	for _, name := range clusters {
		results, err := a.remembered(storage, root, name, found)
		if err != nil {
			return err
		}
		all = append(all, results...)
	}
	if len(all) == 0 && !o.AllowEmpty {
		return &exit.UsageError{
			Err:    fmt.Errorf("nothing is recorded in %s", dir),
			Advice: "-d names another artifacts directory; --allow-empty accepts an empty one",
		}
	}
	for _, s := range selectors {
		if !slices.ContainsFunc(all, func(r *reconcile.Result) bool { return s.Matches(r.Object.Object) }) {
			return &exit.UsageError{Err: fmt.Errorf("%s: nothing is recorded of such an object", s.Text), Advice: meant(s.Text)}
		}
	}
	var recorded []*manifest.Object
	for _, r := range all {
		recorded = append(recorded, r.Object.Object)
	}
	for _, s := range selectors {
		if err := s.Ambiguous(recorded); err != nil {
			return err
		}
	}
	found.results = slices.DeleteFunc(all, func(r *reconcile.Result) bool {
		obj := r.Object.Object
		selected := len(selectors) == 0 || slices.ContainsFunc(selectors, func(s load.Selector) bool { return s.Matches(obj) })
		return !selected || o.Namespace != "" && o.Namespace != obj.Namespace
	})
	return nil
}

func (a *app) rememberedOfInput(ctx context.Context, o *inputOptions, storage *storeOptions, root *store.Store, args []string, found *remembered) error {
	inputs, err := a.readClusters(ctx, o, args, storage.Dir)
	if err == nil {
		err = o.CheckSelected(inputs)
	}
	if err != nil {
		return err
	}
	return a.worker.Each(load.WithoutLoose(inputs), func(in *load.Input) error {
		all, err := a.remembered(storage, root, in.Cluster, found)
		found.code = exit.Worst(found.code, in.Code)
		for _, obj := range in.Inventory.Objects() {
			if !in.Wanted(obj) {
				continue
			}
			i := slices.IndexFunc(all, func(r *reconcile.Result) bool { return load.IsRecordOf(r.Object.Object, obj) })
			switch {
			case i >= 0:
				found.results = append(found.results, all[i])
			case !reconcile.HasNoStatus(obj):
				found.missing = append(found.missing, obj)
				found.code = exit.Worst(found.code, exit.Failed)
				f := validate.New(obj, finding.NeverFetched, "nothing is recorded of it: it was never fetched into this artifacts directory", "", obj.Excerpt("metadata", "name"))
				a.console.ReportAs(f, console.Presentation{At: console.ObjectSubject(obj), Brief: true})
			}
		}
		return err
	})
}
