package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/status"
)

// A Batch holds the steps of a command for each cluster of its input. Nil steps are skipped.
type Batch struct {
	// Idle reconciles no object, and allows an empty selection.
	Idle bool
	// Of filters the objects of a cluster.
	Of func(*Member, []*admission.Admitted) []*admission.Admitted
	// Then is called before the reconciler of a cluster is closed.
	Then func(context.Context, *load.Input, *reconcile.Reconciler)
	// Found is called with the results of a cluster, and the objects for reports. It returns an exit code.
	Found func(*Member, []*reconcile.Result, []report.Object) int
}

// Reconciled holds the results of all clusters. They can be read until it is closed.
type Reconciled struct {
	Inputs  []*load.Input
	Results []*reconcile.Result
	Objects []report.Object // for reports

	closers []func()
}

// Close closes the stores and the session of the results.
func (r *Reconciled) Close() {
	for i := range r.closers {
		r.closers[len(r.closers)-1-i]()
	}
}

// ReconcileAll reconciles the selected objects of each cluster, and returns the exit code, also with an error. Without an
// error, the caller must close the results.
func (w *Worker) ReconcileAll(ctx context.Context, o *Options, b Batch) (all *Reconciled, code int, err error) {
	all = &Reconciled{}
	defer func() {
		if err != nil {
			all.Close()
		}
	}()
	root, err := w.Artifacts(&o.Store)
	if err != nil {
		return all, exit.Usage, err
	}
	all.closers = append(all.closers, func() { _ = root.Close() }) // its files are complete
	shared, err := w.Open(ctx, o)
	if err != nil {
		return all, UsageCode(err), err
	}
	all.closers = append(all.closers, shared.Close)
	members, closeAll, err := shared.Members(ctx, w, root)
	all.closers = append(all.closers, closeAll)
	if err != nil {
		return all, UsageCode(err), err
	}
	for _, m := range members {
		all.Inputs = append(all.Inputs, m.In)
	}
	defer w.Console.In("")
	if code, err := shared.prepare(ctx, w, members, all.Inputs, b); err != nil {
		return all, code, err
	}
	for _, m := range members {
		w.Console.In(m.In.Cluster)
		results, of, err := shared.reconcileMember(ctx, w, m, b)
		if err != nil {
			return all, exit.Failed, err
		}
		all.Results = append(all.Results, results...)
		objects := w.ReportObjects(m.In, results)
		if code = exit.Worst(code, of); b.Found != nil {
			code = exit.Worst(code, b.Found(m, results, objects))
		}
		all.Objects = append(all.Objects, objects...)
	}
	return all, code, nil
}

// UsageCode returns the exit code of an error that ends a run before it reconciles objects.
func UsageCode(err error) int {
	switch code := exit.CodeOf(err); {
	case reconcile.ClassOf(err) == reconcile.Integrity:
		return exit.Integrity
	case code != exit.Failed:
		return code
	}
	return exit.Usage
}

// prepare checks the selection, and determines the options of each cluster. The exit code is valid only with an error.
func (s *Session) prepare(ctx context.Context, w *Worker, members []*Member, inputs []*load.Input, b Batch) (int, error) {
	w.ReportLeftOut(inputs...)
	w.ReportFlux1(inputs...)
	check := s.o.Load.CheckSelected
	if b.Idle {
		check = load.CheckSelectors
	}
	if err := check(inputs); err != nil {
		return exit.Usage, err
	}
	if err := s.Replace(members); err != nil {
		return exit.Worst(exit.Usage, CodeOf(&reconcile.Result{State: reconcile.Failed, Failure: status.AsFailure(err)})), err
	}
	for _, m := range members {
		w.Console.In(m.In.Cluster)
		w.ReportShard(m.In)
		if s.o.Reconcile.Until != reconcile.Choose {
			if err := Writable(m.Store); err != nil {
				return exit.Usage, err
			}
		}
		var err error
		if m.Options.Locked, err = s.Locked(ctx, m.In); err != nil {
			return exit.Usage, err
		}
	}
	return exit.OK, nil
}

// reconcileMember reconciles the selected objects of a cluster, and returns their exit code.
func (s *Session) reconcileMember(ctx context.Context, w *Worker, m *Member, b Batch) ([]*reconcile.Result, int, error) {
	if err := m.Store.Load(); err != nil {
		w.ReportStorage(finding.OddStorage, fmt.Errorf("the records of any %s are ignored: %w", strings.Join(manifest.BareKinds(reconcile.Kinds().WithoutArtifact()), ", "), err))
	}
	fetches := s.o.Reconcile.Until == reconcile.Fetch
	if fetches {
		if err := m.In.BeginShard(m.Store); err != nil {
			return nil, exit.Failed, err
		}
	}
	var ended error
	choose := func() (targets []*admission.Admitted) {
		if b.Idle {
			return nil
		}
		if targets, ended = w.Targets(ctx, m.In); ended != nil {
			return nil
		}
		targets = w.WithoutHome(m.In, targets, m.Options)
		if b.Of != nil {
			targets = b.Of(m, targets)
		}
		m.Targets = slices.Clone(targets)
		return targets
	}
	results, forgotten := w.Reconcile(ctx, s, m.In, choose, m.Store, m.Options, b.Then)
	if ended != nil {
		return nil, exit.Failed, fmt.Errorf("the run is not complete: %w", ended)
	}
	w.ReportNotes(m.In)
	if other := OtherCluster(m.In, results); fetches && other != "" {
		w.Console.Warn(fmt.Sprintf("%s contained artifacts of %s, but the input is %s: objects with the same name were replaced; "+
			"fetch both at once, or into different directories", s.o.Store.DirOf(m.In.Cluster), other, m.In.Called))
	}
	code := m.In.Code
	for _, r := range results {
		r.Cluster = m.In.Cluster
		code = exit.Worst(code, CodeOf(r))
	}
	if forgotten == nil && fetches {
		forgotten = m.In.EndShard(ctx, m.Store, results)
	}
	if forgotten != nil {
		w.ReportStorage(finding.Storage, forgotten)
		code = exit.Worst(code, exit.Failed)
	}
	return results, code, nil
}

// OtherCluster returns the cluster that was recorded for an object if it is not the one of the input, "" if it is or if either
// is not known.
func OtherCluster(in *load.Input, results []*reconcile.Result) string {
	for _, r := range results {
		if in.Called != "" && r.Recorded != "" && r.Recorded != in.Called {
			return r.Recorded
		}
	}
	return ""
}
