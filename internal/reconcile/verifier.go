package reconcile

import (
	"context"
	"fmt"
	"net/http"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// Trust is in the authorities and logs of keyless signatures.
type Trust = verify.Trust

// TrustedRoot is trust in what a trusted_root.json says.
func TrustedRoot(content []byte) (*Trust, error) { return verify.TrustedRoot(content) }

const (
	providerCosign = "cosign"
	labelKeyless   = "cosign keyless"
	// trustedRootKey is the name of a trusted root in a Secret. Flux knows it from
	// OCIRepositories only.
	trustedRootKey = "trusted_root.json"
)

// signatureKey names what is verified, and against what: the same question is
// asked once per run.
type signatureKey struct{ chart, against string }

// verifier is what a chart's signature is verified with.
type verifier struct {
	against string // equal for two verifiers that give the same answers
	run     func(context.Context, verify.Subject) (*verify.Signer, error)
}

// setupFailure is a verification that cannot even begin.
func setupFailure(obj *sourcev1.HelmChart, err error) error {
	label := obj.Spec.Verify.Provider
	if label == providerCosign && obj.Spec.Verify.SecretRef == nil {
		label = labelKeyless
	}
	return status.VerificationError.Wrap(&setupError{label, err})
}

// verifier reads what spec.verify refers to.
func (p *pass) verifier(ctx context.Context, obj *sourcev1.HelmChart) (*verifier, error) {
	spec := obj.Spec.Verify
	against, err := fingerprintOf(p.adm.Object.Namespace, spec)
	if err != nil {
		return nil, err
	}
	var secret *manifest.Secret
	if spec.SecretRef != nil {
		if secret, err = p.r.inventory.Secret(p.adm.Object.Namespace, spec.SecretRef.Name); err != nil {
			return nil, err
		}
	}
	v := &verifier{against: against}
	if spec.Provider == providerCosign {
		v.run, err = p.cosign(ctx, spec, secret)
	} else {
		v.run, err = p.notation(obj, secret)
	}
	return v, err
}

// run is a verification that only lacks the chart.
type run = func(context.Context, verify.Subject) (*verify.Signer, error)

// cosign verifies with the keys of the Secret, or else keyless.
func (p *pass) cosign(ctx context.Context, spec *sourcev1.HelmChartVerification, secret *manifest.Secret) (run, error) {
	o := verify.CosignOptions{Trust: p.r.trust()}
	for _, id := range spec.MatchOIDCIdentity {
		o.Identities = append(o.Identities, verify.Identity{Issuer: id.Issuer, Subject: id.Subject})
	}
	if secret != nil {
		keys, err := verify.CosignKeys(secretName(secret), secret.Data)
		root, rooted := secret.Data[trustedRootKey]
		switch {
		case err == nil:
			o.Keys = keys
		case !rooted:
			return nil, err
		default:
			if o.Trust, err = p.r.trustIn(ctx, root); err != nil {
				return nil, err
			}
			if len(o.Identities) == 0 {
				p.warnf("spec.verify without matchOIDCIdentity accepts a signature of anyone with a certificate of that root")
			}
		}
	}
	return func(ctx context.Context, s verify.Subject) (*verify.Signer, error) { return verify.Cosign(ctx, s, o) }, nil
}

// notation verifies with the policy and the certificates of the Secret.
func (p *pass) notation(obj *sourcev1.HelmChart, secret *manifest.Secret) (run, error) {
	if secret == nil {
		return nil, fmt.Errorf("verification secret cannot be empty: '%s'", obj.Name)
	}
	policy, certificates, err := verify.NotationSecret(secretName(secret), secret.Data)
	if err != nil {
		return nil, err
	}
	o := verify.NotationOptions{Policy: policy, Certificates: certificates, Transport: p.r.reading()}
	return func(ctx context.Context, s verify.Subject) (*verify.Signer, error) { return verify.Notation(ctx, s, o) }, nil
}

func secretName(s *manifest.Secret) string { return s.Namespace + "/" + s.Name }

// trustIn reads a trusted root, once per run.
func (r *Reconciler) trustIn(ctx context.Context, root []byte) (*Trust, error) {
	return r.roots.do(ctx, string(root), func() (*Trust, error) { return verify.TrustedRoot(root) })
}

// newTrust is the trust that holds where no Secret says otherwise: nothing is
// fetched before a keyless signature asks for it.
func newTrust(o Options, reading func() http.RoundTripper) func() *Trust {
	return func() *Trust {
		if o.Trust != nil {
			return o.Trust
		}
		return verify.PublicTrust(verify.PublicTrustOptions{CacheDir: o.TrustCache, Transport: reading()})
	}
}
