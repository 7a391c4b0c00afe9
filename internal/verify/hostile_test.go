package verify_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/verify"
)

// serveClassic answers with one classic signature with these annotations.
func (p *world) serveClassic(payload string, annotations map[string]string) {
	layer := map[string]any{
		"mediaType":   "application/vnd.dev.cosign.simplesigning.v1+json",
		"digest":      sha256Of(payload),
		"size":        len(payload),
		"annotations": annotations,
	}
	content := manifest("layers", []any{layer})
	p.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.Path, ".sig"):
			_, _ = io.WriteString(w, content)
		case strings.Contains(r.URL.Path, "/blobs/"):
			_, _ = io.WriteString(w, payload)
		default:
			return false
		}
		return true
	})
}

// annotationsOf returns the payload and the annotations of a valid keyless signature.
func (p *world) annotationsOf() (payload string, annotations map[string]string) {
	p.Helper()
	get := func(path string) []byte {
		r := httptest.NewRequestWithContext(p.Context(), http.MethodGet, "/v2/"+repository+path, nil)
		r.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json")
		w := httptest.NewRecorder()
		p.registry.ServeHTTP(w, r)
		return w.Body.Bytes()
	}
	var m struct {
		Layers []struct {
			Digest      string
			Annotations map[string]string
		}
	}
	must(p.T, json.Unmarshal(get("/manifests/"+strings.Replace(p.subject.Digest.String(), ":", "-", 1)+".sig"), &m))
	return string(get("/blobs/" + m.Layers[0].Digest)), m.Layers[0].Annotations
}

// Log entries with values of other types than the library expects.
func TestHostileAnnotations(t *testing.T) {
	s, trust := newSigstore(t)
	p := newWorld(t, "ggcr")
	must(t, s.Sign(p.target(), good()))
	payload, annotations := p.annotationsOf()
	const (
		logged      = "dev.sigstore.cosign/bundle"
		certificate = "dev.sigstore.cosign/certificate"
		stamp       = "dev.sigstore.cosign/rfc3161timestamp"
		signature   = "dev.cosignproject.cosign/signature"
	)
	check := func() error {
		_, err := verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Trust: trust})
		return err
	}
	p.serveClassic(payload, annotations)
	must(t, check())
	for name, values := range map[string][]string{
		logged: {
			"null", "[]", "{}", "x", `{"Payload":null}`, `{"Payload":{"body":{}}}`, `{"Payload":{"body":null}}`, `{"Payload":{"body":1}}`,
			`{"SignedEntryTimestamp":"AAAA","Payload":{"body":"bnVsbA==","integratedTime":-1,"logIndex":-1,"logID":"00"}}`,
			strings.Replace(annotations[logged], `"logIndex":0`, `"logIndex":-5`, 1) + " ",
			strings.Replace(annotations[logged], `"integratedTime":1`, `"integratedTime":2`, 1),
			strings.Replace(annotations[logged], `"SignedEntryTimestamp":"M`, `"SignedEntryTimestamp":"N`, 1),
		},
		certificate: {"x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"},
		stamp:       {"x", "[]"},
		signature:   {"!", "AAAA", "A"},
	} {
		for i, value := range values {
			hostile := map[string]string{}
			for k, v := range annotations {
				hostile[k] = v
			}
			hostile[name] = value
			p.serveClassic(payload, hostile)
			err := check()
			if err == nil {
				t.Errorf("%s %d: accepted", name, i)
				continue
			}
			refused(t, err, "no matching signatures: ")
		}
	}
	p.serveClassic(strings.Replace(payload, "sha256:", "sha256:0", 1), annotations)
	refused(t, check(), "no matching signatures: ")
}

// Bundles of every wrong shape.
func TestHostileBundles(t *testing.T) {
	_, trust := newSigstore(t)
	p := newWorld(t, "ggcr")
	key := newKey(t, "ecdsa")
	const mediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	for i, content := range []string{
		"", "null", "{}", "[]", "x",
		`{"mediaType":"` + mediaType + `"}`,
		`{"mediaType":"` + mediaType + `","dsseEnvelope":null,"verificationMaterial":{"publicKey":{}}}`,
		`{"mediaType":"` + mediaType + `","dsseEnvelope":{},"verificationMaterial":{"publicKey":{}}}`,
		`{"mediaType":"` + mediaType + `","dsseEnvelope":{"signatures":[{}]},"verificationMaterial":{"certificate":{}}}`,
		`{"mediaType":"` + mediaType + `","dsseEnvelope":{"signatures":[null]},"verificationMaterial":{"publicKey":{},"tlogEntries":[{}]}}`,
		`{"mediaType":"` + mediaType + `","dsseEnvelope":{"payload":"bnVsbA==","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AAAA"}]},"verificationMaterial":{"x509CertificateChain":{}}}`,
		`{"mediaType":"` + mediaType + `","messageSignature":{"messageDigest":{},"signature":"AAAA"},"verificationMaterial":{"publicKey":{}}}`,
		`{"mediaType":"` + mediaType + `","messageSignature":{},"verificationMaterial":{"publicKey":{}}}`,
		strings.Repeat(`{"dsseEnvelope":`, 20_000),
	} {
		layer := map[string]any{"mediaType": mediaType, "digest": sha256Of(content), "size": len(content)}
		artifact := manifest("layers", []any{layer})
		index := manifest("manifests", []any{map[string]any{"digest": sha256Of(artifact), "size": len(artifact), "artifactType": mediaType}})
		p.intercept(func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case strings.Contains(r.URL.Path, "/referrers/"):
				w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
				_, _ = io.WriteString(w, index)
			case strings.Contains(r.URL.Path, "/blobs/"):
				_, _ = io.WriteString(w, content)
			case strings.Contains(r.URL.Path, "/manifests/sha256:"):
				_, _ = io.WriteString(w, artifact)
			default:
				return false
			}
			return true
		})
		for _, o := range []verify.CosignOptions{withKeys(key), {Trust: trust}} {
			_, err := verify.Cosign(timeout(t), p.subject, o)
			if err == nil {
				t.Fatalf("%d: accepted", i)
			}
			refused(t, err, "no matching signatures: ")
		}
	}
}

// A transport may turn a 404 into an error.
func TestMissingAsError(t *testing.T) {
	p := newWorld(t, "ggcr")
	p.subject.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil && resp.StatusCode == http.StatusNotFound {
			_ = resp.Body.Close()
			return nil, fmt.Errorf("gone: %w", fs.ErrNotExist)
		}
		return resp, err
	})
	key := newKey(t, "ecdsa")
	_, err := verify.Cosign(timeout(t), p.subject, withKeys(key))
	refused(t, err, "no signatures found")
	must(t, key.SignBundle(p.target()))
	_, err = verify.Cosign(timeout(t), p.subject, withKeys(key))
	must(t, err)

	broken := errors.New("broken")
	p.subject.Transport = roundTrip(func(*http.Request) (*http.Response, error) { return nil, broken })
	_, err = verify.Cosign(timeout(t), p.subject, withKeys(key))
	undecided(t, err)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestInvalidSubject(t *testing.T) {
	p := newWorld(t, "ggcr")
	for _, s := range []verify.Subject{
		{Repository: "", Digest: p.subject.Digest},
		{Repository: p.subject.Repository, Digest: ""},
		{Repository: p.subject.Repository, Digest: "sha256:x"},
		{Repository: p.subject.Repository, Digest: "1.0.0"},
	} {
		s.Transport = http.DefaultTransport
		_, err := verify.Cosign(timeout(t), s, withKeys(newKey(t, "ecdsa")))
		if err == nil || !strings.HasPrefix(err.Error(), "invalid chart reference: ") {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// The control characters in a registry's text do not reach the terminal.
func TestHostileText(t *testing.T) {
	const text = "sha256:\x1b[2J\r\nok: verified\u202e"
	for name, list := range map[string][]any{
		"digest": {map[string]any{"digest": text, "size": 1, "annotations": map[string]string{"dev.cosignproject.cosign/signature": "AAAA"}}},
		"size":   {map[string]any{"digest": text, "size": 1 << 40, "annotations": map[string]string{"dev.cosignproject.cosign/signature": "AAAA"}}},
	} {
		p := newWorld(t, "ggcr")
		p.on(".sig", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, manifest("layers", list)) })
		_, err := verify.Cosign(timeout(t), p.subject, withKeys(newKey(t, "ecdsa")))
		refused(t, err, "sha256:")
		if strings.ContainsAny(err.Error()+hint(err), "\x1b\r\n\u202e") {
			t.Errorf("%s: %q", name, err)
		}
	}
}

// The wait for a silent registry is bounded.
func TestTimeout(t *testing.T) {
	p := newWorld(t, "ggcr")
	p.subject.Timeout = 10 * time.Millisecond
	for name, answer := range map[string]http.HandlerFunc{
		"no answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"half an answer": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		p.on("/", answer)
		_, err := verify.Cosign(timeout(t), p.subject, withKeys(newKey(t, "ecdsa")))
		undecided(t, err)
		if !transient(err) || !strings.Contains(err.Error(), "request timeout of 10ms exceeded") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
