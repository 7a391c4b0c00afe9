package registry_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/tools/txtar"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/helmtest/registry"
)

func TestMain(m *testing.M) {
	code := m.Run()
	registry.Cleanup()
	os.Exit(code)
}

func world(t *testing.T, archive string) *helmtest.World {
	t.Helper()
	kit, err := helmtest.NewKit()
	if err != nil {
		t.Fatal(err)
	}
	w := helmtest.NewWorld(kit)
	w.Kinds["registry"] = registry.Kind
	t.Cleanup(w.Close)
	dir := t.TempDir()
	started := map[string]bool{}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		file := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(f.Name, "/")
		started[name] = true
	}
	for name := range started {
		if err := w.Start(name, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// repository opens a repository with the credentials as oras would.
func repository(t *testing.T, w *helmtest.World, ref string, c auth.Credential) *remote.Repository {
	t.Helper()
	r, err := remote.NewRepository(ref)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(w.Kit.Client.Cert, w.Kit.Client.Key)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{
		DialContext:     w.Network.Dial,
		TLSClientConfig: &tls.Config{RootCAs: w.Kit.CA.Pool(), Certificates: []tls.Certificate{pair}},
	}
	t.Cleanup(tr.CloseIdleConnections)
	host, _, _ := strings.Cut(ref, "/")
	name, _, _ := strings.Cut(host, ".")
	r.PlainHTTP = !w.Configs[name].TLS
	r.Client = &auth.Client{
		Client:     &http.Client{Transport: tr},
		Credential: auth.StaticCredential(host, c),
	}
	return r
}

// pull reads the manifest and the first layer of a tag.
func pull(ctx context.Context, r *remote.Repository, tag string) (ocispec.Manifest, []byte, error) {
	var m ocispec.Manifest
	_, rc, err := r.FetchReference(ctx, tag)
	if err != nil {
		return m, nil, err
	}
	defer rc.Close()
	if err := json.NewDecoder(rc).Decode(&m); err != nil || len(m.Layers) == 0 {
		return m, nil, err
	}
	blob, err := r.Fetch(ctx, m.Layers[0])
	if err != nil {
		return m, nil, err
	}
	defer blob.Close()
	b, err := io.ReadAll(blob)
	return m, b, err
}

const charts = `
-- registry/charts --
charts/podinfo 6.5.0
charts/podinfo 6.5.1+b1
charts/podinfo 6.6.0 tag=latest
deeply/nested/helmchart 0.1.0
`

func TestRegistries(t *testing.T) {
	alice := auth.Credential{Username: "alice", Password: "s3cret-pa55"}
	for name, tc := range map[string]struct {
		files   string
		good    auth.Credential
		bad     auth.Credential
		anybody bool
	}{
		"plain": {anybody: true},
		"ggcr":  {files: "-- registry/kind --\nggcr\n", anybody: true},
		"tls":   {files: "-- registry/tls --\n", anybody: true},
		"mtls":  {files: "-- registry/mtls --\n", anybody: true},
		"basic": {files: "-- registry/auth.json --\n{\"basic\": \"alice:s3cret-pa55\"}\n", good: alice, bad: auth.Credential{Username: "bob", Password: "x"}},
		"ggcr+basic": {files: "-- registry/kind --\nggcr\n-- registry/auth.json --\n{\"basic\": \"alice:s3cret-pa55\"}\n",
			good: alice, bad: auth.Credential{Username: "bob", Password: "x"}},
		"token":        {files: "-- registry/auth.json --\n{\"token\": \"alice:s3cret-pa55\"}\n", good: alice, bad: auth.Credential{Username: "alice", Password: "x"}},
		"token+tls":    {files: "-- registry/tls --\n-- registry/auth.json --\n{\"token\": \"alice:s3cret-pa55\"}\n", good: alice},
		"token+here":   {files: "-- registry/auth.json --\n{\"token\": \"alice:s3cret-pa55\", \"realm\": \"http://registry.test/token\"}\n", good: alice},
		"token+anyone": {files: "-- registry/auth.json --\n{\"token\": \"alice:s3cret-pa55\", \"anonymous\": true}\n", good: alice, anybody: true},
		"identity": {files: "-- registry/auth.json --\n{\"token\": \"alice:s3cret-pa55\", \"identity\": \"refresh-me\"}\n",
			good: auth.Credential{RefreshToken: "refresh-me"}, bad: auth.Credential{RefreshToken: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t, charts+tc.files)
			ctx := t.Context()
			m, layer, err := pull(ctx, repository(t, w, "registry.test/charts/podinfo", tc.good), "6.5.1_b1")
			if err != nil {
				t.Fatal(err)
			}
			if m.Config.MediaType != registry.ConfigType || m.Layers[0].MediaType != registry.LayerType {
				t.Errorf("media types %s, %s", m.Config.MediaType, m.Layers[0].MediaType)
			}
			if got := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); got != string(m.Layers[0].Digest) {
				t.Errorf("layer digest %s", got)
			}
			if v := m.Annotations[ocispec.AnnotationVersion]; v != "6.5.1+b1" {
				t.Errorf("version annotation %q", v)
			}
			_, _, err = pull(ctx, repository(t, w, "registry.test/charts/podinfo", auth.EmptyCredential), "6.5.0")
			if tc.anybody != (err == nil) {
				t.Errorf("anonymous: %v", err)
			}
			if tc.bad != auth.EmptyCredential {
				if _, _, err := pull(ctx, repository(t, w, "registry.test/charts/podinfo", tc.bad), "6.5.0"); err == nil {
					t.Error("wrong credentials were accepted")
				}
			}
			if _, _, err := pull(ctx, repository(t, w, "registry.test/deeply/nested/helmchart", tc.good), "0.1.0"); err != nil {
				t.Errorf("nested: %v", err)
			}
			if leaks := w.Leaks(w.Canaries()); leaks != nil {
				t.Errorf("leaks: %q", leaks)
			}
		})
	}
}

func TestTags(t *testing.T) {
	// go-containerregistry answers a request for a page without a link to the next page.
	for kind, wantPages := range map[string]int{"distribution": 2, "ggcr": 1} {
		w := world(t, charts+"-- registry/kind --\n"+kind+"\n")
		r := repository(t, w, "registry.test/charts/podinfo", auth.EmptyCredential)
		r.TagListPageSize = 4 - wantPages
		var got []string
		pages := 0
		err := r.Tags(t.Context(), "", func(tags []string) error {
			pages++
			got = append(got, tags...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"6.5.0", "6.5.1_b1", "latest"}; !slices.Equal(got, want) || pages != wantPages {
			t.Errorf("%s: tags %v on %d pages, want %v on %d", kind, got, pages, want, wantPages)
		}
	}
}

func TestOddArtifacts(t *testing.T) {
	for _, kind := range []string{"distribution", "ggcr"} {
		w := world(t, `
-- registry/charts --
c/old 1.0.0 layer=application/tar+gzip
c/image 1.0.0 config=application/vnd.oci.image.config.v1+json
c/empty 1.0.0 layer=-
c/index 1.0.0 index
c/prov 1.0.0 provenance
c/lie 1.0.0 sizelie=10
-- registry/kind --
`+kind+"\n")
		manifest := func(name string) ocispec.Manifest {
			m, _, err := pull(t.Context(), repository(t, w, "registry.test/c/"+name, auth.EmptyCredential), "1.0.0")
			if err != nil && name != "lie" {
				t.Errorf("%s: %s: %v", kind, name, err)
			}
			return m
		}
		if m := manifest("old"); m.Layers[0].MediaType != "application/tar+gzip" {
			t.Errorf("old: %v", m.Layers)
		}
		if m := manifest("image"); m.Config.MediaType != ocispec.MediaTypeImageConfig {
			t.Errorf("image: %v", m.Config)
		}
		if m := manifest("empty"); m.Layers[0].MediaType != "text/plain" {
			t.Errorf("empty: %v", m.Layers)
		}
		if m := manifest("index"); m.MediaType != ocispec.MediaTypeImageIndex {
			t.Errorf("index: %v", m.MediaType)
		}
		if m := manifest("prov"); len(m.Layers) != 2 {
			t.Errorf("prov: %v", m.Layers)
		}
		manifest("lie")
	}
}

// TestFaultyRegistry adds faults to manifests and blobs, and has the token server at another host.
func TestFaultyRegistry(t *testing.T) {
	w := world(t, charts+`
-- registry/faults.json --
{
  "/v2/charts/*/manifests/6.5.0": [{"status": 503}],
  "/v2/charts/*/blobs/*": {"redirect": "http://repo-blobs.test/blob", "status": 307}
}
-- registry/auth.json --
{"token": "alice:s3cret-pa55"}
-- repo-blobs/blob --
not the blob
`)
	r := repository(t, w, "registry.test/charts/podinfo", auth.Credential{Username: "alice", Password: "s3cret-pa55"})
	r.Client.(*auth.Client).Cache = auth.NewCache() // without it oras requests a token for each request
	if _, _, err := pull(t.Context(), r, "6.5.0"); err == nil {
		t.Error("503 was not noticed")
	}
	if _, _, err := pull(t.Context(), r, "6.5.0"); err == nil {
		t.Error("another blob was not noticed")
	}
	got := helmtest.Strings(w.Servers["repo-blobs"].Log.All())
	if want := []string{"GET /blob 200"}; !slices.Equal(got, want) {
		t.Errorf("blob store %q, want %q", got, want)
	}
	for _, req := range w.Servers["auth"].Log.All() {
		if !strings.HasPrefix(req.URI, "/token?") || req.Status != 200 {
			t.Errorf("token server: %s", req)
		}
	}
}
