package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

// Remembered returns what earlier runs left of every object, sources first, each
// artifact checked on disk at the time that now gives. Nothing is changed. Records that cannot
// be read are reported as errors.
func Remembered(st *store.Store, advertised string, now func() time.Time) ([]*Result, []error) {
	return rememberedEach(st, advertised, now, func(*Result) {})
}

// Printable is Remembered for results that are only printed: the tree of an object's document is made when it is asked
// for, and not kept, so that memory is that of the texts.
func Printable(st *store.Store, advertised string, now func() time.Time) ([]*Result, []error) {
	return rememberedEach(st, advertised, now, func(r *Result) {
		r.Object.Content, r.Object.Object.Content = nil, nil
	})
}

func rememberedEach(st *store.Store, advertised string, now func() time.Time, done func(*Result)) ([]*Result, []error) {
	kinds, at := Kinds(), addresses{st.Dir(), advertised}
	var results []*Result
	var failures []error
	keys, err := st.Keys()
	if err != nil {
		failures = append(failures, err)
	}
	for _, key := range keys {
		result, err := rememberedResult(st, key, at, now)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			failures = append(failures, fmt.Errorf("%s: %w", key, err))
		default:
			done(result)
			results = append(results, result)
		}
	}
	slices.SortStableFunc(results, func(a, b *Result) int {
		return kinds.rank(a.Object.Object.Kind) - kinds.rank(b.Object.Object.Kind)
	})
	return results, failures
}

func rememberedResult(st *store.Store, key store.Key, at addresses, now func() time.Time) (*Result, error) {
	record, err := st.Recall(key)
	if err != nil {
		return nil, err
	}
	obj, k, typed, err := decodeRecorded(key, record)
	if err != nil {
		return nil, err
	}
	content := obj.Content
	found := k.load(typed)
	result := &Result{Object: &admission.Admitted{Object: obj, Content: content}, Values: record.Values, recorded: record.Object}
	if result.Failure = checkStored(st, k, &found, generationIn(content), now); result.Failure == nil {
		result.Failure = judge(k, found, record.Failure)
	}
	if result.Failure != nil {
		result.State = Failed
	}
	if result.Failure == nil && k.about().noArtifact {
		result.State = Waiting
	}
	result.common = found
	known := heldBy(result)
	result.source = &known
	k.save(typed, found.withURLs(at, k.about().link))
	result.Status, err = status.Map(k.whole(typed))
	return result, err
}

// decodeRecorded returns the object of a record, its kind, and its typed status.
func decodeRecorded(key store.Key, record *store.Record) (*manifest.Object, kind, any, error) {
	var content map[string]any
	if err := json.Unmarshal(record.Object, &content); err != nil {
		return nil, nil, nil, fmt.Errorf("recorded object: %w", err)
	}
	obj := rememberedObject(key, content)
	k, ok := Kinds().of(obj)
	if !ok {
		return nil, nil, nil, fmt.Errorf("recorded object: kind %q is not supported", obj.Kind)
	}
	typed := k.empty()
	if err := json.Unmarshal(record.Status, k.whole(typed)); err != nil {
		return nil, nil, nil, fmt.Errorf("recorded status: %w", err)
	}
	return obj, k, typed, nil
}

func rememberedObject(key store.Key, content map[string]any) *manifest.Object {
	apiVersion, _ := content["apiVersion"].(string)
	name, _ := content["kind"].(string)
	return &manifest.Object{APIVersion: apiVersion, Kind: manifest.Called(apiVersion, name), Namespace: key.Namespace, Name: key.Name, Content: content}
}

// checkStored is what is wrong with the artifact in storage, or nil. What is printed says so, as it would after a run
// that cannot read its artifact.
func checkStored(st *store.Store, k kind, s *commonStatus, generation int64, now func() time.Time) *status.Failure {
	artifact := s.artifact
	if artifact == nil {
		return nil
	}
	err := st.Verify(artifact.Path, artifact.Digest)
	if err == nil {
		return nil
	}
	failure := status.AsFailure(status.ReadOperationFailed.Wrap(storedError(artifact, err)))
	prev := status.Previous{Conditions: s.conditions, ObservedGeneration: s.observedGeneration, Artifact: artifact, Disappeared: true}
	s.artifact = nil
	s.conditions, s.observedGeneration = status.Fold(k.about().name, prev, status.Outcome{Generation: generation, Failure: failure}, now())
	return failure
}

// generationIn is the generation of a remembered object.
func generationIn(content map[string]any) int64 {
	metadata, _ := content["metadata"].(map[string]any)
	if generation, ok := metadata["generation"].(float64); ok && generation > 0 {
		return int64(generation)
	}
	return 1
}

// judge is what is wrong with a remembered object, or nil. The code is that of what
// went wrong in the run.
func judge(k kind, s commonStatus, code string) *status.Failure {
	if _, ok := k.(operatedKind); ok {
		return judgeOperated(s, code)
	}
	ready := apimeta.FindStatusCondition(s.conditions, meta.ReadyCondition)
	if k.about().noArtifact && ready != nil && ready.Status == metav1.ConditionUnknown {
		return nil
	}
	if ready == nil || ready.Status != metav1.ConditionTrue {
		message := "not ready"
		if ready != nil {
			message = ready.Message
		}
		return &status.Failure{Reason: status.Failed, Message: message, Err: &rememberedError{message, finding.Code(code)}}
	}
	return nil
}

// judgeOperated is judge for a HelmRelease of Flux 1, which has no Ready condition.
func judgeOperated(s commonStatus, code string) *status.Failure {
	failed := status.OperatedFailure(s.conditions)
	if failed == nil {
		return nil
	}
	return &status.Failure{Reason: status.Reason(failed.Reason), Message: failed.Message, Err: &rememberedError{failed.Message, finding.Code(code)}}
}

// rememberedError is what went wrong in an earlier run.
type rememberedError struct {
	message string
	code    finding.Code
}

func (e *rememberedError) Error() string { return e.message }

// Finding is what is wrong.
func (e *rememberedError) Finding() finding.Code { return e.code }

// storedError says what has become of an artifact that was stored.
func storedError(artifact *meta.Artifact, err error) error {
	var altered *store.AlteredError
	switch {
	case errors.As(err, &altered):
		return &AlteredError{Path: artifact.Path, Err: altered.Err}
	case errors.Is(err, fs.ErrNotExist):
		return finding.WithCode(finding.ArtifactMissing, fmt.Errorf("artifact %s is not in the artifacts directory any more", artifact.Path))
	}
	return finding.WithCode(finding.Storage, err)
}

// AlteredError is a stored artifact that is not what was stored.
type AlteredError struct {
	Path string
	Err  error
}

func (e *AlteredError) Error() string {
	return fmt.Sprintf("failed to verify integrity of artifact %s: %v", e.Path, e.Err)
}

// Finding is what is wrong.
func (*AlteredError) Finding() finding.Code { return finding.ArtifactAltered }

func (e *AlteredError) Unwrap() error { return e.Err }

// Integrity reports that what is stored cannot be trusted.
func (e *AlteredError) Integrity() bool { return true }

// Hint says how to get the right bytes back.
func (e *AlteredError) Hint() string { return "the next 'helmsrc fetch' fetches it again" }
