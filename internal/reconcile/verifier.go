package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/validate"
	"github.com/helmsrc/helmsrc/internal/verify"
)

const (
	providerCosign = "cosign"
	labelKeyless   = "cosign keyless"
)

type verification struct {
	provider   string
	secret     *meta.LocalObjectReference
	identities []sourcev1.OIDCIdentityMatch
	// trustedRoot is a Secret that only OCIRepositories can name.
	trustedRoot *meta.LocalObjectReference
	subject     string // for messages
}

func chartVerification(obj *sourcev1.HelmChart) verification {
	spec := obj.Spec.Verify
	return verification{provider: spec.Provider, secret: spec.SecretRef, identities: spec.MatchOIDCIdentity, subject: obj.Name}
}

func (v verification) label() string {
	if v.provider == providerCosign && v.secret == nil {
		return labelKeyless
	}
	return v.provider
}

func (p *reconciliation) verifier(ctx context.Context, spec verification) (run, error) {
	// A public key does not use the root, but with a missing root Flux does not verify at all.
	var root []byte
	var err error
	if spec.provider == providerCosign {
		if root, err = p.r.secrets.TrustedRoot(p.adm.Object.Namespace, spec.trustedRoot); err != nil {
			return nil, err
		}
	}
	secret, err := p.r.secrets.Keys(p.adm.Object.Namespace, spec.secret)
	if err != nil {
		return nil, err
	}
	if spec.provider == providerCosign {
		return p.cosign(ctx, spec, secret, root)
	}
	return p.notation(spec, secret)
}

// signed returns the signer of a subject for a spec.verify. It is nil, with a warning, if the trust policy enforces nothing. It
// verifies once per run. ready is false if the verification could not begin.
func (p *reconciliation) signed(ctx context.Context, spec verification, id string, subject verify.Subject, scope cache.Scope, shown string) (signer *verify.Signer, ready bool, err error) {
	look, err := p.verifier(ctx, spec)
	if err != nil {
		return nil, false, err
	}
	against := fingerprintOf(p.adm.Object.Namespace, spec.provider, spec.secret, spec.identities, spec.trustedRoot)
	signer, err = p.r.signers.Do(ctx, signatureKey{id, against}, func() (*verify.Signer, error) {
		return p.signer(ctx, subject, scope, look)
	})
	switch {
	case err != nil || signer != nil:
	case p.r.o.RequireVerification:
		err = notSigned("the trust policy enforces nothing")
	default:
		p.warnAs(finding.NotVerified, "the signature of %s was not verified: the trust policy does not enforce it", shown)
	}
	return signer, true, err
}

// signer looks for a signature. For a locked source, a cached answer of the registry is enough if the signature verifies with it.
func (p *reconciliation) signer(ctx context.Context, s verify.Subject, scope cache.Scope, look run) (*verify.Signer, error) {
	s.Memory = &verify.Memory{Answers: p.r.memory(scope), Settled: p.locked != nil}
	signer, err := look(ctx, s)
	if err == nil || p.r.o.Offline || !s.Memory.Used() {
		return signer, err
	}
	s.Memory = &verify.Memory{Answers: s.Memory.Answers}
	return look(ctx, s)
}

// run verifies a chart with the settings of one spec.verify.
type run = func(context.Context, verify.Subject) (*verify.Signer, error)

// cosign returns a verification with the keys of the Secret, or else keyless.
func (p *reconciliation) cosign(ctx context.Context, spec verification, secret *manifest.Secret, root []byte) (run, error) {
	o := verify.CosignOptions{}
	for _, id := range spec.identities {
		o.Identities = append(o.Identities, verify.Identity{Issuer: id.Issuer, Subject: id.Subject})
	}
	if secret != nil {
		keys, err := verify.CosignKeys(credential.NameOf(secret), secret.Data)
		own, rooted := credential.RootIn(secret)
		switch {
		case err == nil:
			o.Keys = keys
		case !rooted:
			return nil, err
		default:
			root = own
		}
	}
	return p.trusting(ctx, o, root)
}

// trusting adds the trusted root for keyless signatures.
func (p *reconciliation) trusting(ctx context.Context, o verify.CosignOptions, root []byte) (run, error) {
	o.Trust = p.r.trust()
	if root != nil && o.Keys == nil {
		var err error
		if o.Trust, err = p.r.trustIn(ctx, root); err != nil {
			return nil, err
		}
		if len(o.Identities) == 0 {
			p.warnAt(finding.VerifyAnyone, validate.AnyoneOfRoot, "spec", "verify")
		}
	}
	return func(ctx context.Context, s verify.Subject) (*verify.Signer, error) { return verify.Cosign(ctx, s, o) }, nil
}

// notation returns a verification with the policy and the certificates of the Secret.
func (p *reconciliation) notation(spec verification, secret *manifest.Secret) (run, error) {
	if secret == nil {
		return nil, fmt.Errorf("verification secret cannot be empty: '%s'", spec.subject)
	}
	policy, certificates, err := verify.NotationSecret(credential.NameOf(secret), secret.Data)
	if err != nil {
		return nil, err
	}
	o := verify.NotationOptions{Policy: policy, Certificates: certificates, Transport: p.r.reading()}
	return func(ctx context.Context, s verify.Subject) (*verify.Signer, error) { return verify.Notation(ctx, s, o) }, nil
}

// trustIn parses a trusted root, once per run.
func (r *Reconciler) trustIn(ctx context.Context, root []byte) (*verify.Trust, error) {
	return r.roots.Do(ctx, string(root), func() (*verify.Trust, error) { return verify.TrustedRoot(root) })
}

// newTrust returns a function for the trusted root without a Secret: nothing is
// fetched before a keyless signature needs it.
func newTrust(o Options, reading func() http.RoundTripper) func() *verify.Trust {
	return func() *verify.Trust {
		if o.Trust != nil {
			return o.Trust
		}
		return verify.PublicTrust(verify.PublicTrustOptions{CacheDir: o.TrustCache, Transport: reading()})
	}
}

// verificationFailure returns a failure that sets only the condition SourceVerified.
func verificationFailure(err error) error {
	f := &status.Failure{Type: sourcev1.SourceVerifiedCondition, Reason: status.VerificationError, Message: err.Error(), Err: err}
	if verify, ok := errors.AsType[*git.VerificationError](err); ok {
		f.Reason = status.Reason(verify.Reason)
		if verify.Stalled {
			f.Stalled = f.Reason
		}
	}
	return f
}

func signatureFailure(chosen *resolvedChart, err error) error {
	return status.ChartVerificationError.Wrap(fmt.Errorf("failed to verify %s: %w", chosen.URL, err))
}

// unverifiable returns the error of a required verification that is not possible. The artifact is then not trusted.
func unverifiable(text string, err error) error {
	return &finding.Problem{Code: finding.Unverifiable, Class: finding.Untrusted, Text: text, Err: err}
}

func errDirectoryUnsigned() error {
	return unverifiable("a local directory has no signatures that could be verified", nil)
}

// notSigned returns the error of an unsigned chart, if a signature is required.
func notSigned(reason string) error {
	return &finding.Problem{Code: finding.Unsigned, Class: finding.Untrusted, Text: "the chart is unsigned: " + reason, Advice: finding.WhatIsVerified}
}

// resigned returns a stored artifact with the signer of this run: the signer at
// the time when it was stored may no longer be the required one.
func (p *reconciliation) resigned(artifact *meta.Artifact) *meta.Artifact {
	if !p.r.o.checksSignatures() {
		return artifact
	}
	artifact = artifact.DeepCopy()
	for _, key := range []string{metadataSignedBy, metadataSignerKey, metadataIssuer, metadataLogIndex, metadataSignedAt} {
		delete(artifact.Metadata, key)
	}
	if s := p.result.Signature; s != nil {
		artifact.Metadata = withSigner(artifact.Metadata, s)
	}
	return artifact
}

func withSigner(metadata map[string]string, s *verify.Signer) map[string]string {
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[metadataSignedBy] = s.Key
	if s.Identity != "" {
		metadata[metadataSignedBy] = s.Identity
	}
	if s.Identity != "" && s.Key != "" {
		metadata[metadataSignerKey] = s.Key
	}
	if s.Issuer != "" {
		metadata[metadataIssuer] = s.Issuer
	}
	if s.LogIndex != nil {
		metadata[metadataLogIndex] = strconv.FormatInt(*s.LogIndex, 10)
	}
	if !s.Time.IsZero() {
		metadata[metadataSignedAt] = s.Time.UTC().Format(time.RFC3339)
	}
	return metadata
}

// Keys of artifact.metadata for a chart whose signature was verified.
const (
	metadataSignedBy  = "helmsrc.dev/signed-by"  // name of the key, or identity of the certificate
	metadataSignerKey = "helmsrc.dev/signer-key" // fingerprint, where signed-by is a name in a PGP key
	metadataIssuer    = "helmsrc.dev/signer-issuer"
	metadataLogIndex  = "helmsrc.dev/signature-log-index"
	metadataSignedAt  = "helmsrc.dev/signed-at"
)
