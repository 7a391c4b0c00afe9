// Package signing signs charts in a registry as cosign, notation and Helm do, with their libraries. It is for tests, and
// separate from helmtest because those libraries take long to build.
package signing

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	cosignbundle "github.com/sigstore/cosign/v2/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v2/pkg/oci/mutate"
	ociremote "github.com/sigstore/cosign/v2/pkg/oci/remote"
	"github.com/sigstore/cosign/v2/pkg/oci/static"
	"github.com/sigstore/cosign/v2/pkg/types"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	sigstoredsse "github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// A Target is a manifest in a registry.
type Target struct {
	Repository string // host/repository
	Digest     string
	Insecure   bool
	Transport  http.RoundTripper
	// Claim is the digest in the signature, if it differs from Digest.
	Claim string
}

func (t Target) name() (name.Digest, error) {
	var o []name.Option
	if t.Insecure {
		o = append(o, name.Insecure)
	}
	return name.NewDigest(t.Repository+"@"+t.Digest, o...)
}

func (t Target) claim() string {
	if t.Claim != "" {
		return t.Claim
	}
	return t.Digest
}

func (t Target) options() []ociremote.Option {
	return []ociremote.Option{ociremote.WithRemoteOptions(remote.WithTransport(t.Transport))}
}

// A Key signs with a key pair, as `cosign sign --key` does.
type Key struct {
	Public  []byte // PEM
	private crypto.Signer
	signer  signature.Signer
}

// NewKey returns a new key of the type "ecdsa", "ecdsa384", "rsa" or "ed25519".
func NewKey(kind string) (*Key, error) {
	private, err := newPrivateKey(kind)
	if err != nil {
		return nil, err
	}
	return newKey(private)
}

func newKey(private crypto.Signer) (*Key, error) {
	k := &Key{private: private}
	var err error
	if k.Public, err = cryptoutils.MarshalPublicKeyToPEM(private.Public()); err != nil {
		return nil, err
	}
	k.signer, err = signature.LoadSigner(private, crypto.SHA256)
	return k, err
}

func newPrivateKey(kind string) (crypto.Signer, error) {
	switch kind {
	case "ecdsa":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ecdsa384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "rsa":
		return rsa.GenerateKey(rand.Reader, 2048)
	case "ed25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("no keys of type %q", kind)
}

// Sign adds a classic signature to the manifest under the target's .sig tag.
func (k *Key) Sign(t Target) error {
	text, sig, err := k.signClaim(t)
	if err != nil {
		return err
	}
	return t.attach(text, sig)
}

// signClaim returns a classic payload and its signature.
func (k *Key) signClaim(t Target) (text, sig []byte, err error) {
	claimed, err := Target{Repository: t.Repository, Digest: t.claim(), Insecure: t.Insecure}.name()
	if err != nil {
		return nil, nil, err
	}
	if text, err = (payload.Cosign{Image: claimed}).MarshalJSON(); err != nil {
		return nil, nil, err
	}
	sig, err = k.signer.SignMessage(bytes.NewReader(text))
	return text, sig, err
}

// attach attaches a signature to the manifest, as cosign does.
func (t Target) attach(text, sig []byte, o ...static.Option) error {
	ref, err := t.name()
	if err != nil {
		return err
	}
	s, err := static.NewSignature(text, base64.StdEncoding.EncodeToString(sig), o...)
	if err != nil {
		return err
	}
	entity, err := ociremote.SignedEntity(ref, t.options()...)
	if err != nil {
		return err
	}
	if entity, err = mutate.AttachSignatureToEntity(entity, s); err != nil {
		return err
	}
	return ociremote.WriteSignatures(ref.Repository, entity, t.options()...)
}

// SignBundle adds a sigstore bundle that refers to the target, without a log entry.
func (k *Key) SignBundle(t Target) error {
	statement, envelope, err := k.signStatement(t)
	if err != nil {
		return err
	}
	b, err := cosignbundle.MakeNewBundle(k.private.Public(), nil, statement, envelope, k.Public, nil)
	if err != nil {
		return err
	}
	return t.attachBundle(b)
}

// signStatement returns the statement that cosign signs, and the envelope with the signature.
func (k *Key) signStatement(t Target) (statement, envelope []byte, err error) {
	algorithm, sum, _ := strings.Cut(t.claim(), ":")
	statement, err = json.Marshal(map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []any{map[string]any{"digest": map[string]string{algorithm: sum}}},
		"predicateType": types.CosignSignPredicateType,
		"predicate":     map[string]any{},
	})
	if err != nil {
		return nil, nil, err
	}
	envelope, err = sigstoredsse.WrapSigner(k.signer, types.IntotoPayloadType).SignMessage(bytes.NewReader(statement))
	return statement, envelope, err
}

func (t Target) attachBundle(b []byte) error {
	ref, err := t.name()
	if err != nil {
		return err
	}
	return ociremote.WriteAttestationNewBundleFormat(ref, b, types.CosignSignPredicateType, t.options()...)
}

// envelopeSignature returns the only signature of an envelope.
func envelopeSignature(envelope []byte) ([]byte, error) {
	var e dsse.Envelope
	if err := json.Unmarshal(envelope, &e); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(e.Signatures[0].Sig)
}
