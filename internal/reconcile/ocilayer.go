package reconcile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// maxLayer is the limit, in bytes, of a layer that is not a chart. It is well
// above the usual artifacts for Flux, and stops a registry that fills the disk.
const maxLayer = 512 << 20

// take keeps the artifact in storage if it has the fingerprint. Otherwise pull stores the artifact, except in a run that only
// chooses.
func (p *ociReconciliation) take(ctx context.Context, revision, fingerprint string, pull func(context.Context) error) error {
	switch {
	case p.reusable(fingerprint), p.choosing() && p.out.Seen == nil:
		p.keptArtifact(revision)
		return nil
	case p.choosing():
		return nil
	}
	if err := pull(ctx); err != nil {
		return err
	}
	p.fingerprint = fingerprint
	p.obj.Status.ObservedIgnore = p.obj.Spec.Ignore
	p.obj.Status.ObservedLayerSelector = p.obj.Spec.LayerSelector
	return nil
}

// pullArtifact fetches the layer that the object selects, and stores it.
func (p *ociReconciliation) pullArtifact(ctx context.Context, obj *sourcev1.OCIRepository, at *ociArtifact) error {
	artifact, err := at.repo.manifest(ctx, at.digest)
	if errors.Is(err, oci.ErrUnparsable) {
		return status.OCILayerOperationFailed.Wrap(fmt.Errorf("failed to parse artifact manifest: %w", err))
	}
	if err != nil {
		return ociFailure(status.OCIPullFailed, fmt.Errorf("failed to pull artifact from '%s': %w", auth.RedactURL(obj.Spec.URL), err))
	}
	layer, err := artifact.Layer(obj.GetLayerMediaType())
	if err != nil {
		return status.OCILayerOperationFailed.Wrap(err)
	}
	if layer.First != "" {
		p.warnAs(finding.FirstLayer, "the first layer of the artifact is of media type '%s': helmsrc uses the chart; Flux requires spec.layerSelector.mediaType: %s", layer.First, oci.HelmChartType)
	}
	if err := p.carry(ctx, at); err != nil {
		return ociFailure(status.OCIPullFailed, err)
	}
	p.made().Layer = layer.Digest.String()
	l := &layerTransfer{ociReconciliation: p, at: at, artifact: artifact, layer: layer}
	if obj.GetLayerOperation() == sourcev1.OCILayerCopy {
		return l.copy(ctx)
	}
	return l.extract(ctx)
}

type layerTransfer struct {
	*ociReconciliation
	at       *ociArtifact
	artifact *oci.Artifact
	layer    *oci.Layer
}

// chart reports whether the layer should be a Helm chart, which has its own limits.
func (l *layerTransfer) chart() bool {
	return l.artifact.IsChart() || l.layer.MediaType == oci.HelmChartType
}

func (l *layerTransfer) copy(ctx context.Context) error {
	return l.storing(func(pending *store.Pending) error {
		content, err := l.content(ctx)
		if err != nil {
			return err
		}
		defer content.Release()
		if err := content.CopyTo(pending); err != nil {
			return unsaved(unsavedLayer, err)
		}
		return l.keep(pending, unsavedLayer)
	})
}

// content returns the layer. A failure of this machine has its own reason.
func (l *layerTransfer) content(ctx context.Context) (*blob.Blob, error) {
	limit := int64(maxLayer)
	if l.chart() {
		limit = l.r.limits.Archive
	}
	content, err := l.r.blobs.Get(ctx, l.at.layerKey(l.layer), limit, l.r.online("a layer of "+l.at.shown, func(ctx context.Context, dst fetch.Sink, limit int64) error {
		return l.at.repo.Pull(ctx, l.layer, dst, limit)
	}))
	var shape *oci.LayerError
	var local *blob.WriteError
	switch {
	case err == nil:
		return content, nil
	case errors.As(err, &local):
		return nil, temporaryFailure(local)
	case errors.As(err, &shape):
		return nil, status.OCILayerOperationFailed.Wrap(err)
	}
	return nil, ociFailure(status.OCILayerOperationFailed, fmt.Errorf("%s: %w", l.failed(), err))
}

func (l *layerTransfer) failed() string {
	if l.obj.GetLayerOperation() == sourcev1.OCILayerCopy {
		return "failed to copy layer from artifact"
	}
	return "failed to extract layer contents from artifact"
}

// extract unpacks the layer and stores its files, except the ignored ones.
func (l *layerTransfer) extract(ctx context.Context) error {
	root, err := l.r.temporaryRoot()
	if err != nil {
		return temporaryFailure(err)
	}
	defer func() {
		if err := errors.Join(root.Close(), os.RemoveAll(root.Name())); err != nil {
			l.debugf("temporary directory: %v", err)
		}
	}()
	if err := l.unpack(ctx, root); err != nil {
		return err
	}
	filter, err := sourceFilter(ctx, root, l.obj.Spec.Ignore)
	if err != nil {
		return err
	}
	return l.storing(func(pending *store.Pending) error {
		dropped := &droppedFiles{}
		if err := tree.Archive(ctx, pending, root, tree.Options{Filter: dropped.watch(filter)}); err != nil {
			return unsaved(unsavedTree, err)
		}
		if l.chart() && l.obj.Spec.Ignore == nil {
			l.warnDropped(dropped)
		}
		return l.keep(pending, unsavedTree)
	})
}

// unpack downloads the layer and, after its digest is verified, writes its files
// below root.
func (l *layerTransfer) unpack(ctx context.Context, root *os.Root) error {
	content, err := l.content(ctx)
	if err != nil {
		return err
	}
	defer content.Release()
	var limits tree.Limits
	if l.chart() {
		limits = tree.Limits{File: l.r.limits.Unpacked, Total: l.r.limits.Unpacked}
	}
	err = tree.UnpackFiles(ctx, content.Section(), root, limits)
	if err != nil {
		return status.OCILayerOperationFailed.Wrap(l.unpackError(err))
	}
	return nil
}

func (l *layerTransfer) unpackError(err error) error {
	err = fmt.Errorf("%s: %w", l.failed(), err)
	if strings.HasSuffix(l.layer.MediaType, ".prov") {
		return finding.WithHint(err, "this is the provenance file of a chart: spec.layerSelector.mediaType: "+oci.HelmChartType+" selects the chart")
	}
	return err
}

type droppedFiles struct {
	count int
	first string
}

func (d *droppedFiles) watch(filter tree.Filter) tree.Filter {
	return func(name string, dir bool) tree.Choice {
		choice := filter(name, dir)
		if choice == tree.DropAll || choice == tree.Drop && !dir {
			if d.count++; d.count == 1 {
				d.first = name
			}
		}
		return choice
	}
}

func (l *layerTransfer) warnDropped(d *droppedFiles) {
	switch {
	case d.count == 1:
		l.warnAs(finding.FirstLayer, "%s is left out of the chart, as Flux does by default: spec.layerSelector.operation: copy keeps the chart as it was published", d.first)
	case d.count > 1:
		l.warnAs(finding.FirstLayer, "%s and %d more are left out of the chart, as Flux does by default: spec.layerSelector.operation: copy keeps the chart as it was published", d.first, d.count-1)
	}
}

// keep stores the pending file, unless storage already holds it.
func (l *layerTransfer) keep(pending *store.Pending, failed string) error {
	metadata := annotationsOf(l.artifact.Annotations)
	if s := l.result.Signature; s != nil {
		metadata = withSigner(metadata, s)
	}
	return l.keepArtifact(l.obj, pending, l.at.Revision, metadata, failed)
}

// keepArtifact stores the pending file under the name for its revision.
func (p *ociReconciliation) keepArtifact(obj *sourcev1.OCIRepository, pending *store.Pending, revision string, metadata map[string]string, failed string) error {
	if p.isStored(pending, revision) {
		p.keptArtifact(revision)
		return nil
	}
	if err := p.commit(pending, ociFile(revision), revision, metadata, failed); err != nil {
		return err
	}
	p.out.Stored, p.out.Announce = status.StoredDigest(revision), announcement(p.status.artifact, obj)
	return nil
}

// ociFile returns the file name for an artifact of this revision. On Windows a
// file name must not contain a colon.
func ociFile(revision string) string {
	name := revision[strings.LastIndexByte(revision, '@')+1:] + ".tar.gz"
	if runtime.GOOS == "windows" {
		name = strings.ReplaceAll(name, ":", "-")
	}
	return name
}

func (p *ociReconciliation) keptArtifact(revision string) {
	p.out.Reused, p.out.Stored = true, status.StoredDigest(revision)
	p.out.Announce = announcement(p.prev.Artifact, p.obj)
	p.status.artifact = p.resigned(p.prev.Artifact)
}

func announcement(artifact *meta.Artifact, obj *sourcev1.OCIRepository) string {
	text := fmt.Sprintf("stored artifact with revision '%s' from '%s'", artifact.Revision, auth.RedactURL(obj.Spec.URL))
	source, revision := artifact.Metadata[annotationSource], artifact.Metadata[annotationRevision]
	if source != "" && revision != "" && len(source)+len(revision) <= maxOrigin {
		text += fmt.Sprintf(", origin source '%s', origin revision '%s'", auth.RedactText(source), auth.RedactText(revision))
	}
	return text
}

// maxOrigin is the longest origin that is shown. A longer one is not readable, and
// the API server limits the message of an event.
const maxOrigin = 800

// Annotations that name the origin of an artifact.
const (
	annotationSource   = "org.opencontainers.image.source"
	annotationRevision = "org.opencontainers.image.revision"
)
