package oci_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/helmtest/registry"
)

func TestMain(m *testing.M) {
	code := m.Run()
	registry.Cleanup()
	os.Exit(code)
}

// registries starts a registry for each top directory of an archive.
func registries(t *testing.T, archive string) *helmtest.World {
	t.Helper()
	kit, err := helmtest.NewKit()
	if err != nil {
		t.Fatal(err)
	}
	w := helmtest.NewWorld(kit)
	w.Kinds["registry"] = registry.Kind
	t.Cleanup(w.Close)
	dir := t.TempDir()
	var names []string
	for _, f := range txtar.Parse([]byte(archive)).Files {
		file := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		if name, _, _ := strings.Cut(f.Name, "/"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if err := w.Start(name, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if s := w.Servers[name]; s != nil { // nil for a server that is down
			s.Log.Drain()
		}
	}
	return w
}

func ociClient(t *testing.T, w *helmtest.World) *oci.Client {
	t.Helper()
	c := oci.NewClient(fetch.NewClient(fetch.Config{
		Dial: w.Network.Dial, UserAgent: "helmsrc/test", Retries: 3, Now: time.Now,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}))
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func openOCI(t *testing.T, c *oci.Client, url string, o oci.Options) *oci.Namespace {
	t.Helper()
	repo, err := c.Namespace(url, o)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

var plain = oci.Options{Insecure: true}

func basic(user string) auth.Logins {
	name, password, _ := strings.Cut(user, ":")
	return auth.StaticLogin{Credential: auth.BasicCredential(name, password), Source: "Secret 'default/login'"}
}

// memory is a sink that counts its resets.
type memory struct {
	bytes.Buffer
	resets int
}

func (m *memory) Reset() error {
	m.resets++
	m.Buffer.Reset()
	return nil
}

const mebibyte = 1 << 20

func pull(t *testing.T, repo *oci.Namespace, chart, version string) (*oci.Manifest, []byte, error) {
	t.Helper()
	m, err := repo.Pin(t.Context(), chart, version)
	if err != nil {
		return nil, nil, err
	}
	var dst memory
	err = repo.Archive(t.Context(), m, &dst, mebibyte)
	return m, dst.Bytes(), err
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("got error %v, want one with %q", err, want)
	}
}

func wantHint(t *testing.T, err error, want string) {
	t.Helper()
	var hinted interface{ Hint() string }
	if !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), want) {
		hint := "none"
		if hinted != nil {
			hint = hinted.Hint()
		}
		t.Errorf("got hint %q, want one with %q; error: %v", hint, want, err)
	}
}

// paths are the requests that a server saw, without credentials.
func paths(s *helmtest.Server) []string {
	var list []string
	for _, r := range s.Log.All() {
		list = append(list, fmt.Sprintf("%s %s %d", r.Method, r.URI, r.Status))
	}
	return list
}

const someCharts = `
-- registry/charts --
charts/podinfo 6.7.1
charts/podinfo 6.8.0 created=2024-01-02T03:04:05Z
charts/podinfo 1.0.0+build.7
charts/another/grafana 0.1.0
`

func TestOCIPull(t *testing.T) {
	for _, kind := range []string{"distribution", "ggcr"} {
		t.Run(kind, func(t *testing.T) {
			w := registries(t, someCharts+"-- registry/kind --\n"+kind+"\n")
			repo := openOCI(t, ociClient(t, w), "oci://registry.test/charts/", plain)
			t.Run("an exact version takes two requests", func(t *testing.T) {
				w.Servers["registry"].Log.Drain()
				m, archive, err := pull(t, repo, "podinfo", "6.7.1")
				if err != nil {
					t.Fatal(err)
				}
				got := paths(w.Servers["registry"])
				want := []string{"GET /v2/charts/podinfo/manifests/6.7.1 200", "GET /v2/charts/podinfo/blobs/" + m.Layer.Digest.String() + " 200"}
				if !slices.Equal(got, want) {
					t.Errorf("requests: %q, want %q", got, want)
				}
				if int64(len(archive)) != m.Layer.Size || m.Tag != "6.7.1" || m.Digest != m.Chart {
					t.Errorf("%d bytes of %+v", len(archive), m)
				}
				if m.Annotations["org.opencontainers.image.version"] != "6.7.1" {
					t.Errorf("annotations %v", m.Annotations)
				}
			})
			t.Run("case 30: a nested name", func(t *testing.T) {
				m, _, err := pull(t, repo, "another/grafana", "0.1.0")
				if err != nil {
					t.Fatal(err)
				}
				if m.Ref != "oci://registry.test/charts/another/grafana:0.1.0" {
					t.Errorf("ref %s", m.Ref)
				}
			})
			t.Run("build metadata is behind an underscore in the tag", func(t *testing.T) {
				m, _, err := pull(t, repo, "podinfo", "1.0.0+build.7")
				if err != nil {
					t.Fatal(err)
				}
				if m.Tag != "1.0.0_build.7" || m.Version() != "1.0.0+build.7" {
					t.Errorf("tag %s, version %s", m.Tag, m.Version())
				}
			})
			t.Run("by digest", func(t *testing.T) {
				tagged, err := repo.Pin(t.Context(), "podinfo", "6.7.1")
				if err != nil {
					t.Fatal(err)
				}
				m, err := repo.PinDigest(t.Context(), "podinfo", tagged.Digest)
				if err != nil {
					t.Fatal(err)
				}
				if m.Tag != "" || m.Layer.Digest != tagged.Layer.Digest {
					t.Errorf("%+v", m)
				}
			})
			t.Run("case 26: a version that is not there", func(t *testing.T) {
				_, _, err := pull(t, repo, "podinfo", "9.9.9")
				wantError(t, err, "failed to get 'oci://registry.test/charts/podinfo:9.9.9': no such tag in the registry: 404 Not Found")
				if !errors.Is(err, fs.ErrNotExist) || fetch.Transient(err) {
					t.Errorf("%#v", err)
				}
			})
			t.Run("a chart that is not there", func(t *testing.T) {
				_, _, err := pull(t, repo, "missing", "1.0.0")
				wantError(t, err, "404 Not Found")
			})
		})
	}
}

func TestOCITags(t *testing.T) {
	w := registries(t, someCharts)
	repo := openOCI(t, ociClient(t, w), "oci://registry.test/charts", plain)
	tags, err := repo.Tags(t.Context(), "podinfo")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(tags)
	if want := []string{"1.0.0_build.7", "6.7.1", "6.8.0"}; !slices.Equal(tags, want) {
		t.Errorf("tags %q, want %q", tags, want)
	}
	_, err = repo.Tags(t.Context(), "missing")
	wantError(t, err, `could not get tags for "missing": could not fetch tags for "oci://registry.test/charts/missing": no such repository in the registry: 404 Not Found`)
}

func TestOCITokenCounts(t *testing.T) {
	w := registries(t, `
-- registry/charts --
charts/podinfo 6.7.1
charts/podinfo 6.8.0
charts/other 1.0.0
-- registry/auth.json --
{"token": "alice:canary-s3cret"}
`)
	c := ociClient(t, w)
	repo := openOCI(t, c, "oci://registry.test/charts", oci.Options{Insecure: true, Logins: basic("alice:canary-s3cret")})
	if _, _, err := pull(t, repo, "podinfo", "6.7.1"); err != nil {
		t.Fatal(err)
	}
	server := w.Servers["registry"]
	got := fmt.Sprint(paths(server))
	if len(server.Log.All()) != 3 || !strings.HasPrefix(got, "[GET /v2/charts/podinfo/manifests/6.7.1 401 GET /v2/charts/podinfo/manifests/6.7.1 200 GET /v2/charts/podinfo/blobs/") {
		t.Errorf("requests %s", got)
	}
	again := openOCI(t, c, "oci://registry.test/charts/", oci.Options{Insecure: true, Logins: basic("alice:canary-s3cret")})
	if _, _, err := pull(t, again, "podinfo", "6.8.0"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := pull(t, again, "other", "1.0.0"); err != nil {
		t.Fatal(err)
	}
	if n := len(server.Log.All()); n != 3+2+2 {
		t.Errorf("%d requests: %q", n, paths(server))
	}
	for name, s := range w.Servers {
		t.Log(name, paths(s))
	}
	if leaks := w.Leaks(w.Canaries()); len(leaks) > 0 {
		t.Error(leaks)
	}
}
