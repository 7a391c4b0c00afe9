package reconcile

import (
	"fmt"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/status"
)

// unplaced returns the text of a failure without the file names of the manifests that its causes name: a cluster has no files.
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

// failed returns the result of an object that did not become ready.
func (p *reconciliation) failed(err error) *Result {
	p.result.State = Failed
	// Several objects may share a failure, so this object gets a copy. The code that
	// made the error has redacted the URLs that it knew of; the message of a library may
	// contain further URLs.
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
		// The first failure is the one to report, and may well be the cause of this.
		p.debugf("%v", err)
	case err != nil:
		return p.unremembered(err)
	}
	p.result.Events = p.kind.events(p.prev, p.out)
	return p.finish()
}

// concealOutcome conceals the values of Secrets in the messages before they are folded into the conditions, which are
// recorded unchanged. Several objects may share an observation, so this object gets a copy.
func (p *reconciliation) concealOutcome() {
	for _, o := range []**status.Observation{&p.out.Seen, &p.out.Stored} {
		if *o != nil {
			*o = &status.Observation{Reason: (*o).Reason, Message: p.adm.Object.ConcealText((*o).Message)}
		}
	}
	p.out.Verified = p.adm.Object.ConcealText(p.out.Verified)
}

// unremembered returns the result of an object whose status could not be
// written: the artifact is stored, but the next run would not find it.
func (p *reconciliation) unremembered(err error) *Result {
	p.result.State = Failed
	p.out.Failure = status.AsFailure(storageFailure(err, status.ArchiveOperationFailed))
	p.result.Failure = p.out.Failure
	p.fold()
	p.result.Events = p.kind.events(p.prev, p.out)
	return p.finish()
}

// remember writes the status for the next run, and then removes the artifacts
// that the object no longer needs.
func (p *reconciliation) remember() error {
	if p.choosing() {
		return nil
	}
	record, err := p.record()
	if err != nil {
		return err
	}
	if err := p.r.store.Remember(p.key, record, p.remembered); err != nil {
		return fmt.Errorf("unable to record the status: %w", err)
	}
	if p.remembered != nil {
		p.result.Recorded = p.remembered.Cluster
	}
	if p.out.Failure == nil && p.status.artifact != nil {
		p.collect()
	}
	return nil
}

// collect removes earlier artifacts. It runs after the success is recorded, so
// that a failed run removes nothing.
func (p *reconciliation) collect() {
	n, err := p.r.store.Collect(p.key, p.status.artifact.Path)
	if err != nil {
		p.debugf("garbage collection: %v", err)
	}
	if n > 0 {
		p.out.Events = append(p.out.Events, status.Collected(n))
	}
}

// finish returns the result with the printable status. It computes the URLs of
// artifacts: they depend on where the directory is served, and are never stored.
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
