package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

// finished returns the result of an object. If the run ended while another goroutine was
// reconciling it, it waits: that reconciliation ends too, and has the document.
func (r *Reconciler) finished(ctx context.Context, adm *admission.Admitted) *Result {
	result := r.result(ctx, adm)
	if result.State == Interrupted && result.Failure == nil {
		result = r.result(context.WithoutCancel(ctx), adm)
	}
	return result
}

// result reconciles an object, or waits for the goroutine that does so.
func (r *Reconciler) result(ctx context.Context, adm *admission.Admitted) *Result {
	result, err := r.results.Do(ctx, keyOf(adm), func() (*Result, error) {
		r.progress.Started(adm)
		result := r.finishedBefore(adm)
		if result == nil {
			result = r.reconcile(ctx, adm)
		}
		r.progress.Finished(result)
		return result, nil
	})
	if err != nil { // ctx ended while another goroutine reconciled it
		return &Result{Object: adm, State: Interrupted}
	}
	return result
}

// finishedBefore returns the result from an earlier part of the run, nil without one or if the object has changed.
func (r *Reconciler) finishedBefore(adm *admission.Admitted) *Result {
	before := r.o.Finished[keyOf(adm)]
	if before == nil || before.State == Interrupted || !reflect.DeepEqual(before.Object.Object.Content, adm.Object.Content) {
		return nil
	}
	again := *before
	again.Object = adm
	return &again
}

// reconcile reconciles one object. It always returns a result: a panic in one
// reconciliation must not affect the other objects.
func (r *Reconciler) reconcile(ctx context.Context, adm *admission.Admitted) (result *Result) {
	result = &Result{Object: adm}
	defer func() {
		if p := recover(); p != nil {
			result.State = Failed
			result.Failure = status.AsFailure(fmt.Errorf("internal error, please report it: %v", p))
			result.Debug = append(result.Debug, string(debug.Stack()))
		}
	}()
	p, err := r.begin(adm, result)
	if err != nil {
		return p.failed(err)
	}
	if p.kind.source {
		defer func() { result.provider = p.steps }()
	}
	return p.through(ctx)
}

// through performs the steps that the state of the object and the options allow.
func (p *reconciliation) through(ctx context.Context) *Result {
	r := p.r
	switch {
	case r.o.List && !p.kind.listed:
		p.result.State = Static
		return p.result
	case p.kind.parts(p.typed).static:
		return p.static(ctx)
	case p.kind.parts(p.typed).suspended:
		return p.suspended()
	case p.kind.noArtifact, r.o.Until == Choose: // nothing is written that another process uses
		p.recall()
		return p.run(ctx)
	}
	unlock, err := r.lock(ctx, p)
	if err != nil {
		p.recall()
		if ctx.Err() != nil {
			return p.interrupted(context.Cause(ctx))
		}
		return p.failed(storageFailure(err, status.AcquireLockFailed))
	}
	p.recall()
	result := p.run(ctx)
	if err := unlock(); err != nil {
		p.debugf("unlock: %v", err)
	}
	return result
}

// lock locks the object, and reports while another process holds it.
func (r *Reconciler) lock(ctx context.Context, p *reconciliation) (unlock func() error, err error) {
	waited := false
	unlock, err = r.store.Lock(store.OnWait(ctx, func() {
		waited = true
		r.progress.Waiting(p.adm, true)
	}), p.key)
	if waited {
		r.progress.Waiting(p.adm, false)
	}
	return unlock, err
}

// begin prepares the first reconciliation of an object.
func (r *Reconciler) begin(adm *admission.Admitted, result *Result) (*reconciliation, error) {
	p := &reconciliation{r: r, result: result, remarks: &result.remarks}
	p.adm, p.key, p.rebuild = adm, keyOf(adm), r.o.Refresh
	k, ok := r.kinds.of(adm.Object)
	if !ok {
		return p, fmt.Errorf("kind %s is not supported", adm.Object.Kind)
	}
	p.kind, p.typed = k, k.clone(adm.Typed)
	if adm.Object.Origin != nil {
		result.note(inventory.OriginAnnotation, inventory.OriginText(adm.Object))
	}
	p.status = k.load(p.typed)
	p.out.Generation = generationOf(p.typed)
	p.steps = k.begin(p)
	return p, nil
}

// restore sets a recorded status as the object's. Fields that are not recorded keep their values.
func (p *reconciliation) restore(record *store.Record) error {
	p.status = noStatus()
	text, err := unveiled(p.adm.Object, record.Status)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, p.fullStatus()); err != nil {
		return err
	}
	p.status = p.kind.load(p.typed)
	return nil
}

// run performs the steps between the recorded status and the new one.
func (p *reconciliation) run(ctx context.Context) *Result {
	if err := p.checkStorage(); err != nil {
		return p.failed(err)
	}
	p.handleRequest()
	ctx = fetch.With(ctx, func(progress fetch.Progress) { p.r.progress.Transferred(p.adm, progress) })
	ctx = p.decisions(ctx)
	err := p.perform(p.collectWarnings(ctx))
	if err != nil && ctx.Err() != nil {
		return p.interrupted(context.Cause(ctx))
	}
	if err != nil {
		return p.failed(err)
	}
	p.decideReuse(ctx)
	return p.succeeded()
}

// perform resolves the object, and fetches it if the run does.
func (p *reconciliation) perform(ctx context.Context) error {
	if err := p.takeEntry(); err != nil {
		return err
	}
	return p.compareEntry(p.steps.perform(ctx))
}

// recall restores the recorded state of the object. The input's own status is
// ignored: it may come from another cluster.
func (p *reconciliation) recall() {
	p.status = noStatus()
	record, err := p.r.store.Recall(p.key)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = p.restore(record)
	}
	if err != nil {
		p.status = noStatus()
		p.warnAs(finding.OddStorage, "the record of the last run is ignored: %v", err)
		return
	}
	p.remembered, p.fingerprint, p.tag, p.chart = record, record.Fingerprint, helmrepo.Tag(record.Tag), record.Chart
	p.prev = status.Previous{
		Conditions:         p.status.conditions,
		ObservedGeneration: p.status.observedGeneration,
		Artifact:           p.status.artifact,
	}
}

// checkStorage verifies that the reported artifact is still in storage and
// unchanged. Otherwise the artifact is built again, unless the run only verifies.
func (p *reconciliation) checkStorage() error {
	artifact := p.prev.Artifact
	if artifact == nil {
		return nil
	}
	err := p.r.store.Verify(artifact.Path, artifact.Digest)
	if err == nil {
		return p.restoreLink(artifact.Path)
	}
	p.prev.Disappeared = true
	p.fingerprint = ""
	p.status.artifact = nil
	altered, ok := errors.AsType[*store.AlteredError](err)
	if !ok {
		p.debugf("stored artifact is not used: %v", err)
		return nil
	}
	p.out.Events = append(p.out.Events, status.Altered(altered.Err))
	if !p.choosing() {
		if err := p.r.store.Remove(artifact.Path); err != nil {
			p.debugf("remove altered artifact: %v", err)
		}
	}
	if p.r.o.Verify {
		return status.ReadOperationFailed.Wrap(alteredArtifact(artifact.Path, altered.Err))
	}
	p.warnAs(finding.OddStorage, "the stored artifact was altered and is not used: %v", altered.Err)
	return nil
}

// restoreLink restores the link to the newest artifact if it has another target.
func (p *reconciliation) restoreLink(artifact string) error {
	if p.kind.link == "" || p.choosing() {
		return nil
	}
	return p.tolerateLink(p.r.store.Relink(artifact, p.kind.link))
}

func (p *reconciliation) handleRequest() {
	handled := status.LastHandledReconcileAt(p.typed.(metav1.Object).GetAnnotations(), p.status.handled)
	if handled != p.status.handled {
		p.rebuild = true
	}
	p.status.handled = handled
}

// interrupted returns the result of an object that the run did not complete: the
// recorded status, or a status in progress. It is not recorded.
func (p *reconciliation) interrupted(cause error) *Result {
	p.result.State = Interrupted
	p.result.Failure = &status.Failure{Reason: status.Unknown, Message: cause.Error(), Err: cause}
	if p.remembered != nil {
		if err := p.restore(p.remembered); err != nil {
			p.debugf("recorded status: %v", err)
		}
		p.recallChart()
		return p.finish()
	}
	p.status = noStatus()
	p.status.conditions, p.status.observedGeneration = status.Interrupted(status.Previous{}, p.out.Generation, p.r.now())
	return p.finish()
}

// suspended returns the result of a suspended object: its status is the
// recorded one, else that of the input.
func (p *reconciliation) suspended() *Result {
	p.result.State = Suspended
	p.recall()
	if p.remembered == nil {
		p.result.Status = inputStatus(p.adm)
		p.result.common = p.typedStatus(p.result.Status)
		return p.result
	}
	p.recallChart()
	return p.finish()
}

// static returns the result of an object that by design has no status.
func (p *reconciliation) static(ctx context.Context) *Result {
	p.result.State = Static
	p.status = noStatus()
	p.result.Status = map[string]any{}
	if err := p.perform(ctx); err != nil {
		p.result.State = Failed
		p.result.Failure = status.AsFailure(err)
	}
	return p.result
}

func (p *reconciliation) recallChart() { p.result.noteChart(p.remembered.Chart) }

// inputStatus returns the status in the input, else the API's default.
func inputStatus(adm *admission.Admitted) map[string]any {
	if given, ok := adm.Object.Content["status"].(map[string]any); ok {
		return given
	}
	return map[string]any{"observedGeneration": int64(-1)}
}

// typedStatus decodes a status of the input, without its artifact: that is in another cluster.
func (p *reconciliation) typedStatus(given map[string]any) commonStatus {
	typed := p.kind.empty()
	b, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(b, p.kind.parts(typed).status)
	}
	if err != nil {
		p.debugf("status of the input: %v", err)
		return noStatus()
	}
	s := p.kind.load(typed)
	s.artifact = nil
	return s
}

func (p *reconciliation) pinTo(pin Pin) { p.result.Pin = &pin }

// storing creates an artifact of the object, which write fills and commits.
func (p *reconciliation) storing(write func(*store.Pending) error) error {
	pending, err := p.r.store.Create(p.key)
	if err != nil {
		return storageFailure(err, status.ArchiveOperationFailed)
	}
	defer func() {
		if err := pending.Discard(); err != nil {
			p.debugf("unfinished artifact: %v", err)
		}
	}()
	return write(pending)
}

// isStored reports whether storage already holds the pending file, by its bytes and its revision.
func (p *reconciliation) isStored(pending *store.Pending, revision string) bool {
	current := p.stored()
	return current != nil && !p.r.o.Refresh && p.isVeiled(current.Revision, revision) && current.Digest == pending.Digest().String()
}

// commit stores the pending file as the artifact of the object.
func (p *reconciliation) commit(pending *store.Pending, name, revision string, metadata map[string]string, failed string) error {
	stored, err := pending.Commit(name, p.kind.link)
	if err := p.tolerateLink(err); err != nil {
		return unsaved(failed, err)
	}
	p.status.artifact = &meta.Artifact{
		Path:           stored.Path,
		Revision:       revision,
		Digest:         stored.Digest,
		LastUpdateTime: metav1.NewTime(stored.LastUpdateTime.UTC().Truncate(time.Second)),
		Size:           &stored.Size,
		Metadata:       metadata,
	}
	return nil
}

// tolerateLink converts the failure to set a link into an event: the artifact
// itself is stored.
func (p *reconciliation) tolerateLink(err error) error {
	var link *store.LinkError
	if !errors.As(err, &link) {
		return err
	}
	p.out.Events = append(p.out.Events, status.SymlinkUpdateFailed(link.Err))
	p.warnAs(finding.OddStorage, "the link to the newest artifact was not updated: %v", link.Err)
	return nil
}
