package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/helmtest/signing"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// signings are the ways to sign with a key.
var signings = map[string]func(*signing.Key, signing.Target) error{
	verify.FormatClassic: (*signing.Key).Sign,
	verify.FormatBundle:  (*signing.Key).SignBundle,
}

// each runs a test with each registry and each form of signature.
func each(t *testing.T, test func(*world, func(*signing.Key, signing.Target) error, string)) {
	for _, kind := range kinds {
		for form, sign := range signings {
			t.Run(kind+" "+form, func(t *testing.T) { test(newWorld(t, kind), sign, form) })
		}
	}
}

// §12 case 61: signed with a key.
func TestCosignKey(t *testing.T) {
	for _, algorithm := range []string{"ecdsa", "ecdsa384", "rsa", "ed25519"} {
		t.Run(algorithm, func(t *testing.T) {
			each(t, func(p *world, sign func(*signing.Key, signing.Target) error, form string) {
				key, other := newKey(p.T, algorithm), newKey(p.T, "ecdsa")
				must(p.T, sign(key, p.target()))
				// The first key does not fit, and another type of key is in between.
				got, err := verify.Cosign(timeout(p.T), p.subject, withKeys(other, newKey(p.T, "rsa"), key))
				must(p.T, err)
				if got.Key != "c.pub" || got.Format != form {
					p.Errorf("got %+v", got)
				}
			})
		})
	}
}

// §12 case 61: unsigned.
func TestCosignUnsigned(t *testing.T) {
	for _, kind := range kinds {
		p := newWorld(t, kind)
		_, err := verify.Cosign(timeout(t), p.subject, withKeys(newKey(t, "ecdsa")))
		refused(t, err, "no signatures found")
		if finding.CodeOf(err) != finding.Unsigned {
			t.Errorf("got %T", err)
		}
	}
}

func TestCosignOtherKey(t *testing.T) {
	each(t, func(p *world, sign func(*signing.Key, signing.Target) error, _ string) {
		must(p.T, sign(newKey(p.T, "ecdsa"), p.target()))
		_, err := verify.Cosign(timeout(p.T), p.subject, withKeys(newKey(p.T, "ecdsa"), newKey(p.T, "ecdsa")))
		refused(p.T, err, "no matching signatures: invalid signature: it was not made with any of the keys a.pub, b.pub")
		_, err = verify.Cosign(timeout(p.T), p.subject, withKeys(newKey(p.T, "rsa")))
		refused(p.T, err, "key a.pub")
		if !strings.Contains(hint(err), "key of type ECDSA") {
			p.Errorf("hint: %q", hint(err))
		}
	})
}

// One of several signatures is enough.
func TestCosignSeveral(t *testing.T) {
	each(t, func(p *world, sign func(*signing.Key, signing.Target) error, _ string) {
		key := newKey(p.T, "ecdsa")
		for _, k := range []*signing.Key{newKey(p.T, "ecdsa"), key, newKey(p.T, "rsa")} {
			must(p.T, sign(k, p.target()))
		}
		_, err := verify.Cosign(timeout(p.T), p.subject, withKeys(key))
		must(p.T, err)
	})
}

// A signature of another digest, under this digest's name.
func TestCosignCopied(t *testing.T) {
	each(t, func(p *world, sign func(*signing.Key, signing.Target) error, _ string) {
		key := newKey(p.T, "ecdsa")
		other := p.push("2.0.0")
		copied := p.target()
		copied.Claim = other.Digest.String()
		must(p.T, sign(key, copied))
		_, err := verify.Cosign(timeout(p.T), p.subject, withKeys(key))
		refused(p.T, err, "no matching signatures: the sign")
		if !strings.Contains(hint(err), "copied") {
			p.Errorf("hint: %q", hint(err))
		}
	})
}

// A tag that moves does not change the digest to verify, or the signatures that count.
func TestCosignTagMoved(t *testing.T) {
	each(t, func(p *world, sign func(*signing.Key, signing.Target) error, _ string) {
		key := newKey(p.T, "ecdsa")
		must(p.T, sign(key, p.target()))
		tags := 0
		p.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/manifests/1.0.0") {
				tags++
			}
			return false
		})
		moved := p.push("2.0.0")
		_, err := verify.Cosign(timeout(p.T), moved, withKeys(key))
		refused(p.T, err, "no signatures found")
		_, err = verify.Cosign(timeout(p.T), p.subject, withKeys(key))
		must(p.T, err)
		if tags > 0 {
			p.Errorf("the tag was asked for %d times", tags)
		}
	})
}

// The registry serves other content under a digest.
func TestCosignOtherBytes(t *testing.T) {
	each(t, func(p *world, sign func(*signing.Key, signing.Target) error, form string) {
		key := newKey(p.T, "ecdsa")
		must(p.T, sign(key, p.target()))
		p.on("/blobs/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
		_, err := verify.Cosign(timeout(p.T), p.subject, withKeys(key))
		refused(p.T, err, "has the wrong content")
	})
}

// A failure to read is not a verdict.
func TestCosignFailures(t *testing.T) {
	for _, path := range []string{"/manifests/sha256-", "/blobs/", "/referrers/"} {
		for _, code := range []int{http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusForbidden} {
			t.Run(fmt.Sprintf("%s %d", path, code), func(t *testing.T) {
				p := newWorld(t, "ggcr")
				key := newKey(t, "ecdsa")
				if path != "/referrers/" {
					must(t, key.Sign(p.target()))
				}
				p.on(path, status(code))
				_, err := verify.Cosign(timeout(t), p.subject, withKeys(key))
				undecided(t, err)
				if transient(err) == (code == http.StatusForbidden) {
					t.Errorf("transient is %t: %v", transient(err), err)
				}
			})
		}
	}
	t.Run("cut off", func(t *testing.T) {
		p := newWorld(t, "ggcr")
		p.on("/referrers/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		})
		_, err := verify.Cosign(timeout(t), p.subject, withKeys(newKey(t, "ecdsa")))
		undecided(t, err)
		if !transient(err) {
			t.Errorf("%v is not transient", err)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		p := newWorld(t, "ggcr")
		ctx, cancel := context.WithCancelCause(timeout(t))
		stop := errors.New("stop")
		p.on("/manifests/", func(_ http.ResponseWriter, r *http.Request) {
			cancel(stop)
			<-r.Context().Done()
		})
		_, err := verify.Cosign(ctx, p.subject, withKeys(newKey(t, "ecdsa")))
		undecided(t, err)
		if !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	})
	// One of the two places is enough, if the signature there is valid.
	t.Run("the other place", func(t *testing.T) {
		p := newWorld(t, "ggcr")
		key := newKey(t, "ecdsa")
		must(t, key.SignBundle(p.target()))
		p.on("/manifests/sha256-", status(http.StatusServiceUnavailable))
		_, err := verify.Cosign(timeout(t), p.subject, withKeys(key))
		must(t, err)
	})
}

// Sizes that no honest registry has.
func TestCosignLimits(t *testing.T) {
	layers := func(n int, size int64) string {
		layer := map[string]any{
			"mediaType": "application/vnd.dev.cosign.simplesigning.v1+json", "size": size,
			"digest":      "sha256:" + strings.Repeat("a", 64),
			"annotations": map[string]string{"dev.cosignproject.cosign/signature": "AAAA"},
		}
		return manifest("layers", slices.Repeat([]any{layer}, n))
	}
	referrers := func(n int) string {
		return manifest("manifests", slices.Repeat([]any{map[string]any{
			"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 100,
			"digest":       "sha256:" + strings.Repeat("a", 64),
			"artifactType": "application/vnd.dev.sigstore.bundle.v0.3+json",
		}}, n))
	}
	index := "application/vnd.oci.image.index.v1+json"
	for name, test := range map[string]struct {
		path, mediaType, content, want string
	}{
		"10,000 signatures":   {".sig", "", layers(10_000, 100), "more than the limit of 50"},
		"51 signatures":       {".sig", "", layers(51, 100), "more than the limit of 50"},
		"1 GiB signature":     {".sig", "", layers(1, 1<<30), "exceeds the limit of 1048576 bytes"},
		"10,000 referrers":    {"/referrers/", index, referrers(10_000), "more than the limit of 500"},
		"51 bundles":          {"/referrers/", index, referrers(51), "more than the limit of 50"},
		"endless manifest":    {".sig", "", "", "exceeds the limit of 4194304 bytes"},
		"endless referrers":   {"/referrers/", index, "", "exceeds the limit of 4194304 bytes"},
		"manifest of garbage": {".sig", "", "garbage", "cannot be read"},
		"null referrers":      {"/referrers/", index, "null", "no signatures found"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newWorld(t, "ggcr")
			p.intercept(func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case strings.Contains(r.URL.Path, "/manifests/sha256:"):
					w.WriteHeader(http.StatusNotFound)
				case !strings.Contains(r.URL.Path, test.path):
					return false
				case test.content == "":
					w.Header().Set("Content-Type", test.mediaType)
					endless(w)
				default:
					w.Header().Set("Content-Type", test.mediaType)
					_, _ = io.WriteString(w, test.content)
				}
				return true
			})
			_, err := verify.Cosign(timeout(t), p.subject, withKeys(newKey(t, "ecdsa")))
			refused(t, err, test.want)
		})
	}
	t.Run("blob larger than its descriptor", func(t *testing.T) {
		p := newWorld(t, "ggcr")
		key := newKey(t, "ecdsa")
		must(t, key.Sign(p.target()))
		p.on("/blobs/", func(w http.ResponseWriter, _ *http.Request) { endless(w) })
		_, err := verify.Cosign(timeout(t), p.subject, withKeys(key))
		refused(t, err, "exceeds the limit of 1048576 bytes")
	})
	t.Run("endless pages", func(t *testing.T) {
		p := newWorld(t, "ggcr")
		p.on("/referrers/", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", index)
			w.Header().Set("Link", "<"+r.URL.Path+`?page=next>; rel="next"`)
			_, _ = io.WriteString(w, `{"manifests":[]}`)
		})
		_, err := verify.Cosign(timeout(t), p.subject, withKeys(newKey(t, "ecdsa")))
		refused(t, err, "more than the limit of 20")
	})
}

func manifest(field string, list []any) string {
	b, err := json.Marshal(map[string]any{"schemaVersion": 2, field: list})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func endless(w io.Writer) {
	block := []byte(strings.Repeat(" ", 64<<10))
	for range 1 << 14 {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// Bundles behind the first page of referrers are found, and a link to another host is not followed.
func TestReferrersPages(t *testing.T) {
	p := newWorld(t, "ggcr")
	key := newKey(t, "ecdsa")
	must(t, key.SignBundle(p.target()))
	link := func(w http.ResponseWriter, r *http.Request) string { return "<" + r.URL.Path + `?n=2>; rel="next"` }
	p.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/referrers/") || r.URL.RawQuery != "" {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
		w.Header().Set("Link", link(w, r))
		_, _ = io.WriteString(w, `{"manifests":[]}`)
		return true
	})
	_, err := verify.Cosign(timeout(t), p.subject, withKeys(key))
	must(t, err)
	link = func(_ http.ResponseWriter, r *http.Request) string {
		return "<http://elsewhere.test" + r.URL.Path + `>; rel="next"`
	}
	_, err = verify.Cosign(timeout(t), p.subject, withKeys(key))
	refused(t, err, "no signatures found")
}

func TestCosignKeys(t *testing.T) {
	key := newKey(t, "ecdsa")
	keys, err := verify.CosignKeys("apps/keys", map[string][]byte{"cosign.pub": key.Public, "note.txt": []byte("x")})
	must(t, err)
	if len(keys) != 1 || keys["cosign.pub"] == nil {
		t.Errorf("got %v", keys)
	}
	_, err = verify.CosignKeys("apps/keys", map[string][]byte{"cosign.pem": key.Public})
	if err == nil || err.Error() != "no public keys found in secret 'apps/keys'" || !strings.Contains(hint(err), `"cosign.pem" contains a public key`) {
		t.Errorf("got %v, hint %q", err, hint(err))
	}
	p := newWorld(t, "ggcr")
	for name, text := range map[string]string{
		"garbage":     "garbage",
		"empty":       "",
		"private key": "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n",
	} {
		_, err := verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Keys: map[string][]byte{"a.pub": []byte(text)}})
		var settings *verify.SettingsError
		if !errors.As(err, &settings) || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
