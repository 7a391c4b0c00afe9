package verify_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/helmtest/signing"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// A mirror publishes a trusted root on loopback.
type mirror struct {
	*httptest.Server
	tuf   *signing.TUF
	cache string

	mu       sync.Mutex
	requests int
	answer   http.HandlerFunc // in place of the repository's
}

func newMirror(t *testing.T, trustedRoot []byte, until time.Time) *mirror {
	t.Helper()
	r, err := signing.NewTUF("trusted_root.json", trustedRoot, until)
	must(t, err)
	m := &mirror{tuf: r, cache: t.TempDir()}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.requests++
		if m.answer != nil {
			m.answer(w, r)
			return
		}
		m.tuf.ServeHTTP(w, r)
	}))
	t.Cleanup(m.Close)
	return m
}

// count returns the requests since it was last called.
func (m *mirror) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.requests
	m.requests = 0
	return n
}

func (m *mirror) trust() *verify.Trust {
	return verify.PublicTrust(verify.PublicTrustOptions{
		CacheDir: m.cache, Mirror: m.URL, Root: m.tuf.Root, Transport: http.DefaultTransport,
	})
}

// signedKeyless is a signed chart, and the trusted root that its signature needs.
func signedKeyless(t *testing.T) (*world, []byte) {
	t.Helper()
	s, err := signing.NewSigstore()
	must(t, err)
	p := newWorld(t, "ggcr")
	must(t, s.SignBundle(p.target(), good()))
	text, err := s.TrustedRoot()
	must(t, err)
	return p, text
}

func TestPublicTrust(t *testing.T) {
	p, text := signedKeyless(t)
	m := newMirror(t, text, time.Now().AddDate(0, 0, 7))
	check := func(trust *verify.Trust) error {
		_, err := verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Identities: []verify.Identity{right}, Trust: trust})
		return err
	}
	// No request is sent before there is a signature to verify.
	unsigned := p.push("2.0.0")
	_, err := verify.Cosign(timeout(t), unsigned, verify.CosignOptions{Trust: m.trust()})
	refused(t, err, "no signatures found")
	if n := m.count(); n != 0 {
		t.Errorf("%d requests for an unsigned chart", n)
	}

	// Once in a run, and once a day.
	trust := m.trust()
	must(t, check(trust))
	if m.count() == 0 {
		t.Error("nothing was fetched")
	}
	must(t, check(trust))
	must(t, check(m.trust()))
	if n := m.count(); n != 0 {
		t.Errorf("%d requests on the same day", n)
	}

	// A day later, and the server is out of order: the cached root has not expired.
	yesterday(t, m.cache)
	m.answer = status(http.StatusServiceUnavailable)
	must(t, check(m.trust()))
	if m.count() == 0 {
		t.Error("nothing was asked a day later")
	}
	m.answer = nil
	must(t, check(m.trust()))
	if m.count() == 0 {
		t.Error("the failure counted as an answer")
	}
}

// yesterday sets back the time of the last refresh.
func yesterday(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	must(t, err)
	if len(files) != 1 {
		t.Fatalf("got %q", files)
	}
	must(t, os.WriteFile(files[0], []byte(`{"lastTimestamp":"2020-01-01T00:00:00Z"}`), 0o600))
}

func TestPublicTrustFailures(t *testing.T) {
	p, text := signedKeyless(t)
	for name, test := range map[string]struct {
		answer    http.HandlerFunc
		until     int
		root      []byte
		transient bool
		refused   string
	}{
		"503":          {answer: status(http.StatusServiceUnavailable), until: 7, transient: true},
		"not there":    {answer: status(http.StatusNotFound), until: 7},
		"expired":      {until: -1, refused: "unable to initialize trusted root: "},
		"other root":   {until: 7, root: otherRoot(t), refused: "unable to initialize trusted root: "},
		"endless":      {answer: func(w http.ResponseWriter, _ *http.Request) { endless(w) }, until: 7, refused: "unable to initialize trusted root: "},
		"not the file": {answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }, until: 7, refused: "unable to initialize trusted root: "},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMirror(t, text, time.Now().AddDate(0, 0, test.until))
			m.answer = test.answer
			if test.root != nil {
				m.tuf.Root = test.root
			}
			trust := m.trust()
			_, err := verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Trust: trust})
			if test.refused != "" {
				refused(t, err, test.refused)
				return
			}
			undecided(t, err)
			if transient(err) != test.transient || !strings.Contains(hint(err), "--trusted-root") {
				t.Errorf("got %v, hint %q", err, hint(err))
			}
			m.count()
			_, again := verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Trust: trust})
			if again == nil || m.count() != 0 {
				t.Errorf("asked again in the same run: %v", again)
			}
		})
	}
}

// The cached root replaces a server that cannot be reached, but not a server with an invalid answer.
func TestPublicTrustBadMetadata(t *testing.T) {
	p, text := signedKeyless(t)
	for name, answer := range map[string]http.HandlerFunc{
		"garbage": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) },
		"endless": func(w http.ResponseWriter, _ *http.Request) { endless(w) },
		"of another repository": func(w http.ResponseWriter, r *http.Request) {
			other, err := signing.NewTUF("trusted_root.json", text, time.Now().AddDate(0, 0, 7))
			if err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			other.ServeHTTP(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMirror(t, text, time.Now().AddDate(0, 0, 7))
			check := func() error {
				_, err := verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Identities: []verify.Identity{right}, Trust: m.trust()})
				return err
			}
			must(t, check())
			yesterday(t, m.cache)
			m.answer = answer
			refused(t, check(), "unable to initialize trusted root: ")
			m.answer = status(http.StatusServiceUnavailable)
			must(t, check())
		})
	}
}

func otherRoot(t *testing.T) []byte {
	t.Helper()
	r, err := signing.NewTUF("trusted_root.json", nil, time.Now().AddDate(0, 0, 7))
	must(t, err)
	return r.Root
}

// The root of the public Sigstore is part of the program. The rest is requested from its server only.
func TestPublicTrustDefault(t *testing.T) {
	p, _ := signedKeyless(t)
	var asked []string
	trust := verify.PublicTrust(verify.PublicTrustOptions{
		CacheDir: t.TempDir(),
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.URL.Host)
			return nil, errors.New("no network here")
		}),
	})
	_, err := verify.Cosign(timeout(t), p.subject, verify.CosignOptions{Trust: trust})
	undecided(t, err)
	if err == nil || !strings.Contains(err.Error(), "no network here") || !strings.Contains(hint(err), "--trusted-root") {
		t.Errorf("got %v, hint %q", err, hint(err))
	}
	if len(asked) != 1 || asked[0] != "tuf-repo-cdn.sigstore.dev" {
		t.Errorf("asked %q", asked)
	}
}
