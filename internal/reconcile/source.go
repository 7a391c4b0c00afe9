package reconcile

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// Artifact returns the object's artifact in storage, or nil.
func (r *Result) Artifact() *meta.Artifact { return r.common.artifact }

// chartProvider and treeProvider are the steps of objects that provide charts or trees to other objects after their
// reconciliation. The returned values stay valid until the run ends. Both may be called by several goroutines at once.
type (
	chartProvider interface {
		charts(ctx context.Context, w *remarks) (charts, error)
	}
	treeProvider interface {
		tree(ctx context.Context) (*sourceTree, error)
	}
)

// charts returns the published charts of an object. Its error has a reason: the object is of another kind, or
// was never fetched. The object need not be ready: a repository that is down still provides its stored index.
func (r *Result) charts(ctx context.Context, w *remarks) (charts, error) {
	if from, ok := r.provider.(chartProvider); ok {
		return from.charts(ctx, w)
	}
	return nil, r.nothing()
}

// tree returns the files of an object, under the same conditions.
func (r *Result) tree(ctx context.Context) (*sourceTree, error) {
	if from, ok := r.provider.(treeProvider); ok {
		return from.tree(ctx)
	}
	return nil, r.nothing()
}

func (r *Result) nothing() error {
	return status.NoSource(r.Object.Object.Kind, r.Object.Object.Name, causeOf(r))
}

// causeOf returns the reason why an object may provide nothing.
func causeOf(source *Result) error {
	switch {
	case source.State == Suspended:
		return &blockedError{source.Object.Object, suspended(source)}
	case source.Failure == nil:
		return nil
	case source.State != Failed:
		return source.Failure
	}
	return &blockedError{source.Object.Object, source.Failure}
}

// sourceTree is the content of a Git repository or a bucket as in its artifact. It
// does not change after its source created it, and its files stay until the run ends.
type sourceTree struct {
	root     *os.Root                                    // nil before it is unpacked
	unpack   func(ctx context.Context) (*os.Root, error) // unpacks it, once
	filter   tree.Filter                                 // nil keeps everything
	revision string
	digest   string // of the artifact, "" if it is not stored
	time     time.Time
	pin      Pin
}

// metadataTime is the key of artifact.metadata for the time of the artifact's
// commit, which the charts that are packaged from it also get.
const metadataTime = "helmsrc.dev/time"

// noArtifact returns the error of an included repository without an artifact in storage. Its text does not contain the cause.
func noArtifact(name string, cause error) error {
	return &finding.Problem{Text: fmt.Sprintf("no artifact available for include '%s'", name), Err: cause}
}

// suspended returns the error of a suspended source that provides nothing.
func suspended(source *Result) error {
	obj := source.Object.Object
	return &finding.Problem{
		Text:   fmt.Sprintf("%s '%s' is suspended and was %s", obj.Kind, obj.Name, source.whenFetched()),
		Advice: "resume it, or fetch it once without spec.suspend",
	}
}

// whenFetched returns why a suspended source provides nothing.
func (r *Result) whenFetched() string {
	if r.Artifact() != nil && r.common.observedGeneration != generationOf(r.Object.Typed) {
		return "not fetched since it was changed"
	}
	return "never fetched"
}

// generationOf returns metadata.generation, or 1: it is never derived from earlier runs.
func generationOf(typed any) int64 {
	if obj, ok := typed.(metav1.Object); ok && obj.GetGeneration() > 0 {
		return obj.GetGeneration()
	}
	return 1
}
