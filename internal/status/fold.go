// Package status turns what became of an object, and what was known of it before, into conditions, events and a
// document. It does no I/O except writing documents to a writer, and knows nothing about how an outcome came about.
package status

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Previous is what the last run left behind. The zero value is an object that was never seen.
type Previous struct {
	Conditions         []metav1.Condition
	ObservedGeneration int64          // 0 counts as -1, the API's default for a new object
	Artifact           *meta.Artifact // as reported, nil if there was none
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

// An Outcome is what became of an object in this run. It has either Stored or Failure. The reconciliation of the object
// fills it and folds it into conditions and events; after that nothing refers to it.
type Outcome struct {
	Generation int64 // of the object, never 0

	// Seen is the revision that is to replace what is stored, once it is known: NewIndex or NewBuild. It stays nil
	// when the stored artifact is the right one already.
	Seen *Observation
	// Stored reports that the right artifact is in storage: StoredRevision or (Build).Stored.
	Stored *Observation
	// Failure is what went wrong.
	Failure *Failure

	// Verified is the message of SourceVerified=True, "" when nothing was verified in this run: then an earlier
	// success stays.
	Verified string
	// Unverifiable reports that no verification is required: SourceVerified goes away.
	Unverifiable bool

	// The rest is for events only.

	Artifact *meta.Artifact // what is stored now
	Reused   bool           // Artifact was there before and is still the right one
	Announce string         // message of the success event, Stored's message if empty
	Events   []Event        // reported along the way, before the outcome was known
}

// Fold returns the conditions that source-controller would leave on an object of this kind after such an outcome, and
// the generation that it would call observed: that moves only when the object is ready or stalled.
//
// It differs from source-controller in three points. A success removes every failure, where source-controller leaves
// StorageOperationFailed on a repository whose index went back to the stored revision. A condition that says what it
// said before keeps its transition time even if it was something else during the run. And a message is cut between
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

// Midway returns the conditions that an observer would see in the middle of the run, after what o.Seen says and
// before anything is stored: Reconciling, ArtifactOutdated if there is an artifact, and Ready unknown.
func Midway(prev Previous, o Outcome, now time.Time) ([]metav1.Condition, int64) {
	c := begin(prev, o)
	return c.finish(prev.steady(), now), prev.observedGeneration()
}

// Interrupted returns the conditions of an object that the run did not get to the end of.
func Interrupted(prev Previous, generation int64, now time.Time) ([]metav1.Condition, int64) {
	c := begin(prev, Outcome{Generation: generation})
	message := c.get(meta.ReconcilingCondition).Message
	c.setTrue(meta.ReconcilingCondition, ProgressingWithRetry, message)
	c.set(meta.ReadyCondition, metav1.ConditionUnknown, ProgressingWithRetry, message)
	return c.finish(prev.steady(), now), prev.observedGeneration()
}

// steady returns the conditions whose transition times may live on. What is said about an artifact that had to be
// made again is new, even in the same words.
func (p Previous) steady() []metav1.Condition {
	if !p.Disappeared {
		return p.Conditions
	}
	return slices.DeleteFunc(slices.Clone(p.Conditions), func(c metav1.Condition) bool {
		return c.Type == artifactInStorage || c.Type == meta.ReadyCondition
	})
}

// begin goes through a run up to the point where the artifact is to be stored.
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
			c.remove(fetchFailed) // a signature is looked for before the rest is fetched
		}
		if prev.stored() {
			c.setTrue(artifactOutdated, o.Seen.Reason, o.Seen.Message)
		}
		c.progress(true, "building artifact: "+o.Seen.Message)
	}
	return c
}

// verification applies what is known about the signature. An earlier failure never outlives a run.
func (c *conditions) verification(o Outcome) {
	if o.Unverifiable || c.is(sourceVerified, metav1.ConditionFalse) {
		c.remove(sourceVerified)
	}
	if o.Verified != "" {
		c.setTrue(sourceVerified, Succeeded, o.Verified)
	}
}

// fail sets the condition that the failure is of, and removes those that this run got past.
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

// Reasons of ArtifactGenerators, spelled as source-watcher spells them. None has a condition of its own: Ready is false.
const (
	ValidationFailed     = Reason("ValidationFailed") // stalls
	SourceFetchFailed    = Reason("SourceFetchFailed")
	GeneratorBuildFailed = Reason(meta.BuildFailedReason)
)

// FoldGenerator returns the conditions that source-watcher leaves on an ArtifactGenerator. It has no observed generation of
// its own: the number is that of the conditions.
func FoldGenerator(prev Previous, o Outcome, now time.Time) ([]metav1.Condition, int64) {
	c := &conditions{generation: o.Generation, list: slices.Clone(prev.Conditions)}
	c.remove(meta.StalledCondition, meta.ReconcilingCondition)
	switch f := o.Failure; {
	case f == nil && o.Stored != nil:
		c.set(meta.ReadyCondition, metav1.ConditionTrue, o.Stored.Reason, o.Stored.Message)
	case f == nil:
		c.setTrue(meta.ReconcilingCondition, Progressing, "Reconciliation in progress")
		c.set(meta.ReadyCondition, metav1.ConditionUnknown, Progressing, "Reconciliation in progress")
	case f.Stalled != "":
		c.setTrue(meta.StalledCondition, f.Stalled, f.Message)
		c.set(meta.ReadyCondition, metav1.ConditionFalse, f.Reason, f.Message)
	default:
		c.setTrue(meta.ReconcilingCondition, ProgressingWithRetry, f.Message)
		c.set(meta.ReadyCondition, metav1.ConditionFalse, f.Reason, f.Message)
	}
	return c.finish(prev.Conditions, now), o.Generation
}

// FoldExternalArtifact returns the conditions of an ExternalArtifact, of which there is one.
func FoldExternalArtifact(prev Previous, o Outcome, now time.Time) ([]metav1.Condition, int64) {
	c := &conditions{generation: o.Generation}
	switch f := o.Failure; {
	case f != nil:
		c.set(meta.ReadyCondition, metav1.ConditionFalse, f.Reason, f.Message)
	case o.Stored != nil:
		c.set(meta.ReadyCondition, metav1.ConditionTrue, o.Stored.Reason, o.Stored.Message)
	default:
		c.set(meta.ReadyCondition, metav1.ConditionUnknown, Progressing, "Reconciliation in progress")
	}
	return c.finish(prev.Conditions, now), o.Generation
}

// Reasons of HelmReleases, spelled as helm-controller spells them. None has a condition of its own: Ready is false.
const (
	AccessDenied     = Reason("AccessDenied") // stalls
	ArtifactFailed   = Reason("ArtifactFailed")
	SourceNotReady   = Reason("SourceNotReady")
	ValuesError      = Reason("ValuesError")
	ChartMutateError = Reason("ChartMutateError")
)

// The annotations by which a printed HelmRelease says which chart it has.
const (
	ChartAnnotation    = "helmsrc.dev/chart"
	VersionAnnotation  = "helmsrc.dev/chart-version"
	ArtifactAnnotation = "helmsrc.dev/artifact"
)

const fulfilling = "Fulfilling prerequisites"

// Fulfilled is the outcome of a release whose chart and values are known: as far as a run gets without a cluster.
func Fulfilled() *Observation {
	return &Observation{Progressing, "resolved; what comes next needs a cluster"}
}

// FoldRelease returns the conditions that helm-controller leaves on a HelmRelease whose prerequisites failed, or has on
// it just before it installs, and the generation that it would call observed.
func FoldRelease(prev Previous, o Outcome, now time.Time) ([]metav1.Condition, int64) {
	c := &conditions{generation: o.Generation, list: slices.Clone(prev.Conditions)}
	c.remove(meta.StalledCondition)
	c.setTrue(meta.ReconcilingCondition, Progressing, fulfilling)
	observed := prev.observedGeneration()
	switch f := o.Failure; {
	case f == nil && o.Stored != nil:
		c.set(meta.ReadyCondition, metav1.ConditionUnknown, o.Stored.Reason, o.Stored.Message)
	case f == nil:
		c.set(meta.ReadyCondition, metav1.ConditionUnknown, Progressing, fulfilling)
	case f.Stalled != "":
		c.remove(meta.ReconcilingCondition)
		c.setTrue(meta.StalledCondition, f.Stalled, f.Message)
		c.set(meta.ReadyCondition, metav1.ConditionFalse, f.Reason, f.Message)
		observed = o.Generation
	default:
		c.set(meta.ReadyCondition, metav1.ConditionFalse, f.Reason, f.Message)
	}
	return c.finish(prev.Conditions, now), observed
}

// ReleaseEvents returns the events of a HelmRelease: helm-controller warns of some of its failures only.
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
