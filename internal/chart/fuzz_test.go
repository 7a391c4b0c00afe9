package chart

import (
	"archive/tar"
	"bytes"
	"cmp"
	"io"
	"log"
	"reflect"
	"slices"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"
)

// How FuzzCheck makes an archive of its input.
const (
	fuzzRaw     = iota // the archive itself
	fuzzTar            // the tar inside
	fuzzEntries        // lines of a name and its contents, which the next line may continue
	fuzzModes
)

// fuzzArchive reads "name<type>=contents" lines; in contents a backslash represents the end of a line.
func fuzzArchive(t testing.TB, mode byte, data []byte) []byte {
	switch mode % fuzzModes {
	case fuzzRaw:
		return data
	case fuzzTar:
		return zipped(t, data)
	}
	var entries []entry
	for line := range strings.Lines(string(data)) {
		name, contents, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		e := entry{name: name, data: strings.ReplaceAll(contents, `\`, "\n")}
		if rest, ok := strings.CutSuffix(name, "@"); ok {
			e = entry{name: rest, typeflag: tar.TypeSymlink}
		}
		if e.name == "" || strings.HasSuffix(e.name, "/") || strings.ContainsRune(e.name, 0) {
			continue
		}
		entries = append(entries, e)
	}
	return archive(t, entries...)
}

// FuzzCheck compares Check and Load with Helm's own loader: they refuse every chart that Helm refuses, and Helm loads
// every chart that they accept as the same chart.
func FuzzCheck(f *testing.F) {
	previous := log.Writer()
	log.SetOutput(io.Discard) // Helm's loader prints
	f.Cleanup(func() { log.SetOutput(previous) })
	sub := archive(f, filesOf("b", "Chart.yaml", "name: b\nversion: v1\n")...)
	full := filesOf("podinfo", "Chart.yaml", minimal, "values.yaml", "a: 1", "charts/b.tgz", string(sub), "charts/c/Chart.yaml", minimal, "charts/c/charts/d/Chart.yaml", minimal)
	f.Add(byte(fuzzRaw), archive(f, full...))
	f.Add(byte(fuzzRaw), join(archive(f, full...), []byte("x")))
	f.Add(byte(fuzzRaw), join(archive(f, full...), archive(f, full...)))
	f.Add(byte(fuzzTar), tarball(f, full...))
	for _, lines := range []string{
		"a/Chart.yaml=name: a\\version: 1.0.0\na/values.yaml=a: 1",
		"a/Chart.yaml=apiVersion: v2\\name: a\\version: 1.0.0\na/requirements.yaml=name: b\\dependencies: [{name: c}]\na/requirements.lock=digest: x",
		"a/Chart.yaml=name: a\\version: 1.0.0\na/requirements.yaml=apiVersion: ''",
		"a/requirements.yaml=apiVersion: v2\\name: a\\version: 1.0.0",
		"a/Chart.yaml=name: a\\version: 1.0.0\na/Chart.lock=null\na/charts/b.tgz/x=\na/charts/b.tgz=x",
		"a/Chart.yaml=name: a\\version: 1.0.0\na/charts/b@\na/charts/.x@\na/charts/_x@",
		"a\\Chart.yaml=name: a\\version: 1.0.0\na\\..\\x=",
		"a/Chart.yaml=name: a\\version: 1.0.0\na/values.yaml=a: 1\na/values.yaml=[]",
		"a/Chart.yaml=name: a\\version: 1.0.0\na/values.schema.json=[",
		"a/Chart.yaml=name: a\\version: 1.0.0\\maintainers: [null]",
		"a/Chart.yaml=name: a\\version: 1.0.0\\dependencies: [{name: b, alias: c}, {name: c}]",
		"\\Chart.yaml=name: a\\version: 1.0.0\na\\empty",
		"Chart.yaml/a=\n/Chart.yaml=name: a\n//a=\n./.=",
	} {
		f.Add(byte(fuzzEntries), []byte(lines))
	}
	f.Fuzz(func(t *testing.T, mode byte, data []byte) {
		data = fuzzArchive(t, mode, data)
		helms, helmErr := loader.LoadArchive(bytes.NewReader(data))
		m, _, err := Check(bytes.NewReader(data), Limits{})
		if err != nil {
			if strings.HasSuffix(err.Error(), ": EOF") || err == io.EOF || err == io.ErrUnexpectedEOF {
				t.Errorf("bare error %q", err)
			}
			return
		}
		if helmErr != nil {
			t.Fatalf("Helm refuses what Check accepts: %v", helmErr)
		}
		if !reflect.DeepEqual(m, helms.Metadata) {
			t.Errorf("Helm's metadata: %+v\nCheck's: %+v", helms.Metadata, m)
		}
		c, err := Load(bytes.NewReader(data), Limits{})
		switch {
		case err == nil:
			sameChart(t, c, helms)
		case m.APIVersion == helmchart.APIVersionV1 || m.APIVersion == helmchart.APIVersionV2:
			t.Errorf("Load refuses what Check accepts: %v", err)
		}
	})
}

// sameChart compares all but the order of subcharts, which is random in Helm, and their raw files.
func sameChart(t *testing.T, got, want *helmchart.Chart) {
	t.Helper()
	for _, d := range []struct {
		what      string
		got, want any
	}{
		{"metadata", got.Metadata, want.Metadata},
		{"lock", got.Lock, want.Lock},
		{"templates", got.Templates, want.Templates},
		{"values", got.Values, want.Values},
		{"schema", got.Schema, want.Schema},
		{"files", got.Files, want.Files},
	} {
		if !reflect.DeepEqual(d.got, d.want) {
			t.Errorf("%s of %s: got %+v, want %+v", d.what, want.Name(), d.got, d.want)
		}
	}
	gotSubs, wantSubs := byIdentity(got), byIdentity(want)
	if len(gotSubs) != len(wantSubs) {
		t.Fatalf("%s has %d subcharts, want %d", want.Name(), len(gotSubs), len(wantSubs))
	}
	for i := range wantSubs {
		sameChart(t, gotSubs[i], wantSubs[i])
	}
}

func byIdentity(c *helmchart.Chart) []*helmchart.Chart {
	return slices.SortedFunc(slices.Values(c.Dependencies()), func(a, b *helmchart.Chart) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Metadata.Version, b.Metadata.Version),
			cmp.Compare(identity(a), identity(b)))
	})
}

// identity returns a text that distinguishes subcharts with the same name and version.
func identity(c *helmchart.Chart) string {
	var s strings.Builder
	for _, f := range c.Raw {
		if !strings.HasPrefix(f.Name, chartsDir) {
			s.WriteString(f.Name + "\x00" + string(f.Data) + "\x00")
		}
	}
	for _, sub := range byIdentity(c) {
		s.WriteString(identity(sub))
	}
	return s.String()
}

// FuzzValues holds the short way to judge values.yaml against the long one.
func FuzzValues(f *testing.F) {
	for _, s := range []string{
		"", "a: b", "null", "---\n", "[]", "scalar", "a: .nan", "a: -.inf", "1: a", "true: a", "~: a", "[a]: b", "{a: {}: b}", "a: !!timestamp 2001-01-01", "a: 2001-01-01",
		"a: &x {b: 1}\nc: *x\nd: {<<: *x}", "a: 1\na: 2", "a: !!binary gICA", "a: 18446744073709551615", "a: 1e400", "a: 0x10", "a: !custom 1", "a: *x", "\ta: b", "a: b\n---\n[",
		strings.Repeat("{a: ", 900) + strings.Repeat("}", 900), strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "a: " + strings.Repeat("[", 9999) + strings.Repeat("]", 9999),
		"a: " + strings.Repeat("[", 10001) + strings.Repeat("]", 10001), strings.Repeat("- ", 9000) + "a",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want := yaml.Unmarshal(data, new(map[string]any))
		if got := checkValues(data); (got == nil) != (want == nil) {
			t.Errorf("got %v, Helm %v", got, want)
		}
	})
}
