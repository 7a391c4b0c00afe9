package verify

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	godigest "github.com/opencontainers/go-digest"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	sigstore "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// A keylessJudge accepts signatures with a logged certificate of a trusted authority, for a key that was used while the
// certificate was valid, as the transparency log or a timestamp authority attests.
type keylessJudge struct {
	identities []sigstore.PolicyOption
	trust      *Trust
}

func newKeylessJudge(identities []Identity, trust *Trust) (judge, error) {
	if trust == nil {
		return nil, unusable("", "neither public keys nor a trusted root", nil)
	}
	j := &keylessJudge{trust: trust}
	for _, id := range identities {
		c, err := sigstore.NewShortCertificateIdentity("", orAny(id.Issuer), "", orAny(id.Subject))
		if err != nil {
			return nil, unusable("", "matchOIDCIdentity cannot be used", err)
		}
		j.identities = append(j.identities, sigstore.WithCertificateIdentity(c))
	}
	if len(j.identities) == 0 {
		j.identities = append(j.identities, sigstore.WithoutIdentitiesUnsafe())
	}
	return j, nil
}

func orAny(expression string) string {
	if expression == "" {
		return ".*"
	}
	return expression
}

// keylessOptions returns the requirements for a signature with a short-lived certificate.
func keylessOptions() []sigstore.VerifierOption {
	return []sigstore.VerifierOption{
		sigstore.WithSignedCertificateTimestamps(1),
		sigstore.WithTransparencyLog(1),
		sigstore.WithObserverTimestamps(1),
	}
}

const keyedHint = finding.WithoutCertificate

func (j *keylessJudge) bundle(ctx context.Context, b *bundleSignature) (*Signer, error) {
	if certificateOf(b.bundle) == nil {
		return nil, refusal(keyedHint, "no certificate found on signature")
	}
	return j.judge(ctx, b.bundle, b.claim())
}

func (j *keylessJudge) classic(ctx context.Context, s *classicSignature) (*Signer, error) {
	if s.annotations[certificateAnnotation] == "" {
		return nil, refusal(keyedHint, "no certificate found on signature")
	}
	b, err := s.asBundle()
	if err != nil {
		return nil, refusal("", "signature %s cannot be used: %.200v", s.layer, err)
	}
	signer, err := j.judge(ctx, b, sigstore.WithArtifact(bytes.NewReader(s.payload)))
	if err != nil {
		return nil, err
	}
	if err := s.checkClaim(); err != nil {
		return nil, err
	}
	return signer, nil
}

func (j *keylessJudge) judge(ctx context.Context, b *bundle.Bundle, content sigstore.ArtifactPolicyOption) (*Signer, error) {
	material, err := j.trust.material(ctx)
	if err != nil {
		return nil, err
	}
	result, err := verified(b, material, keylessOptions(), content, j.identities...)
	if err != nil {
		return nil, refuseKeyless(b, err)
	}
	return certified(b, result), nil
}

// certified returns the signer that a verified certificate names, with the earliest verified time.
func certified(b *bundle.Bundle, r *sigstore.VerificationResult) *Signer {
	signer := &Signer{}
	if c := r.Signature.Certificate; c != nil {
		signer.Identity, signer.Issuer = oneLine(c.SubjectAlternativeName), oneLine(c.Issuer)
	}
	for _, t := range r.VerifiedTimestamps {
		if signer.Time.IsZero() || t.Timestamp.Before(signer.Time) {
			signer.Time = t.Timestamp.UTC()
		}
	}
	// Entries of untrusted logs are skipped, so only a single entry is known to be the one that counted.
	if entries := b.GetVerificationMaterial().GetTlogEntries(); len(entries) == 1 {
		index := entries[0].GetLogIndex()
		signer.LogIndex = &index
	}
	return signer
}

// refuseKeyless returns the library's reason as a refusal, in cosign's words if no identity matches.
func refuseKeyless(b *bundle.Bundle, err error) error {
	if _, ok := errors.AsType[*sigstore.ErrNoMatchingCertificateIdentity](err); ok {
		return refusal("", "none of the expected identities matched what was in the certificate%s", found(b))
	}
	hint := expiryHint(b)
	return refusal(hint, "%.300v", err)
}

// found returns the identity of a certificate for a message. The certificate was verified before its identity did not match.
func found(b *bundle.Bundle) string {
	c := certificateOf(b)
	if c == nil {
		return ""
	}
	var subjects []string
	subjects = append(subjects, c.EmailAddresses...)
	for _, u := range c.URIs {
		subjects = append(subjects, u.String())
	}
	return fmt.Sprintf(", got subjects %.300q with issuer %.300q", subjects, issuer(c))
}

// issuer returns the OIDC issuer in a Fulcio certificate. The older extension holds the bare text.
func issuer(c *x509.Certificate) string {
	for _, e := range c.Extensions {
		switch e.Id.String() {
		case "1.3.6.1.4.1.57264.1.1":
			return string(e.Value)
		case "1.3.6.1.4.1.57264.1.8":
			if len(e.Value) > 2 {
				return string(e.Value[2:])
			}
		}
	}
	return ""
}

// expiryHint returns a hint for a certificate that was not valid when it was used, or "".
func expiryHint(b *bundle.Bundle) string {
	c := certificateOf(b)
	if c == nil {
		return ""
	}
	for _, e := range b.GetVerificationMaterial().GetTlogEntries() {
		t := time.Unix(e.GetIntegratedTime(), 0).UTC()
		if e.GetIntegratedTime() != 0 && (t.Before(c.NotBefore) || t.After(c.NotAfter)) {
			return fmt.Sprintf("the certificate was valid from %s to %s, and the signature was logged at %s",
				c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339), t.Format(time.RFC3339))
		}
	}
	return ""
}

// A logEntry is the annotation with the promise of the transparency log.
type logEntry struct {
	SignedEntryTimestamp []byte
	Payload              struct {
		Body           string `json:"body"`
		IntegratedTime int64  `json:"integratedTime"`
		LogIndex       int64  `json:"logIndex"`
		LogID          string `json:"logID"`
	}
}

// asBundle converts a classic signature with a certificate to a bundle, which has the same parts.
func (s *classicSignature) asBundle() (*bundle.Bundle, error) {
	block, _ := pem.Decode([]byte(s.annotations[certificateAnnotation]))
	if block == nil {
		return nil, errors.New("the certificate is not PEM")
	}
	material := &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_X509CertificateChain{
			X509CertificateChain: &protocommon.X509CertificateChain{
				Certificates: []*protocommon.X509Certificate{{RawBytes: block.Bytes}},
			},
		},
	}
	sum := godigest.FromBytes(s.payload)
	entry, err := s.logEntry(sum)
	if err != nil {
		return nil, err
	}
	material.TlogEntries = []*protorekor.TransparencyLogEntry{entry}
	if material.TimestampVerificationData, err = s.timestamp(); err != nil {
		return nil, err
	}
	raw, err := hex.DecodeString(sum.Encoded())
	if err != nil {
		return nil, err
	}
	return bundle.NewBundle(&protobundle.Bundle{
		MediaType:            bundleType + "+json;version=0.1",
		VerificationMaterial: material,
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: raw},
			Signature:     s.signature,
		}},
	})
}

// logEntry parses the log's promise, and compares the logged payload: the library compares the signature and the
// certificate only.
func (s *classicSignature) logEntry(payload digest.Digest) (*protorekor.TransparencyLogEntry, error) {
	text := s.annotations[logAnnotation]
	if text == "" {
		return nil, errors.New("it carries no proof from a transparency log, and none is looked up")
	}
	var e logEntry
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return nil, fmt.Errorf("its log entry: %w", err)
	}
	id, err := hex.DecodeString(e.Payload.LogID)
	if err != nil {
		return nil, fmt.Errorf("its log: %w", err)
	}
	body, err := base64.StdEncoding.DecodeString(e.Payload.Body)
	if err != nil {
		return nil, fmt.Errorf("its log entry: %w", err)
	}
	kind, err := checkLogged(body, payload)
	if err != nil {
		return nil, err
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex:          e.Payload.LogIndex,
		LogId:             &protocommon.LogId{KeyId: id},
		KindVersion:       kind,
		IntegratedTime:    e.Payload.IntegratedTime,
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: e.SignedEntryTimestamp},
		CanonicalizedBody: body,
	}, nil
}

func checkLogged(body []byte, payload digest.Digest) (*protorekor.KindVersion, error) {
	var logged struct {
		Version string `json:"apiVersion"`
		Kind    string `json:"kind"`
		Spec    struct {
			Data struct {
				Hash struct {
					Algorithm string `json:"algorithm"`
					Value     string `json:"value"`
				} `json:"hash"`
			} `json:"data"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(body, &logged); err != nil {
		return nil, fmt.Errorf("its log entry: %w", err)
	}
	hash := logged.Spec.Data.Hash
	if logged.Kind != "hashedrekord" || hash.Algorithm+":"+hash.Value != payload.String() {
		return nil, errors.New("its log entry is for other content")
	}
	return &protorekor.KindVersion{Kind: logged.Kind, Version: logged.Version}, nil
}

func (s *classicSignature) timestamp() (*protobundle.TimestampVerificationData, error) {
	text := s.annotations[timestampAnnotation]
	if text == "" {
		return nil, nil
	}
	var t struct{ SignedRFC3161Timestamp []byte }
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return nil, fmt.Errorf("its timestamp: %w", err)
	}
	return &protobundle.TimestampVerificationData{
		Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: t.SignedRFC3161Timestamp}},
	}, nil
}
