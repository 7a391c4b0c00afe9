// Package status turns the outcome of an object, and its previous status, into conditions, events and a document. It does no
// I/O except writing documents to a writer, and knows nothing about the way to an outcome.
package status

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Previous is the status after the last run. The zero value is an object that was never seen.
type Previous struct {
	Conditions         []metav1.Condition
	ObservedGeneration int64          // 0 counts as -1, the API's default for a new object
	Artifact           *meta.Artifact // as reported, or nil
	Disappeared        bool           // Artifact is no longer in the artifacts directory, or was altered
}

func (p Previous) stored() bool { return p.Artifact != nil && !p.Disappeared }

func (p Previous) observedGeneration() int64 {
	if p.ObservedGeneration == 0 {
		return -1
	}
	return p.ObservedGeneration
}

// An Observation is the reason and the message of a condition.
type Observation struct {
	Reason  Reason
	Message string
}

// An Outcome is the outcome of an object in this run. It has either Stored or Failure. The reconciliation of the object fills
// it and folds it into conditions and events; after that nothing refers to it.
type Outcome struct {
	Generation int64 // of the object, never 0

	// Seen is the revision that replaces the stored one, once it is known: NewIndex or NewBuild. It stays nil if the stored
	// artifact is already the right one.
	Seen *Observation
	// Stored reports that the right artifact is in storage: StoredRevision or (Build).Stored.
	Stored *Observation
	// Failure is the error that ended the reconciliation.
	Failure *Failure

	// Verified is the message of SourceVerified=True, "" if nothing was verified in this run: then an earlier success stays.
	Verified string
	// Unverifiable reports that no verification is required: SourceVerified is removed.
	Unverifiable bool

	// The rest is for events only.

	Artifact *meta.Artifact // the stored artifact
	Reused   bool           // Artifact was there before and is still the right one
	Announce string         // message of the success event, Stored's message if empty
	Events   []Event        // reported before the outcome was known
}

// Fold returns the conditions that source-controller would leave on an object of this kind after this outcome, and
// the generation that it would call observed: that moves only when the object is ready or stalled.
//
// It differs from source-controller in three points. A success removes every failure, where source-controller leaves
// StorageOperationFailed on a repository whose index went back to the stored revision. A condition with the same content
// as before keeps its transition time even if it changed during the run. And a message is cut between
// characters.
func Fold(kind string, prev Previous, o Outcome, now time.Time) ([]metav1.Condition, int64) {
	c := begin(prev, o)
	switch {
	case o.Failure != nil:
		c.fail(o.Failure)
	case o.Stored != nil:
		c.remove(fetchFailed, buildFailed, storageFailed, includeUnavailable, artifactOutdated,
			meta.ReconcilingCondition)
		c.setTrue(artifactInStorage, o.Stored.Reason, o.Stored.Message)
	}
	if reconciling := c.get(meta.ReconcilingCondition); reconciling != nil {
		reconciling.Reason = string(ProgressingWithRetry)
	}
	c.summarise(kind)

	observed := prev.observedGeneration()
	if c.is(meta.StalledCondition, metav1.ConditionTrue) || c.get(meta.ReconcilingCondition) == nil {
		observed = o.Generation
	}
	return c.finish(prev.steady(), now), observed
}

// Midway returns the conditions that an observer would see in the middle of the run, after the revision of o.Seen is known and
// before anything is stored: Reconciling, ArtifactOutdated if there is an artifact, and Ready unknown.
func Midway(prev Previous, o Outcome, now time.Time) ([]metav1.Condition, int64) {
	c := begin(prev, o)
	return c.finish(prev.steady(), now), prev.observedGeneration()
}

// Interrupted returns the conditions of an object whose reconciliation did not finish.
func Interrupted(prev Previous, generation int64, now time.Time) ([]metav1.Condition, int64) {
	c := begin(prev, Outcome{Generation: generation})
	message := c.get(meta.ReconcilingCondition).Message
	c.setTrue(meta.ReconcilingCondition, ProgressingWithRetry, message)
	c.set(meta.ReadyCondition, metav1.ConditionUnknown, ProgressingWithRetry, message)
	return c.finish(prev.steady(), now), prev.observedGeneration()
}

// steady returns the conditions that may keep their transition times. Conditions of an artifact that had to be made again are
// new, even with the same text.
func (p Previous) steady() []metav1.Condition {
	if !p.Disappeared {
		return p.Conditions
	}
	return slices.DeleteFunc(slices.Clone(p.Conditions), func(c metav1.Condition) bool {
		return c.Type == artifactInStorage || c.Type == meta.ReadyCondition
	})
}

// begin sets the conditions of a run up to the point where the artifact is stored.
func begin(prev Previous, o Outcome) *conditions {
	c := &conditions{generation: o.Generation, list: slices.Clone(prev.Conditions)}
	c.progress(false, "reconciliation in progress")
	if observed := prev.observedGeneration(); observed != o.Generation {
		c.progress(false, fmt.Sprintf("processing object: new generation %d -> %d", observed, o.Generation))
	}
	if !prev.stored() {
		c.remove(artifactInStorage)
		message := "building artifact"
		if prev.Disappeared {
			message += ": disappeared from storage"
		}
		c.progress(true, message)
	}
	c.verification(o)
	if o.Seen != nil {
		if o.Failure == nil || o.Failure.Type != sourceVerified {
			c.remove(fetchFailed) // the signature is searched for before the rest is fetched
		}
		if prev.stored() {
			c.setTrue(artifactOutdated, o.Seen.Reason, o.Seen.Message)
		}
		c.progress(true, "building artifact: "+o.Seen.Message)
	}
	return c
}

// verification sets the condition of the signature. An earlier failure never outlives a run.
func (c *conditions) verification(o Outcome) {
	if o.Unverifiable || c.is(sourceVerified, metav1.ConditionFalse) {
		c.remove(sourceVerified)
	}
	if o.Verified != "" {
		c.setTrue(sourceVerified, Succeeded, o.Verified)
	}
}

// fail sets the condition of the failure, and removes the conditions of failures in earlier steps, which this run passed.
func (c *conditions) fail(f *Failure) {
	switch f.Type {
	case fetchFailed:
		c.remove(buildFailed)
	case buildFailed:
		c.remove(fetchFailed)
	case storageFailed:
		c.remove(fetchFailed, buildFailed)
	}
	if f.Type == sourceVerified {
		c.set(sourceVerified, metav1.ConditionFalse, f.Reason, f.Message)
	} else {
		c.setTrue(f.Type, f.Reason, f.Message)
	}
	if f.Unverified {
		c.set(sourceVerified, metav1.ConditionFalse, VerificationError, f.Message)
	}
	if f.Stalled != "" {
		c.remove(meta.ReconcilingCondition)
		c.setTrue(meta.StalledCondition, f.Stalled, f.Message)
	}
}

// Reasons of ArtifactGenerators, spelled as source-watcher spells them. They have no condition of their own: Ready is false.
const (
	ValidationFailed     = Reason("ValidationFailed") // stalls
	SourceFetchFailed    = Reason("SourceFetchFailed")
	GeneratorBuildFailed = Reason(meta.BuildFailedReason)
)

// FoldGenerator returns the conditions that source-watcher leaves on an ArtifactGenerator, and the generation of these
// conditions: its status has no observed generation.
func FoldGenerator(prev Previous, o Outcome, now time.Time) ([]metav1.Condition, int64) {
	c := &conditions{generation: o.Generation, list: slices.Clone(prev.Conditions)}
	c.remove(meta.StalledCondition, meta.ReconcilingCondition)
	switch f := o.Failure; {
	case f != nil && f.Stalled != "":
		c.setTrue(meta.StalledCondition, f.Stalled, f.Message)
	case f != nil:
		c.setTrue(meta.ReconcilingCondition, ProgressingWithRetry, f.Message)
	case o.Stored == nil:
		c.setTrue(meta.ReconcilingCondition, Progressing, inProgress)
	}
	c.ready(o, metav1.ConditionTrue, inProgress)
	return c.finish(prev.Conditions, now), o.Generation
}

const inProgress = "Reconciliation in progress"

// FoldExternalArtifact returns the conditions of an ExternalArtifact, which has only Ready.
func FoldExternalArtifact(prev Previous, o Outcome, now time.Time) ([]metav1.Condition, int64) {
	c := &conditions{generation: o.Generation}
	c.ready(o, metav1.ConditionTrue, inProgress)
	return c.finish(prev.Conditions, now), o.Generation
}

// ready sets the condition Ready of an object whose failures have no conditions of their own: to stored once Outcome.Stored is
// known, and to unknown with the message progressing before that.
func (c *conditions) ready(o Outcome, stored metav1.ConditionStatus, progressing string) {
	switch {
	case o.Failure != nil:
		c.set(meta.ReadyCondition, metav1.ConditionFalse, o.Failure.Reason, o.Failure.Message)
	case o.Stored != nil:
		c.set(meta.ReadyCondition, stored, o.Stored.Reason, o.Stored.Message)
	default:
		c.set(meta.ReadyCondition, metav1.ConditionUnknown, Progressing, progressing)
	}
}

// Reasons of HelmReleases, spelled as helm-controller spells them. They have no condition of their own: Ready is false.
const (
	AccessDenied     = Reason("AccessDenied") // stalls
	ArtifactFailed   = Reason("ArtifactFailed")
	SourceNotReady   = Reason("SourceNotReady")
	ValuesError      = Reason("ValuesError")
	ChartMutateError = Reason("ChartMutateError")
)

// The annotations of a printed HelmRelease that name its chart.
const (
	ChartAnnotation    = "helmsrc.dev/chart"
	VersionAnnotation  = "helmsrc.dev/chart-version"
	ArtifactAnnotation = "helmsrc.dev/artifact"
)

const fulfilling = "Fulfilling prerequisites"

// Fulfilled returns the outcome of a release with known chart and values: a run without a cluster gets no further.
func Fulfilled() *Observation {
	return &Observation{Progressing, "resolved; what comes next needs a cluster"}
}

// FoldRelease returns the conditions that helm-controller leaves on a HelmRelease whose prerequisites failed, or sets just
// before it installs, and the generation that it would call observed.
func FoldRelease(prev Previous, o Outcome, now time.Time) ([]metav1.Condition, int64) {
	c := &conditions{generation: o.Generation, list: slices.Clone(prev.Conditions)}
	c.remove(meta.StalledCondition)
	c.setTrue(meta.ReconcilingCondition, Progressing, fulfilling)
	observed := prev.observedGeneration()
	if f := o.Failure; f != nil && f.Stalled != "" {
		c.remove(meta.ReconcilingCondition)
		c.setTrue(meta.StalledCondition, f.Stalled, f.Message)
		observed = o.Generation
	}
	c.ready(o, metav1.ConditionUnknown, fulfilling)
	return c.finish(prev.Conditions, now), observed
}

// ReleaseEvents returns the events of a HelmRelease. helm-controller warns about only some of its failures.
func ReleaseEvents(o Outcome) []Event {
	f := o.Failure
	if f == nil || f.Requeue {
		return o.Events
	}
	switch f.Reason {
	case AccessDenied, ArtifactFailed, ValuesError:
		return append(o.Events, Event{Warning: true, Reason: f.Reason, Message: f.Message})
	}
	return o.Events
}
