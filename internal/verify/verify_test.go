package verify_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/helmtest/registry"
	"github.com/helmsrc/helmsrc/internal/helmtest/signing"
	"github.com/helmsrc/helmsrc/internal/verify"
)

func TestMain(m *testing.M) {
	code := m.Run()
	registry.Cleanup()
	os.Exit(code)
}

// kinds are the registries: the distribution has no referrers API, so that clients keep an index under a tag.
var kinds = []string{"distribution", "ggcr"}

// A world is a registry with one chart.
type world struct {
	*testing.T
	registry *registry.Registry
	host     string
	subject  verify.Subject
	// first answers in place of the registry if it returns true.
	first atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

const repository = "charts/app"

func newWorld(t *testing.T, kind string) *world {
	t.Helper()
	r, err := registry.New(&helmtest.Config{Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	p := &world{T: t, registry: r}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first := p.first.Load(); first == nil || !(*first)(w, r) {
			p.registry.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	p.host = strings.TrimPrefix(s.URL, "http://")
	p.subject = p.push("1.0.0")
	return p
}

// push publishes a version of the chart.
func (p *world) push(version string) verify.Subject {
	p.Helper()
	c := helmtest.NewChart("app", version)
	archive, err := c.Package()
	if err != nil {
		p.Fatal(err)
	}
	metadata, err := c.Metadata()
	if err != nil {
		p.Fatal(err)
	}
	published := &helmtest.Published{Repository: repository, Metadata: *metadata, Archive: archive, Tag: version}
	if err := p.registry.Push(published); err != nil {
		p.Fatal(err)
	}
	req := httptest.NewRequestWithContext(p.Context(), http.MethodHead, "/v2/"+repository+"/manifests/"+version, nil)
	req.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json")
	w := httptest.NewRecorder()
	p.registry.ServeHTTP(w, req)
	d, err := digest.Parse(w.Header().Get("Docker-Content-Digest"))
	if err != nil {
		p.Fatalf("%d: %v", w.Code, err)
	}
	return verify.Subject{Repository: p.host + "/" + repository, Digest: d, Insecure: true, Transport: http.DefaultTransport}
}

func (p *world) target() signing.Target { return target(p.subject) }

func target(s verify.Subject) signing.Target {
	return signing.Target{Repository: s.Repository, Digest: s.Digest.String(), Insecure: true, Transport: http.DefaultTransport}
}

// intercept lets a function answer that returns true if it has.
func (p *world) intercept(first func(http.ResponseWriter, *http.Request) bool) { p.first.Store(&first) }

// on answers requests for paths that hold the text.
func (p *world) on(text string, answer http.HandlerFunc) {
	p.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, text) {
			return false
		}
		answer(w, r)
		return true
	})
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func newKey(t *testing.T, kind string) *signing.Key {
	t.Helper()
	k, err := signing.NewKey(kind)
	must(t, err)
	return k
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func withKeys(keys ...*signing.Key) verify.CosignOptions {
	o := verify.CosignOptions{Keys: map[string][]byte{}}
	for i, k := range keys {
		o.Keys[fmt.Sprintf("%c.pub", 'a'+i)] = k.Public
	}
	return o
}

// refused checks that the error leads to exit code 3, is never transient, and has this text.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	var integrity interface{ Integrity() bool }
	switch {
	case err == nil:
		t.Fatal("it was accepted")
	case !errors.As(err, &integrity) || !integrity.Integrity():
		t.Errorf("%v does not count as a failed check", err)
	case transient(err):
		t.Errorf("%v is transient", err)
	case !strings.Contains(err.Error(), want):
		t.Errorf("got %q, want %q in it", err, want)
	}
}

func transient(err error) bool {
	var e interface{ Transient() bool }
	return errors.As(err, &e) && e.Transient()
}

// undecided checks that the error is neither a pass nor a refusal.
func undecided(t *testing.T, err error) {
	t.Helper()
	var integrity interface{ Integrity() bool }
	if err == nil || errors.As(err, &integrity) || finding.CodeOf(err) == finding.Unsigned {
		t.Errorf("a failure was taken for an answer: %v", err)
	}
}

func hint(err error) string {
	return strings.Join(finding.Hints(err), "; ")
}

func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func sha256Of(content string) string {
	return godigest.FromString(content).String()
}
