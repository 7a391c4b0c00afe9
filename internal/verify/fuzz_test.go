package verify

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// judges returns a judge for a key that has signed nothing, and a judge for a Sigstore that has not been used.
func judges(f *testing.F) []judge {
	f.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	text, err := cryptoutils.MarshalPublicKeyToPEM(key.Public())
	if err != nil {
		f.Fatal(err)
	}
	keyed, err := newKeyJudge(map[string][]byte{"a.pub": text})
	if err != nil {
		f.Fatal(err)
	}
	material, err := ca.NewVirtualSigstore()
	if err != nil {
		f.Fatal(err)
	}
	keyless, err := newKeylessJudge(nil, &Trust{loaded: material})
	if err != nil {
		f.Fatal(err)
	}
	return []judge{keyed, keyless}
}

// refusedOnly checks the rule for both: any input is refused, with a [RefusedError].
func refusedOnly(t *testing.T, signer *Signer, err error) {
	t.Helper()
	var refused *RefusedError
	if signer != nil || !errors.As(err, &refused) {
		t.Fatalf("got %+v, %v", signer, err)
	}
}

const fuzzSubject = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func FuzzBundle(f *testing.F) {
	const start = `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json",`
	f.Add([]byte("null"))
	f.Add([]byte(start + `"dsseEnvelope":{"payload":"bnVsbA==","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AAAA"}]},"verificationMaterial":{"publicKey":{"hint":"x"}}}`))
	f.Add([]byte(start + `"dsseEnvelope":{"signatures":[{}]},"verificationMaterial":{"certificate":{"rawBytes":"MAA="},"tlogEntries":[{"logIndex":"1","logId":{"keyId":"AAAA"},"kindVersion":{"kind":"dsse","version":"0.0.1"},"integratedTime":"1","inclusionProof":{"checkpoint":{"envelope":"x"}},"canonicalizedBody":"e30="}]}}`))
	all := judges(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, j := range all {
			signer, err := guarded(func() (*Signer, error) {
				b, err := newBundle(fuzzSubject, fuzzSubject, content)
				if err != nil {
					return nil, err
				}
				return j.bundle(t.Context(), b)
			})
			refusedOnly(t, signer, err)
		}
	})
}

func FuzzClassic(f *testing.F) {
	f.Add([]byte(`{"critical":{"image":{"docker-manifest-digest":"`+fuzzSubject+`"}}}`), []byte("0"), "", "", "")
	f.Add([]byte("null"), []byte(nil), "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
		`{"SignedEntryTimestamp":"AAAA","Payload":{"body":"e30=","integratedTime":1,"logIndex":1,"logID":"00"}}`, `{"SignedRFC3161Timestamp":"AAAA"}`)
	all := judges(f)
	f.Fuzz(func(t *testing.T, payload, signature []byte, certificate, entry, stamp string) {
		s := &classicSignature{fuzzSubject, payload, signature, map[string]string{
			certificateAnnotation: certificate, logAnnotation: entry, timestampAnnotation: stamp,
		}, fuzzSubject}
		for _, j := range all {
			signer, err := guarded(func() (*Signer, error) { return j.classic(t.Context(), s) })
			refusedOnly(t, signer, err)
		}
	})
}
