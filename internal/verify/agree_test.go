package verify_test

import (
	"crypto"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/sigstore/cosign/v2/pkg/cosign"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/helmsrc/helmsrc/internal/helmtest/signing"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// cosignSays is the verdict of cosign's own library, with the settings of source-controller.
func cosignSays(t *testing.T, s verify.Subject, form string, o cosign.CheckOpts) error {
	t.Helper()
	ref, err := name.NewDigest(s.Ref(), name.Insecure)
	must(t, err)
	o.Offline = true
	if form == verify.FormatBundle {
		o.NewBundleFormat = true
		o.ClaimVerifier = cosign.IntotoSubjectClaimVerifier
		_, _, err = cosign.VerifyImageAttestations(timeout(t), ref, &o)
		return err
	}
	o.ClaimVerifier = cosign.SimpleClaimVerifier
	_, _, err = cosign.VerifyImageSignatures(timeout(t), ref, &o)
	return err
}

// The verdicts here are those of cosign, which is not part of the program: it would add its registry client, a client of
// the transparency log and a second client of TUF, and reads without limits.
func TestAgreesWithCosignOnKeys(t *testing.T) {
	for _, algorithm := range []string{"ecdsa", "ecdsa384", "rsa", "ed25519"} {
		each(t, func(p *world, sign func(*signing.Key, signing.Target) error, form string) {
			right, wrong := newKey(p.T, algorithm), newKey(p.T, algorithm)
			copied := p.push("2.0.0")
			moved := target(copied)
			moved.Claim = p.subject.Digest.String()
			must(p.T, sign(right, p.target()))
			must(p.T, sign(right, moved))
			for _, s := range []verify.Subject{p.subject, copied, p.push("3.0.0")} {
				for _, k := range []*signing.Key{right, wrong} {
					key, err := cryptoutils.UnmarshalPEMToPublicKey(k.Public)
					must(p.T, err)
					v, err := signature.LoadVerifier(key, crypto.SHA256)
					must(p.T, err)
					theirs := cosignSays(p.T, s, form, cosign.CheckOpts{SigVerifier: v, IgnoreTlog: true, TrustedMaterial: &root.BaseTrustedMaterial{}})
					_, ours := verify.Cosign(timeout(p.T), s, withKeys(k))
					if (theirs == nil) != (ours == nil) {
						p.Errorf("%s: cosign says %v, and here it is %v", algorithm, theirs, ours)
					}
				}
			}
		})
	}
}

func TestAgreesWithCosignKeyless(t *testing.T) {
	for what, change := range map[string]func(*signing.Keyless){
		"good":           func(*signing.Keyless) {},
		"stamped":        func(k *signing.Keyless) { k.Timestamp = true },
		"no SCT":         func(k *signing.Keyless) { k.NoSCT = true },
		"no log":         func(k *signing.Keyless) { k.NoLog = true },
		"other log":      func(k *signing.Keyless) { k.OtherLog = true },
		"late":           func(k *signing.Keyless) { k.LoggedAfter = time.Hour },
		"other identity": func(k *signing.Keyless) { k.Subject = "somebody@example.com" },
		"other issuer":   func(k *signing.Keyless) { k.Issuer = "https://accounts.example.com" },
	} {
		for form, sign := range keylessSignings {
			t.Run(what+" "+form, func(t *testing.T) {
				s, err := signing.NewSigstore()
				must(t, err)
				text, err := s.TrustedRoot()
				must(t, err)
				material, err := root.NewTrustedRootFromJSON(text)
				must(t, err)
				p := newWorld(t, "ggcr")
				k := good()
				change(&k)
				must(t, sign(s, p.target(), k))
				theirs := cosignSays(t, p.subject, form, cosign.CheckOpts{
					TrustedMaterial: material,
					Identities:      []cosign.Identity{{IssuerRegExp: right.Issuer, SubjectRegExp: right.Subject}},
				})
				_, ours := verify.Cosign(timeout(t), p.subject, verify.CosignOptions{
					Identities: []verify.Identity{right}, Trust: trustIn(t, s),
				})
				if (theirs == nil) != (ours == nil) {
					t.Errorf("cosign says %v, and here it is %v", theirs, ours)
				}
				if good := what == "good" || what == "stamped"; good != (ours == nil) {
					t.Errorf("got %v", ours)
				}
			})
		}
	}
}
