package reconcile

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/work"
)

// Source is what an object holds for those that refer to it. Its reconciliation makes it when
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

// heldBy is what an object holds of which no more is known than its result.
func heldBy(r *Result) held {
	return held{object: r.Object, artifact: r.common.artifact, cause: causeOf(r)}
}

// Source is what the object holds.
func (r *Result) Source() Source {
	if r.source == nil {
		h := heldBy(r)
		return &h
	}
	return r.source
}

// artifact is the object's artifact in storage, or nil.
func (r *Result) artifact() *meta.Artifact { return r.Source().Artifact() }

// causeOf is why an object may hold nothing.
func causeOf(source *Result) error {
	switch {
	case source.State == Suspended:
		return &suspendedError{source.Object.Object.Kind, source.Object.Object.Name}
	case source.Failure == nil:
		return nil
	}
	return source.Failure
}

// suspendedError is a source that is left alone, and was never fetched.
type suspendedError struct{ kind, name string }

func (e *suspendedError) Error() string {
	return fmt.Sprintf("%s '%s' is suspended and was never fetched", e.kind, e.name)
}

// Hint says how to get what is missing.
func (e *suspendedError) Hint() string {
	return e.Error() + ": resume it, or fetch it once without spec.suspend"
}

// chartSource is what a HelmChart holds: one chart.
type chartSource struct {
	held
	metadata *helmchart.Metadata
}

func (s *chartSource) chart() *helmchart.Metadata { return s.metadata }

// indexSource is what a HelmRepository with an index holds: the charts of the index that was
// fetched in this run, else of the stored one.
type indexSource struct {
	held
	r    *Reconciler
	file *indexFile // of this run, or nil
}

func (s *indexSource) charts(ctx context.Context, _ *warnings) (charts, error) {
	file, err := s.index(ctx)
	if err != nil {
		return nil, err
	}
	repo, err := s.r.open(ctx, s.object)
	if err != nil {
		return nil, err
	}
	return &indexCharts{r: s.r, repo: repo, file: file}, nil
}

func (s *indexSource) index(ctx context.Context) (*indexFile, error) {
	if s.file != nil {
		return s.file, nil
	}
	if s.artifact == nil || s.r.store.Verify(s.artifact.Path, s.artifact.Digest) != nil {
		return nil, s.nothing()
	}
	key := keyOf(s.object)
	file, err := s.r.stored.Do(ctx, key, func() (*indexFile, error) { return s.r.storedIndexFile(ctx, key, s.artifact) })
	if err != nil {
		return nil, status.ReadOperationFailed.Wrap(fmt.Errorf("failed to open source artifact: %w", err))
	}
	return file, nil
}

// registrySource is what a HelmRepository without a status holds: the charts of its registry,
// or of the directory in its place. Such a directory has an index, which is not an artifact of
// any object.
type registrySource struct {
	held
	r *Reconciler
}

func (s *registrySource) charts(ctx context.Context, w *warnings) (charts, error) {
	repo, err := s.r.open(ctx, s.object)
	if err != nil {
		return nil, err
	}
	w.warnWithheldBy(repo)
	if repo.registry != nil {
		return &registryCharts{s.r, repo}, nil
	}
	file, err := s.r.sharedIndex(ctx, repo)
	if err != nil {
		return nil, err
	}
	return &indexCharts{r: s.r, repo: repo, file: file}, nil
}

// treeSource is what a GitRepository or a Bucket holds: the tree that was fetched in this run,
// else the stored artifact's.
type treeSource struct {
	held
	r        *Reconciler
	fetched  *sourceTree // in this run, or nil
	unpacked work.Memo[struct{}, *os.Root]
}

func (s *treeSource) tree(context.Context) (*sourceTree, error) {
	if s.fetched != nil {
		return s.fetched, nil
	}
	if s.artifact == nil || s.r.store.Verify(s.artifact.Path, s.artifact.Digest) != nil {
		return nil, s.nothing()
	}
	t := &sourceTree{revision: s.artifact.Revision, digest: s.artifact.Digest, unpack: s.unpack, pin: s.r.treePin(s.object, s.artifact.Revision)}
	t.time, _ = time.Parse(time.RFC3339, s.artifact.Metadata[metadataTime]) // the zero time if there is none
	return t, nil
}

// unpack puts the files of the stored artifact into a directory of the run's own, when the
// first chart asks for them: none does if nothing has changed.
func (s *treeSource) unpack(ctx context.Context) (*os.Root, error) {
	return s.unpacked.Do(ctx, struct{}{}, func() (*os.Root, error) { return s.r.unpack(ctx, s.artifact.Path) })
}
