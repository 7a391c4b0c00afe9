package verify

import (
	"context"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	sigstore "github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/helmsrc/helmsrc/internal/digest"
)

// bundleType is the prefix of the media types of sigstore bundles of all versions.
const bundleType = "application/vnd.dev.sigstore.bundle"

// A bundleSignature is a statement about the subject in a signed envelope, with the material to verify it.
type bundleSignature struct {
	subject digest.Digest
	bundle  *bundle.Bundle
	layer   digest.Digest
}

func lookBundles(ctx context.Context, r *reader, j judge, f *findings) (*Signer, error) {
	all, err := r.referrers(ctx)
	if err != nil {
		return nil, err
	}
	tried := 0
	for _, d := range all {
		if !mayBe(bundleType, d) {
			continue
		}
		if tried++; tried > maxSignatures {
			return nil, r.tooMany("signatures that refer to ", maxSignatures)
		}
		signer, err := judgeBundles(ctx, r, j, d, f)
		if signer != nil {
			return signer, nil
		}
		f.failed(err)
	}
	return nil, nil
}

// mayBe reports whether an artifact may be of the type. Some registries do not know the type of an artifact, and list
// the type of its configuration instead.
func mayBe(kind string, d ocispec.Descriptor) bool {
	switch d.ArtifactType {
	case "", emptyType, ocispec.MediaTypeImageConfig:
		return true
	}
	return strings.HasPrefix(d.ArtifactType, kind)
}

// judgeBundles judges the layers of an artifact that are bundles.
func judgeBundles(ctx context.Context, r *reader, j judge, d ocispec.Descriptor, f *findings) (*Signer, error) {
	m, err := r.artifact(ctx, d.Digest)
	if err != nil {
		return nil, err
	}
	for _, layer := range m.Layers {
		if !strings.HasPrefix(layer.MediaType, bundleType) {
			continue
		}
		signer, err := judgeBundle(ctx, r, j, layer)
		if signer != nil {
			return signer, nil
		}
		f.failed(err)
	}
	return nil, nil
}

func judgeBundle(ctx context.Context, r *reader, j judge, layer ocispec.Descriptor) (*Signer, error) {
	content, err := r.blob(ctx, layer, "bundle "+layer.Digest.String())
	if err != nil {
		return nil, err
	}
	signer, err := guarded(func() (*Signer, error) {
		b, err := newBundle(r.subject.Digest, layer.Digest, content)
		if err != nil {
			return nil, err
		}
		return j.bundle(ctx, b)
	})
	if signer != nil {
		signer.Format = FormatBundle
	}
	return signer, err
}

func newBundle(subject, layer digest.Digest, content []byte) (*bundleSignature, error) {
	var b bundle.Bundle
	if err := b.UnmarshalJSON(content); err != nil {
		return nil, refusal("", "bundle %s cannot be used: %.200v", layer, err)
	}
	if _, ok := b.Content.(*protobundle.Bundle_DsseEnvelope); !ok {
		return nil, refusal("", "bundle %s does not contain a DSSE envelope", layer)
	}
	return &bundleSignature{subject, &b, layer}, nil
}

// claim returns the requirement that the statement of the bundle is about the subject.
func (b *bundleSignature) claim() sigstore.ArtifactPolicyOption {
	sum, _ := hex.DecodeString(b.subject.Encoded()) // newReader has parsed it
	return sigstore.WithArtifactDigest(b.subject.Algorithm().String(), sum)
}

// verified verifies a bundle.
func verified(b *bundle.Bundle, m root.TrustedMaterial, v []sigstore.VerifierOption, content sigstore.ArtifactPolicyOption, p ...sigstore.PolicyOption) (*sigstore.VerificationResult, error) {
	verifier, err := sigstore.NewVerifier(m, v...)
	if err != nil {
		return nil, err
	}
	return verifier.Verify(b, sigstore.NewPolicy(content, p...))
}

// signedWith reports whether one of the verifiers of a key accepts the envelope with a requirement for its contents.
func (b *bundleSignature) signedWith(k publicKey, content sigstore.ArtifactPolicyOption) bool {
	return slices.ContainsFunc(k.verifiers, func(v signature.Verifier) bool {
		_, err := verified(b.bundle, keyMaterial(v), []sigstore.VerifierOption{sigstore.WithNoObserverTimestamps()}, content, sigstore.WithKey())
		return err == nil
	})
}

func (b *bundleSignature) refuseClaim() error {
	return refusal(copiedHint, "the signed statement %s is not about %s", b.layer, b.subject)
}

func (b *bundleSignature) signature() []byte {
	content, err := b.bundle.SignatureContent()
	if err != nil {
		return nil
	}
	return content.Signature()
}

// certificateOf returns the certificate in a bundle, or nil.
func certificateOf(b *bundle.Bundle) *x509.Certificate {
	content, err := b.VerificationContent()
	if err != nil {
		return nil
	}
	return content.Certificate()
}
