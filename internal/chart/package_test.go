package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

var commitTime = time.Date(2024, time.February, 3, 4, 5, 6, 0, time.UTC)

func packaged(t testing.TB, c *helmchart.Chart) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Package(&out, c, commitTime, Limits{}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func unzip(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// contentsOf returns name=data lines in the order of the archive.
func contentsOf(t testing.TB, data []byte) []string {
	t.Helper()
	var out []string
	r := tar.NewReader(bytes.NewReader(unzip(t, data)))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, h.Name+"="+string(body))
	}
}

// fixtures are charts of every kind.
func fixtures(t testing.TB) map[string][]entry {
	packed := func(name string) string {
		return string(archive(t, filesOf(name, "Chart.yaml", subchart(name), "values.yaml", "who: "+name+"\n", "templates/c.yaml", "sub: {{ .Values.who }} {{ .Chart.Name }}\n")...))
	}
	return map[string][]entry{
		"minimal": filesOf("podinfo", "Chart.yaml", minimal),
		"everything": filesOf("podinfo",
			"Chart.yaml", minimal+"type: application\nappVersion: \"1.10\"\nkubeVersion: '>=1.20.0-0'\nannotations: {b: \"1\", a: \"2\"}\nkeywords: [z, a]\nmaintainers: [{name: someone}]\n"+
				"dependencies: [{name: zeta, version: ^1, repository: 'https://example.com'}, {name: alpha, version: '*', repository: '', alias: second, condition: second.enabled, tags: [x], import-values: [data]}]\n",
			"Chart.lock", "dependencies: [{name: zeta, version: 1.0.0, repository: 'https://example.com'}]\ndigest: sha256:abc\ngenerated: \"2024-01-02T03:04:05.678901234+02:00\"\n",
			"values.yaml", "# kept as it is\nreplicas: 1\nsecond: {enabled: true, who: me}\n", "values.schema.json", `{"type": "object"}`,
			"templates/z.yaml", "replicas: {{ .Values.replicas }}\nfile: {{ .Files.Get \"files/b\" }}\n", "templates/_helpers.tpl", "{{ define \"x\" }}x{{ end }}", "templates/a.yaml", "a: {{ include \"x\" . }}\n",
			"crds/c.yaml", "kind: CustomResourceDefinition\n", "README.md", "# hi\n", "files/b", "binary\x00", "files/a", "", ".helmignore", "*.bak\n",
			"charts/zeta-1.0.0.tgz", packed("zeta"), "charts/zeta-1.0.0.tgz.prov", "signature",
			"charts/alpha/Chart.yaml", subchart("alpha"), "charts/alpha/values.yaml", "who: alpha\n", "charts/alpha/templates/t.yaml", "alpha: {{ .Values.who }}\n",
			"charts/alpha/charts/deep/Chart.yaml", subchart("deep"), "charts/alpha/charts/deep/templates/t.yaml", "deep: {{ .Chart.Version }}\n",
			"charts/undeclared/Chart.yaml", subchart("undeclared")),
		"case 37: v1": filesOf("helmchart-v1", "Chart.yaml", "apiVersion: v1\nname: helmchart-v1\nversion: 0.2.0\n", "values.yaml", "a: 1\n", "templates/a.yaml", "a: {{ .Values.a }}\n"),
		"case 37: v1 with requirements": filesOf("helmchartwithdeps-v1", "Chart.yaml", "name: helmchartwithdeps-v1\nversion: 0.3.0\n",
			"requirements.yaml", "dependencies: [{name: zeta, version: 1.0.0, repository: 'file://../zeta'}]\n", "requirements.lock", "dependencies: [{name: zeta, version: 1.0.0, repository: 'file://../zeta'}]\ndigest: sha256:abc\ngenerated: \"2024-01-02T03:04:05Z\"\n",
			"charts/zeta-1.0.0.tgz", packed("zeta")),
		"v2 with requirements": filesOf("old", "Chart.yaml", "apiVersion: v2\nname: old\nversion: 1.0.0\n",
			"requirements.yaml", "dependencies: [{name: zeta, version: 1.0.0, repository: 'file://../zeta'}]\n", "charts/zeta-1.0.0.tgz", packed("zeta")),
		"long names": filesOf("podinfo", "Chart.yaml", minimal, "templates/"+strings.Repeat("directory/", 30)+"ä.yaml", "a: b\n"),
	}
}

// The archive has the contents that Helm's own Save gives it; Helm loads it and renders it as it renders the original.
func TestPackageLikeHelm(t *testing.T) {
	for name, entries := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			c := load(t, entries...)
			data := packaged(t, c)
			saved, err := chartutil.Save(load(t, entries...), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(saved)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := sorted(contentsOf(t, data)), sorted(contentsOf(t, want)); !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			again, err := loader.LoadArchive(bytes.NewReader(data))
			if err != nil {
				t.Fatalf("Helm refuses it: %v", err)
			}
			if got, want := render(t, again), render(t, load(t, entries...)); !reflect.DeepEqual(got, want) {
				t.Errorf("renders as %q, want %q", got, want)
			}
		})
	}
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

func render(t *testing.T, c *helmchart.Chart) map[string]string {
	t.Helper()
	if err := chartutil.ProcessDependenciesWithMerge(c, c.Values); err != nil {
		t.Fatal(err)
	}
	values, err := chartutil.ToRenderValues(c, map[string]any{}, chartutil.ReleaseOptions{Name: "r", Namespace: "n"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := engine.Render(c, values)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPackageOrder(t *testing.T) {
	var names []string
	for _, line := range contentsOf(t, packaged(t, load(t, fixtures(t)["everything"]...))) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, strings.TrimPrefix(name, "podinfo/"))
	}
	want := []string{
		"Chart.yaml", "Chart.lock", "values.yaml", "values.schema.json",
		"templates/_helpers.tpl", "templates/a.yaml", "templates/z.yaml",
		".helmignore", "README.md", "charts/zeta-1.0.0.tgz.prov", "crds/c.yaml", "files/a", "files/b",
		"charts/zeta/Chart.yaml", "charts/zeta/values.yaml", "charts/zeta/templates/c.yaml",
		"charts/alpha/Chart.yaml", "charts/alpha/values.yaml", "charts/alpha/templates/t.yaml",
		"charts/alpha/charts/deep/Chart.yaml", "charts/alpha/charts/deep/templates/t.yaml",
		"charts/undeclared/Chart.yaml",
	}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("got %q", names)
	}
}

// The same chart gives the same bytes, for any order of its files, directory, time zone and day.
func TestPackageIsReproducible(t *testing.T) {
	entries := fixtures(t)["everything"]
	want := packaged(t, load(t, entries...))
	local := time.Local
	defer func() { time.Local = local }()
	for i := range 10 {
		slices.Reverse(entries)
		if i%3 == 0 {
			entries = append(entries[3:], entries[:3]...)
		}
		var out bytes.Buffer
		zone := time.FixedZone("somewhere", i*3600)
		time.Local = zone
		if err := Package(&out, load(t, entries...), commitTime.In(zone).Add(time.Duration(i)), Limits{}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Fatalf("run %d: other bytes", i)
		}
	}
	// If this fails because of another version of a library, PackageFormat grows.
	if got, want := fmt.Sprintf("%x", sha256.Sum256(want)), "e7a1b0f4960981cca858e38c6319aeec72414bc6eafd145ca8a3098cbc1e3b7e"; got != want {
		t.Errorf("format %d: got %s", PackageFormat, got)
	}
}

func TestPackageHeaders(t *testing.T) {
	for _, tt := range []struct{ given, want time.Time }{
		{commitTime, commitTime},
		{time.Time{}, earliest},
		{time.Unix(-1, 0), earliest},
	} {
		var out bytes.Buffer
		if err := Package(&out, load(t, fixtures(t)["everything"]...), tt.given, Limits{}); err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(out.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if !z.ModTime.IsZero() || z.Name != "" || z.OS != 255 {
			t.Errorf("gzip header tells about this machine: %+v", z.Header)
		}
		r := tar.NewReader(z)
		for {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if !h.ModTime.Equal(tt.want) || h.Mode != 0o644 || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
				t.Errorf("%s: %+v", h.Name, h)
			}
		}
	}
}

// Subcharts that Helm's Save would write over each other, or where its loader would not look.
func TestPackageSubchartDirectories(t *testing.T) {
	version := func(name, v string) string { return "apiVersion: v2\nname: " + name + "\nversion: " + v + "\n" }
	c := load(t, filesOf("podinfo", "Chart.yaml", minimal,
		"charts/m1/Chart.yaml", version("m", "1.0.0"), "charts/m2/Chart.yaml", version("m", "2.0.0"), "charts/m3/Chart.yaml", version("m", "2.0.0"),
		"charts/a/Chart.yaml", version("_hidden", "1.0.0"), "charts/b/Chart.yaml", version(".dot", "1.0.0"), "charts/c/Chart.yaml", version("c.tgz", "1.0.0"))...)
	again, err := Load(bytes.NewReader(packaged(t, c)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	sameChart(t, again, c)
}

func TestPackageRefuses(t *testing.T) {
	file := func(name, data string) *helmchart.File { return &helmchart.File{Name: name, Data: []byte(data)} }
	for _, tt := range []struct {
		name   string
		change func(*helmchart.Chart)
		limits Limits
		want   string
	}{
		{"invalid schema", func(c *helmchart.Chart) { c.Schema = []byte("type: object") }, Limits{}, "invalid JSON in 'podinfo/values.schema.json'"},
		{"empty schema, as Helm", func(c *helmchart.Chart) { c.Schema = []byte{} }, Limits{}, "invalid JSON in 'podinfo/values.schema.json'"},
		{"climbing name", func(c *helmchart.Chart) { c.Files = append(c.Files, file("../x", "")) }, Limits{}, "chart illegally references parent directory: 'podinfo/../x'"},
		{"climbing inside", func(c *helmchart.Chart) { c.Files = append(c.Files, file("a/../x", "")) }, Limits{}, "'podinfo/a/../x' cannot be the name of a file in a chart archive"},
		{"absolute name", func(c *helmchart.Chart) { c.Templates = append(c.Templates, file("/x", "")) }, Limits{}, "chart illegally contains absolute paths: 'podinfo//x'"},
		{"backslash", func(c *helmchart.Chart) { c.Templates = append(c.Templates, file(`templates/a\b`, "")) }, Limits{}, `'podinfo/templates/a\\b' cannot be the name of a file`},
		{"NUL", func(c *helmchart.Chart) { c.Files = append(c.Files, file("a\x00b", "")) }, Limits{}, `'podinfo/a\x00b': archive/tar: `},
		{"no version", func(c *helmchart.Chart) { c.Metadata.Version = "" }, Limits{}, "chart validation: validation: chart.metadata.version is required"},
		{"no metadata", func(c *helmchart.Chart) { c.Metadata = nil }, Limits{}, "chart validation: validation: chart.metadata is required"},
		{"subchart called ..", func(c *helmchart.Chart) {
			c.AddDependency(&helmchart.Chart{Metadata: &helmchart.Metadata{APIVersion: "v2", Name: "..", Version: "1"}})
		},
			Limits{}, `subchart '..': chart validation: validation: chart.metadata.name ".." is not allowed`},
		{"subchart without metadata", func(c *helmchart.Chart) { c.AddDependency(&helmchart.Chart{}) }, Limits{}, "subchart of 'podinfo' has no metadata"},
		{"file too large", func(c *helmchart.Chart) { c.Files = append(c.Files, file("x", strings.Repeat("x", 100))) }, Limits{File: 99}, "size of 'x' exceeds '99' bytes limit"},
		{"all files too large", func(c *helmchart.Chart) { c.Files = append(c.Files, file("x", strings.Repeat("x", 100))) }, Limits{Unpacked: 110}, "unpacked size of chart exceeds '110' bytes limit"},
		{"too many files", func(c *helmchart.Chart) { c.Files = append(c.Files, file("x", "")) }, Limits{Entries: 1}, "archive has more than 1 entries"},
		{"archive too large", func(*helmchart.Chart) {}, Limits{Archive: 100}, "size of chart 'podinfo-6.9.1.tgz' exceeds '100' bytes limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := load(t, filesOf("podinfo", "Chart.yaml", minimal)...)
			tt.change(c)
			err := Package(io.Discard, c, commitTime, tt.limits)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestPackageReportsWriteErrors(t *testing.T) {
	c := load(t, fixtures(t)["everything"]...)
	size := len(packaged(t, c))
	for n := 0; n < size; n += 7 {
		w := &limitedWriter{w: io.Discard, left: int64(n), err: io.ErrShortWrite}
		if err := Package(w, c, commitTime, Limits{}); err == nil {
			t.Fatalf("%d of %d bytes written, and no error", n, size)
		}
	}
}

// FuzzPackage: loading a package gives the chart that went into it, and packaging it again gives the same bytes.
func FuzzPackage(f *testing.F) {
	for _, entries := range fixtures(f) {
		f.Add(byte(fuzzTar), tarball(f, entries...))
	}
	for _, lines := range []string{
		"a/Chart.yaml=apiVersion: v2\\name: a\\version: 1.0.0\na/values.yaml=a: 1\na/values.yaml=b: 1\na/b=1\na/b=2",
		"a/Chart.yaml=apiVersion: v2\\name: a\\version: 1.0.0\na/charts/x/Chart.yaml=name: c.tgz\\version: 1\na/charts/y/Chart.yaml=name: c.tgz\\version: 1",
		"a/Chart.yaml=apiVersion: v2\\name: a\\version: 1.0.0\\annotations: {}\\maintainers: []\na/Chart.lock=null\na/charts=",
		"a/Chart.yaml=apiVersion: v2\\name: Chart.yaml\\version: 1.0.0",
	} {
		f.Add(byte(fuzzEntries), []byte(lines))
	}
	f.Fuzz(func(t *testing.T, mode byte, data []byte) {
		c, err := Load(bytes.NewReader(fuzzArchive(t, mode, data)), Limits{})
		if err != nil || !survives(c) {
			return
		}
		var first, second bytes.Buffer
		if err := Package(&first, c, commitTime, Limits{}); err != nil {
			return
		}
		again, err := Load(bytes.NewReader(first.Bytes()), Limits{})
		if err != nil {
			t.Fatalf("cannot be loaded: %v", err)
		}
		sameChart(t, normal(t, again), normal(t, c))
		if err := Package(&second, again, commitTime, Limits{}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Error("packaged twice, other bytes")
		}
	})
}

// survives reports whether a chart is of the kind that Helm's format keeps whole: not of API version 1, which may have
// its dependencies in a place that is not written, and without provenance files in subcharts, which move upwards.
func survives(c *helmchart.Chart) bool {
	for _, sub := range c.Dependencies() {
		if slices.ContainsFunc(append(sub.Files, sub.Templates...), func(f *helmchart.File) bool { return filepath.Ext(f.Name) == ".prov" }) || !survives(sub) {
			return false
		}
	}
	return c.Metadata.APIVersion != helmchart.APIVersionV1
}

// normal returns a chart with its files in order, and without differences between nil and empty values.
func normal(t *testing.T, c *helmchart.Chart) *helmchart.Chart {
	c = clone(c)
	c.Metadata = roundTrip(t, c.Metadata)
	if c.Lock != nil {
		c.Lock = roundTrip(t, c.Lock)
	}
	for _, files := range []*[]*helmchart.File{&c.Templates, &c.Files} {
		*files = slices.Clone(*files)
		slices.SortStableFunc(*files, func(a, b *helmchart.File) int { return strings.Compare(a.Name, b.Name) })
	}
	c.Raw = nil
	var subs []*helmchart.Chart
	for _, sub := range c.Dependencies() {
		subs = append(subs, normal(t, sub))
	}
	c.SetDependencies(subs...)
	return c
}

func roundTrip[T any](t *testing.T, v *T) *T {
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := yaml.Unmarshal(data, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// BenchmarkPackage packages a chart of 300 files, as Helm's Save does.
func BenchmarkPackage(b *testing.B) {
	c, err := Load(bytes.NewReader(benchmarkChart(b)), Limits{})
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	b.Run("helm", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := chartutil.Save(c, dir); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("package", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f, err := os.Create(filepath.Join(dir, "out.tgz"))
			if err != nil {
				b.Fatal(err)
			}
			if err := Package(f, c, commitTime, Limits{}); err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
}
