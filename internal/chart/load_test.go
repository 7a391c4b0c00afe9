package chart

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

func load(t testing.TB, entries ...entry) *helmchart.Chart {
	t.Helper()
	c, err := Load(bytes.NewReader(archive(t, entries...)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func subchart(name string) string {
	return "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"
}

func names(charts []*helmchart.Chart) string {
	var s []string
	for _, c := range charts {
		s = append(s, c.Name())
	}
	return strings.Join(s, " ")
}

func TestLoadOrdersSubcharts(t *testing.T) {
	declared := minimal + "dependencies: [{name: z}, {name: b, alias: renamed}, {name: m, alias: m2}, {name: m}, {name: a}]\n"
	c := load(t, filesOf("podinfo",
		"charts/extra2/Chart.yaml", subchart("extra2"),
		"charts/a/Chart.yaml", subchart("a"),
		"charts/m/Chart.yaml", subchart("m"),
		"charts/renamed/Chart.yaml", subchart("renamed"),
		"charts/z-1.0.0.tgz", string(archive(t, filesOf("z", "Chart.yaml", subchart("z"), "charts/w/Chart.yaml", subchart("w"), "charts/v/Chart.yaml", subchart("v"))...)),
		"charts/extra1/Chart.yaml", subchart("extra1"),
		"Chart.yaml", declared)...)
	if got, want := names(c.Dependencies()), "z renamed m a extra1 extra2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := names(c.Dependencies()[0].Dependencies()), "v w"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Charts of API version 2 that still have the files of version 1: Helm reads them and prints a warning to the log,
// from where it would get onto the user's screen.
func TestLoadIsSilent(t *testing.T) {
	var printed bytes.Buffer
	previous := log.Writer()
	log.SetOutput(&printed)
	defer log.SetOutput(previous)
	data := archive(t, filesOf("podinfo", "Chart.yaml", minimal,
		"requirements.yaml", "dependencies: [{name: b, repository: https://example.com}]\n", "requirements.lock", "digest: x\n")...)
	got, err := Load(bytes.NewReader(data), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if printed.Len() > 0 {
		t.Errorf("printed %q", printed.String())
	}
	want, err := loader.LoadArchive(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	sameChart(t, got, want)
}

func TestLoadRefusesOtherVersionsOfTheFormat(t *testing.T) {
	for version, want := range map[string]string{
		"v3": "only the Chart API v2 is supported",
		"v9": "unsupported chart version",
	} {
		data := archive(t, filesOf("a", "Chart.yaml", "apiVersion: "+version+"\nname: a\nversion: 1.0.0\n")...)
		if _, err := Load(bytes.NewReader(data), Limits{}); err == nil || err.Error() != want {
			t.Errorf("apiVersion %s: got error %v, want %q", version, err, want)
		}
	}
}

// benchmarkChart is as large as the larger charts of the field: 300 templates, long values, two packed subcharts.
func benchmarkChart(t testing.TB) []byte {
	values := func(n int) string {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, "component%d:\n  enabled: true\n  # comment %d\n  image: {repository: example/image%d, tag: \"1.%d\"}\n  list: [a, b, %d]\n", i, i, i, i, i)
		}
		return s.String()
	}
	files := filesOf("podinfo", "Chart.yaml", minimal, "values.yaml", values(500))
	for i := range 300 {
		files = append(files, filesOf("podinfo", fmt.Sprintf("templates/t%d.yaml", i), strings.Repeat(fmt.Sprintf("key%d: {{ .Values.component%d.enabled }}\n", i*7919%1000, i), 60))...)
	}
	for _, name := range []string{"b", "c"} {
		sub := archive(t, filesOf(name, "Chart.yaml", subchart(name), "values.yaml", values(100))...)
		files = append(files, filesOf("podinfo", "charts/"+name+"-1.0.0.tgz", string(sub))...)
	}
	return archive(t, files...)
}

func BenchmarkCheck(b *testing.B) {
	data := benchmarkChart(b)
	for _, bb := range []struct {
		name string
		read func(io.Reader) error
	}{
		{"helm", func(r io.Reader) error { _, err := loader.LoadArchive(r); return err }},
		{"check", func(r io.Reader) error { _, _, err := Check(r, Limits{}); return err }},
		{"load", func(r io.Reader) error { _, err := Load(r, Limits{}); return err }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := bb.read(bytes.NewReader(data)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
