package oci_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// case R30
func TestParseOCIURL(t *testing.T) {
	for _, tt := range []struct{ url, repository, tagged, err, hint string }{
		{"oci://ghcr.io/org/app", "ghcr.io/org/app", "ghcr.io/org/app:1", "", ""},
		{"oci://registry:5000/app", "registry:5000/app", "registry:5000/app:1", "", ""},
		{"oci://localhost/app", "localhost/app", "localhost/app:1", "", ""},
		{"oci://127.0.0.1:5000/a/b/c", "127.0.0.1:5000/a/b/c", "127.0.0.1:5000/a/b/c:1", "", ""},
		{"oci://foo/bar", "docker.io/foo/bar", "index.docker.io/foo/bar:1", "", ""},
		{"oci://nginx", "docker.io/library/nginx", "index.docker.io/library/nginx:1", "", ""},
		{"oci://docker.io/org/app", "docker.io/org/app", "index.docker.io/org/app:1", "", ""},
		{"oci://registry-1.docker.io/org/app", "docker.io/org/app", "registry-1.docker.io/org/app:1", "", ""},
		{"https://ghcr.io/org/app", "", "", "URL must be in format 'oci://<domain>/<org>/<repo>'", ""},
		{"oci://", "", "", "a repository name must be specified", ""},
		{"oci://ghcr.io/", "", "", "repository must be between 1 and 255 characters in length:", ""},
		{"oci://ghcr.io/org/app/", "ghcr.io/org/app/", "ghcr.io/org/app/:1", "", ""},
		{"oci://registry:5000/", "", "", "repository must be between 1 and 255 characters in length:", ""},
		{"oci://ghcr.io/test/test:v1", "", "", "URL must not contain a tag; remove ':v1'", "the tag goes into spec.ref.tag"},
		{"oci://ghcr.io/test/test@sha256:00", "", "", "URL must not contain a digest; remove '@sha256:00'", "the digest goes into spec.ref.digest"},
		{"oci://u:canary@ghcr.io/test/test", "", "", "URL must not contain credentials", "Secret"},
		{"oci://ghcr.io/Test/test", "", "", "repository can only contain the characters `abcdefghijklmnopqrstuvwxyz0123456789_-./`: Test/test", "names in registries are lower case: oci://ghcr.io/test/test"},
		{"oci://ghcr.io/test/test?a=canary", "", "", "URL must end with the repository", ""},
		{"oci://ghcr.io/test/../other", "", "", `not the name of a repository: "test/../other"`, ""},
		{"oci://ghcr.io/test//other", "", "", `not the name of a repository: "test//other"`, ""},
	} {
		t.Run(tt.url, func(t *testing.T) {
			n, err := oci.ParseURL(tt.url)
			if tt.err != "" {
				if fmt.Sprint(err) != tt.err {
					t.Errorf("error %v\n want %s", err, tt.err)
				}
				if tt.hint != "" {
					wantHint(t, err, tt.hint)
				}
				return
			}
			if err != nil || n.Repository() != tt.repository || n.Tagged("1") != tt.tagged {
				t.Errorf("got %s, %s, %v", n.Repository(), n.Tagged("1"), err)
			}
		})
	}
}

// case R31
func TestParseOCIDigest(t *testing.T) {
	for text, want := range map[string]string{
		"sha256:" + strings.Repeat("0a", 32): "",
		"sha512:" + strings.Repeat("0a", 64): "",
		"sha256:xyz":                         "found non-hex character in hash: x",
		"sha256:00":                          "wrong number of hex digits for sha256: 00",
		"sha256:" + strings.Repeat("0A", 32): "found non-hex character in hash: A",
		"sha256:":                            `cannot parse hash: "sha256:"`,
		"latest":                             `cannot parse hash: "latest"`,
		"md5:00":                             `unsupported hash: "md5"`,
		"":                                   `cannot parse hash: ""`,
	} {
		d, err := oci.ParseDigest(text)
		if want == "" && (err != nil || d.String() != text) || want != "" && fmt.Sprint(err) != want {
			t.Errorf("%s: %s, %v, want %s", text, d, err, want)
		}
	}
}

// manifests is a registry with these manifests, by tag or digest. Tags are for HEAD requests, too, unless head is false.
type manifests struct {
	content map[string]string
	head    bool
}

func (m *manifests) add(body string) string {
	d := godigest.FromString(body).String()
	m.content[d] = body
	return d
}

func (m *manifests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, ok := m.content[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
	switch {
	case r.Method == http.MethodHead && !m.head:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}`)
	default:
		w.Header().Set("Docker-Content-Digest", godigest.FromString(body).String())
		_, _ = io.WriteString(w, body)
	}
}

// artifactRegistry opens the repository oci://registry.test/org/app of a registry of the test's own making.
func artifactRegistry(t *testing.T, h http.Handler, o oci.Options) (*oci.Repository, *helmtest.Server) {
	t.Helper()
	w := helmtest.NewWorld(nil)
	s, err := helmtest.Serve(w.Network, "registry.test:80", nil, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	n, err := oci.ParseURL("oci://registry.test/org/app")
	if err != nil {
		t.Fatal(err)
	}
	o.Insecure = true
	return ociClient(t, w).Repository(n, o), s
}

func TestOCIArtifactDigest(t *testing.T) {
	for _, tt := range []struct {
		name     string
		head     bool
		requests []string
	}{
		{"HEAD", true, []string{"HEAD /v2/org/app/manifests/v1 200"}},
		{"GET where HEAD fails", false, []string{"HEAD /v2/org/app/manifests/v1 405", "GET /v2/org/app/manifests/v1 200"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo, s := artifactRegistry(t, &manifests{map[string]string{"v1": "{}"}, tt.head}, oci.Options{})
			d, err := repo.Digest(t.Context(), "v1")
			if err != nil || d != godigest.FromString("{}") {
				t.Errorf("got %s, %v", d, err)
			}
			if got := paths(s); !slices.Equal(got, tt.requests) {
				t.Errorf("requests %q", got)
			}
		})
	}
	repo, _ := artifactRegistry(t, &manifests{nil, true}, oci.Options{})
	_, err := repo.Digest(t.Context(), "v2")
	if want := "GET http://registry.test/v2/org/app/manifests/v2: MANIFEST_UNKNOWN: manifest unknown"; fmt.Sprint(err) != want || !errors.Is(err, fs.ErrNotExist) || fetch.Transient(err) {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = repo.Digest(t.Context(), "a/../b")
	wantError(t, err, `"a/../b" cannot be a tag`)
}

func TestOCIArtifactPin(t *testing.T) {
	const manifest = `{"config": {"mediaType": "application/vnd.cncf.helm.config.v1+json"}, "layers": [{"mediaType": "a/a"}]}`
	for body, want := range map[string]bool{manifest: true, `{"manifests": []}`: false, "hello": false} {
		repo, s := artifactRegistry(t, &manifests{map[string]string{"v1": body}, true}, oci.Options{})
		d, a, err := repo.Pin(t.Context(), "v1")
		if err != nil || d != godigest.FromString(body) || (a != nil) != want {
			t.Errorf("%s: %s, %+v, %v", body, d, a, err)
		}
		if want && (a.Digest != d || !a.IsChart() || len(a.Layers) != 1) {
			t.Errorf("%+v", a)
		}
		if got := paths(s); !slices.Equal(got, []string{"GET /v2/org/app/manifests/v1 200"}) {
			t.Errorf("requests %q", got)
		}
	}
	repo, _ := artifactRegistry(t, &manifests{nil, true}, oci.Options{})
	if _, _, err := repo.Pin(t.Context(), "v1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, _, err := repo.Pin(t.Context(), "a/b"); err == nil {
		t.Error("a/b is a tag")
	}
}

// QR20: of an index Flux takes linux/amd64.
func TestOCIArtifactOfAnIndex(t *testing.T) {
	m := &manifests{map[string]string{}, true}
	layers := func(of string) string {
		return `"layers": [{"mediaType": "a/b", "digest": "` + godigest.FromString(of).String() + `", "size": 1}]`
	}
	flux := m.add(`{"config": {"mediaType": "application/vnd.cncf.flux.config.v1+json"}, "annotations": {"of": "child"}, ` + layers("x") + `}`)
	image := m.add(`{"config": {"mediaType": "application/vnd.oci.image.config.v1+json"}, ` + layers("y") + `}`)
	chart := m.add(`{"config": {"mediaType": "application/vnd.cncf.helm.config.v1+json"}, ` + layers("z") + `}`)
	child := func(d, platform string) string {
		if os, arch, ok := strings.Cut(platform, "/"); ok {
			platform = fmt.Sprintf(`, "platform": {"os": %q, "architecture": %q}`, os, arch)
		}
		return `{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "` + d + `", "size": 1` + platform + `}`
	}
	list := func(children ...string) string {
		return `{"annotations": {"of": "index"}, "manifests": [` + strings.Join(children, ",") + `]}`
	}
	nested := flux
	for range 5 {
		nested = m.add(list(child(nested, "linux/amd64")))
	}
	for _, tt := range []struct{ name, index, want, err string }{
		{"linux/amd64", list(child(image, "linux/arm64"), child(flux, "linux/amd64")), flux, ""},
		{"no platform", list(child(image, "linux/arm64"), child(flux, "")), flux, ""},
		{"the first of two", list(child(flux, "linux/amd64"), child(image, "linux/amd64")), flux, ""},
		{"an index in an index", list(child(m.add(list(child(flux, "linux/amd64"))), "linux/amd64")), flux, ""},
		{"the only chart", list(child(image, "linux/arm64"), child(chart, "linux/s390x")), chart, ""},
		{"two charts", list(child(chart, "linux/arm64"), child(chart, "linux/s390x")), "", "no child with platform linux/amd64 in index sha256:"},
		{"none", list(child(image, "linux/arm64")), "", "no child with platform linux/amd64 in index sha256:"},
		{"empty", list(), "", "no child with platform linux/amd64 in index sha256:"},
		{"many", list(repeat(child(chart, "linux/arm64"), 20)...), "", "no child with platform linux/amd64 in index sha256:"},
		{"without end", list(child(nested, "linux/amd64")), "", "more than 3 nested image indexes"},
		{"no digest", list(child("../../x", "linux/amd64")), "", "the image index lists a manifest without a valid digest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo, _ := artifactRegistry(t, m, oci.Options{})
			a, err := repo.Manifest(t.Context(), digest.Digest(m.add(tt.index)))
			if tt.err != "" {
				wantError(t, err, tt.err)
				return
			}
			if err != nil || a.Digest.String() != tt.want {
				t.Errorf("got %+v, %v", a, err)
			}
			if tt.want == flux && a.Annotations["of"] != "child" {
				t.Errorf("annotations %v", a.Annotations)
			}
		})
	}
}

func TestOCILayer(t *testing.T) {
	layer := func(mediaType string) ocispec.Descriptor {
		return ocispec.Descriptor{MediaType: mediaType, Digest: godigest.FromString(mediaType), Size: 1}
	}
	const helm, prov = "application/vnd.cncf.helm.config.v1+json", "application/vnd.cncf.helm.chart.provenance.v1.prov"
	for _, tt := range []struct {
		name, config, selector string
		layers                 []ocispec.Descriptor
		want, first, err       string
	}{
		{"the first", "", "", []ocispec.Descriptor{layer("a/a"), layer("b/b")}, "a/a", "", ""},
		{"by media type", "", "b/b", []ocispec.Descriptor{layer("a/a"), layer("b/b"), layer("b/b")}, "b/b", "", ""},
		{"a chart after its provenance", helm, "", []ocispec.Descriptor{layer(prov), layer(oci.HelmChartType)}, oci.HelmChartType, prov, ""},
		{"a chart before its provenance", helm, "", []ocispec.Descriptor{layer(oci.HelmChartType), layer(prov)}, oci.HelmChartType, "", ""},
		{"a chart of Helm's first years", helm, "", []ocispec.Descriptor{layer(prov), layer("application/tar+gzip")}, "application/tar+gzip", prov, ""},
		{"a chart's provenance, selected", helm, prov, []ocispec.Descriptor{layer(prov), layer(oci.HelmChartType)}, prov, "", ""},
		{"a Helm config without a chart", helm, "", []ocispec.Descriptor{layer("a/a"), layer("b/b")}, "a/a", "", ""},
		{"provenance of what is no chart", "", "", []ocispec.Descriptor{layer(prov), layer(oci.HelmChartType)}, prov, "", ""},
		{"no such media type", "", "c/c", []ocispec.Descriptor{layer("a/a"), layer("b/b")}, "", "", "failed to find layer with media type 'c/c' in artifact"},
		{"a prefix is another one", "", "a", []ocispec.Descriptor{layer("a/a")}, "", "", "failed to find layer with media type 'a' in artifact"},
		{"no layers", helm, "", nil, "", "", "no layers found in artifact"},
		{"no layers to select from", helm, "a/a", nil, "", "", "no layers found in artifact"},
		{"no digest", "", "", []ocispec.Descriptor{{MediaType: "a/a", Size: 1}}, "", "", "the artifact has a layer without a valid digest and size"},
		{"negative size", "", "", []ocispec.Descriptor{{MediaType: "a/a", Digest: godigest.FromString("x"), Size: -1}}, "", "", "the artifact has a layer without a valid digest and size"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &oci.Artifact{Document: &oci.Document{Config: &ocispec.Descriptor{MediaType: tt.config}, Layers: tt.layers}}
			l, err := a.Layer(tt.selector)
			if tt.err != "" {
				if fmt.Sprint(err) != tt.err {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || l.MediaType != tt.want || l.First != tt.first {
				t.Errorf("got %+v, %v", l, err)
			}
		})
	}
}

// QR13, QR21: a layer is bounded, and all of it is compared with its digest.
func TestOCIPullLayer(t *testing.T) {
	content := strings.Repeat("x", 1000)
	for _, tt := range []struct {
		name, body string
		size       int64
		err        string
	}{
		{"as it should be", content, 1000, ""},
		{"altered at the end", content[1:] + "y", 1000, "computed digest doesn't match"},
		{"longer", content + "x", 1000, "its size differs from its manifest"},
		{"shorter", content[1:], 1000, "its size differs from its manifest"},
		{"over the limit", content, 1001, "has 1001 bytes, more than the limit of 1000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo, s := artifactRegistry(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, tt.body)
			}), oci.Options{})
			a := &oci.Artifact{Document: &oci.Document{Layers: []ocispec.Descriptor{{MediaType: "a/a", Digest: godigest.FromString(content), Size: tt.size}}}}
			l, err := a.Layer("")
			if err != nil {
				t.Fatal(err)
			}
			var dst memory
			err = repo.Pull(t.Context(), l, &dst, 1000)
			if tt.err != "" {
				wantError(t, err, tt.err)
			} else if err != nil || dst.String() != content {
				t.Errorf("got %q, %v", dst.String(), err)
			}
			if n := len(s.Log.All()); n > 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// QR14: spec.timeout bounds each operation.
func TestOCIRepositoryTimeout(t *testing.T) {
	blocked := make(chan struct{})
	repo, _ := artifactRegistry(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-blocked:
		}
	}), oci.Options{Timeout: time.Millisecond})
	defer close(blocked)
	d := digest.Digest(godigest.FromString("x"))
	for name, ask := range map[string]func(context.Context) error{
		"tags":     func(ctx context.Context) error { _, err := repo.Tags(ctx); return err },
		"digest":   func(ctx context.Context) error { _, err := repo.Digest(ctx, "v1"); return err },
		"manifest": func(ctx context.Context) error { _, err := repo.Manifest(ctx, d); return err },
	} {
		err := ask(t.Context())
		if err == nil || !strings.Contains(err.Error(), "spec.timeout of 1ms exceeded") || !fetch.Transient(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// QR19: which registries may be spoken to without TLS, and which are.
func TestPlainHTTP(t *testing.T) {
	for url, want := range map[string]bool{
		"oci://localhost:5000/app": true, "oci://127.0.0.1/org/app": true, "oci://127.1.2.3:5000/app": true, "oci://[::1]:5000/app": true,
		"oci://r.localhost/app": true, "oci://10.0.0.1:5000/app": false, "oci://192.168.1.1/org/app": false, "oci://ghcr.io/org/app": false, "oci://localhost.test/app": false,
	} {
		if n, err := oci.ParseURL(url); err != nil || n.Loopback() != want {
			t.Errorf("%s: %t, %v", url, n.Loopback(), err)
		}
	}
	w := registries(t, "-- registry/charts --\n-- registry-tls/charts --\n-- registry-tls/tls --\n")
	c := ociClient(t, w)
	var nobody *auth.Identity
	for _, tt := range []struct {
		url      string
		identity *auth.Identity
		want     bool
	}{
		{"oci://registry.test/app", nobody, true},
		{"oci://registry.test:80/app", nobody, true},
		{"oci://registry-tls.test/app", nobody.Unverified(), false},
		// A certificate that is not accepted is no reason to do without.
		{"oci://registry-tls.test/app", nobody, false},
		{"oci://elsewhere.test/app", nobody, true},
	} {
		n, err := oci.ParseURL(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.PlainHTTP(t.Context(), n, oci.Options{Identity: tt.identity})
		if err != nil || got != tt.want {
			t.Errorf("%s: %t, %v", tt.url, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n, err := oci.ParseURL("oci://registry.test/app")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PlainHTTP(ctx, n, oci.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// Proxies of two Secrets never share a connection.
func TestOCIProxyKey(t *testing.T) {
	proxy := func(address, password string) *auth.Proxy {
		p, err := auth.NewProxy("default/p", map[string][]byte{"address": []byte(address), "username": []byte("u"), "password": []byte(password)})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var none *auth.Proxy
	keys := []string{none.Key(), proxy("http://a.test", "canary").Key(), proxy("http://a.test", "other").Key(), proxy("http://b.test", "canary").Key()}
	slices.Sort(keys)
	if len(slices.Compact(keys)) != 4 || strings.Contains(strings.Join(keys, ""), "canary") {
		t.Errorf("keys %q", keys)
	}
	if proxy("http://a.test", "canary").Key() != proxy("http://a.test", "canary").Key() {
		t.Error("equal proxies have different keys")
	}
}

func TestOCIRepositoryDown(t *testing.T) {
	n, err := oci.ParseURL("oci://registry.test/org/app")
	if err != nil {
		t.Fatal(err)
	}
	dials := 0
	c := oci.NewClient(fetch.NewClient(fetch.Config{
		Retries: 3, Now: time.Now, Sleep: func(context.Context, time.Duration) error { return nil },
		Dial: func(context.Context, string, string) (net.Conn, error) {
			dials++
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		},
	}))
	_, err = c.Repository(n, oci.Options{}).Digest(t.Context(), "v1")
	if err == nil || !fetch.Transient(err) {
		t.Errorf("got %v", err)
	}
	if dials != 5 { // one HEAD, and four times GET
		t.Errorf("%d connections", dials)
	}
}
