package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// progress shows the progress of a run on the console: a live row per object in flight on a terminal, a line per finished
// object everywhere. The lines come in the order of the objects, each as soon as those before it are out, so that two runs of
// the same work look the same.
type progress struct {
	console  *console.Console
	now      func() time.Time
	describe func(*reconcile.Result) string
	in       *load.Input // with the comments about warnings; guarded by mu
	foresees bool        // the command prints successes itself

	mu       sync.Mutex
	waiting  map[*manifest.Object]int // position of the objects that are not printed yet
	finished map[int]*reconcile.Result
	next     int
	failed   []*reconcile.Result // in the order of the run
	paused   []*reconcile.Result // suspended objects
	started  map[*manifest.Object]time.Time
	took     map[*manifest.Object]time.Duration

	unselected int // failures of objects that were not selected, except effects of other failures
}

func newProgress(w *Worker, in *load.Input, targets []*admission.Admitted) *progress {
	c := w.Console
	p := &progress{
		console: c, now: w.Edges.Now, describe: w.describe, in: in, foresees: w.Purpose.Foresees, started: map[*manifest.Object]time.Time{}, took: map[*manifest.Object]time.Duration{},
		waiting: map[*manifest.Object]int{}, finished: map[int]*reconcile.Result{},
	}
	for i, t := range targets {
		p.waiting[t.Object] = i
	}
	c.Expect(len(targets))
	return p
}

func (p *progress) Started(adm *admission.Admitted) {
	p.mu.Lock()
	p.started[adm.Object] = p.now()
	p.mu.Unlock()
	p.console.Started(console.ObjectSubject(adm.Object))
}

func (p *progress) Transferred(adm *admission.Admitted, t fetch.Progress) {
	p.console.Transferred(console.ObjectSubject(adm.Object), console.Transfer{Read: t.Read, Total: t.Total, Wait: t.Wait, RateLimited: t.RateLimited})
}

func (p *progress) Waiting(adm *admission.Admitted, waiting bool) {
	p.console.Waiting(console.ObjectSubject(adm.Object), waiting)
}

func (p *progress) Decided(adm *admission.Admitted, decision string) {
	p.console.Debug(console.ObjectSubject(adm.Object), adm.Object.ConcealError(decision))
}

// tracing reports every request with -v. A request may be made for several objects: it conceals the values of Secrets in all
// of them, and the values of --substitute, which may be tokens.
func (w *Worker) tracing(ctx context.Context, objects []*manifest.Object) context.Context {
	if w.Console.Verbosity() < 1 {
		return ctx
	}
	tainted := slices.DeleteFunc(slices.Clone(objects), func(obj *manifest.Object) bool { return !obj.Tainted() })
	var given []string
	for _, obj := range objects {
		given = append(given, obj.Muted()...)
	}
	slices.Sort(given)
	given = conceal.Forms(slices.Compact(given))
	concealed := func(text string) string {
		text = conceal.Within(text, given)
		for _, obj := range tainted {
			text = obj.ConcealText(text)
		}
		return text
	}
	return auth.WithRequests(ctx, func() func(auth.Request) {
		began := w.Edges.Now()
		return func(r auth.Request) {
			took, address := w.Edges.Now().Sub(began).Round(time.Millisecond), concealed(r.URL)
			if r.Status == 0 {
				w.Console.Debug(console.Subject{}, fmt.Sprintf("%s %s: no answer after %s", r.Method, address, took))
				return
			}
			w.Console.Debug(console.Subject{}, fmt.Sprintf("%s %s: %d, %d bytes in %s", r.Method, address, r.Status, r.Bytes, took))
		}
	})
}

// ReportsWaiting returns a context in which the console reports that a run waits for the whole artifacts directory.
func (w *Worker) ReportsWaiting(ctx context.Context) context.Context {
	return store.OnWait(ctx, func() { w.Console.Info(console.Subject{}, console.Waiting+" that works in the artifacts directory") })
}

func (p *progress) Finished(r *reconcile.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	position, expected := p.waiting[r.Object.Object]
	p.console.Finished(console.ObjectSubject(r.Object.Object), expected, r.State == reconcile.Failed)
	p.took[r.Object.Object] = p.now().Sub(p.started[r.Object.Object])
	if !expected { // an unselected source
		p.print(r)
		return
	}
	p.finished[position] = r
	for ; p.finished[p.next] != nil; p.next++ {
		p.print(p.finished[p.next])
		delete(p.finished, p.next)
	}
}

func (p *progress) print(r *reconcile.Result) {
	s := console.ObjectSubject(r.Object.Object)
	for _, text := range r.Debug {
		p.console.Debug(s, r.Object.Object.ConcealError(text))
	}
	for _, w := range r.Warnings {
		f := r.Warning(w).AsWarning()
		line := fmt.Sprint(s, f.Pos, f.Message)
		if f.Code == finding.DependencyCycle { // another member may have reported it
			line = f.Message
		}
		// A plan may reconcile an object for its version, and again for its files.
		if p.in.Once(p.in.Cluster+line) && !p.console.Silenced(&p.in.Ignores, f) {
			p.console.ReportAs(f, console.Presentation{At: s, Brief: true})
		}
	}
	switch r.State {
	case reconcile.Ready, reconcile.Waiting, reconcile.Resolved:
		if p.foresees {
			p.console.Debug(s, p.describe(r))
			return
		}
		p.console.Info(s, p.describe(r))
	case reconcile.Static:
		p.console.Debug(s, "has no status by design")
	case reconcile.Suspended:
		p.paused = append(p.paused, r)
		p.console.Info(s, "suspended, left as it is")
	case reconcile.Interrupted:
		p.reportInterruption(r)
	case reconcile.Failed:
		if r.BlockedBy() != (finding.Object{}) {
			p.console.Debug(s, r.Message())
		}
		p.failed = append(p.failed, r)
	}
}

// suspensions returns the errors of suspended objects that block other objects.
func (p *progress) suspensions() []finding.Finding {
	var found []finding.Finding
	for _, r := range p.paused {
		name := validate.Named(r.Object.Object)
		if slices.ContainsFunc(p.failed, func(failed *reconcile.Result) bool { return failed.BlockedBy() == name }) {
			found = append(found, r.SuspensionFinding())
		}
	}
	return found
}

// reportFailures reports the failures, and returns the objects that fail because of another object, with that object. An
// earlier finding may be the cause.
func (p *progress) reportFailures(before []finding.Finding) map[*manifest.Object]finding.Object {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []finding.Finding
	for _, r := range p.failed {
		f, _ := r.FailureFinding()
		found = append(found, f)
	}
	suspensions := p.suspensions()
	p.unselected += len(suspensions)
	found = append(found, suspensions...)
	for _, f := range found {
		p.console.ReportFailure(f)
	}
	blocked := map[*manifest.Object]finding.Object{}
	found = append(found, before...)
	causes := finding.Causes(found)
	for i, r := range p.failed {
		if causes[i] != i {
			blocked[r.Object.Object] = cmp.Or(found[i].BlockedBy, found[causes[i]].Object())
		}
		if _, selected := p.waiting[r.Object.Object]; !selected && causes[i] == i {
			p.unselected++
		}
	}
	return blocked
}

// reportInterruption reports a warning, which is a failure in reports.
func (p *progress) reportInterruption(r *reconcile.Result) {
	f, ok := r.FailureFinding()
	if ok {
		p.console.Keep(f)
	}
	p.console.About(console.LevelWarning, console.ObjectSubject(r.Object.Object), "not finished: "+r.Message(), f)
}

// describe returns the outcome of an object that did not fail, within the purpose of the command.
func (w *Worker) describe(r *reconcile.Result) string {
	return r.Object.Object.ConcealText(w.described(r))
}

func (w *Worker) described(r *reconcile.Result) string {
	switch {
	case w.Purpose.Lists:
		return listedMessage(r)
	case w.Purpose.Verifies && r.Signature != nil:
		return verifiedMessage(r)
	case w.Purpose.Verifies && r.Signed != nil:
		return fmt.Sprintf("verified '%s'", r.Signed.Revision)
	case r.State == reconcile.Resolved, w.Purpose.Chooses && r.State == reconcile.Ready:
		return resolvedMessage(r)
	}
	return r.Message()
}

// verifiedMessage names the chart and its signer.
func verifiedMessage(r *reconcile.Result) string {
	what := "the stored artifact"
	if found := r.Resolution; found != nil {
		what = fmt.Sprintf("'%s' with version '%s'", found.Chart, found.Version)
	}
	if by := cmp.Or(r.Signature.Identity, r.Signature.Key); by != "" {
		return fmt.Sprintf("verified %s, signed by %s", what, by)
	}
	return "verified " + what
}

// resolvedMessage returns the result of a run that stops after it chose a version.
func resolvedMessage(r *reconcile.Result) string {
	switch {
	case r.Resolution != nil && r.Resolution.Version == "":
		return "found, its version is known when it is fetched"
	case r.Resolution != nil:
	case r.Status["artifact"] == nil:
		return "found, nothing is stored yet"
	case r.State == reconcile.Ready:
		return "the stored artifact is up to date"
	default:
		return "the stored artifact is outdated"
	}
	if reconcile.Kinds().IsSource(r.Object.Object.Kind) {
		return fmt.Sprintf("resolved '%s' to '%s'", r.Resolution.Chart, r.Resolution.Version)
	}
	return fmt.Sprintf("resolved '%s' chart to version '%s'", r.Resolution.Chart, r.Resolution.Version)
}

// listedMessage returns the published versions of an object, for the console.
func listedMessage(r *reconcile.Result) string {
	switch p := r.Published; {
	case p == nil && r.Object.Object.Kind == sourcev1.HelmChartKind:
		return "not compared: its source has no list of versions"
	case p == nil:
		return "read"
	default:
		return publishedMessage(r.Object.Object, p)
	}
}

func publishedMessage(obj *manifest.Object, p *reconcile.Published) string {
	latest, _ := p.Latest()
	return obj.ConcealText(fmt.Sprintf("%d published, the latest is %s", len(p.Versions), cmp.Or(latest.Version, "-")))
}
