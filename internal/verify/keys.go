package verify

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	_ "crypto/sha512" // for signatures with larger keys
	"fmt"
	"github.com/sigstore/sigstore-go/pkg/root"
	sigstore "github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// KeySuffix is the suffix of the names of public keys in a Secret.
const KeySuffix = ".pub"

// CosignKeys returns the public keys in the data of the Secret of that name. The error is a [*SettingsError].
func CosignKeys(secret string, data map[string][]byte) (map[string][]byte, error) {
	keys := maps.Clone(data)
	maps.DeleteFunc(keys, func(name string, _ []byte) bool { return !strings.HasSuffix(name, KeySuffix) })
	if len(keys) > 0 {
		return keys, nil
	}
	return nil, unusable(keyHint(data), fmt.Sprintf("no public keys found in secret '%s'", secret), nil)
}

func keyHint(data map[string][]byte) string {
	for _, name := range sortedNames(data) {
		if PublicKey(name, data[name]) {
			return fmt.Sprintf("%q contains a public key, but only names that end in %s are read", name, KeySuffix)
		}
	}
	return ""
}

// PublicKey reports whether content is a public key that CosignKeys leaves out because of its name.
func PublicKey(name string, content []byte) bool {
	if strings.HasSuffix(name, KeySuffix) {
		return false
	}
	_, err := cryptoutils.UnmarshalPEMToPublicKey(content)
	return err == nil
}

// A publicKey is a key that verifies signatures.
type publicKey struct {
	name      string
	kind      string
	verifiers []signature.Verifier
}

// A keyJudge accepts signatures by one of its keys. It ignores certificates and the transparency log.
type keyJudge []publicKey

func newKeyJudge(keys map[string][]byte) (judge, error) {
	var j keyJudge
	for _, name := range sortedNames(keys) {
		k, err := newPublicKey(name, keys[name])
		if err != nil {
			return nil, err
		}
		j = append(j, k)
	}
	return j, nil
}

func newPublicKey(name string, text []byte) (publicKey, error) {
	refuse := func(err error) (publicKey, error) {
		return publicKey{}, unusable(pemHint(text), fmt.Sprintf("public key '%s' cannot be used", name), err)
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil {
		return refuse(err)
	}
	k := publicKey{name: name, kind: keyKind(key)}
	first, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		return refuse(err)
	}
	k.verifiers = append(k.verifiers, first)
	// cosign hashes with SHA-256 for every key. Later versions use the hash that suits the curve, for bundles.
	if e, ok := key.(*ecdsa.PublicKey); ok && e.Curve.Params().BitSize > 256 {
		second, err := signature.LoadDefaultVerifier(key)
		if err != nil {
			return refuse(err)
		}
		k.verifiers = append(k.verifiers, second)
	}
	return k, nil
}

func pemHint(text []byte) string {
	if bytes.Contains(text, []byte("PRIVATE KEY")) {
		return "this is a private key, and should not be in this Secret: 'cosign public-key' prints the public key"
	}
	return ""
}

const (
	kindECDSA   = "ECDSA"
	kindRSA     = "RSA"
	kindEd25519 = "Ed25519"
)

func keyKind(key crypto.PublicKey) string {
	switch key.(type) {
	case *ecdsa.PublicKey:
		return kindECDSA
	case *rsa.PublicKey:
		return kindRSA
	case ed25519.PublicKey:
		return kindEd25519
	}
	return ""
}

func (j keyJudge) classic(_ context.Context, s *classicSignature) (*Signer, error) {
	for _, k := range j {
		for _, v := range k.verifiers {
			if v.VerifySignature(bytes.NewReader(s.signature), bytes.NewReader(s.payload)) != nil {
				continue
			}
			if err := s.checkClaim(); err != nil {
				return nil, err
			}
			return &Signer{Key: k.name}, nil
		}
	}
	return nil, j.refuse(s.signature, s.annotations[certificateAnnotation] != "")
}

func (j keyJudge) bundle(_ context.Context, b *bundleSignature) (*Signer, error) {
	for _, k := range j {
		if b.signedWith(k, b.claim()) {
			return &Signer{Key: k.name}, nil
		}
		// A signature by a trusted key is genuine, regardless of the claim in it.
		if b.signedWith(k, sigstore.WithoutArtifactUnsafe()) {
			return nil, b.refuseClaim()
		}
	}
	return nil, j.refuse(b.signature(), certificateOf(b.bundle) != nil)
}

// keyMaterial is trust in one key, for every key hint in a bundle, and at any time.
func keyMaterial(v signature.Verifier) root.TrustedMaterial {
	key := root.NewExpiringKey(v, time.Time{}, time.Time{})
	return root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) { return key, nil })
}

func (j keyJudge) refuse(sig []byte, certificate bool) error {
	hint := ""
	kind := signatureKind(sig)
	switch {
	case certificate:
		hint = finding.WithCertificate
	case kind != "" && !slices.ContainsFunc(j, func(k publicKey) bool { return k.kind == kind }):
		hint = fmt.Sprintf("the signature looks as if it was made with a key of type %s, but no key has this type", kind)
	}
	return refusal(hint, "invalid signature: it was not made with %s", j.names())
}

func (j keyJudge) names() string {
	if len(j) == 1 {
		return "key " + j[0].name
	}
	var names []string
	for _, k := range j {
		names = append(names, k.name)
	}
	return "any of the keys " + strings.Join(names, ", ")
}

// signatureKind guesses the type of the key from the form of a signature. It returns "" if it does not know the form.
func signatureKind(sig []byte) string {
	switch {
	case len(sig) == ed25519.SignatureSize:
		return kindEd25519
	case len(sig) >= 256 && len(sig)%64 == 0:
		return kindRSA
	case len(sig) > 8 && len(sig) < 160 && sig[0] == 0x30:
		return kindECDSA
	}
	return ""
}
