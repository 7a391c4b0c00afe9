package status_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/status"
)

const (
	repository = sourcev1.HelmRepositoryKind
	chart      = sourcev1.HelmChartKind
	oci        = sourcev1.OCIRepositoryKind
)

var (
	before = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	now    = before.Add(time.Hour)
)

// condition returns a condition with the generation that observed it, and the time before.
func condition(generation int64, typ string, value metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: typ, Status: value, Reason: reason, Message: message, ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(before)}
}

func isTrue(typ, reason, message string) metav1.Condition {
	return condition(1, typ, metav1.ConditionTrue, reason, message)
}

func isFalse(typ, reason, message string) metav1.Condition {
	return condition(1, typ, metav1.ConditionFalse, reason, message)
}

// show prints conditions without their times.
func show(conditions []metav1.Condition) string {
	var b strings.Builder
	for _, c := range conditions {
		fmt.Fprintf(&b, "  %s=%s/%s@%d %q\n", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message)
	}
	return b.String()
}

func artifact(revision string) *meta.Artifact {
	size := int64(40898)
	return &meta.Artifact{Revision: revision, Digest: "sha256:" + revision, Size: &size}
}

// The two revisions of the scenarios.
const oldRevision, newRevision = "5.2.1", "5.2.2"

func build(revision string, stage status.Stage) status.Build {
	return status.Build{Name: "podinfo", Version: revision, Stage: stage}
}

// seen and stored are the observations of a kind.
func seen(kind, revision string) *status.Observation {
	if kind == chart {
		return build(revision, status.Pulled).Seen()
	}
	if kind == oci {
		return status.NewDigest(revision, "ghcr.io/org/podinfo:"+revision)
	}
	return status.NewIndex(revision)
}

func stored(kind, revision string) *status.Observation {
	if kind == chart {
		return build(revision, status.Pulled).Stored()
	}
	if kind == oci {
		return status.StoredDigest(revision)
	}
	return status.StoredRevision(revision)
}

// previous returns the possible previous statuses, by name.
func previous(kind string) map[string]status.Previous {
	success := stored(kind, oldRevision)
	ready := isTrue("Ready", string(success.Reason), success.Message)
	inStorage := isTrue("ArtifactInStorage", string(success.Reason), success.Message)
	retrying := isTrue("Reconciling", "ProgressingWithRetry", "building artifact")
	outdated := seen(kind, newRevision)
	list := func(conditions ...metav1.Condition) []metav1.Condition { return conditions }
	all := map[string]status.Previous{
		"fresh": {},
		"ready": {Conditions: list(ready, inStorage), ObservedGeneration: 1, Artifact: artifact(oldRevision)},
		"failed": {Conditions: list(retrying, isFalse("Ready", "Failed", "no route"),
			isTrue("FetchFailed", "Failed", "no route")), ObservedGeneration: -1},
		"failed with artifact": {Conditions: list(
			isTrue("Reconciling", "ProgressingWithRetry", "reconciliation in progress"),
			isFalse("Ready", "Failed", "no route"), inStorage, isTrue("FetchFailed", "Failed", "no route")),
			ObservedGeneration: 1, Artifact: artifact(oldRevision)},
		"stalled": {Conditions: list(isTrue("Stalled", "URLInvalid", "bad"), isFalse("Ready", "URLInvalid", "bad"),
			isTrue("FetchFailed", "URLInvalid", "bad")), ObservedGeneration: 1},
		"stalled with artifact": {Conditions: list(isTrue("Stalled", "URLInvalid", "bad"),
			isFalse("Ready", "URLInvalid", "bad"), inStorage, isTrue("FetchFailed", "URLInvalid", "bad")),
			ObservedGeneration: 1, Artifact: artifact(oldRevision)},
		"disk full": {Conditions: list(
			isTrue("Reconciling", "ProgressingWithRetry", "building artifact: "+outdated.Message),
			isFalse("Ready", "ArchiveOperationFailed", "no space"),
			isTrue("ArtifactOutdated", string(outdated.Reason), outdated.Message), inStorage,
			isTrue("StorageOperationFailed", "ArchiveOperationFailed", "no space")),
			ObservedGeneration: 1, Artifact: artifact(oldRevision)},
		"interrupted": {Conditions: list(retrying,
			condition(1, "Ready", metav1.ConditionUnknown, "ProgressingWithRetry", "building artifact")),
			ObservedGeneration: -1},
	}
	gone := all["ready"]
	gone.Disappeared = true
	all["disappeared"] = gone
	if kind == oci {
		all["verified"] = status.Previous{Conditions: list(ready, inStorage,
			isTrue("SourceVerified", "Succeeded", "verified signature of revision 5.2.1")),
			ObservedGeneration: 1, Artifact: artifact(oldRevision)}
		all["refused"] = status.Previous{Conditions: list(retrying, isFalse("Ready", "VerificationError", "unsigned"),
			isFalse("SourceVerified", "VerificationError", "unsigned")), ObservedGeneration: -1}
	}
	if kind == chart {
		all["verified"] = status.Previous{Conditions: list(ready, inStorage,
			isTrue("SourceVerified", "Succeeded", "verified signature of version 5.2.1")),
			ObservedGeneration: 1, Artifact: artifact(oldRevision)}
		all["refused"] = status.Previous{Conditions: list(retrying, isFalse("Ready", "VerificationError", "unsigned"),
			isTrue("BuildFailed", "ChartVerificationError", "unsigned"),
			isFalse("SourceVerified", "VerificationError", "unsigned")), ObservedGeneration: -1}
	}
	return all
}

// outcomes returns the possible outcomes, by name.
func outcomes(kind string) map[string]status.Outcome {
	boom := errors.New("boom")
	failure := func(err error) status.Outcome { return status.Outcome{Failure: status.AsFailure(err)} }
	all := map[string]status.Outcome{
		"reused":   {Stored: stored(kind, oldRevision), Artifact: artifact(oldRevision), Reused: true},
		"new":      {Seen: seen(kind, newRevision), Stored: stored(kind, newRevision), Artifact: artifact(newRevision)},
		"fetch":    failure(status.Failed.Wrap(errors.New("no route"))),
		"auth":     failure(status.AuthenticationFailed.Wrap(boom)),
		"stall":    failure(status.URLInvalid.Wrap(errors.New("bad"))),
		"storage":  {Seen: seen(kind, newRevision), Failure: status.AsFailure(status.ArchiveOperationFailed.Wrap(boom))},
		"lock":     failure(status.AcquireLockFailed.Wrap(boom)),
		"cut":      failure(status.Failed.Wrap(errors.New(strings.Repeat("x", 40_000)))),
		"unmapped": failure(boom),
	}
	switch kind {
	case repository:
		all["index"] = failure(status.IndexationFailed.Wrap(boom))
		return all
	case oci:
		ociOutcomes(all)
		return all
	}
	all["no source"] = failure(status.NoSource("HelmRepository", "podinfo", nil))
	all["source missing"] = failure(status.SourceUnavailable.Wrap(boom))
	all["source kind"] = failure(status.UnsupportedSourceKind.Wrap(boom))
	all["reference"] = failure(status.InvalidChartReference.Wrap(boom))
	all["pull"] = failure(status.ChartPullError.Wrap(boom))
	all["values"] = failure(status.ValuesFilesError.Wrap(boom))
	all["package"] = failure(status.ChartPackageError.Wrap(boom))
	all["refused"] = failure(status.ChartVerificationError.Wrap(boom))
	all["no keys"] = failure(status.VerificationError.Wrap(boom))
	verified := all["new"]
	verified.Verified = build(newRevision, status.Pulled).Verified()
	all["verified"] = verified
	for _, name := range []string{"new", "reused", "pull"} {
		unverifiable := all[name]
		unverifiable.Unverifiable = true
		all[name+", nothing to verify"] = unverifiable
	}
	return all
}

// ociOutcomes adds the outcomes that only an OCIRepository has.
func ociOutcomes(all map[string]status.Outcome) {
	boom := errors.New("boom")
	refused := &status.Failure{Type: sourcev1.SourceVerifiedCondition, Reason: status.VerificationError, Message: "unsigned", Err: boom}
	pull, layer := status.AsFailure(status.OCIPullFailed.Wrap(boom)), status.AsFailure(status.OCILayerOperationFailed.Wrap(boom))
	all["no digest"] = status.Outcome{Failure: pull}
	all["no tag"] = status.Outcome{Failure: status.AsFailure(status.ReadOperationFailed.Wrap(boom))}
	all["gate"] = status.Outcome{Failure: status.AsFailure(status.FeatureGateDisabled.Wrap(boom))}
	all["refused"] = status.Outcome{Seen: seen(oci, newRevision), Failure: refused}
	all["refused again"] = status.Outcome{Failure: refused}
	all["pull"] = status.Outcome{Seen: seen(oci, newRevision), Failure: pull}
	all["layer"] = status.Outcome{Seen: seen(oci, newRevision), Failure: layer}
	for _, name := range []string{"new", "reused", "pull"} {
		verified, unverifiable := all[name], all[name]
		verified.Verified = "verified signature of revision"
		unverifiable.Unverifiable = true
		all[name+", verified"], all[name+", nothing to verify"] = verified, unverifiable
	}
}

// A scenario is a combination of a previous status and an outcome.
type scenario struct {
	name      string
	kind      string
	prev      status.Previous
	outcome   status.Outcome
	different string // the reason why Fold departs from Flux, "" if it does not
}

func scenarios() []scenario {
	var all []scenario
	for _, kind := range []string{repository, chart, oci} {
		prevs, nexts := previous(kind), outcomes(kind)
		for _, was := range sortedKeys(prevs) {
			for _, is := range sortedKeys(nexts) {
				for generation := int64(1); generation <= 2; generation++ {
					s := scenario{kind: kind, prev: prevs[was], outcome: nexts[is]}
					s.outcome.Generation = generation
					s.name = fmt.Sprintf("%s: %s, then %s, generation %d", kind, was, is, generation)
					if s.outcome.Reused && (s.prev.Artifact == nil || s.prev.Disappeared) {
						continue // nothing to reuse
					}
					if s.outcome.Reused && was == "disk full" {
						s.different = "source-controller never removes StorageOperationFailed from an object that it " +
							"need not store anew"
					}
					all = append(all, s)
				}
			}
		}
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
