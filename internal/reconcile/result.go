package reconcile

import (
	"context"
	"errors"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	helmchart "helm.sh/helm/v3/pkg/chart"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/validate"
	"github.com/helmsrc/helmsrc/internal/values"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// State is the state of an object at the end of a run.
type State int

const (
	// Ready objects have the artifact of their spec.
	Ready State = iota
	// Failed objects have a Failure.
	Failed
	// Suspended objects were not reconciled.
	Suspended
	// Static objects have no status by design.
	Static
	// Resolved objects have a known version, which is not stored.
	Resolved
	// Waiting objects lack only a cluster.
	Waiting
	// Interrupted objects were not completed before the run's context ended.
	Interrupted
)

// Result is the result of one object. Its reconciliation fills it and does not change it after
// Progress.Finished: objects that refer to this one read it from other goroutines. The caller of Run
// may keep it after Close, but the charts and trees that it provides end with the run.
type Result struct {
	Object  *admission.Admitted
	State   State
	Cluster string         // of several; the caller of Run sets it
	Status  map[string]any // of the document; nil prints no status
	Events  []status.Event
	Failure *status.Failure
	remarks
	// Recorded is the cluster in the record of an earlier run, which the caller read or this run replaced; "" if unknown.
	Recorded string
	// Resolution is the version that a chart was resolved to, as far as it is known.
	Resolution *Resolution
	// Pin is the pin of the object, nil if it was not resolved or has no pin.
	Pin *Pin
	// Dependencies holds the charts that it requires from repositories, in the order of its requirements. They are
	// known if it was packaged, or verified with its dependencies.
	Dependencies []DependencyPin
	// Built describes the package that this run built, or nil.
	Built *Built
	// Published holds the published versions, if an option requests them.
	Published *Published
	// Refused holds the published versions of a chart without a matching version. It has no versions if they are unknown.
	Refused *Published
	// Summary describes the result of an object whose conditions do not.
	Summary string
	// Signature is the signer of the chart, nil if nothing was verified.
	Signature *verify.Signer
	// Signed is the verified revision of a GitRepository, nil if its signatures were not verified.
	Signed *SignedRevision

	// Values holds a digest for each value that a release takes from a ConfigMap. It is nil if the values are unknown, or
	// too many.
	Values map[string]any

	composed *Composed // of a HelmRelease of Flux 1

	notes    map[string]string   // annotations of the document
	provider objectSteps         // of charts or files for other objects, or nil
	metadata *helmchart.Metadata // of the chart in storage, if this run has read it
	common   commonStatus        // the source of Status

	whole func() (*Result, error) // of an outline
}

// Message returns the state as text: the failure's message, the summary or the message of the Ready condition.
func (r *Result) Message() string {
	if r.Failure != nil {
		return r.Failure.Message
	}
	if r.Summary != "" {
		return r.Summary
	}
	if ready := apimeta.FindStatusCondition(r.common.conditions, meta.ReadyCondition); ready != nil {
		return ready.Message
	}
	return ""
}

// objectSteps is the part of a reconciliation that differs by kind. Its method fills
// the reconciliation that it was created with.
type objectSteps interface {
	// perform resolves the spec to a revision or version, and verifies it if the spec requires
	// that. It downloads an archive only if the resolution needs it. Then it downloads the selected
	// artifact into storage or, in a run that only chooses, reports the status that a controller would
	// set before it fetches. Its error becomes the outcome's failure.
	perform(ctx context.Context) error
}

// commonStatus is the part of a status that all kinds have. URLs are computed when it is
// printed, and are never recorded.
type commonStatus struct {
	observedGeneration int64
	conditions         []metav1.Condition
	artifact           *meta.Artifact
	url                string // not of all kinds
	handled            string // lastHandledReconcileAt
}

func noStatus() commonStatus { return commonStatus{observedGeneration: -1} }

// Composed holds values and their origins.
type Composed struct {
	Values  map[string]any
	Origins *values.Origins
}

// Composed returns the values of a HelmRelease of Flux 1, including those from its chart and from URLs, without those of missing
// Secrets if they may be missing. It returns nil for other objects, and if the values could not be composed.
func (r *Result) Composed() *Composed { return r.composed }

// Class is the class of a failure, which determines the exit code.
type Class int

const (
	// Permanent failures need a change to the input or the machine.
	Permanent Class = iota
	// Transient failures may succeed on a retry.
	Transient
	// Integrity failures are bytes or signatures that do not match.
	Integrity
	// Drift failures are differences between the manifests and the lock.
	Drift
)

// ClassOf returns the class of a failure.
func ClassOf(err error) Class {
	var integrity interface{ Integrity() bool }
	var drift interface{ Drift() bool }
	switch {
	case errors.As(err, &drift):
		return Drift
	case errors.As(err, &integrity) && integrity.Integrity():
		return Integrity
	case fetch.Transient(err):
		return Transient
	}
	return Permanent
}

// SignedRevision is a revision of a Git repository with valid signatures.
type SignedRevision struct {
	Revision   string
	Signatures []fetch.Signature
}

// Built describes a package and its input.
type Built struct {
	Package     string // digest of the package
	Layer       string // digest of the layer of an OCIRepository, which is its artifact
	ValuesFiles []lock.File
	Published   time.Time // publication time of the chart, if the package contains it
}

// Published holds the versions that a repository publishes for the chart of an object.
type Published struct {
	Chart      string // or the URL of an OCIRepository, redacted
	Constraint string // a version, a range, or "" for the latest
	// Exact is true if Constraint is one version.
	Exact bool
	// Versions holds the published versions, newest first. Those of an OCIRepository have the names of their tags.
	Versions []resolve.Candidate
	// Current is the version in use: the exact one, or that of the artifact in storage, or "".
	Current string
	// Wanted is the version that the constraint selects now, "" if no version matches any more.
	Wanted string
	// Next is the newer version that Options.Level allows for an exact version, or ""; NextDigest is its digest, if the
	// object names a digest.
	Next, NextDigest string
	takes            func(resolve.Candidate) bool
}

// blockedError is the failure of an object that is caused only by the failure of another object.
type blockedError struct {
	by  *manifest.Object
	err error // of that object
}

func (e *blockedError) Error() string { return e.err.Error() }

func (e *blockedError) Unwrap() error { return e.err }

// blockedBy returns the failure of an object as caused by another object, with the same message.
func blockedBy(by *manifest.Object, err error) error {
	failure := *status.AsFailure(err)
	failure.Err = &blockedError{by, err}
	return &failure
}

// BlockedBy returns the object whose failure is the only cause of this one: the source of a chart or release, or an
// included repository. It is empty if the object itself has an error.
func (r *Result) BlockedBy() finding.Object {
	if r.State != Failed || r.Failure == nil {
		return finding.Object{}
	}
	return blockerOf(r.Failure)
}

func blockerOf(failure *status.Failure) finding.Object {
	if blocked, ok := errors.AsType[*blockedError](failure); ok {
		return validate.Named(blocked.by)
	}
	return validate.BlockedBy(failure)
}
