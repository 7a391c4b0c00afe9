package reconcile

import (
	"context"
	"errors"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// verifyChart verifies that a trusted identity signed the chart, if that is
// requested. It runs on every run, also when the artifact is reused: a signer
// who was trusted yesterday may not be trusted today.
func (p *chartReconciliation) verifyChart(ctx context.Context, obj *sourcev1.HelmChart, chosen *resolvedChart) (verified bool, err error) {
	signer, err := p.verified(checks{
		asked:     obj.Spec.Verify != nil,
		signature: func() (*verify.Signer, error) { return p.verifySignature(ctx, obj, chosen) },
		provenance: func() (*verify.Signer, error) {
			return p.r.verifyProvenance(ctx, chosen, status.ChartVerificationError.Wrap)
		},
		refused: status.ChartVerificationError.Wrap,
	})
	if err != nil || signer == nil {
		return false, err
	}
	chosen.metadata = withSigner(chosen.metadata, signer)
	return true, nil
}

// checks holds the ways to verify the artifact of an object.
type checks struct {
	asked      bool                           // spec.verify requires a signature
	signature  func() (*verify.Signer, error) // that spec.verify requires
	provenance func() (*verify.Signer, error) // that --keyring requires
	refused    func(error) error              // attaches the reason for an unsigned artifact
}

// verified returns the signer of an object's artifact, nil if nothing had to be verified, and records the signer in the result.
func (p *reconciliation) verified(c checks) (signer *verify.Signer, err error) {
	o := &p.r.o
	switch {
	case !o.checksSignatures():
		return nil, nil
	case c.asked:
		signer, err = c.signature()
	case o.Keyring != nil:
		signer, err = c.provenance()
	}
	switch {
	case err != nil:
		return nil, err
	case signer == nil && o.RequireVerification && !c.asked:
		return nil, c.refused(notSigned("it has no spec.verify"))
	case signer == nil:
		return nil, nil
	}
	p.warnEach(finding.NotVerified, signer.Warnings)
	p.result.Signature = signer
	return signer, nil
}

func (p *chartReconciliation) verifySignature(ctx context.Context, obj *sourcev1.HelmChart, chosen *resolvedChart) (*verify.Signer, error) {
	if chosen.subject == nil {
		return nil, status.ChartVerificationError.Wrap(finding.WithHint(
			unverifiable("not implemented", nil), finding.VerifyWithKeyring)) // source-controller's message for charts from HTTP repositories
	}
	spec := chartVerification(obj)
	signer, ready, err := p.signed(ctx, spec, chosen.id, *chosen.subject, chosen.key.Scope, chosen.URL)
	switch {
	case err == nil:
		return signer, nil
	case !ready || is[*verify.SettingsError](err): // nothing could be verified
		text := fmt.Sprintf("failed to verify the signature using provider '%s': %v", spec.label(), err)
		return nil, status.VerificationError.Wrap(unverifiable(text, err))
	}
	return nil, signatureFailure(chosen, err)
}

// verifyProvenance verifies the archive with its provenance file. The archive is
// downloaded for that, and the verified file is then stored.
func (r *Reconciler) verifyProvenance(ctx context.Context, chosen *resolvedChart, refused func(error) error) (*verify.Signer, error) {
	archive, err := r.acquire(ctx, chosen)
	if err != nil {
		return nil, acquireFailure(err)
	}
	signer, err := r.provenance(ctx, chosen, archive)
	if err != nil {
		return nil, refused(fmt.Errorf("failed to verify %s: %w", chosen.URL, err))
	}
	return signer, nil
}

// acquireFailure attaches the reason to the error of an archive that could not be acquired.
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

// provenance returns the signer of an archive. It verifies once per run.
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
