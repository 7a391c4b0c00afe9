package reconcile

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// Artifact is what the object has in storage, nil if nothing is.
func (r *Result) Artifact() *meta.Artifact { return r.common.artifact }

// charts are the published charts of an object. Without any, the error has a reason: the
// object is of another kind, or nothing of it was ever fetched. Whether the object is ready does not matter: a
// repository that is down serves what it had.
func (r *Result) charts(ctx context.Context, w *remarks) (charts, error) {
	if from, ok := r.provider.(chartProvider); ok {
		return from.charts(ctx, w)
	}
	return nil, r.nothing()
}

// tree are the files, under the same conditions.
func (r *Result) tree(ctx context.Context) (*sourceTree, error) {
	if from, ok := r.provider.(treeProvider); ok {
		return from.tree(ctx)
	}
	return nil, r.nothing()
}

func (r *Result) nothing() error {
	return status.NoSource(r.Object.Object.Kind, r.Object.Object.Name, causeOf(r))
}

// causeOf is why an object may provide nothing.
func causeOf(source *Result) error {
	switch {
	case source.State == Suspended:
		return &blockedError{source.Object.Object, suspended(source.Object.Object)}
	case source.Failure == nil:
		return nil
	case source.State != Failed:
		return source.Failure
	}
	return &blockedError{source.Object.Object, source.Failure}
}

// sourceTree is the content of a Git repository or a bucket as its artifact has
// it. Its source makes it; it does not change, and its files stay until the run ends.
type sourceTree struct {
	root     *os.Root                                    // nil if it is not unpacked yet
	unpack   func(ctx context.Context) (*os.Root, error) // does so, once
	filter   tree.Filter                                 // nil keeps everything
	revision string
	digest   string // of the artifact, "" if it is not stored
	time     time.Time
	pin      Pin
}

// metadataTime is the key of artifact.metadata for the time of the commit that a
// source's artifact was made of: charts that are packaged from it get it.
const metadataTime = "helmsrc.dev/time"

// noArtifact is the error of an included repository that has nothing in storage. What went wrong with it is not in its text.
func noArtifact(name string, cause error) error {
	return &finding.Problem{Text: fmt.Sprintf("no artifact available for include '%s'", name), Err: cause}
}

// suspended is the error of a source that is left alone, and was never fetched.
func suspended(obj *manifest.Object) error {
	return &finding.Problem{
		Text:   fmt.Sprintf("%s '%s' is suspended and was never fetched", obj.Kind, obj.Name),
		Advice: "resume it, or fetch it once without spec.suspend",
	}
}
