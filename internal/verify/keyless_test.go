package verify_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/helmtest/signing"
	"github.com/helmsrc/helmsrc/internal/verify"
)

const (
	subject = "https://github.com/org/app/.github/workflows/release.yaml@refs/tags/1.0.0"
	issuer  = "https://token.actions.githubusercontent.com"
)

func good() signing.Keyless { return signing.Keyless{Subject: subject, Issuer: issuer} }

func newSigstore(t *testing.T) (*signing.Sigstore, *verify.Trust) {
	t.Helper()
	s, err := signing.NewSigstore()
	must(t, err)
	return s, trustIn(t, s)
}

func trustIn(t *testing.T, s *signing.Sigstore) *verify.Trust {
	t.Helper()
	text, err := s.TrustedRoot()
	must(t, err)
	trust, err := verify.TrustedRoot(text)
	must(t, err)
	return trust
}

var keylessSignings = map[string]func(*signing.Sigstore, signing.Target, signing.Keyless) error{
	verify.FormatClassic: (*signing.Sigstore).Sign,
	verify.FormatBundle:  (*signing.Sigstore).SignBundle,
}

// eachKeyless signs a chart in each form, and verifies it offline.
func eachKeyless(t *testing.T, k signing.Keyless, test func(*testing.T, func(...verify.Identity) (*verify.Signer, error), string)) {
	for form, sign := range keylessSignings {
		t.Run(form, func(t *testing.T) {
			s, trust := newSigstore(t)
			p := newWorld(t, "ggcr")
			must(t, sign(s, p.target(), k))
			test(t, func(ids ...verify.Identity) (*verify.Signer, error) {
				return verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Identities: ids, Trust: trust})
			}, form)
		})
	}
}

var (
	right        = verify.Identity{Issuer: "^" + issuer + "$", Subject: "^https://github.com/org/app/"}
	wrongIssuer  = verify.Identity{Issuer: "^https://accounts.example.com$", Subject: ".*"}
	wrongSubject = verify.Identity{Issuer: "^" + issuer + "$", Subject: "^https://github.com/other/"}
)

// §12 case 62: matchers of identities.
func TestKeyless(t *testing.T) {
	eachKeyless(t, good(), func(t *testing.T, check func(...verify.Identity) (*verify.Signer, error), form string) {
		for name, ids := range map[string][]verify.Identity{
			"no identities":        nil,
			"issuer and subject":   {right},
			"one wrong, one right": {wrongSubject, right},
			"subject alone":        {{Subject: "app"}},
		} {
			got, err := check(ids...)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got.Identity != subject || got.Issuer != issuer || got.Format != form || got.Key != "" {
				t.Errorf("%s: got %+v", name, got)
			}
			if got.LogIndex == nil || time.Since(got.Time) > time.Hour || got.Time.IsZero() {
				t.Errorf("%s: log index %v, time %v", name, got.LogIndex, got.Time)
			}
		}
		for name, ids := range map[string][]verify.Identity{
			"wrong issuer":        {wrongIssuer},
			"wrong subject":       {wrongSubject},
			"halves of two":       {{Issuer: wrongIssuer.Issuer, Subject: right.Subject}, {Issuer: right.Issuer, Subject: wrongSubject.Subject}},
			"nothing like either": {wrongIssuer, wrongSubject},
		} {
			_, err := check(ids...)
			if err == nil {
				t.Fatalf("%s: accepted", name)
			}
			refused(t, err, "no matching signatures: none of the expected identities matched what was in the certificate")
			if !strings.Contains(err.Error(), subject) {
				t.Errorf("%s: the error does not tell who signed: %v", name, err)
			}
		}
		_, err := check(verify.Identity{Issuer: "(", Subject: ".*"})
		var settings *verify.SettingsError
		if !errors.As(err, &settings) {
			t.Errorf("invalid regexp: %v", err)
		}
	})
}

// §12 case 62: unsigned. The verdict needs no trust root.
func TestKeylessUnsigned(t *testing.T) {
	_, trust := newSigstore(t)
	p := newWorld(t, "ggcr")
	_, err := verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Trust: trust})
	refused(t, err, "no signatures found")
}

// A timestamp authority's time is as good as the log's.
func TestKeylessTimestamp(t *testing.T) {
	k := good()
	k.Timestamp = true
	eachKeyless(t, k, func(t *testing.T, check func(...verify.Identity) (*verify.Signer, error), _ string) {
		_, err := check(right)
		must(t, err)
	})
	t.Run("alone", func(t *testing.T) {
		s, trust := newSigstore(t)
		p := newWorld(t, "ggcr")
		k.NoPromise = true
		must(t, s.SignBundle(p.target(), k))
		_, err := verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Trust: trust})
		must(t, err)
	})
}

func TestKeylessAttacks(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*signing.Keyless)
		want   string
	}{
		"missing SCT":                   {func(k *signing.Keyless) { k.NoSCT = true }, "SCT"},
		"missing log proof":             {func(k *signing.Keyless) { k.NoLog = true }, "log"},
		"log that nobody knows":         {func(k *signing.Keyless) { k.OtherLog = true }, "not enough verified log entries"},
		"logged after the certificate":  {func(k *signing.Keyless) { k.LoggedAfter = 20 * time.Minute }, "validity"},
		"logged before the certificate": {func(k *signing.Keyless) { k.LoggedAfter = -20 * time.Minute }, "validity"},
	} {
		t.Run(name, func(t *testing.T) {
			k := good()
			test.change(&k)
			eachKeyless(t, k, func(t *testing.T, check func(...verify.Identity) (*verify.Signer, error), _ string) {
				_, err := check()
				refused(t, err, "no matching signatures: ")
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q in it", err, test.want)
				}
				if k.LoggedAfter != 0 && !strings.Contains(hint(err), "the certificate was valid from") {
					t.Errorf("hint: %q", hint(err))
				}
			})
		})
	}
	t.Run("logged something else", func(t *testing.T) {
		s, trust := newSigstore(t)
		p := newWorld(t, "ggcr")
		k := good()
		k.LogOther = true
		must(t, s.Sign(p.target(), k))
		_, err := verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Trust: trust})
		refused(t, err, "log entry is for other content")
	})
	for form, sign := range keylessSignings {
		t.Run("another Sigstore, "+form, func(t *testing.T) {
			s, _ := newSigstore(t)
			_, trust := newSigstore(t)
			p := newWorld(t, "ggcr")
			must(t, sign(s, p.target(), good()))
			_, err := verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Trust: trust})
			refused(t, err, "no matching signatures: ")
		})
		t.Run("copied, "+form, func(t *testing.T) {
			s, trust := newSigstore(t)
			p := newWorld(t, "ggcr")
			copied := p.target()
			copied.Claim = p.push("2.0.0").Digest.String()
			must(t, sign(s, copied, good()))
			_, err := verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Trust: trust})
			refused(t, err, "no matching signatures: ")
		})
	}
}

// A signature by a key is not a keyless signature, and the hints name its kind.
func TestKeyOrKeyless(t *testing.T) {
	for form, sign := range keylessSignings {
		s, trust := newSigstore(t)
		p := newWorld(t, "ggcr")
		must(t, sign(s, p.target(), good()))
		_, err := verify.Cosign(timeout(t), p.subject, withKeys(newKey(t, "ecdsa")))
		refused(t, err, "not made with key a.pub")
		if !strings.Contains(hint(err), "keyless") {
			t.Errorf("%s: hint %q", form, hint(err))
		}
		p = newWorld(t, "ggcr")
		must(t, signings[form](newKey(t, "ecdsa"), p.target()))
		_, err = verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Trust: trust})
		refused(t, err, "no certificate found on signature")
		if !strings.Contains(hint(err), "made with a key") {
			t.Errorf("%s: hint %q", form, hint(err))
		}
	}
}

func TestTrustedRoot(t *testing.T) {
	for _, text := range []string{"", "{}", "null", "[]", `{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1","tlogs":[{}]}`} {
		_, err := verify.TrustedRoot([]byte(text))
		var settings *verify.SettingsError
		if !errors.As(err, &settings) || !strings.HasPrefix(err.Error(), "unable to parse trusted root: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err := verify.Cosign(timeout(t), newWorld(t, "ggcr").subject, verify.CosignOptions{})
	var settings *verify.SettingsError
	if !errors.As(err, &settings) {
		t.Errorf("neither keys nor trust: %v", err)
	}
}
