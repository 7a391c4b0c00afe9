package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/validate"
	"github.com/helmsrc/helmsrc/internal/verify"
)

type ociReconciliation struct {
	*reconciliation
	obj *sourcev1.OCIRepository
}

// choose finds out which artifact spec.ref selects, and whether it is signed.
func (p *ociReconciliation) choose(ctx context.Context) (*remainder, error) {
	obj := p.obj
	if p.r.o.List {
		return nil, p.listArtifacts(ctx, obj)
	}
	if dir, ok := p.r.o.Directories[p.key]; ok {
		return p.localArtifact(ctx, obj, dir)
	}
	p.result.Resolution = ociResolution(obj)
	if e := p.lockedTo(); e != nil && p.artifactAsLocked(obj, e) {
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

// remaining is what is left to do once the revision is known: nothing, if its artifact is in
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

// ociResolution is what is known before the registry is asked.
func ociResolution(obj *sourcev1.OCIRepository) *Resolution {
	ref := validate.ArtifactReference(obj)
	return &Resolution{
		Chart:      auth.RedactURL(obj.Spec.URL),
		Constraint: cmp.Or(ref.Digest, ref.SemVer, ref.Tag, defaultTag),
	}
}

// ociFingerprint is equal for two artifacts with the same bytes: the revision
// names the content, wherever it was found.
func ociFingerprint(obj *sourcev1.OCIRepository, revision string) (string, error) {
	return fingerprintOf(revision, obj.Spec.Ignore, obj.Spec.LayerSelector)
}

type ociArtifact struct {
	Pin
	repo     *oci.Repository
	identity string // of the repository
	scope    cache.Scope
	digest   digest.Digest
	artifact *oci.Artifact // nil until it is fetched
	shown    string        // host/repository:tag, or @digest
	item     string        // the same for the cache, with nothing that came from a Secret
}

func (at *ociArtifact) pin() Pin { return at.Pin }

type ociArtifacts struct {
	r        *Reconciler
	repo     *oci.Repository
	identity string // of the repository
	scope    cache.Scope
	charts   bool // tags are versions as those of charts are
	atOnce   bool // to ask for the manifest with the digest: it will be needed
}

func (p *ociReconciliation) findArtifact(ctx context.Context, obj *sourcev1.OCIRepository) (*ociArtifact, error) {
	repo, identity, err := p.openOCIRepository(ctx, obj)
	if err != nil {
		return nil, err
	}
	from := &ociArtifacts{
		r: p.r, repo: repo, identity: identity, scope: p.r.scopeOf(ctx, p.adm, bareURL(obj.Spec.URL)),
		charts: obj.GetLayerMediaType() == oci.HelmChartType, atOnce: p.stored() == nil && p.r.o.Until == Fetch,
	}
	ref := validate.ArtifactReference(obj)
	wanted := want{constraint: ref.SemVer, tag: ref.Tag, digest: ref.Digest, filter: ref.SemverFilter}
	if e := p.asked(); e != nil && e.Tag != "" {
		wanted = want{tag: e.Tag}
	}
	if e := p.lockedTo(); e != nil {
		at := from.locked(e)
		p.pinTo(at.Pin)
		p.foundArtifact(at)
		decideLogin(ctx, repo.Shown)
		return at, nil
	}
	at, err := choose(ctx, p.reconciliation, from, wanted)
	if at != nil {
		p.foundArtifact(at)
	}
	var tag *ociTagError
	switch {
	case errors.As(err, &tag):
		return nil, ociFailure(status.ReadOperationFailed, fmt.Errorf("failed to determine the artifact tag for '%s': %w", auth.RedactURL(obj.Spec.URL), tag.err))
	case err != nil:
		return nil, ociFailure(status.OCIPullFailed, fmt.Errorf("failed to determine artifact digest: %w", err))
	}
	decideLogin(ctx, repo.Shown)
	return at, nil
}

func (p *ociReconciliation) foundArtifact(at *ociArtifact) {
	at.item = p.adm.Object.ConcealText(at.shown)
	p.result.Resolution.take(at.Pin)
}

type ociTagError struct{ err error }

func (e *ociTagError) Error() string { return e.err.Error() }

func (e *ociTagError) Unwrap() error { return e.err }

func (a *ociArtifacts) choose(ctx context.Context, w warner, wanted want) (*ociArtifact, error) {
	at := &ociArtifact{Pin: Pin{Source: PinRegistry}, repo: a.repo, identity: a.identity, scope: a.scope}
	if wanted.digest != "" {
		var err error
		if at.digest, err = oci.ParseDigest(wanted.digest); err != nil {
			return nil, finding.WithCode(finding.InvalidReference, err)
		}
		at.Manifest, at.Revision, at.shown = at.digest.String(), at.digest.String(), a.repo.At(at.digest.String())
		at.URL = "oci://" + at.shown
		return at, nil
	}
	tag, err := a.tag(ctx, wanted)
	if err != nil {
		return nil, &ociTagError{err}
	}
	at.Version = tag
	pinned, err := a.r.moving.Do(ctx, chartKey{a.identity, "", tag}, func() (pinnedTag, error) { return a.pinTag(ctx, tag) })
	if err != nil {
		return at, a.otherwise(ctx, w, wanted, tag, err)
	}
	at.digest, at.artifact = pinned.digest, pinned.artifact
	at.Manifest, at.Revision, at.shown = at.digest.String(), tag+"@"+at.digest.String(), a.repo.Tagged(tag)
	at.URL = "oci://" + at.shown
	return at, nil
}

func (a *ociArtifacts) otherwise(ctx context.Context, w warner, wanted want, tag string, err error) error {
	switch {
	case !errors.Is(err, fs.ErrNotExist):
	case wanted.tag != "":
		return a.missing(ctx, w, tag, err)
	case tag == defaultTag:
		return finding.WithHint(err, "without spec.ref the tag is latest, which charts rarely have: name one with spec.ref.tag, or a range with spec.ref.semver")
	}
	return err
}

type tagMissingError struct {
	err  error
	hint string
}

func (e *tagMissingError) Error() string { return e.err.Error() }

func (e *tagMissingError) Unwrap() error { return e.err }

// Hint names the tag that may be meant.
func (e *tagMissingError) Hint() string { return e.hint }

func (a *ociArtifacts) missing(ctx context.Context, w warner, tag string, err error) error {
	missing := &tagMissingError{err: err}
	tags, failed := a.tags(ctx)
	if failed != nil {
		w.debugf("no tag %s, and the tags cannot be listed: %v", tag, failed)
		return missing
	}
	if other := resolve.OtherTag(tag); slices.Contains(tags, other) {
		missing.hint = fmt.Sprintf("the repository has the tag %s: write that in spec.ref.tag", other)
	}
	return missing
}

// pinTag asks what a tag names. Where nothing is stored, it asks at once for what
// is needed next.
func (a *ociArtifacts) pinTag(ctx context.Context, tag string) (pinned pinnedTag, err error) {
	if err := oci.CheckTag(tag); err != nil {
		return pinned, finding.WithCode(finding.InvalidReference, err)
	}
	if !a.atOnce {
		pinned.digest, err = a.repo.Digest(ctx, tag)
		return pinned, err
	}
	pinned.digest, pinned.artifact, err = a.repo.Pin(ctx, tag)
	return pinned, err
}

func (a *ociArtifacts) tag(ctx context.Context, wanted want) (string, error) {
	if wanted.constraint == "" {
		return cmp.Or(wanted.tag, defaultTag), nil
	}
	versions, err := resolve.NewTagRange(wanted.constraint, wanted.filter, a.charts)
	if err != nil {
		return "", err
	}
	tags, err := a.tags(ctx)
	if err != nil {
		return "", err
	}
	tag, err := versions.Choose(tags)
	fetch.Decided(ctx, "candidates: tags: %d; '%s' takes %s", len(tags), wanted.constraint, cmp.Or(tag, "none of them"))
	return tag, err
}

// tags are all tags, fetched once per run.
func (a *ociArtifacts) tags(ctx context.Context) ([]string, error) {
	return a.r.tags.Do(ctx, chartKey{a.identity, "", ""}, func() ([]string, error) { return a.repo.Tags(ctx) })
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

// maxOrigin is the longest origin that is shown. Longer ones are not readable, and
// the API server takes no longer message of an event.
const maxOrigin = 800

// The annotations that name where an artifact was made of.
const (
	annotationSource   = "org.opencontainers.image.source"
	annotationRevision = "org.opencontainers.image.revision"
)

// verifyArtifact makes sure that a trusted identity signed the digest, where
// that is requested. It runs on every run, as it does for charts.
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

// verifyDigest checks what spec.verify requires. The signer is nil if the trust
// policy does not enforce anything.
func (p *ociReconciliation) verifyDigest(ctx context.Context, spec *sourcev1.OCIRepositoryVerification, at *ociArtifact) (*verify.Signer, error) {
	v := verification{
		provider: spec.Provider, secret: spec.SecretRef, identities: spec.MatchOIDCIdentity,
		trustedRoot: spec.TrustedRootSecretRef, subject: at.repo.At(at.digest.String()),
	}
	signer, err := p.artifactSigner(ctx, v, at)
	if err == nil && signer == nil && p.r.o.RequireVerification {
		err = notSigned("the trust policy enforces nothing")
	}
	switch {
	case err != nil:
		return nil, verificationFailure(fmt.Errorf("failed to verify the signature using provider '%s': %w", v.label(), err))
	case signer == nil:
		p.warnAs(finding.NotVerified, "the signature of %s was not verified: the trust policy does not enforce it", v.subject)
	}
	return signer, nil
}

// artifactSigner looks for a signature, once per run and digest.
func (p *ociReconciliation) artifactSigner(ctx context.Context, v verification, at *ociArtifact) (*verify.Signer, error) {
	check, err := p.verifier(ctx, v)
	if err != nil {
		return nil, unverifiable(err.Error(), err) // a missing Secret is no reason to trust the artifact
	}
	key := signatureKey{fmt.Sprintf("%q %s", at.identity, at.digest), check.against}
	signer, err := p.r.signers.Do(ctx, key, func() (*verify.Signer, error) {
		scope := at.scope
		scope.Item = at.item
		return p.signer(ctx, verify.Subject{
			Repository: at.repo.Repository(),
			Digest:     at.digest,
			Insecure:   at.repo.Insecure(),
			Transport:  at.repo.Reading(),
			Timeout:    timeoutOf(p.obj.Spec.Timeout),
		}, scope, check.run)
	})
	var refused interface{ Integrity() bool }
	if v.provider == providerCosign && v.secret != nil && errors.As(err, &refused) {
		// Flux says no more than this of any failure.
		err = fmt.Errorf("no matching signatures were found for '%s': %w", v.subject, reasonOf(err))
	}
	return signer, err
}

// reasonOf leaves out of a refusal that nothing matches.
func reasonOf(err error) error {
	if refused, ok := errors.AsType[*verify.RefusedError](err); ok && refused.Err != nil {
		return refused.Err
	}
	return err
}
