package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/validate"
	"github.com/helmsrc/helmsrc/internal/verify"
)

type ociReconciliation struct {
	*reconciliation
	obj *sourcev1.OCIRepository
}

// choose resolves spec.ref to an artifact, and verifies its signature.
func (p *ociReconciliation) choose(ctx context.Context) (*remainder, error) {
	obj := p.obj
	if p.r.o.List {
		return nil, p.listArtifacts(ctx, obj)
	}
	if dir, ok := p.r.o.Directories[p.key]; ok {
		return p.localArtifact(ctx, obj, dir)
	}
	p.result.Resolution = ociResolution(obj)
	if e := p.locked; e != nil && p.artifactAsLocked(obj, e) {
		return nil, nil
	}
	at, err := p.findArtifact(ctx, obj)
	if err != nil {
		return nil, err
	}
	p.out.Unverifiable = obj.Spec.Verify == nil
	if current := p.stored(); current == nil || current.Revision != at.Revision {
		p.out.Seen = status.NewDigest(at.Revision, at.shown)
	}
	if err := p.verifyArtifact(ctx, obj, at); err != nil {
		return nil, err
	}
	fingerprint, err := ociFingerprint(obj, at.Revision)
	if err != nil {
		return nil, err
	}
	return p.remaining(at.Revision, fingerprint, func(ctx context.Context) error { return p.pullArtifact(ctx, obj, at) }), nil
}

// artifactAsLocked keeps the artifact in storage if it is the locked one and no signature must be verified.
func (p *ociReconciliation) artifactAsLocked(obj *sourcev1.OCIRepository, e *lock.Entry) bool {
	if p.r.o.checksSignatures() && (obj.Spec.Verify != nil || p.r.o.Keyring != nil || p.r.o.RequireVerification) {
		return false
	}
	if !p.storedRevision(e.Revision, func() (string, error) { return ociFingerprint(obj, e.Revision) }) {
		return false
	}
	pin := artifactPin(e)
	p.pinTo(pin)
	p.result.Resolution.take(pin)
	p.out.Unverifiable = obj.Spec.Verify == nil
	p.keptArtifact(e.Revision)
	return true
}

// remaining returns the remaining work once the revision is known: nil if its artifact is in
// storage.
func (p *ociReconciliation) remaining(revision, fingerprint string, pull func(context.Context) error) *remainder {
	if p.reusable(fingerprint) {
		p.keptArtifact(revision)
		return nil
	}
	return &remainder{
		compare: func(context.Context) error {
			if p.out.Seen == nil {
				p.keptArtifact(revision)
			}
			return nil
		},
		fetch: func(ctx context.Context) error {
			if err := pull(ctx); err != nil {
				return err
			}
			p.fingerprint = fingerprint
			p.obj.Status.ObservedIgnore = p.obj.Spec.Ignore
			p.obj.Status.ObservedLayerSelector = p.obj.Spec.LayerSelector
			return nil
		},
	}
}

// ociResolution returns the part of the resolution that is known without the registry.
func ociResolution(obj *sourcev1.OCIRepository) *Resolution {
	ref := validate.ArtifactReference(obj)
	return &Resolution{
		Chart:      auth.RedactURL(obj.Spec.URL),
		Constraint: cmp.Or(ref.Digest, ref.SemVer, ref.Tag, defaultTag),
	}
}

// ociFingerprint returns a fingerprint that is equal for two artifacts with the
// same bytes: the revision identifies the content, regardless of its location.
func ociFingerprint(obj *sourcev1.OCIRepository, revision string) (string, error) {
	return fingerprintOf(revision, obj.Spec.Ignore, obj.Spec.LayerSelector)
}

// ociRepository is a repository that was opened with the credentials of an object.
type ociRepository struct {
	*oci.Repository
	r        *Reconciler
	identity string // equal, within one run, for two that receive the same answers
	scope    cache.Scope
}

// tags returns all tags, fetched once per run.
func (o *ociRepository) tags(ctx context.Context) ([]string, error) {
	return o.r.tags.Do(ctx, chartKey{o.identity, "", ""}, func() ([]string, error) { return o.Tags(ctx) })
}

// manifest returns the manifest with a digest, fetched once per run.
func (o *ociRepository) manifest(ctx context.Context, d digest.Digest) (*oci.Artifact, error) {
	return o.r.artifacts.Do(ctx, chartKey{o.identity, "", d.String()}, func() (*oci.Artifact, error) { return o.Manifest(ctx, d) })
}

type ociArtifact struct {
	Pin
	repo   *ociRepository
	digest digest.Digest
	shown  string // host/repository:tag, or @digest
	item   string // the same for the cache, without values of Secrets
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

func (at *ociArtifact) is(d digest.Digest, revision, shown string) {
	at.digest, at.Manifest, at.Revision, at.shown, at.URL = d, d.String(), revision, shown, "oci://"+shown
}

// otherwise adds a hint to the error of a missing tag.
func (o *ociRepository) otherwise(ctx context.Context, w *remarks, ref sourcev1.OCIRepositoryRef, tag string, err error) error {
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case ref.SemVer == "" && ref.Tag == "":
		return finding.WithHint(err, "without spec.ref the tag is latest, which charts rarely have: name one with spec.ref.tag, or a range with spec.ref.semver")
	case ref.Tag == "":
		return err
	}
	missing := &finding.Problem{Field: []any{"spec", "ref", "tag"}, Err: err}
	tags, failed := o.tags(ctx)
	if failed != nil {
		w.debugf("no tag %s, and the tags cannot be listed: %v", tag, failed)
	} else if other := resolve.OtherTag(tag); slices.Contains(tags, other) {
		missing.Advice = fmt.Sprintf("the repository has the tag %s: write that in spec.ref.tag", other)
	}
	return missing
}

// pinTag resolves a tag to a digest. With atOnce it also fetches the manifest, which is needed next.
func (o *ociRepository) pinTag(ctx context.Context, tag string, atOnce bool) (digest.Digest, error) {
	if err := oci.CheckTag(tag); err != nil {
		return "", finding.WithCode(finding.InvalidReference, err)
	}
	if !atOnce {
		return o.Digest(ctx, tag)
	}
	d, artifact, err := o.Pin(ctx, tag)
	if artifact != nil {
		key := chartKey{o.identity, "", d.String()}
		o.r.artifacts.Forget(key) // another object may have failed to get it
		_, err = o.r.artifacts.Do(ctx, key, func() (*oci.Artifact, error) { return artifact, nil })
	}
	return d, err
}

func (o *ociRepository) tag(ctx context.Context, ref sourcev1.OCIRepositoryRef, charts bool) (string, error) {
	if ref.SemVer == "" {
		return cmp.Or(ref.Tag, defaultTag), nil
	}
	versions, err := resolve.NewTagRange(ref.SemVer, ref.SemverFilter, charts)
	if err != nil {
		return "", err
	}
	tags, err := o.tags(ctx)
	if err != nil {
		return "", err
	}
	tag, err := versions.Choose(tags)
	fetch.Decided(ctx, "candidates: tags: %d; '%s' takes %s", len(tags), ref.SemVer, cmp.Or(tag, "none of them"))
	return tag, err
}

func ociFailure(reason status.Reason, err error) error {
	if fetch.AuthFailure(err) {
		reason = status.AuthenticationFailed
	}
	return reason.Wrap(err)
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

// verifyArtifact verifies that a trusted identity signed the digest, if the
// object requests it. It runs on every run, as for charts.
func (p *ociReconciliation) verifyArtifact(ctx context.Context, obj *sourcev1.OCIRepository, at *ociArtifact) error {
	signer, err := p.verified(checks{
		asked:      obj.Spec.Verify != nil,
		signature:  func() (*verify.Signer, error) { return p.verifyDigest(ctx, obj.Spec.Verify, at) },
		provenance: func() (*verify.Signer, error) { return p.provenanceSigner(ctx, at) },
		refused:    verificationFailure,
	})
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
