package verify

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/helmsrc/helmsrc/internal/digest"
)

const (
	// PolicyName is the name of the trust policy in a Secret.
	PolicyName = "trustpolicy.json"

	notationType = "application/vnd.cncf.notary.signature"
	// maxAttempts is the number of signatures that Flux lets notation try.
	maxAttempts = 3
)

// NotationOptions chooses the signatures that count.
type NotationOptions struct {
	// Policy is a trust policy as JSON. All trust stores that it names have the same certificates.
	Policy       []byte
	Certificates map[string][]byte // by name, PEM or DER; of PEM, the first block
	// Transport reaches the servers that certificates name for their revocation. With nil they are not reached, and the
	// level of the policy decides.
	Transport http.RoundTripper
}

// NotationSecret returns the trust policy and the certificates in the data of the Secret of that name. The error is a
// [*SettingsError].
func NotationSecret(secret string, data map[string][]byte) (policy []byte, certificates map[string][]byte, err error) {
	policy, ok := data[PolicyName]
	if !ok {
		return nil, nil, unusable(policyHint(data), fmt.Sprintf("'%s' not found in secret '%s'", PolicyName, secret), nil)
	}
	certificates = map[string][]byte{}
	hint := ""
	for _, name := range sortedNames(data) {
		switch {
		case strings.HasSuffix(name, ".crt"), strings.HasSuffix(name, ".pem"):
			certificates[name] = data[name]
		case hint == "" && Certificate(name, data[name]):
			hint = fmt.Sprintf("%q contains a certificate, but only names that end in .crt or .pem are read", name)
		}
	}
	if len(certificates) == 0 {
		return nil, nil, unusable(hint, fmt.Sprintf("no certificates found in secret '%s'", secret), nil)
	}
	return policy, certificates, nil
}

// policyHint returns a hint at a policy under another name, or that the Secret needs a policy.
func policyHint(data map[string][]byte) string {
	for _, name := range sortedNames(data) {
		if bytes.Contains(data[name], []byte(`"trustPolicies"`)) {
			return fmt.Sprintf("%q contains a trust policy, but only the name %s is read", name, PolicyName)
		}
	}
	return fmt.Sprintf("notation needs a trust policy: put one into the Secret under the name %s", PolicyName)
}

// Certificate reports whether content is a certificate that NotationSecret leaves out because of its name.
func Certificate(name string, content []byte) bool {
	if strings.HasSuffix(name, ".crt") || strings.HasSuffix(name, ".pem") {
		return false
	}
	_, err := parseCertificate(content)
	return err == nil
}

// parseCertificate reads DER, or the first block of PEM.
func parseCertificate(content []byte) (*x509.Certificate, error) {
	if block, _ := pem.Decode(content); block != nil {
		content = block.Bytes
	}
	return x509.ParseCertificate(content)
}

// Notation looks for a notation signature of the subject that the trust policy accepts. It returns nil and no error if
// the policy skips the verification, or only records that the signer is not trusted.
//
// The errors are as for [Cosign].
func Notation(ctx context.Context, s Subject, o NotationOptions) (*Signer, error) {
	r, err := newReader(s)
	if err != nil {
		return nil, err
	}
	n, err := newNotary(s, o)
	if err != nil {
		return nil, err
	}
	skip, err := n.skips(ctx)
	if skip || err != nil {
		return nil, err
	}
	subject, err := r.descriptor(ctx)
	if err != nil {
		return nil, fmt.Errorf("failed to look for signatures of %s: %w", s.Ref(), err)
	}
	signatures, err := notationReferrers(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("failed to look for signatures of %s: %w", s.Ref(), err)
	}
	if len(signatures) == 0 {
		return nil, unsigned(fmt.Sprintf("no signature is associated with %q, make sure the artifact was signed successfully", s.Ref()))
	}
	return n.try(ctx, r, subject, signatures)
}

// descriptor returns the descriptor of the subject as its signer used it, with the media type and the size.
func (r *reader) descriptor(ctx context.Context) (ocispec.Descriptor, error) {
	d := r.subject.Digest
	a, err := r.content(ctx, "manifests", d, maxManifestBytes, "manifest "+d.String())
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	desc := ocispec.Descriptor{MediaType: a.mediaType(), Digest: d, Size: int64(len(a.content))}
	var m struct{ MediaType string }
	if json.Unmarshal(a.content, &m) == nil && m.MediaType != "" {
		desc.MediaType = m.MediaType
	}
	return desc, nil
}

func notationReferrers(ctx context.Context, r *reader) ([]ocispec.Descriptor, error) {
	all, err := r.referrers(ctx)
	return slices.DeleteFunc(all, func(d ocispec.Descriptor) bool { return d.ArtifactType != notationType }), err
}

// A notary judges notation signatures.
type notary struct {
	verifier notation.Verifier
	subject  Subject
	store    certificates

	revocations revocations
}

// certificates holds the content of every trust store.
type certificates []*x509.Certificate

func (c certificates) GetCertificates(context.Context, truststore.Type, string) ([]*x509.Certificate, error) {
	return c, nil
}

func newNotary(s Subject, o NotationOptions) (*notary, error) {
	n := &notary{subject: s, revocations: revocations{next: o.Transport}}
	if s.Memory != nil && o.Transport != nil {
		n.revocations.next = &revocationsKept{o.Transport, s.Memory}
	}
	for _, name := range sortedNames(o.Certificates) {
		c, err := parseCertificate(o.Certificates[name])
		if err != nil {
			return nil, unusable("", fmt.Sprintf("certificate '%s' cannot be used", name), err)
		}
		n.store = append(n.store, c)
	}
	policy, err := parsePolicy(o.Policy)
	if err != nil {
		return nil, err
	}
	revocation, err := n.revocations.options()
	if err != nil {
		return nil, err
	}
	if n.verifier, err = verifier.NewWithOptions(policy, n.store, nil, revocation); err != nil {
		return nil, unusable("", "the trust policy cannot be used", err)
	}
	return n, nil
}

// parsePolicy parses a trust policy. A statement that skips the verification may name trust stores and identities,
// which the library refuses.
func parsePolicy(content []byte) (*trustpolicy.Document, error) {
	var d trustpolicy.Document
	if err := json.Unmarshal(content, &d); err != nil {
		return nil, unusable("", "error occurred while parsing "+PolicyName, err)
	}
	for i := range d.TrustPolicies {
		if p := &d.TrustPolicies[i]; p.SignatureVerification.VerificationLevel == trustpolicy.LevelSkip.Name {
			p.TrustStores, p.TrustedIdentities = nil, nil
		}
	}
	return &d, nil
}

func (n *notary) options() notation.VerifierVerifyOptions {
	return notation.VerifierVerifyOptions{ArtifactReference: n.subject.Ref()}
}

// skips reports whether the policy skips the verification.
func (n *notary) skips(ctx context.Context) (bool, error) {
	skipper, ok := n.verifier.(interface {
		SkipVerify(context.Context, notation.VerifierVerifyOptions) (bool, *trustpolicy.VerificationLevel, error)
	})
	if !ok {
		return false, nil
	}
	skip, _, err := skipper.SkipVerify(ctx, n.options())
	if err != nil {
		return false, refusal(fmt.Sprintf("add %q or \"*\" to the registryScopes of a statement in %s", n.subject.Repository, PolicyName), "%v", err)
	}
	return skip, nil
}

// try judges up to maxAttempts signatures in their order, and returns the first signer that is accepted.
func (n *notary) try(ctx context.Context, r *reader, subject ocispec.Descriptor, signatures []ocispec.Descriptor) (*Signer, error) {
	f := &findings{}
	for i, d := range signatures {
		if i == maxAttempts {
			f.failed(tooMany("notation signatures of "+n.subject.Digest.String(), maxAttempts))
			break
		}
		signer, err := n.judge(ctx, r, subject, d)
		if _, ok := errors.AsType[*ignoredError](err); ok {
			return nil, nil
		}
		if err == nil {
			return signer, nil
		}
		f.failed(err)
	}
	return nil, f.verdict(n.subject)
}

// An ignoredError reports that the policy skips the verification, or has only recorded that the signer is not trusted.
type ignoredError struct{}

func (*ignoredError) Error() string { return "ignored by the trust policy" }

func (n *notary) judge(ctx context.Context, r *reader, subject, d ocispec.Descriptor) (*Signer, error) {
	a, err := r.artifact(ctx, d.Digest)
	if err != nil {
		return nil, err
	}
	if len(a.Layers) != 1 {
		return nil, refusal("", "signature manifest %s has %d envelopes in place of one", d.Digest, len(a.Layers))
	}
	layer := a.Layers[0]
	envelope, err := r.blob(ctx, layer, "signature "+layer.Digest.String())
	if err != nil {
		return nil, err
	}
	return guarded(func() (*Signer, error) { return n.verify(ctx, subject, d.Digest, layer.MediaType, envelope) })
}

func (n *notary) verify(ctx context.Context, subject ocispec.Descriptor, d digest.Digest, mediaType string, envelope []byte) (*Signer, error) {
	o := n.options()
	o.SignatureMediaType = mediaType
	outcome, err := n.verifier.Verify(ctx, subject, envelope, o)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		if failure := n.revocations.undecided(outcome); failure != nil {
			return nil, failure
		}
		return nil, refusal(n.hint(outcome, subject), "failed to verify signature with digest %s: %.400v", d, err)
	}
	return n.accepted(outcome)
}

// accepted interprets an outcome as source-controller does.
func (n *notary) accepted(outcome *notation.VerificationOutcome) (*Signer, error) {
	signer := &Signer{Format: FormatNotation}
	if reflect.DeepEqual(outcome.VerificationLevel, trustpolicy.LevelSkip) {
		return nil, &ignoredError{}
	}
	for _, result := range outcome.VerificationResults {
		switch {
		case result.Error == nil:
		case result.Type == trustpolicy.TypeAuthenticity:
			return nil, &ignoredError{}
		default:
			signer.Warnings = append(signer.Warnings, oneLine(fmt.Sprintf("verification check for type '%s' failed for '%s' with message: '%.400v'",
				result.Type, n.subject.Ref(), result.Error)))
		}
	}
	if info := outcome.EnvelopeContent; info != nil && len(info.SignerInfo.CertificateChain) > 0 {
		leaf := info.SignerInfo.CertificateChain[0]
		signer.Identity, signer.Issuer = oneLine(leaf.Subject.String()), oneLine(leaf.Issuer.String())
		signer.Time = info.SignerInfo.SignedAttributes.SigningTime.UTC()
	}
	return signer, nil
}
