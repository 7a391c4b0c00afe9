package verify_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/helmtest/signing"
	"github.com/helmsrc/helmsrc/internal/verify"
)

func newAuthority(t *testing.T, name string) *signing.Authority {
	t.Helper()
	a, err := signing.NewAuthority(name)
	must(t, err)
	return a
}

func issue(t *testing.T, a *signing.Authority, ocsp string) *signing.Notary {
	t.Helper()
	n, err := a.Issue("signer", time.Now().Add(-time.Hour), 30, ocsp)
	must(t, err)
	return n
}

// policy is a trust policy of one level, for all that is in the registry.
func policy(level string) []byte {
	return fmt.Appendf(nil, `{"version":"1.0","trustPolicies":[{"name":"charts","registryScopes":["*"],
		"signatureVerification":{"level":%q},"trustStores":["ca:charts"],"trustedIdentities":["*"]}]}`, level)
}

func trusting(level string, certificates ...[]byte) verify.NotationOptions {
	o := verify.NotationOptions{Policy: policy(level), Certificates: map[string][]byte{}, Transport: http.DefaultTransport}
	for i, c := range certificates {
		o.Certificates[fmt.Sprintf("%c.crt", 'a'+i)] = c
	}
	return o
}

// §12 case 63: signed, with one certificate or several.
func TestNotation(t *testing.T) {
	for _, kind := range kinds {
		for _, form := range []string{signing.JWS, signing.COSE} {
			t.Run(kind+" "+form, func(t *testing.T) {
				p := newWorld(t, kind)
				a := newAuthority(t, "root")
				must(t, issue(t, a, "").Sign(t.Context(), p.target(), form))
				for _, certificates := range [][][]byte{
					{a.Certificate},
					{newAuthority(t, "other").Certificate, a.Certificate},
				} {
					got, err := verify.Notation(timeout(t), p.subject, trusting("strict", certificates...))
					must(t, err)
					if got.Identity != "CN=signer,O=Test,ST=Test,C=XX" || got.Issuer != "CN=root,O=Test,ST=Test,C=XX" || got.Format != verify.FormatNotation {
						t.Errorf("got %+v", got)
					}
					if got.Time.IsZero() || len(got.Warnings) > 0 {
						t.Errorf("got %+v", got)
					}
				}
			})
		}
	}
}

// §12 case 63: unsigned.
func TestNotationUnsigned(t *testing.T) {
	for _, kind := range kinds {
		p := newWorld(t, kind)
		a := newAuthority(t, "root")
		for _, level := range []string{"strict", "permissive", "audit"} {
			_, err := verify.Notation(timeout(t), p.subject, trusting(level, a.Certificate))
			refused(t, err, `no signature is associated with "`+p.subject.Ref())
		}
		got, err := verify.Notation(timeout(t), p.subject, trusting("skip", a.Certificate))
		if got != nil || err != nil {
			t.Errorf("skip: %v, %v", got, err)
		}
	}
}

// The result of each level for an untrusted root.
func TestNotationUntrusted(t *testing.T) {
	p := newWorld(t, "ggcr")
	must(t, issue(t, newAuthority(t, "evil"), "").Sign(t.Context(), p.target(), signing.JWS))
	root := newAuthority(t, "root").Certificate
	for _, level := range []string{"strict", "permissive"} {
		_, err := verify.Notation(timeout(t), p.subject, trusting(level, root))
		refused(t, err, "failed to verify signature with digest sha256:")
		if !strings.Contains(hint(err), "CN=evil") {
			t.Errorf("hint: %q", hint(err))
		}
	}
	for _, level := range []string{"audit", "skip"} {
		got, err := verify.Notation(timeout(t), p.subject, trusting(level, root))
		if got != nil || err != nil {
			t.Errorf("%s: %v, %v", level, got, err)
		}
	}
}

func TestNotationIdentity(t *testing.T) {
	p := newWorld(t, "ggcr")
	a := newAuthority(t, "root")
	must(t, issue(t, a, "").Sign(t.Context(), p.target(), signing.JWS))
	o := trusting("strict", a.Certificate)
	o.Policy = []byte(strings.Replace(string(o.Policy), `"trustedIdentities":["*"]`, `"trustedIdentities":["x509.subject: C=XX, ST=Test, O=Test, CN=signer"]`, 1))
	_, err := verify.Notation(timeout(t), p.subject, o)
	must(t, err)
	o.Policy = []byte(strings.Replace(string(o.Policy), "CN=signer", "CN=somebody", 1))
	_, err = verify.Notation(timeout(t), p.subject, o)
	refused(t, err, "failed to verify signature")
}

// Expired certificates and signatures: strict refuses, permissive records.
func TestNotationExpired(t *testing.T) {
	past := time.Now().AddDate(0, 0, -20)
	for name, test := range map[string]struct {
		days   int
		expiry time.Time
		hint   string
	}{
		"certificate": {10, time.Time{}, `the certificate of "CN=signer`},
		"signature":   {30, past.AddDate(0, 0, 5), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newWorld(t, "ggcr")
			a := newAuthority(t, "root")
			n, err := a.Issue("signer", past.AddDate(0, 0, -1), test.days, "")
			must(t, err)
			must(t, n.SignAt(t.Context(), p.target(), signing.JWS, past, test.expiry))
			_, err = verify.Notation(timeout(t), p.subject, trusting("strict", a.Certificate))
			refused(t, err, "failed to verify signature with digest sha256:")
			if !strings.Contains(hint(err), test.hint) {
				t.Errorf("hint: %q", hint(err))
			}
			got, err := verify.Notation(timeout(t), p.subject, trusting("permissive", a.Certificate))
			must(t, err)
			if len(got.Warnings) != 1 || !strings.HasPrefix(got.Warnings[0], "verification check for type '") {
				t.Errorf("warnings: %q", got.Warnings)
			}
		})
	}
}

func TestNotationRevoked(t *testing.T) {
	a := newAuthority(t, "root")
	up := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		a.OCSP().ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p := newWorld(t, "ggcr")
	n := issue(t, a, server.URL)
	must(t, n.Sign(t.Context(), p.target(), signing.JWS))
	check := func(level string) (*verify.Signer, error) {
		return verify.Notation(timeout(t), p.subject, trusting(level, a.Certificate))
	}
	_, err := check("strict")
	must(t, err)

	up = false
	_, err = check("strict")
	undecided(t, err)
	if !transient(err) {
		t.Errorf("%v is not transient", err)
	}
	got, err := check("permissive")
	must(t, err)
	if len(got.Warnings) != 1 {
		t.Errorf("warnings: %q", got.Warnings)
	}

	up = true
	n.Revoke()
	_, err = check("strict")
	refused(t, err, "revoked")

	offline := trusting("strict", a.Certificate)
	offline.Transport = nil
	_, err = verify.Notation(timeout(t), p.subject, offline)
	if err == nil || transient(err) {
		t.Errorf("without a way to ask: %v", err)
	}
}

// A signature of another digest, under this digest's name. No level but skip lets it pass.
func TestNotationCopied(t *testing.T) {
	p := newWorld(t, "ggcr")
	a := newAuthority(t, "root")
	copied := p.target()
	copied.Claim = p.push("2.0.0").Digest.String()
	must(t, issue(t, a, "").Sign(t.Context(), copied, signing.JWS))
	for _, level := range []string{"strict", "permissive", "audit"} {
		_, err := verify.Notation(timeout(t), p.subject, trusting(level, a.Certificate))
		refused(t, err, "mismatch")
		if !strings.Contains(hint(err), "copied") {
			t.Errorf("%s: hint: %q", level, hint(err))
		}
	}
}

func TestNotationSeveral(t *testing.T) {
	p := newWorld(t, "distribution")
	a, evil := newAuthority(t, "root"), newAuthority(t, "evil")
	for _, by := range []*signing.Authority{evil, evil, a} {
		must(t, issue(t, by, "").Sign(t.Context(), p.target(), signing.JWS))
	}
	_, err := verify.Notation(timeout(t), p.subject, trusting("strict", a.Certificate))
	must(t, err)
	must(t, issue(t, evil, "").Sign(t.Context(), p.target(), signing.JWS))
	_, err = verify.Notation(timeout(t), p.subject, trusting("strict", newAuthority(t, "other").Certificate))
	refused(t, err, "more than the limit of 3")
}

// A signature is one envelope. A manifest without an envelope, or with a second one, never passes.
func TestNotationEnvelopes(t *testing.T) {
	const kind = "application/vnd.cncf.notary.signature"
	envelope := map[string]any{"mediaType": signing.JWS, "digest": sha256Of("{}"), "size": 2}
	for _, n := range []int{0, 2, 50, 51} {
		p := newWorld(t, "ggcr")
		content := manifest("layers", slices.Repeat([]any{envelope}, n))
		index := manifest("manifests", []any{map[string]any{
			"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": sha256Of(content), "size": len(content), "artifactType": kind,
		}})
		blobs := 0
		p.intercept(func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case strings.Contains(r.URL.Path, "/referrers/"):
				w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
				_, _ = io.WriteString(w, index)
			case strings.Contains(r.URL.Path, "/blobs/"):
				blobs++
				_, _ = io.WriteString(w, "{}")
			case strings.Contains(r.URL.Path, "/manifests/"+sha256Of(content)):
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				_, _ = io.WriteString(w, content)
			default:
				return false
			}
			return true
		})
		want := fmt.Sprintf("has %d envelopes in place of one", n)
		if n > 50 {
			want = "more than the limit of 50"
		}
		_, err := verify.Notation(timeout(t), p.subject, trusting("audit", newAuthority(t, "root").Certificate))
		refused(t, err, want)
		if blobs > 0 {
			t.Errorf("%d envelopes: %d were fetched", n, blobs)
		}
	}
}

func TestNotationFailures(t *testing.T) {
	a := newAuthority(t, "root")
	for _, path := range []string{"/referrers/", "/manifests/sha256:", "/blobs/"} {
		p := newWorld(t, "ggcr")
		must(t, issue(t, a, "").Sign(t.Context(), p.target(), signing.JWS))
		p.on(path, status(http.StatusServiceUnavailable))
		_, err := verify.Notation(timeout(t), p.subject, trusting("audit", a.Certificate))
		undecided(t, err)
		if !transient(err) {
			t.Errorf("%s: %v is not transient", path, err)
		}
		p.on("/blobs/", func(w http.ResponseWriter, _ *http.Request) { endless(w) })
		_, err = verify.Notation(timeout(t), p.subject, trusting("audit", a.Certificate))
		refused(t, err, "exceeds the limit of 1048576 bytes")
		p.on("/manifests/sha256:", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
		_, err = verify.Notation(timeout(t), p.subject, trusting("audit", a.Certificate))
		refused(t, err, "has the wrong content")
	}
}

// §12 case 63: no policy, no certificates.
func TestNotationSecret(t *testing.T) {
	certificate := newAuthority(t, "root").Certificate
	for name, test := range map[string]struct {
		data       map[string][]byte
		want, hint string
	}{
		"no policy":        {map[string][]byte{"a.crt": certificate}, "'trustpolicy.json' not found in secret 'apps/notation'", "trustpolicy.json"},
		"no certificates":  {map[string][]byte{"trustpolicy.json": policy("strict")}, "no certificates found in secret 'apps/notation'", ""},
		"with other names": {map[string][]byte{"trustpolicy.json": policy("strict"), "ca": certificate}, "no certificates found in secret 'apps/notation'", `"ca" contains a certificate`},
		"both":             {map[string][]byte{"trustpolicy.json": policy("strict"), "a.crt": certificate, "b.pem": certificate, "c.txt": nil}, "", ""},
	} {
		_, certificates, err := verify.NotationSecret("apps/notation", test.data)
		var settings *verify.SettingsError
		switch {
		case test.want == "":
			must(t, err)
			if len(certificates) != 2 {
				t.Errorf("%s: %d certificates", name, len(certificates))
			}
		case !errors.As(err, &settings) || err.Error() != test.want || !strings.Contains(hint(err), test.hint):
			t.Errorf("%s: got %v, hint %q", name, err, hint(err))
		}
	}
}

func TestNotationPolicy(t *testing.T) {
	p := newWorld(t, "ggcr")
	for text, want := range map[string]string{
		"garbage":                              "error occurred while parsing trustpolicy.json: ",
		"null":                                 "the trust policy cannot be used: ",
		`{"version":"1.0","trustPolicies":[]}`: "the trust policy cannot be used: ",
		strings.Replace(string(policy("strict")), "strict", "x", 1): "the trust policy cannot be used: ",
	} {
		_, err := verify.Notation(timeout(t), p.subject, verify.NotationOptions{Policy: []byte(text), Certificates: trusting("strict", newAuthority(t, "root").Certificate).Certificates})
		var settings *verify.SettingsError
		if !errors.As(err, &settings) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	o := trusting("strict", slices.Concat([]byte("note\n"), newAuthority(t, "root").Certificate))
	o.Policy = []byte(strings.Replace(string(o.Policy), `"*"`, `"registry.test/charts/other"`, 1))
	_, err := verify.Notation(timeout(t), p.subject, o)
	refused(t, err, "no applicable")
	if !strings.Contains(hint(err), p.subject.Repository) {
		t.Errorf("hint: %q", hint(err))
	}
	_, err = verify.Notation(timeout(t), p.subject, trusting("strict", []byte("garbage")))
	var settings *verify.SettingsError
	if !errors.As(err, &settings) {
		t.Errorf("garbage as certificate: %v", err)
	}
}
