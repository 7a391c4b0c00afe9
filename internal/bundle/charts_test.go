package bundle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	layouts "oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/bundle"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/helmtest/registry"
	"github.com/helmsrc/helmsrc/internal/store"
)

// served is a registry with a chart that two artifacts refer to, one of which is referred to as well.
func served(t *testing.T, kind string) (*remote.Repository, digest.Digest) {
	t.Helper()
	kit, err := helmtest.NewKit()
	if err != nil {
		t.Fatal(err)
	}
	w := helmtest.NewWorld(kit)
	w.Kinds["registry"] = registry.Kind
	t.Cleanup(w.Close)
	dir := t.TempDir()
	for name, text := range map[string]string{"charts": "charts/podinfo 6.7.1+build\n", "kind": kind + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Start("registry", dir); err != nil {
		t.Fatal(err)
	}
	c := oci.NewClient(fetch.NewClient(fetch.Config{
		Dial: w.Network.Dial, UserAgent: "helmsrc/test", Now: time.Now,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}))
	t.Cleanup(c.CloseIdleConnections)
	n, err := c.Namespace("oci://registry.test/charts", oci.Options{Insecure: true, Write: true})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := n.Remote("podinfo")
	if err != nil {
		t.Fatal(err)
	}
	root, err := repo.Resolve(t.Context(), "6.7.1_build")
	if err != nil {
		t.Fatal(err)
	}
	sbom := attach(t, repo, root, "application/spdx+json", "an SBOM")
	attach(t, repo, sbom, "application/vnd.signature", "a signature of the SBOM")
	attach(t, repo, root, "application/vnd.attestation", "an attestation")
	tag := strings.Replace(root.Digest.String(), ":", "-", 1)
	if err := repo.Tag(t.Context(), sbom, tag+".sbom"); err != nil {
		t.Fatal(err)
	}
	return repo, root.Digest
}

// attach pushes something that refers to something else.
func attach(t *testing.T, repo *remote.Repository, to ocispec.Descriptor, kind, text string) ocispec.Descriptor {
	t.Helper()
	layer := content.NewDescriptorFromBytes(kind, []byte(text))
	err := repo.Push(t.Context(), layer, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	d, err := oras.PackManifest(t.Context(), repo, oras.PackManifestVersion1_1, kind, oras.PackManifestOptions{
		Subject: &to, Layers: []ocispec.Descriptor{layer}, ManifestAnnotations: map[string]string{ocispec.AnnotationCreated: "2026-01-02T03:04:05Z"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What a registry has of a chart is in the layout, as another client reads it: the same digests, and all that refers to it.
func TestCharts(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"distribution", "ggcr"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			repo, d := served(t, kind)
			dir := t.TempDir()
			for name, directory := range map[string]bool{"charts": true, "charts.tar": false} {
				c := charts(t, &store.Scratch{Parent: t.TempDir()})
				for range 2 {
					if err := c.Image(t.Context(), repo, d, "6.7.1_build"); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := c.Write(t.Context(), filepath.Join(dir, name), directory, []byte("a lock"), carried(t), bundle.Base{}); err != nil {
					t.Fatal(err)
				}
			}
			store, err := layouts.New(filepath.Join(dir, "charts"))
			if err != nil {
				t.Fatal(err)
			}
			archive, err := layouts.NewFromTar(t.Context(), filepath.Join(dir, "charts.tar"))
			if err != nil {
				t.Fatal(err)
			}
			for name, from := range map[string]oras.ReadOnlyGraphTarget{"directory": store, "archive": archive} {
				whole(t, name, from, repo, d)
			}
			ours, err := bundle.Open(t.Context(), []string{filepath.Join(dir, "charts.tar")})
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			if len(ours.Names) != 2 {
				t.Errorf("names %v", ours.Names)
			}
			whole(t, "opened", ours, repo, d)
		})
	}
}

// whole copies everything out of a layout, and compares it with what is in the registry.
func whole(t *testing.T, name string, from oras.ReadOnlyGraphTarget, repo *remote.Repository, d digest.Digest) {
	t.Helper()
	got := memory.New()
	root, err := oras.ExtendedCopy(t.Context(), from, "registry.test/charts/podinfo:6.7.1_build", got, "", oras.DefaultExtendedCopyOptions)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if root.Digest != d {
		t.Errorf("%s: digest %s", name, root.Digest)
	}
	want := memory.New()
	err = oras.ExtendedCopyGraph(t.Context(), repo, want, root, oras.DefaultExtendedCopyGraphOptions)
	if err != nil {
		t.Fatal(err)
	}
	for depth, node := 0, root; depth < 2; depth++ {
		a, err := want.Predecessors(t.Context(), node)
		b, failed := got.Predecessors(t.Context(), node)
		if err != nil || failed != nil || len(a) == 0 || len(a) != len(b) {
			t.Fatalf("%s: referrers %v and %v, %v, %v", name, a, b, err, failed)
		}
		for _, next := range a {
			if ok, err := got.Exists(t.Context(), next); err != nil || !ok {
				t.Errorf("%s: %s is missing, %v", name, next.Digest, err)
			}
			if next.ArtifactType == "application/spdx+json" {
				node = next
			}
		}
	}
	sbom, err := from.Resolve(t.Context(), "registry.test/charts/podinfo:"+strings.Replace(d.String(), ":", "-", 1)+".sbom")
	if err != nil || sbom.Digest == d {
		t.Errorf("%s: the SBOM of cosign: %v, %v", name, sbom.Digest, err)
	}
}

// mirrors are repositories of one registry, below its charts.
type mirrors struct{ *remote.Repository }

func (m mirrors) Remote(name string) (*remote.Repository, error) {
	if strings.Contains(name, "refused") {
		return nil, errors.New("refused")
	}
	repo, err := remote.NewRepository(m.Reference.Registry + "/charts/" + name)
	if err == nil {
		repo.Client, repo.PlainHTTP = m.Client, m.PlainHTTP
	}
	return repo, err
}

func (mirrors) Retry(ctx context.Context, try func(context.Context) error) error {
	return try(ctx)
}

// TestMirror: a copy says what was sent, what was there, and which tag named something else before.
func TestMirror(t *testing.T) {
	t.Parallel()
	repo, d := served(t, "distribution")
	name := filepath.Join(t.TempDir(), "charts.tar")
	c := charts(t, &store.Scratch{Parent: t.TempDir()})
	if err := c.Image(t.Context(), repo, d, "6.7.1_build"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(t.Context(), name, false, []byte("a lock"), carried(t), bundle.Base{}); err != nil {
		t.Fatal(err)
	}
	from, err := bundle.Open(t.Context(), []string{name})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	chart := from.Names[slices.IndexFunc(from.Names, func(n bundle.Name) bool { return n.Digest == d })]
	untagged, missing, refused := chart, chart, chart
	untagged.Tag, missing.Digest, refused.Repository = "", godigest.FromString("nothing"), "a.test/refused"
	mirror := func(dry bool, names ...bundle.Name) string {
		from.Names = names
		var states []string
		for _, c := range bundle.Mirror(t.Context(), from, bundle.MirrorOptions{
			To: "oci://registry.test/mirror", Limit: 2, Dry: dry, Remote: mirrors{repo}.Remote, Retry: mirrors{repo}.Retry,
			Started: func(bundle.Name) {}, Finished: func(*bundle.Copy) {},
		}) {
			if (c.Err != nil) != (c.State == bundle.Failed) {
				t.Errorf("%s: %s, %v", c.Name, c.State, c.Err)
			}
			states = append(states, c.State)
		}
		return strings.Join(states, " ")
	}
	tagOf := func() digest.Digest {
		to, err := mirrors{repo}.Remote(bundle.Below("oci://registry.test/mirror", chart.Repository))
		if err != nil {
			t.Fatal(err)
		}
		tagged, err := to.Resolve(t.Context(), chart.Tag)
		if err != nil && !errors.Is(err, errdef.ErrNotFound) {
			t.Fatal(err)
		}
		return tagged.Digest
	}
	other := from.Names[slices.IndexFunc(from.Names, func(n bundle.Name) bool { return n.Digest != d })]
	other.Tag = chart.Tag
	for i, test := range []struct {
		dry    bool
		names  []bundle.Name
		states string
		tag    digest.Digest
	}{
		{false, []bundle.Name{missing, refused}, "failed failed", ""},
		{true, []bundle.Name{chart, chart}, "copied copied", ""},
		{false, []bundle.Name{untagged}, "copied", ""},
		{true, []bundle.Name{untagged, chart}, "present copied", ""},
		{false, []bundle.Name{other}, "copied", other.Digest},
		{true, []bundle.Name{chart}, "moved", other.Digest},
		{false, []bundle.Name{chart, chart, untagged}, "moved present present", d},
	} {
		if got := mirror(test.dry, test.names...); got != test.states {
			t.Errorf("%d: %s, want %s", i, got, test.states)
		}
		if got := tagOf(); got != test.tag {
			t.Errorf("%d: the tag is at %q, want %q", i, got, test.tag)
		}
	}
}

// Archives are stored as Helm would, in the same bytes whatever comes first.
func TestChartsArchive(t *testing.T) {
	t.Parallel()
	first, second := packaged(t, "6.5.0+a"), packaged(t, "7.0.0")
	var texts [][]byte
	for _, order := range [][][]byte{{first, second}, {second, first, first}} {
		c := charts(t, &store.Scratch{Parent: t.TempDir()})
		for _, archive := range order {
			if err := c.Archive(t.Context(), "https://charts.test:8443/stable/", section(archive), []byte("provenance"), false); err != nil {
				t.Fatal(err)
			}
		}
		name := filepath.Join(t.TempDir(), "charts.tar")
		if _, err := c.Write(t.Context(), name, false, nil, carried(t), bundle.Base{}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
		from, err := layouts.NewFromTar(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		_, manifest, err := oras.FetchBytes(t.Context(), from, "charts.test_8443/stable/podinfo:6.5.0_a", oras.DefaultFetchBytesOptions)
		if err != nil || !bytes.Contains(manifest, []byte("application/vnd.cncf.helm.chart.provenance.v1.prov")) {
			t.Errorf("manifest %s, %v", manifest, err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("the order of the charts is in the bundle")
	}
}

// TestChartsIndex: the index of the Helm repository has each chart once, newest first, and nothing else.
func TestChartsIndex(t *testing.T) {
	t.Parallel()
	c := charts(t, &store.Scratch{Parent: t.TempDir()})
	for _, version := range []string{"6.9.0", "6.10.0", "6.10.0-rc.1", "6.8.0+b", "6.8.0+c"} {
		for _, source := range []string{"https://charts.test", "https://other.test"} {
			if err := c.Archive(t.Context(), source, section(packaged(t, version)), []byte("provenance"), false); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "charts")
	if _, err := c.Write(t.Context(), dir, true, nil, carried(t), bundle.Base{}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "index.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Entries map[string][]struct {
			Version string
			URLs    []string
		}
	}
	if err := yaml.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, e := range index.Entries["podinfo"] {
		versions = append(versions, e.Version)
		if blob, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(e.URLs[0]))); err != nil || !bytes.Equal(blob, packaged(t, e.Version)) {
			t.Errorf("%s is not at %v: %v", e.Version, e.URLs, err)
		}
	}
	if got := strings.Join(versions, " "); got != "6.10.0 6.10.0-rc.1 6.9.0 6.8.0+c 6.8.0+b" || len(index.Entries) != 1 {
		t.Errorf("versions %s of %d charts", got, len(index.Entries))
	}
}

// TestChartsLost: what cannot be read any more is not left out.
func TestChartsLost(t *testing.T) {
	t.Parallel()
	for i, lost := 0, 1; i < lost; i++ {
		parent := t.TempDir()
		c := charts(t, &store.Scratch{Parent: parent})
		if err := c.Archive(t.Context(), "https://charts.test/stable/", section(packaged(t, "6.5.0")), nil, false); err != nil {
			t.Fatal(err)
		}
		blobs, err := filepath.Glob(filepath.Join(parent, "*", "*", "blobs", "sha256", "*"))
		if lost = len(blobs); err != nil || lost < 3 {
			t.Fatalf("%v, %v", blobs, err)
		}
		if err := errors.Join(os.Remove(blobs[i]), os.Mkdir(blobs[i], 0o700)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(t.Context(), filepath.Join(t.TempDir(), "charts.tar"), false, nil, carried(t), bundle.Base{}); err == nil {
			t.Errorf("%s: no error", blobs[i])
		}
	}
}

// Two branches may have packages of one name and version. An archive of a repository has no second place.
func TestChartsTaken(t *testing.T) {
	t.Parallel()
	c := charts(t, &store.Scratch{Parent: t.TempDir()})
	first, second := packaged(t, "1.0.0"), packaged(t, "1.0.0", "another description")
	for _, archive := range [][]byte{first, second, first} {
		if err := c.Archive(t.Context(), "https://git.test/a.git", section(archive), nil, true); err != nil {
			t.Error(err)
		}
	}
	if err := c.Archive(t.Context(), "https://charts.test", section(first), nil, false); err != nil {
		t.Error(err)
	}
	err := c.Archive(t.Context(), "http://charts.test", section(second), nil, false)
	if err == nil || !strings.Contains(err.Error(), "would both be charts.test/podinfo:1.0.0") {
		t.Errorf("error %v", err)
	}
}

func packaged(t *testing.T, version string, description ...string) []byte {
	t.Helper()
	source := fmt.Sprintf("apiVersion: v2\nname: podinfo\nversion: %s\ndescription: %q\n", version, strings.Join(description, ""))
	archive, err := helmtest.Chart{"Chart.yaml": []byte(source)}.Package()
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func section(b []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
}

// FuzzRepositoryOf holds that the address of a source is a place below the prefix of a mirror, whatever is in it.
func FuzzRepositoryOf(f *testing.F) {
	for _, seed := range []string{
		"https://charts.test/a/../../b", "http://charts.test/%2e%2e/x", "http://mirror.test@charts.test/x?y=/../z#{a: b}", "oci://-evil/::add-mask::x",
		"https://[::1]:8080/ä", "../..", "charts.test//..//_", "a..b/.-.", "ſ.test/K", "a\n/b\x00c",
	} {
		f.Add(seed)
	}
	grammar := regexp.MustCompile(`^([a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)?$`) // of the specification
	f.Fuzz(func(t *testing.T, url string) {
		if name := bundle.RepositoryOf(url); !grammar.MatchString(name) || strings.Contains(name, "..") {
			t.Errorf("%q: %q", url, name)
		}
	})
}

func TestRepositoryOf(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://stefanprodan.github.io/podinfo/":   "stefanprodan.github.io/podinfo",
		"oci://registry.test:5000/charts/podinfo":   "registry.test_5000/charts/podinfo",
		"registry.test/charts":                      "registry.test/charts",
		"https://user:word@charts.test/A/B?token=x": "charts.test/a/b",
		"ssh://git@git.test/charts.git":             "git.test/charts.git",
		"https://charts.test/a//../b/.c/d_.e/__/f":  "charts.test/a/b/c/d-e/f",
		"https://charts.test/a.%b":                  "charts.test/a-b",
		"https://[::1]:8080/ä%20b":                  "1-8080/20b",
	} {
		if got := bundle.RepositoryOf(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
