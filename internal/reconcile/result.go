package reconcile

import (
	"errors"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	helmchart "helm.sh/helm/v3/pkg/chart"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/validate"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// State is how an object left the run.
type State int

const (
	// Ready objects have the artifact of their spec.
	Ready State = iota
	// Failed objects have a Failure.
	Failed
	// Suspended objects were left alone.
	Suspended
	// Static objects have no status by design.
	Static
	// Resolved objects are known to a version, which is not stored.
	Resolved
	// Waiting objects have everything that they need but a cluster.
	Waiting
	// Interrupted objects were cut off by the end of the run's context.
	Interrupted
)

// Result is what became of one object. Its reconciliation fills it and no longer changes it once
// Progress.Finished has it: objects that refer to this one read it from other goroutines. The caller of
// Run may keep it after Close, but what it provides for other objects ends with the run.
type Result struct {
	Object  *admission.Admitted
	State   State
	Cluster string         // of several; the caller of Run sets it
	Status  map[string]any // of the document; nil prints none
	Events  []status.Event
	Failure *status.Failure
	remarks
	// Recorded is the cluster of an object that earlier runs left, "" if that is not known.
	Recorded string
	// Resolution is what a chart resolved to, as far as it got.
	Resolution *Resolution
	// Pin is what the object was resolved to, nil if it did not get that far or resolves to nothing.
	Pin *Pin
	// Dependencies are the charts that it requires of repositories, in the order in which it names them. They are known
	// if it was packaged, or verified with them.
	Dependencies []DependencyPin
	// Built is what the package was made of, if this run made one.
	Built *Built
	// Published is what there is of it, if an option requests it.
	Published *Published
	// Refused is the same of a chart of which no version can be chosen. Without versions nothing is known of any.
	Refused *Published
	// Summary says in words what became of an object, where its conditions do not say so.
	Summary string
	// Signature is who signed the chart, nil if nothing was verified.
	Signature *verify.Signer
	// Signed is what a GitRepository resolved to, nil if its signatures were not verified.
	Signed *SignedRevision

	// Values has a digest instead of each value that a release takes from a ConfigMap. It is nil if they are not known, or
	// too many.
	Values map[string]any

	composed *Composed // of a HelmRelease of Flux 1

	notes    map[string]string   // annotations of the document
	provider objectSteps         // of charts or files for other objects, nil for none
	metadata *helmchart.Metadata // of the chart in storage, if this run has read it
	common   commonStatus        // what Status is made of

	whole func() (*Result, error) // of an outline
}

// Resolution says which published chart an object resolves to.
type Resolution struct {
	Chart, Constraint, Version string
	URL                        string // redacted
	Digest                     string
}

// Message is the state in words: the Ready condition's, or the failure's.
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

// Class says what kind of failure an object's is, for the exit code.
type Class int

const (
	// Permanent failures need a change to the input or the machine.
	Permanent Class = iota
	// Transient failures may go away by themselves.
	Transient
	// Integrity failures are bytes or signatures that are not what they should be.
	Integrity
	// Drift is that manifests and lock do not fit.
	Drift
)

// ClassOf is the class of a failure.
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

// SignedRevision is a revision of a Git repository whose signatures are right.
type SignedRevision struct {
	Revision   string
	Signatures []fetch.Signature
}

// Built is what a package was made of.
type Built struct {
	Package     string // its digest
	Layer       string // of the layer of an OCIRepository, which is its artifact
	ValuesFiles []lock.File
	Published   time.Time // of the chart that it was made of, if that time is in it
}

// Published is what a repository has of the chart of an object.
type Published struct {
	Chart      string // or the URL of an OCIRepository, redacted
	Constraint string // a version, a range, or "" for the latest
	// Exact says that Constraint is one version.
	Exact bool
	// Versions are newest first. Those of an OCIRepository are called as their tags are.
	Versions []resolve.Candidate
	// Current is the version in use: the exact one, or that of the artifact in storage, or "".
	Current string
	// Wanted is what the constraint chooses now, "" if it chooses nothing any more.
	Wanted string
	// Next is where Options.Level leads from an exact version, "" without a newer one; NextDigest is what that is, if the
	// object names a digest.
	Next, NextDigest string
	takes            func(resolve.Candidate) bool
}

// blockedError is the failure of an object that only the failure of another one causes.
type blockedError struct {
	by  *manifest.Object
	err error // of that object
}

func (e *blockedError) Error() string { return e.err.Error() }

func (e *blockedError) Unwrap() error { return e.err }

// blockedBy is the failure of an object as that of another one, in the same words.
func blockedBy(by *manifest.Object, err error) error {
	failure := *status.AsFailure(err)
	failure.Err = &blockedError{by, err}
	return &failure
}

// BlockedBy returns the object whose failure is the only reason for this one: the source of a chart or release, or a
// repository that is included. It is empty where something is wrong with the object itself.
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
