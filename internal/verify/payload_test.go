package verify_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"testing"

	"github.com/helmsrc/helmsrc/internal/verify"
)

// A good signature of something that is no claim about an artifact.
func TestSignedGarbage(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	must(t, err)
	keys := map[string][]byte{"a.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})}
	for payload, want := range map[string]string{"garbage": "signed payload sha256:", "{}": `the signature is for digest ""`, "[]": "signed payload sha256:"} {
		p := newWorld(t, "ggcr")
		sum := sha256.Sum256([]byte(payload))
		signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
		must(t, err)
		p.serveClassic(payload, map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)})
		_, err = verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Keys: keys})
		refused(t, err, "no matching signatures: "+want)
	}
}
