package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

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
// artifact checked on disk. Nothing is changed. Records that cannot
// be read are told as errors.
func Remembered(st *store.Store, advertised string) ([]*Result, []error) {
	r := &Reconciler{store: st, o: Options{AdvertisedAddress: advertised}}
	var results []*Result
	var failures []error
	keys, err := st.Keys()
	if err != nil {
		failures = append(failures, err)
	}
	for _, key := range keys {
		result, err := r.remembered(key)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			failures = append(failures, fmt.Errorf("%s: %w", key, err))
		default:
			results = append(results, result)
		}
	}
	slices.SortStableFunc(results, func(a, b *Result) int {
		return rank(a.Object.Object.Kind) - rank(b.Object.Object.Kind)
	})
	return results, failures
}

// rank is the place of a kind in the order of kinds.
func rank(name string) int {
	return slices.IndexFunc(kinds(), func(k kind) bool { return k.name == name })
}

func (r *Reconciler) remembered(key store.Key) (*Result, error) {
	record, err := r.store.Recall(key)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := json.Unmarshal(record.Object, &content); err != nil {
		return nil, fmt.Errorf("remembered object: %w", err)
	}
	obj := rememberedObject(key, content)
	k, ok := kindOfObject(obj)
	if !ok {
		return nil, fmt.Errorf("remembered object: kind %q is not supported", obj.Kind)
	}
	typed := k.empty()
	f := k.fields(typed)
	if err := json.Unmarshal(record.Status, f.all); err != nil {
		return nil, fmt.Errorf("remembered status: %w", err)
	}
	result := &Result{Object: &admission.Admitted{Object: obj, Content: content}, artifact: *f.artifact}
	result.Failure = r.judge(k, f, record.Failure)
	if result.Failure != nil {
		result.State = Failed
	}
	r.setURLs(f, k.link)
	result.Status, err = status.Map(f.all)
	return result, err
}

func rememberedObject(key store.Key, content map[string]any) *manifest.Object {
	apiVersion, _ := content["apiVersion"].(string)
	name, _ := content["kind"].(string)
	return &manifest.Object{APIVersion: apiVersion, Kind: name, Namespace: key.Namespace, Name: key.Name, Content: content}
}

// judge is what is wrong with a remembered object, or nil. The code is that of what
// went wrong in the run.
func (r *Reconciler) judge(k kind, f fields, code string) *status.Failure {
	if artifact := *f.artifact; artifact != nil {
		if err := r.store.Verify(artifact.Path, artifact.Digest); err != nil {
			return storedFailure(artifact, err)
		}
	}
	ready := apimeta.FindStatusCondition(*f.conditions, meta.ReadyCondition)
	if k.waits && ready != nil && ready.Status == metav1.ConditionUnknown {
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

// rememberedError is what went wrong in an earlier run.
type rememberedError struct {
	message string
	code    finding.Code
}

func (e *rememberedError) Error() string { return e.message }

func storedFailure(artifact *meta.Artifact, err error) *status.Failure {
	var altered *store.AlteredError
	if errors.As(err, &altered) {
		err = &AlteredError{Path: artifact.Path, Err: altered.Err}
	} else {
		err = fmt.Errorf("artifact %s is not in the artifacts directory any more", artifact.Path)
	}
	return &status.Failure{Reason: status.Failed, Message: err.Error(), Err: err}
}

// AlteredError is a stored artifact that is not what was stored.
type AlteredError struct {
	Path string
	Err  error
}

func (e *AlteredError) Error() string {
	return fmt.Sprintf("failed to verify integrity of artifact %s: %v", e.Path, e.Err)
}

func (e *AlteredError) Unwrap() error { return e.Err }

// Integrity tells that what is stored cannot be trusted.
func (e *AlteredError) Integrity() bool { return true }

// Hint says how to get the right bytes back.
func (e *AlteredError) Hint() string { return "the next 'helmsrc fetch' fetches it again" }
