package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// ParseKeyring reads exported PGP keys.
func ParseKeyring(content []byte) (*Keyring, error) { return verify.ParseKeyring(content) }

// verifyProvenance checks the archive against the provenance file beside it. The
// archive is downloaded for that, and then stored from where it was checked.
func (p *chartReconciliation) verifyProvenance(ctx context.Context, chosen *resolvedChart) (*verify.Signer, error) {
	archive, err := p.r.acquire(ctx, chosen)
	if err != nil {
		return nil, acquireFailure(err)
	}
	signer, err := p.r.provenance(ctx, chosen, archive)
	if err != nil {
		return nil, signatureFailure(chosen, err)
	}
	return signer, nil
}

// acquireFailure attaches the reason to an archive that could not be acquired.
func acquireFailure(err error) error {
	var local *blob.WriteError
	var download *downloadError
	switch {
	case errors.As(err, &local):
		return storageFailure(fmt.Errorf("unable to copy Helm chart to a temporary file: %w", local), status.ArchiveOperationFailed)
	case errors.As(err, &download):
		return pullFailure(fmt.Errorf("failed to download chart for remote reference: %w", download.err))
	}
	return status.DirectoryCreationFailed.Wrap(err)
}

// provenance returns who signed an archive. It looks once per run.
func (r *Reconciler) provenance(ctx context.Context, chosen *resolvedChart, archive *blob.Blob) (*verify.Signer, error) {
	return r.provenances.Do(ctx, chosen.id, func() (*verify.Signer, error) {
		content, kept := r.keptProvenance(chosen)
		if kept {
			signer, err := verify.Provenance(archive.Section(), chosen.file, content, r.o.Keyring)
			if err == nil || r.o.Offline {
				return signer, err
			}
		}
		content, err := r.provenanceFile(ctx, chosen)
		if err != nil {
			return nil, err
		}
		signer, err := verify.Provenance(archive.Section(), chosen.file, content, r.o.Keyring)
		if err == nil && chosen.key.Digest != "" {
			r.cache.KeepAnswer(chosen.key.Scope, cachedProvenance, chosen.provenanceName(), "", content)
		}
		return signer, err
	})
}

// verifyDependency checks the provenance of a chart that another one requires.
func (r *Reconciler) verifyDependency(ctx context.Context, d *dependency) error {
	archive, err := r.acquire(ctx, d.chosen)
	if err != nil {
		return err
	}
	if _, err := r.provenance(ctx, d.chosen, archive); err != nil {
		return fmt.Errorf("failed to verify %s: %w", d.chosen.URL, err)
	}
	return nil
}

// unaskedError is an unsigned chart, where a signature is required.
type unaskedError struct{ reason string }

func (e *unaskedError) Error() string { return "the chart is unsigned: " + e.reason }

// Finding is what is wrong.
func (*unaskedError) Finding() finding.Code { return finding.Unsigned }

// Integrity reports that the chart cannot be trusted.
func (e *unaskedError) Integrity() bool { return true }

// Hint says what would help.
func (e *unaskedError) Hint() string {
	return "--require-verification wants spec.verify in the HelmChart of an OCI registry or in the OCIRepository, --keyring for charts with provenance files, or spec.verify in the GitRepository"
}
