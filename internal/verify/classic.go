package verify

import (
	"context"
	"encoding/base64"
	"encoding/json"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/helmsrc/helmsrc/internal/digest"
)

// The annotations of a classic signature's layer.
const (
	signatureAnnotation   = "dev.cosignproject.cosign/signature"
	certificateAnnotation = "dev.sigstore.cosign/certificate"
	logAnnotation         = "dev.sigstore.cosign/bundle"
	timestampAnnotation   = "dev.sigstore.cosign/rfc3161timestamp"
)

// A classicSignature is a layer of the manifest under a digest's .sig tag: a payload that names the digest, and a
// signature of the payload in an annotation.
type classicSignature struct {
	subject     digest.Digest
	payload     []byte
	signature   []byte
	annotations map[string]string
	layer       digest.Digest
}

func lookClassic(ctx context.Context, r *reader, j judge, f *findings) (*Signer, error) {
	tag, ok := tagOf(r.subject, ".sig")
	if !ok {
		return nil, nil
	}
	a, err := r.named(ctx, tag, "manifest "+tag, ocispec.MediaTypeImageManifest, dockerManifest)
	if a == nil || err != nil {
		return nil, err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(a.content, &m); err != nil {
		return nil, refusal("", "manifest %s cannot be read: %v", tag, err)
	}
	if len(m.Layers) > maxSignatures {
		return nil, tooMany("signatures in "+tag, maxSignatures)
	}
	for _, layer := range m.Layers {
		if layer.Annotations[signatureAnnotation] == "" {
			continue
		}
		signer, err := judgeClassic(ctx, r, j, layer)
		if signer != nil {
			return signer, nil
		}
		f.failed(err)
	}
	return nil, nil
}

func judgeClassic(ctx context.Context, r *reader, j judge, layer ocispec.Descriptor) (*Signer, error) {
	payload, err := r.blob(ctx, layer, "signature "+layer.Digest.String())
	if err != nil {
		return nil, err
	}
	signature, err := base64.StdEncoding.DecodeString(layer.Annotations[signatureAnnotation])
	if err != nil {
		return nil, refusal("", "signature %s is not base64", layer.Digest)
	}
	s := &classicSignature{r.subject.Digest, payload, signature, layer.Annotations, layer.Digest}
	signer, err := guarded(func() (*Signer, error) { return j.classic(ctx, s) })
	if signer != nil {
		signer.Format = FormatClassic
	}
	return signer, err
}

const copiedHint = "the signature is valid, but for other contents: it was copied from another version, or the version was replaced after it was signed"

// checkClaim compares the signed digest with the subject's. The caller has verified the signature.
func (s *classicSignature) checkClaim() error {
	var claim struct {
		Critical struct {
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
		} `json:"critical"`
	}
	if err := json.Unmarshal(s.payload, &claim); err != nil {
		return refusal("", "signed payload %s cannot be read", s.layer)
	}
	if signed := claim.Critical.Image.Digest; signed != s.subject.String() {
		return refusal(copiedHint,
			"the signature is for digest %.80q, not %s", signed, s.subject)
	}
	return nil
}
