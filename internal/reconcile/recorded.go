package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

// Remembered returns the recorded results of all objects, sources first, after it has verified
// each artifact on disk; now is the time for their conditions. It changes nothing. Records
// that cannot be read are returned as errors.
func Remembered(st *store.Store, advertised string, now func() time.Time) ([]*Result, []error) {
	return rememberedEach(st, advertised, now, func(_ *recollection, r *Result) *Result { return r })
}

// Outlines is Remembered for callers that need one result at a time: [Result.Whole] reads the rest of a result, while the
// storage is open.
func Outlines(st *store.Store, advertised string, now func() time.Time) ([]*Result, []error) {
	return rememberedEach(st, advertised, now, (*recollection).outline)
}

func rememberedEach(st *store.Store, advertised string, now func() time.Time, keep func(*recollection, *Result) *Result) ([]*Result, []error) {
	kinds, at := Kinds(), addresses{st.Dir(), advertised}
	var results []*Result
	var failures []error
	keys, err := st.Keys()
	if err != nil {
		failures = append(failures, err)
	}
	for _, key := range keys {
		m := &recollection{store: st, key: key, at: at, now: now}
		result, err := m.result()
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			failures = append(failures, fmt.Errorf("%s: %w", key, err))
		default:
			results = append(results, keep(m, result))
		}
	}
	slices.SortStableFunc(results, func(a, b *Result) int {
		return kinds.rank(a.Object.Object.Kind) - kinds.rank(b.Object.Object.Kind)
	})
	return results, failures
}

// recollection reads the record of an object. It verifies the artifact once.
type recollection struct {
	store    *store.Store
	key      store.Key
	at       addresses
	now      func() time.Time
	verified bool
	altered  error // the error of the artifact's verification
}

// outline returns the part of a result that selects it: its object, its state and its failure.
func (m *recollection) outline(r *Result) *Result {
	obj := r.Object.Object
	named := &manifest.Object{APIVersion: obj.APIVersion, Kind: obj.Kind, Namespace: obj.Namespace, Name: obj.Name}
	return &Result{Object: &admission.Admitted{Object: named}, State: r.State, Failure: r.Failure, whole: m.result}
}

// Whole returns the result with its document, which an outline reads on each call.
func (r *Result) Whole() (*Result, error) {
	if r.whole == nil {
		return r, nil
	}
	whole, err := r.whole()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Object.Object, err)
	}
	whole.Cluster = r.Cluster
	return whole, nil
}

func (m *recollection) result() (*Result, error) {
	record, err := m.store.Recall(m.key)
	if err != nil {
		return nil, err
	}
	obj, k, typed, err := decodeRecorded(m.key, record)
	if err != nil {
		return nil, err
	}
	found := k.load(typed)
	result := &Result{Object: &admission.Admitted{Object: obj, Content: obj.Content}, Values: record.Values, Recorded: record.Cluster}
	if result.Failure = m.checkStored(k, &found, generationIn(obj.Content)); result.Failure == nil {
		result.Failure = judge(k, found, record.Failure)
		result.Failure = recordedBlock(result.Failure, record.BlockedBy)
	}
	if result.Failure != nil {
		result.State = Failed
	}
	if result.Failure == nil && k.noArtifact {
		result.State = Waiting
	}
	result.common = found
	k.save(typed, found.withURLs(m.at, k.link))
	result.Status, err = status.Map(k.parts(typed).status)
	return result, err
}

// decodeRecorded returns the object of a record, its kind, and its typed status.
func decodeRecorded(key store.Key, record *store.Record) (*manifest.Object, *kind, any, error) {
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
	if err := json.Unmarshal(record.Status, k.parts(typed).status); err != nil {
		return nil, nil, nil, fmt.Errorf("recorded status: %w", err)
	}
	return obj, k, typed, nil
}

func rememberedObject(key store.Key, content map[string]any) *manifest.Object {
	apiVersion, name, _, _ := manifest.Identify(content)
	return &manifest.Object{APIVersion: apiVersion, Kind: manifest.Called(apiVersion, name), Namespace: key.Namespace, Name: key.Name, Content: content}
}

// checkStored returns the failure of the artifact in storage, or nil. It sets the conditions that a run would set
// which cannot read its artifact.
func (m *recollection) checkStored(k *kind, s *commonStatus, generation int64) *status.Failure {
	artifact := s.artifact
	if artifact == nil {
		return nil
	}
	if !m.verified {
		m.altered, m.verified = m.store.Verify(artifact.Path, artifact.Digest), true
	}
	if m.altered == nil {
		return nil
	}
	failure := status.AsFailure(status.ReadOperationFailed.Wrap(storedError(artifact, m.altered)))
	prev := status.Previous{Conditions: s.conditions, ObservedGeneration: s.observedGeneration, Artifact: artifact, Disappeared: true}
	s.artifact = nil
	s.conditions, s.observedGeneration = status.Fold(k.name, prev, status.Outcome{Generation: generation, Failure: failure}, m.now())
	return failure
}

func generationIn(content map[string]any) int64 {
	return max(1, int64(manifest.At[float64](content, "metadata", "generation")))
}

// judge returns the failure of a recorded object, or nil. Its code is that of the
// failure in the run.
func judge(k *kind, s commonStatus, code string) *status.Failure {
	if manifest.IsFlux1(k.group) {
		return judgeOperated(s, code)
	}
	ready := apimeta.FindStatusCondition(s.conditions, meta.ReadyCondition)
	if k.noArtifact && ready != nil && ready.Status == metav1.ConditionUnknown {
		return nil
	}
	if ready == nil || ready.Status != metav1.ConditionTrue {
		message := "not ready"
		if ready != nil {
			message = ready.Message
		}
		return &status.Failure{Reason: status.Failed, Message: message, Err: &finding.Problem{Code: finding.Code(code), Text: message}}
	}
	return nil
}

// recordedBlock returns a failure as caused by the object KIND/NAMESPACE/NAME that the record names, if it names one.
func recordedBlock(failure *status.Failure, by string) *status.Failure {
	parts := strings.Split(by, "/")
	if failure == nil || len(parts) != 3 {
		return failure
	}
	return status.AsFailure(blockedBy(&manifest.Object{Kind: parts[0], Namespace: parts[1], Name: parts[2]}, failure))
}

// judgeOperated is judge for a HelmRelease of Flux 1, which has no Ready condition.
func judgeOperated(s commonStatus, code string) *status.Failure {
	failed := status.OperatedFailure(s.conditions)
	if failed == nil {
		return nil
	}
	return &status.Failure{Reason: status.Reason(failed.Reason), Message: failed.Message, Err: &finding.Problem{Code: finding.Code(code), Text: failed.Message}}
}

func storedError(artifact *meta.Artifact, err error) error {
	var altered *store.AlteredError
	switch {
	case errors.As(err, &altered):
		return alteredArtifact(artifact.Path, altered.Err)
	case errors.Is(err, fs.ErrNotExist):
		return finding.WithCode(finding.NeverFetched, fmt.Errorf("artifact %s is not in the artifacts directory any more", artifact.Path))
	}
	return finding.WithCode(finding.Storage, err)
}

// StandIns returns the stored content of every source in a store: for a HelmRepository the charts that were fetched
// from it, for other sources their artifact. Each artifact is verified with its digest. An altered artifact and an
// unreadable record are among the errors; that of an altered artifact has the method Integrity.
func StandIns(st *store.Store, now func() time.Time) (map[store.Key]StandIn, []error) {
	results, failures := Remembered(st, "", now)
	found := map[store.Key]StandIn{}
	for _, r := range results {
		obj := r.Object.Object
		if r.Failure != nil && ClassOf(r.Failure) == Integrity {
			failures = append(failures, fmt.Errorf("%s: %w", obj, r.Failure))
		}
		if r.Artifact() == nil {
			continue
		}
		switch obj.Kind {
		case sourcev1.HelmChartKind:
			ref := manifest.At[map[string]any](obj.Content, "spec", "sourceRef")
			if name, _ := ref["name"].(string); ref["kind"] == sourcev1.HelmRepositoryKind {
				key := store.NewKey(sourcev1.HelmRepositoryKind, obj.Namespace, name)
				found[key] = StandIn{Path: st.Dir(), Archives: append(found[key].Archives, r.Artifact().Path)}
			}
		case sourcev1.HelmRepositoryKind: // its index names archives that are elsewhere
		default:
			found[inventory.KeyOf(obj)] = StandIn{Path: filepath.Join(st.Dir(), filepath.FromSlash(r.Artifact().Path))}
		}
	}
	return found, failures
}
