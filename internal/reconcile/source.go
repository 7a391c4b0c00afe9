package reconcile

import (
	"context"
	"fmt"
	"os"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// Source is what an object provides for those that refer to it. Its reconciliation makes it when
// all else is over; it does not change after that, is safe for many goroutines, and what it
// returns stays until the run ends. Whether the object is ready is not its concern: a
// repository that is down serves what it had. Only this package has types of it.
type Source interface {
	// Artifact is what is in storage now, nil if nothing is.
	Artifact() *meta.Artifact
	// charts are the published charts. It is an error with a reason if there are none: the
	// object is of another kind, or nothing of it was ever fetched.
	charts(ctx context.Context, w *warnings) (charts, error)
	// tree are the files, under the same conditions.
	tree(ctx context.Context) (*sourceTree, error)
	// chart is what the artifact says of itself, nil if this run has not read it.
	chart() *helmchart.Metadata
}

// held is the least that a Source is: an artifact, or nothing. The other types add to it what
// their kind has.
type held struct {
	object   *admission.Admitted
	artifact *meta.Artifact
	cause    error // why there is no more than that, nil if no one knows
}

func (h *held) Artifact() *meta.Artifact { return h.artifact }

func (h *held) chart() *helmchart.Metadata { return nil }

func (h *held) charts(context.Context, *warnings) (charts, error) { return nil, h.nothing() }

func (h *held) tree(context.Context) (*sourceTree, error) { return nil, h.nothing() }

func (h *held) nothing() error {
	return status.NoSource(h.object.Object.Kind, h.object.Object.Name, h.cause)
}

func heldBy(r *Result) held {
	return held{object: r.Object, artifact: r.common.artifact, cause: causeOf(r)}
}

func (p *reconciliation) source() Source {
	h := heldBy(p.result)
	return &h
}

// Source is what the object provides.
func (r *Result) Source() Source {
	if r.source == nil {
		h := heldBy(r)
		return &h
	}
	return r.source
}

// artifact is the object's artifact in storage, or nil.
func (r *Result) artifact() *meta.Artifact { return r.Source().Artifact() }

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
