package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// archive returns the archive of a chart. Its error has a reason: either the server or this machine may have failed.
func (r *Reconciler) archive(ctx context.Context, chosen *resolvedChart) (*blob.Blob, error) {
	archive, err := r.blobs.Get(ctx, chosen.key, r.limits.Archive, chosen.fetch)
	var local *blob.WriteError
	switch {
	case errors.As(err, &local):
		return nil, unsaved(unsavedChart, local)
	case err != nil:
		return nil, pullFailure(fmt.Errorf("failed to download chart for remote reference: %w", chosen.otherBytes(err)))
	}
	if err := r.carry(ctx, chosen, archive); err != nil {
		archive.Release()
		return nil, pullFailure(err)
	}
	return archive, nil
}

// acquire returns the archive of a chart. A caller that does not release it keeps it until the end of the
// run, for fingerprints and other charts.
func (r *Reconciler) acquire(ctx context.Context, chosen *resolvedChart) (*blob.Blob, error) {
	archive, err := r.blobs.Get(ctx, chosen.key, r.limits.Archive, chosen.fetch)
	if err != nil {
		return nil, &downloadError{chosen.Version, chosen.otherBytes(err)}
	}
	if err := r.carry(ctx, chosen, archive); err != nil {
		return nil, &downloadError{chosen.Version, err}
	}
	return archive, nil
}

func (c *resolvedChart) otherBytes(err error) error {
	var mismatch *digest.MismatchError
	if !c.locked || !errors.As(err, &mismatch) {
		return err
	}
	return notLockedBytes(fmt.Sprintf("archive '%s'", c.file), mismatch)
}

// carry passes a chart and its provenance file to the carrier. An offline run only looks up the provenance file.
func (r *Reconciler) carry(ctx context.Context, chosen *resolvedChart, archive *blob.Blob) error {
	if r.o.Carry == nil || chosen.local {
		return nil
	}
	provenance, err := r.carriedProvenance(ctx, chosen)
	if err != nil || r.o.Offline {
		return err
	}
	if chosen.remote == nil {
		err = r.o.Carry.Archive(ctx, lockedURL(chosen.repository), archive.Section(), provenance, false)
	} else if from, failed := chosen.remote(); failed != nil {
		err = failed
	} else {
		err = r.o.Carry.Image(ctx, from, digest.Digest(chosen.Manifest), chosen.metadata[metadataTag])
	}
	if err != nil {
		return fmt.Errorf("failed to copy %s: %w", chosen.shown(), err)
	}
	return nil
}

// carriedProvenance returns the provenance file of a chart, and caches it for later runs that verify the chart.
func (r *Reconciler) carriedProvenance(ctx context.Context, chosen *resolvedChart) ([]byte, error) {
	if content, ok := r.keptProvenance(chosen); ok || r.o.Offline {
		return content, nil
	}
	content, err := r.provenanceFile(ctx, chosen)
	if fetch.AuthFailure(err) { // object stores answer the same for a missing file
		r.o.Carry.Refused("the provenance file of "+chosen.shown(), err)
		return nil, nil
	}
	if content != nil {
		r.cache.KeepAnswer(chosen.key.Scope, cachedProvenance, chosen.provenanceName(), "", content)
	}
	return content, err
}

// provenanceFile returns the provenance file of an archive, or nil if the source
// has no such file.
func (r *Reconciler) provenanceFile(ctx context.Context, chosen *resolvedChart) ([]byte, error) {
	key := blob.Key{Location: chosen.key.Location + " " + chosen.key.Digest.String() + " provenance", Identity: chosen.key.Identity}
	get := func(ctx context.Context, dst fetch.Sink, _ int64) error { return chosen.provenance(ctx, dst) }
	if !chosen.local {
		get = r.online("the provenance file of "+chosen.shown(), get)
	}
	file, err := r.blobs.Get(ctx, key, fetch.MaxProvenanceBytes, get)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer file.Release()
	return io.ReadAll(file.Section())
}

// keptProvenance returns the cached provenance file of an archive. It does so for a locked chart, for a chart whose
// manifest names the file by digest, and for any chart in an offline run. A cached file can only confirm a signature: if
// its verification fails, the current file is requested from the source.
func (r *Reconciler) keptProvenance(chosen *resolvedChart) (content []byte, ok bool) {
	if !r.o.Offline && !chosen.locked && chosen.Source != PinRegistry {
		return nil, false
	}
	_, ok = r.cache.Answer(chosen.key.Scope, cachedProvenance, chosen.provenanceName(), &content)
	return content, ok
}
