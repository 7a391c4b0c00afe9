package signing

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/go-openapi/strfmt"
	cosignbundle "github.com/sigstore/cosign/v2/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v2/pkg/oci/static"
	"github.com/sigstore/rekor/pkg/generated/models"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// Keyless holds the options of a signature with a certificate. With Subject and Issuer alone the signature is valid.
type Keyless struct {
	Subject, Issuer string
	// NoSCT omits the promise of the certificate log from the certificate.
	NoSCT bool
	// NoLog omits the entry in the transparency log.
	NoLog bool
	// OtherLog logs the signature in an unknown log.
	OtherLog bool
	// LoggedAfter is the time between the signature, whose certificate is valid for ten minutes, and its log entry.
	LoggedAfter time.Duration
	// Timestamp adds a timestamp of the authority. With it, NoPromise leaves the log only its proof, which has no time.
	Timestamp, NoPromise bool
	// LogOther logs another payload.
	LogOther bool
}

func (k Keyless) issued() time.Time { return time.Now().Add(-time.Minute).Truncate(time.Second) }

// keyless is a key with its certificate.
type keyless struct {
	*Key
	certificate []byte // PEM
}

func (s *Sigstore) keyless(k Keyless) (*keyless, error) {
	key, err := NewKey("ecdsa")
	if err != nil {
		return nil, err
	}
	c, err := s.certificate(key.private.Public(), k)
	if err != nil {
		return nil, err
	}
	text, err := cryptoutils.MarshalCertificateToPEM(c)
	return &keyless{key, text}, err
}

// Sign adds a classic signature with a certificate to the manifest under the target's .sig tag.
func (s *Sigstore) Sign(t Target, k Keyless) error {
	key, err := s.keyless(k)
	if err != nil {
		return err
	}
	text, sig, err := key.signClaim(t)
	if err != nil {
		return err
	}
	chain, err := cryptoutils.MarshalCertificateToPEM(s.intermediate)
	if err != nil {
		return err
	}
	options := []static.Option{static.WithCertChain(key.certificate, chain)}
	if !k.NoLog {
		logged := text
		if k.LogOther {
			logged = []byte("something else")
		}
		e, err := s.logged(hashedRecord(logged, sig, key.certificate), k)
		if err != nil {
			return err
		}
		options = append(options, static.WithBundle(cosignbundle.EntryToBundle(e)))
	}
	if k.Timestamp {
		stamp, err := s.rekor.TimestampResponse(sig)
		if err != nil {
			return err
		}
		options = append(options, static.WithRFC3161Timestamp(cosignbundle.TimestampToRFC3161Timestamp(stamp)))
	}
	return t.attach(text, sig, options...)
}

// SignBundle adds a sigstore bundle with a certificate that refers to the target.
func (s *Sigstore) SignBundle(t Target, k Keyless) error {
	key, err := s.keyless(k)
	if err != nil {
		return err
	}
	statement, envelope, err := key.signStatement(t)
	if err != nil {
		return err
	}
	sig, err := envelopeSignature(envelope)
	if err != nil {
		return err
	}
	var entry *models.LogEntryAnon
	if !k.NoLog {
		if entry, err = s.logged(dsseRecord(envelope, statement, sig, key.certificate), k); err != nil {
			return err
		}
	}
	var stamp []byte
	if k.Timestamp {
		if stamp, err = s.rekor.TimestampResponse(sig); err != nil {
			return err
		}
	}
	b, err := cosignbundle.MakeNewBundle(key.private.Public(), entry, statement, envelope, key.certificate, stamp)
	if err != nil {
		return err
	}
	return t.attachBundle(b)
}

// hashedRecord returns Rekor's record of a signature.
func hashedRecord(text, sig, certificate []byte) map[string]any {
	return map[string]any{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": map[string]any{
		"data":      map[string]any{"hash": sha256Of(text)},
		"signature": map[string]any{"content": sig, "publicKey": map[string]any{"content": certificate}},
	}}
}

// dsseRecord returns Rekor's record of a signed envelope.
func dsseRecord(envelope, statement, sig, certificate []byte) map[string]any {
	return map[string]any{"apiVersion": "0.0.1", "kind": "dsse", "spec": map[string]any{
		"envelopeHash": sha256Of(envelope),
		"payloadHash":  sha256Of(statement),
		"signatures":   []any{map[string]any{"signature": sig, "verifier": certificate}},
	}}
}

func sha256Of(b []byte) map[string]any {
	sum := sha256.Sum256(b)
	return map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(sum[:])}
}

// logged returns Rekor's answer to an entry: its index, the time, a promise and a proof.
func (s *Sigstore) logged(record map[string]any, k Keyless) (*models.LogEntryAnon, error) {
	rekor := s.rekor
	if k.OtherLog {
		other, err := NewSigstore()
		if err != nil {
			return nil, err
		}
		rekor = other.rekor
	}
	body, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	id, err := rekor.RekorLogID()
	if err != nil {
		return nil, err
	}
	p := tlog.RekorPayload{
		Body:           base64.StdEncoding.EncodeToString(body),
		IntegratedTime: k.issued().Add(time.Second + k.LoggedAfter).Unix(),
		LogID:          id,
	}
	signed, err := rekor.RekorSignPayload(p)
	if err != nil {
		return nil, err
	}
	proof, err := rekor.GetInclusionProof(body)
	if err != nil {
		return nil, err
	}
	e := &models.LogEntryAnon{
		Body: p.Body, IntegratedTime: &p.IntegratedTime, LogIndex: &p.LogIndex, LogID: &p.LogID,
		Verification: &models.LogEntryAnonVerification{SignedEntryTimestamp: strfmt.Base64(signed), InclusionProof: proof},
	}
	if k.NoPromise {
		e.Verification.SignedEntryTimestamp = nil
		*e.IntegratedTime = 0
	}
	return e, nil
}
