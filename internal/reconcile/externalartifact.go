package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/tree"
)

type externalReconciliation struct {
	treeReconciliation
}

// generated reports whether an ArtifactGenerator makes an ExternalArtifact. Any other ExternalArtifact is filled by an
// unknown controller.
func generated(obj *sourcev1.ExternalArtifact) bool {
	return obj.Spec.SourceRef != nil && obj.Spec.SourceRef.Kind == generate.Kind
}

// perform generates the artifact, or opens the directory that replaces it.
func (p *externalReconciliation) perform(ctx context.Context) error {
	if dir, ok := p.r.o.Directories[p.key]; ok {
		return p.externalDirectory(ctx, dir.Path)
	}
	generator := p.adm.Object.Origin
	if generator == nil {
		return nil
	}
	adm, err := p.r.inventory.Admit(generator)
	if err != nil {
		return err
	}
	sources, err := p.r.generatorSources(ctx, adm)
	if err != nil {
		return blockedBy(generator, err)
	}
	if !allAvailable(ctx, sources) {
		return nil
	}
	spec := adm.Typed.(*swv1.ArtifactGenerator).Spec
	fingerprint := fingerprintOf(spec, digestsOf(sources))
	if p.reusable(fingerprint) {
		p.keptGenerated()
		return nil
	}
	out, err := p.r.generated(ctx, adm, sources)
	if err != nil {
		return blockedBy(generator, err)
	}
	i := slices.IndexFunc(out.artifacts, func(a generate.Artifact) bool { return a.Spec.Name == p.adm.Object.Name })
	if i < 0 && out.err != nil {
		return blockedBy(generator, out.err)
	}
	if i < 0 {
		return status.GeneratorBuildFailed.Wrap(fmt.Errorf("%s does not create it", generator))
	}
	root, err := p.stageGenerated(ctx, &out.artifacts[i])
	if err != nil {
		return err
	}
	if p.choosing() {
		p.fetched = &sourceTree{root: root, revision: revisionOf(&out.artifacts[i], sources)}
		return nil
	}
	return p.storeGenerated(ctx, root, &out.artifacts[i], sources, fingerprint)
}

// stageGenerated writes the files of an artifact into a scratch directory of the run.
func (p *externalReconciliation) stageGenerated(ctx context.Context, a *generate.Artifact) (*os.Root, error) {
	root, err := p.r.scratch()
	if err != nil {
		return nil, temporaryFailure(err)
	}
	if err := stage(ctx, root, a.Tree); err != nil {
		return nil, storageFailure(fmt.Errorf("%s build failed: %w", a.Spec.Name, err), status.GeneratorBuildFailed)
	}
	return root, nil
}

const artifactReady = "Artifact is ready"

func (p *externalReconciliation) keptGenerated() {
	p.out.Reused, p.out.Stored = true, &status.Observation{Reason: status.Succeeded, Message: artifactReady}
	p.status.artifact = p.prev.Artifact
}

// storeGenerated stores an artifact as source-watcher does, except that its file name is derived from its digest.
func (p *externalReconciliation) storeGenerated(ctx context.Context, root *os.Root, a *generate.Artifact, sources map[string]*Result, fingerprint string) error {
	var metadata map[string]string
	if origin := originRevision(sources[aliasOf(a.Spec.OriginRevision)]); origin != "" {
		metadata = map[string]string{swv1.ArtifactOriginRevisionAnnotation: origin}
	}
	return p.storing(func(pending *store.Pending) error {
		if err := tree.Archive(ctx, pending, root, tree.Options{}); err != nil {
			return storageFailure(fmt.Errorf("%s build failed: %w", a.Spec.Name, err), status.GeneratorBuildFailed)
		}
		digest := pending.Digest()
		revision := cmp.Or(revisionOf(a, sources), "latest@"+digest.String())
		if p.isStored(pending, revision) && originOf(p.stored()) == metadata[swv1.ArtifactOriginRevisionAnnotation] {
			p.keptGenerated()
		} else {
			if err := p.commit(pending, digest.Encoded()[:revisionLength]+".tar.gz", revision, metadata, unsavedTree); err != nil {
				return err
			}
			p.out.Stored = &status.Observation{Reason: status.Succeeded, Message: artifactReady}
		}
		p.fingerprint = fingerprint
		p.fetched = &sourceTree{root: root, revision: revision, digest: digest.String()}
		return nil
	})
}

func originOf(a *meta.Artifact) string { return a.Metadata[swv1.ArtifactOriginRevisionAnnotation] }

// revisionOf returns the revision of the source that an artifact names, or "".
func revisionOf(a *generate.Artifact, sources map[string]*Result) string {
	source := sources[aliasOf(a.Spec.Revision)]
	switch {
	case source == nil:
		return ""
	case source.Artifact() != nil:
		return source.Artifact().Revision
	}
	t, err := source.tree(context.Background())
	if err != nil {
		return ""
	}
	return t.revision
}

// originRevision returns the origin revision that the artifact of a source records, else the artifact's own revision.
func originRevision(source *Result) string {
	if source == nil || source.Artifact() == nil {
		return ""
	}
	if own := originOf(source.Artifact()); own != "" {
		return own
	}
	return source.Artifact().Revision
}

func (p *externalReconciliation) externalDirectory(ctx context.Context, dir string) error {
	t, err := p.openLocalTree(ctx, dir, git.WorktreeOptions{})
	if err != nil {
		return status.ReadOperationFailed.Wrap(err)
	}
	p.took(t)
	stored := &status.Observation{Reason: status.Succeeded, Message: artifactReady}
	return p.take(ctx, &fetched{Tree: t, stored: stored, fingerprint: fingerprintOf(t.Revision)})
}
