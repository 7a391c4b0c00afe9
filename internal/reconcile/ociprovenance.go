package reconcile

import (
	"context"
	"fmt"
	"path"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// provenanceSigner verifies a chart with the provenance file in its artifact, for
// --keyring. For an artifact that is not a chart it requests no file and returns
// a nil signer.
func (p *ociReconciliation) provenanceSigner(ctx context.Context, at *ociArtifact) (*verify.Signer, error) {
	artifact, err := at.repo.manifest(ctx, at.digest)
	if err != nil {
		return nil, ociFailure(status.OCIPullFailed, err)
	}
	if !artifact.IsChart() {
		return nil, nil
	}
	chosen, err := p.r.layerChart(at, artifact)
	if err != nil {
		return nil, status.OCILayerOperationFailed.Wrap(err)
	}
	return p.r.verifyProvenance(ctx, chosen, verificationFailure)
}

// layerChart returns the chart in an artifact in the form that the verification of
// provenance files takes.
func (r *Reconciler) layerChart(at *ociArtifact, artifact *oci.Artifact) (*resolvedChart, error) {
	layer, err := artifact.Layer(oci.HelmChartType)
	if err != nil {
		return nil, err
	}
	// The reference determines the name of the signed file where it can: an archive
	// that was copied from another repository with its signature has another name.
	tag, _, _ := strings.Cut(at.Revision, "@")
	build := status.Build{Name: path.Base(at.repo.Path()), Version: strings.ReplaceAll(tag, "_", "+")}
	if !resolve.IsExact(build.Version) {
		build.Version = artifact.Annotations[ocispec.AnnotationVersion]
	}
	return &resolvedChart{
		Pin:  Pin{Source: PinRegistry, Version: build.Version, URL: at.URL, Manifest: artifact.Digest.String()},
		id:   fmt.Sprintf("%q %s", at.repo.identity, artifact.Digest),
		key:  at.layerKey(layer),
		file: archiveName(build),
		fetch: func(ctx context.Context, dst fetch.Sink, limit int64) error {
			return at.repo.Pull(ctx, layer, dst, limit)
		},
		provenance: func(ctx context.Context, dst fetch.Sink) error { return at.repo.Provenance(ctx, artifact, dst) },
	}, nil
}

// carry passes an artifact to the carrier and, if it is a chart, looks up its provenance file.
func (p *ociReconciliation) carry(ctx context.Context, at *ociArtifact) error {
	if p.r.o.Carry == nil {
		return nil
	}
	artifact, err := at.repo.manifest(ctx, at.digest)
	if err != nil {
		return err
	}
	if artifact.IsChart() {
		chosen, err := p.r.layerChart(at, artifact)
		if err == nil {
			_, err = p.r.carriedProvenance(ctx, chosen)
		}
		if err != nil {
			return err
		}
	}
	if p.r.o.Offline {
		return nil
	}
	if err := p.r.o.Carry.Image(ctx, at.repo.Remote(), at.digest, at.Version); err != nil {
		return fmt.Errorf("failed to copy %s: %w", at.URL, err)
	}
	return nil
}
