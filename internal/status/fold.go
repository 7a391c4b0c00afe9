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
	// Unverifiable reports that no verification is asked for: SourceVerified goes away.
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
