package reconcile

import (
	"context"
	"fmt"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/status"
)

// unplaced is the text of a failure without the files of the manifests that its causes name: in a cluster there are none.
func unplaced(text string, err error) string {
	if placed, ok := err.(interface{ Unplaced() string }); ok && placed.Unplaced() != "" {
		return strings.Replace(text, err.Error(), placed.Unplaced(), 1)
	}
	switch cause := err.(type) { //nolint:errorlint // every error of the chain has its turn
	case interface{ Unwrap() error }:
		return unplaced(text, cause.Unwrap())
	case interface{ Unwrap() []error }:
		for _, e := range cause.Unwrap() {
			text = unplaced(text, e)
		}
	}
	return text
}

// failed is the result of an object that did not become ready.
func (p *reconciliation) failed(err error) *Result {
	p.result.State = Failed
	// A failure may be that of several objects: this one gets a copy. The code that made
	// the error has redacted the URLs that it knew of; a library's own message may
	// hold others.
	failure := *status.AsFailure(err)
	failure.Detail = p.adm.Object.ConcealError(auth.RedactText(failure.Message))
	failure.Message = p.adm.Object.ConcealError(auth.RedactText(unplaced(failure.Message, failure.Err)))
	p.out.Failure, p.result.Failure = &failure, &failure
	if p.kind == nil {
		return p.result
	}
	return p.conclude()
}

func (p *reconciliation) succeeded() *Result {
	p.result.State = Ready
	if info := p.kind; info.noArtifact && !info.settled {
		p.result.State = Waiting
	}
	if p.out.Stored == nil {
		p.result.State = Resolved
		p.status.conditions, p.status.observedGeneration = p.kind.midway(p.prev, p.out, p.r.now())
		return p.finish()
	}
	return p.conclude()
}

func (p *reconciliation) fold() {
	p.status.conditions, p.status.observedGeneration = p.kind.fold(p.prev, p.out, p.r.now())
}

func (p *reconciliation) conclude() *Result {
	p.out.Artifact = p.status.artifact
	p.concealOutcome()
	p.fold()
	switch err := p.remember(); {
	case err != nil && p.out.Failure != nil:
		// What went wrong first is what matters, and may well be the cause of this.
		p.debugf("%v", err)
	case err != nil:
		return p.unremembered(err)
	}
	p.result.Events = p.kind.events(p.prev, p.out)
	return p.finish()
}

// concealOutcome keeps what came from Secrets out of the messages before they are folded into the conditions, which are
// recorded as they are. An observation may be that of several objects: this one gets a copy.
func (p *reconciliation) concealOutcome() {
	for _, o := range []**status.Observation{&p.out.Seen, &p.out.Stored} {
		if *o != nil {
			*o = &status.Observation{Reason: (*o).Reason, Message: p.adm.Object.ConcealText((*o).Message)}
		}
	}
	p.out.Verified = p.adm.Object.ConcealText(p.out.Verified)
}

// unremembered is the result of an object whose state could not be written: the
// artifact is there, but the next run would not know it.
func (p *reconciliation) unremembered(err error) *Result {
	p.result.State = Failed
	p.out.Failure = status.AsFailure(storageFailure(err, status.ArchiveOperationFailed))
	p.result.Failure = p.out.Failure
	p.fold()
	p.result.Events = p.kind.events(p.prev, p.out)
	return p.finish()
}

// remember writes the status for the next run, and then collects what the object
// no longer needs.
func (p *reconciliation) remember() error {
	if p.r.o.Until == Choose {
		return nil
	}
	record, err := p.record()
	if err != nil {
		return err
	}
	if err := p.r.store.Remember(p.key, record); err != nil {
		return fmt.Errorf("unable to remember the status: %w", err)
	}
	if p.out.Failure == nil && p.status.artifact != nil {
		p.collect()
	}
	return nil
}

// collect removes earlier artifacts. It comes after the success is remembered,
// so that a run that fails leaves everything as it was.
func (p *reconciliation) collect() {
	n, err := p.r.store.Collect(p.key, p.status.artifact.Path)
	if err != nil {
		p.debugf("garbage collection: %v", err)
	}
	if n > 0 {
		p.out.Events = append(p.out.Events, status.Collected(n))
	}
}

// finish makes the printable status. URLs of artifacts are computed here: they
// depend on where the directory is served, and are never stored.
func (p *reconciliation) finish() *Result {
	p.result.common = p.status
	p.status = p.status.withURLs(addresses{p.r.store.Dir(), p.r.o.AdvertisedAddress}, p.kind.link)
	m, err := status.Map(p.fullStatus())
	if err != nil {
		p.debugf("status: %v", err)
	}
	p.result.Status = p.adm.Object.VeilStatus(m)
	return p.result
}

// static is the result of an object that has no status by design.
func (p *reconciliation) static(ctx context.Context) *Result {
	p.result.State = Static
	p.status = noStatus()
	p.result.Status = map[string]any{}
	if err := p.chooseAndFetch(ctx); err != nil {
		p.result.State = Failed
		p.result.Failure = status.AsFailure(err)
	}
	return p.result
}
