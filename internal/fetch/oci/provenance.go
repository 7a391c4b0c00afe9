package oci

import (
	"context"

	"github.com/helmsrc/helmsrc/internal/fetch"
)

// ProvenanceFile downloads a pinned chart's provenance file into dst. If the file is missing, the error matches fs.ErrNotExist.
func (o *Namespace) ProvenanceFile(ctx context.Context, m *Manifest, dst fetch.Sink) error {
	if m.Provenance == nil {
		return fetch.NoProvenance(m.file() + fetch.ProvenanceSuffix)
	}
	if m.Provenance.Size > fetch.MaxProvenanceBytes {
		return fetch.ProvenanceTooLarge(m.file() + fetch.ProvenanceSuffix)
	}
	return o.blob(ctx, m, &blob{desc: *m.Provenance, dst: dst, limit: fetch.MaxProvenanceBytes})
}

// Provenance is ProvenanceFile for an archive that [Client.Archive] downloads.
func (c *Client) Provenance(ctx context.Context, ref, version string, o Options, dst fetch.Sink) error {
	repo, m, err := c.pinReference(ctx, ref, version, o)
	if err != nil {
		return err
	}
	return repo.ProvenanceFile(ctx, m, dst)
}

// Provenance downloads the provenance file in an artifact into dst. If the file is missing, the error matches fs.ErrNotExist.
func (r *Repository) Provenance(ctx context.Context, a *Artifact, dst fetch.Sink) error {
	file := r.shown + "@" + a.Digest.String() + fetch.ProvenanceSuffix
	layer, err := a.Layer(HelmProvenanceType)
	if err != nil {
		return fetch.NoProvenance(file)
	}
	if layer.Size > fetch.MaxProvenanceBytes {
		return fetch.ProvenanceTooLarge(file)
	}
	return r.Pull(ctx, layer, dst, fetch.MaxProvenanceBytes)
}
