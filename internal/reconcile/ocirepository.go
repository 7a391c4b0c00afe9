package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/validate"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// perform resolves spec.ref to an artifact, and verifies its signature.
func (p *ociReconciliation) perform(ctx context.Context) error {
	obj := p.obj
	if p.r.o.List {
		return p.listArtifacts(ctx, obj)
	}
	if dir, ok := p.r.o.Directories[p.key]; ok {
		return p.localArtifact(ctx, obj, dir.Path)
	}
	p.result.Resolution = ociResolution(obj)
	if e := p.locked; e != nil && p.artifactAsLocked(obj, e) {
		return nil
	}
	at, err := p.findArtifact(ctx, obj)
	if err != nil {
		return err
	}
	p.out.Unverifiable = obj.Spec.Verify == nil
	if current := p.stored(); current == nil || current.Revision != at.Revision {
		p.out.Seen = status.NewDigest(at.Revision, at.shown)
	}
	if err := p.verifyArtifact(ctx, obj, at); err != nil {
		return err
	}
	return p.take(ctx, at.Revision, ociFingerprint(obj, at.Revision), func(ctx context.Context) error { return p.pullArtifact(ctx, obj, at) })
}

// artifactAsLocked keeps the artifact in storage if it is the locked one and no signature must be verified.
func (p *ociReconciliation) artifactAsLocked(obj *sourcev1.OCIRepository, e *lock.Entry) bool {
	if p.r.o.checksSignatures() && (obj.Spec.Verify != nil || p.r.o.Keyring != nil || p.r.o.RequireVerification) {
		return false
	}
	if kept := p.upToDate(func(revision string) string { return ociFingerprint(obj, revision) }); kept == "" || kept != e.Revision {
		return false
	}
	pin := artifactPin(e)
	p.pinTo(pin)
	p.result.Resolution.take(pin)
	p.out.Unverifiable = obj.Spec.Verify == nil
	p.keptArtifact(e.Revision)
	return true
}

// ociFingerprint returns a fingerprint that is equal for two artifacts with the
// same bytes: the revision identifies the content, regardless of its location.
func ociFingerprint(obj *sourcev1.OCIRepository, revision string) string {
	return fingerprintOf(revision, obj.Spec.Ignore, obj.Spec.LayerSelector)
}

func (p *ociReconciliation) findArtifact(ctx context.Context, obj *sourcev1.OCIRepository) (*ociArtifact, error) {
	repo, err := p.openOCIRepository(ctx, obj)
	if err != nil {
		return nil, err
	}
	at := &ociArtifact{Pin: Pin{Source: PinRegistry}, repo: repo}
	if e := p.locked; e != nil {
		at.Pin, at.digest = artifactPin(e), digest.Digest(e.ManifestDigest)
		at.shown = strings.TrimPrefix(at.URL, sourcev1.OCIRepositoryPrefix)
	} else {
		err = p.chooseArtifact(ctx, obj, at)
	}
	at.item = p.adm.Object.ConcealText(at.shown)
	p.result.Resolution.take(at.Pin)
	if err != nil {
		return nil, err
	}
	p.pinTo(at.Pin)
	decideLogin(ctx, repo.Shown)
	return at, nil
}

func artifactPin(e *lock.Entry) Pin {
	return Pin{Source: PinRegistry, Version: e.Tag, URL: e.URL, Manifest: e.ManifestDigest, Revision: e.Revision}
}

// chooseArtifact sets in at the artifact that spec.ref selects. If it fails, at holds the part that was resolved.
func (p *ociReconciliation) chooseArtifact(ctx context.Context, obj *sourcev1.OCIRepository, at *ociArtifact) error {
	ref := validate.ArtifactReference(obj)
	if e := p.asked; e != nil && e.Tag != "" {
		ref = sourcev1.OCIRepositoryRef{Tag: e.Tag}
	}
	if ref.Digest != "" {
		d, err := oci.ParseDigest(ref.Digest)
		if err != nil {
			return digestFailure(finding.WithCode(finding.InvalidReference, err))
		}
		at.is(d, d.String(), at.repo.At(d.String()))
		return nil
	}
	tag, err := at.repo.tag(ctx, ref, obj.GetLayerMediaType() == oci.HelmChartType)
	if err != nil {
		return ociFailure(status.ReadOperationFailed, fmt.Errorf("failed to determine the artifact tag for '%s': %w", auth.RedactURL(obj.Spec.URL), err))
	}
	at.Version = tag
	atOnce := p.stored() == nil && p.r.o.Until == Fetch
	d, err := p.r.moving.Do(ctx, chartKey{at.repo.identity, "", tag}, func() (digest.Digest, error) { return at.repo.pinTag(ctx, tag, atOnce) })
	if err != nil {
		return digestFailure(at.repo.otherwise(ctx, p.remarks, ref, tag, err))
	}
	at.is(d, tag+"@"+d.String(), at.repo.Tagged(tag))
	return nil
}

func digestFailure(err error) error {
	return ociFailure(status.OCIPullFailed, fmt.Errorf("failed to determine artifact digest: %w", err))
}

// verifyArtifact verifies that a trusted identity signed the digest, if the
// object requests it. It runs on every run, as for charts.
func (p *ociReconciliation) verifyArtifact(ctx context.Context, obj *sourcev1.OCIRepository, at *ociArtifact) error {
	signer, err := p.verified(obj.Spec.Verify != nil, verificationFailure,
		func() (*verify.Signer, error) { return p.verifyDigest(ctx, obj.Spec.Verify, at) },
		func() (*verify.Signer, error) { return p.provenanceSigner(ctx, at) })
	if signer != nil {
		p.out.Verified, p.out.Unverifiable = "verified signature of revision "+at.Revision, false
	}
	return err
}

// verifyDigest performs the verification that spec.verify requires. The signer
// is nil if the trust policy does not enforce anything.
func (p *ociReconciliation) verifyDigest(ctx context.Context, spec *sourcev1.OCIRepositoryVerification, at *ociArtifact) (*verify.Signer, error) {
	v := verification{
		provider: spec.Provider, secret: spec.SecretRef, identities: spec.MatchOIDCIdentity,
		trustedRoot: spec.TrustedRootSecretRef, subject: at.repo.At(at.digest.String()),
	}
	signer, ready, err := p.signed(ctx, v, fmt.Sprintf("%q %s", at.repo.identity, at.digest), verify.Subject{
		Repository: at.repo.Repository.Repository(),
		Digest:     at.digest,
		Insecure:   at.repo.Insecure(),
		Transport:  at.repo.Reading(),
		Timeout:    timeoutOf(p.obj.Spec.Timeout),
	}, at.scope(), v.subject)
	var refused interface{ Integrity() bool }
	switch {
	case err == nil:
		return signer, nil
	case !ready:
		err = unverifiable(err.Error(), err) // a missing Secret is no reason to trust the artifact
	case v.provider == providerCosign && v.secret != nil && errors.As(err, &refused):
		// Flux reports every such failure with this text.
		err = fmt.Errorf("no matching signatures were found for '%s': %w", v.subject, reasonOf(err))
	}
	return nil, verificationFailure(fmt.Errorf("failed to verify the signature using provider '%s': %w", v.label(), err))
}

// reasonOf returns the reason for a refusal, without the text that no signature matches.
func reasonOf(err error) error {
	if refused, ok := errors.AsType[*verify.RefusedError](err); ok && refused.Err != nil {
		return refused.Err
	}
	return err
}
