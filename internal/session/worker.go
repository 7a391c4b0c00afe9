package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// A Worker reads manifests, reconciles objects, and reports their progress on the console.
type Worker struct {
	load.Reader
	Edges   reconcile.Edges // connections to the world outside of the process
	Purpose Purpose
	took    map[*manifest.Object]time.Duration
	blocked map[*manifest.Object]finding.Object // objects that fail only because of another one, and that one

	// Unselected is the number of failures without a result: those of unselected objects that selected ones need.
	Unselected int
}

// Purpose is the purpose of a run, which its lines and reports depend on.
type Purpose struct {
	Chooses  bool // it stops once versions are chosen, and does not fetch or report stored artifacts
	Lists    bool // it lists published versions
	Verifies bool // signatures
	Foresees bool // the command prints successes itself
	Judges   bool // it validates objects, and does not reconcile them
	Edits    bool // the command prints its own last line
}

// ReportStorage reports a finding about the artifacts directory as a whole.
func (w *Worker) ReportStorage(code finding.Code, err error) {
	w.Console.Report(validate.New(nil, code, err.Error(), "", manifest.Excerpt{}))
}

// Reconcile reconciles the objects that choose returns, and reports their progress. It calls then, if it is not nil, before it
// closes the reconciler.
func (w *Worker) Reconcile(ctx context.Context, shared *Session, in *load.Input, choose func() []*admission.Admitted, st *store.Store, o reconcile.Options, then func(context.Context, *load.Input, *reconcile.Reconciler)) ([]*reconcile.Result, error) {
	stop := w.Console.StartRows()
	defer stop()
	targets := choose()
	if o.Locked != nil && (o.Locked.Mode == reconcile.LockedOnly || o.Locked.Mode == reconcile.LockedAnyway) {
		targets = untouched(in, targets)
	}
	progress := newProgress(w, in, targets)
	if w.took == nil {
		w.took, w.blocked = progress.took, map[*manifest.Object]finding.Object{}
	} else { // of an earlier cluster
		progress.took = w.took
	}
	ctx = w.tracing(w.ReportsWaiting(ctx), in.Inventory.Objects())
	return shared.Run(ctx, Run{
		Inventory: in.Inventory, Store: st, Options: o, Targets: targets, Progress: progress,
		Then: func(r *reconcile.Reconciler) {
			maps.Copy(w.blocked, progress.reportFailures(in.Found))
			w.Unselected += progress.unselected
			if then != nil {
				then(ctx, in, r)
			}
		},
	})
}

// CodeOf returns the exit code for a single result.
func CodeOf(r *reconcile.Result) int {
	switch r.State {
	case reconcile.Interrupted:
		if r.Failure != nil && !errors.Is(r.Failure, exit.ErrInterrupted) {
			return exit.Transient
		}
		return exit.Interrupted
	case reconcile.Failed:
		switch reconcile.ClassOf(r.Failure) {
		case reconcile.Integrity:
			return exit.Integrity
		case reconcile.Transient:
			return exit.Transient
		case reconcile.Drift:
			return exit.Drift
		}
		return exit.Failed
	}
	return exit.OK
}

// StateOf returns the state of an object, in the words of documents, reports and the last line.
func (w *Worker) StateOf(r *reconcile.Result) string {
	switch r.State {
	case reconcile.Suspended:
		return report.StateSuspended
	case reconcile.Interrupted:
		return report.StateInterrupted
	case reconcile.Failed:
		if _, blocked := w.blocked[r.Object.Object]; blocked {
			return report.StateBlocked
		}
		return report.StateFailed
	}
	switch {
	case w.Purpose.Verifies && (r.Signature != nil || r.Signed != nil):
		return report.StateVerified
	case w.Purpose.Chooses, r.State == reconcile.Resolved, r.State == reconcile.Waiting:
		return report.StateResolved
	}
	return report.StateReady
}

// untouched removes the HelmRepositories that no argument names: their indexes are not fetched.
func untouched(in *load.Input, targets []*admission.Admitted) []*admission.Admitted {
	return slices.DeleteFunc(targets, func(adm *admission.Admitted) bool {
		repo, ok := adm.Typed.(*sourcev1.HelmRepository)
		if !ok || repo.Spec.Type == sourcev1.HelmRepositoryTypeOCI {
			return false
		}
		return !slices.ContainsFunc(in.Selectors, func(s load.Selector) bool { return s.Matches(adm.Object) })
	})
}
