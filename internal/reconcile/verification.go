package reconcile

import (
	"context"
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
	refused := status.ChartVerificationError.Wrap
	signer, err := p.verified(obj.Spec.Verify != nil, refused,
		func() (*verify.Signer, error) { return p.verifySignature(ctx, obj, chosen) },
		func() (*verify.Signer, error) { return p.r.verifyProvenance(ctx, chosen, refused) })
	if err != nil || signer == nil {
		return false, err
	}
	chosen.metadata = withSigner(chosen.metadata, signer)
	return true, nil
}

// verified returns the signer of an object's artifact, nil if nothing had to be verified, and records the signer in the result.
// With asked, spec.verify requires the signature; --keyring requires the provenance. refused attaches the reason for an unsigned
// artifact.
func (p *reconciliation) verified(asked bool, refused func(error) error, signature, provenance func() (*verify.Signer, error)) (signer *verify.Signer, err error) {
	o := &p.r.o
	switch {
	case !o.checksSignatures():
		return nil, nil
	case asked:
		signer, err = signature()
	case o.Keyring != nil:
		signer, err = provenance()
	}
	switch {
	case err != nil:
		return nil, err
	case signer == nil && o.RequireVerification && !asked:
		return nil, refused(notSigned("it has no spec.verify"))
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
	archive, err := r.archive(ctx, chosen)
	if err != nil {
		return nil, err
	}
	signer, err := r.provenance(ctx, chosen, archive)
	if err != nil {
		return nil, refused(fmt.Errorf("failed to verify %s: %w", chosen.URL, err))
	}
	return signer, nil
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
