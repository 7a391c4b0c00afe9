package helmtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
	"helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"
)

// Created is the time of everything that helmtest makes, unless a test sets another one.
var Created = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)

// Chart is the source of a chart: the content of each file by its slash-separated path below the chart's directory.
type Chart map[string][]byte

//go:embed fixtures.txtar
var fixtures []byte

// Fixture returns one of the charts of fixtures.txtar by the name of its directory. Requirements with a file:// repository are
// not vendored. It returns nil for an unknown name.
func Fixture(name string) Chart {
	var c Chart
	for _, f := range txtar.Parse(fixtures).Files {
		dir, file, _ := strings.Cut(f.Name, "/")
		if dir != name {
			continue
		}
		if c == nil {
			c = Chart{}
		}
		c[file] = f.Data
	}
	return c
}

// NewChart returns a small chart with a Deployment, as `helm create` might leave it.
func NewChart(name, version string) Chart {
	return Chart{
		"Chart.yaml": fmt.Appendf(nil, "apiVersion: v2\nname: %s\nversion: %q\nappVersion: %q\ndescription: The %s chart\ntype: application\n",
			name, version, version, name),
		"values.yaml":               []byte("# Default values\nreplicaCount: 1\nimage:\n  repository: ghcr.io/example/app\n  tag: \"\"\n"),
		"values-prod.yaml":          []byte("replicaCount: 3\nresources:\n  limits:\n    memory: 256Mi\n"),
		"README.md":                 []byte("# " + name + "\n"),
		"templates/deployment.yaml": []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  replicas: {{ .Values.replicaCount }}\n"),
		"templates/NOTES.txt":       []byte("Thank you for installing {{ .Chart.Name }}.\n"),
	}
}

// ReadChart reads the source of a chart from a directory.
func ReadChart(dir string) (Chart, error) {
	c := Chart{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		c[p], err = fs.ReadFile(root, p)
		return err
	})
	return c, err
}

// Metadata parses the Chart.yaml.
func (c Chart) Metadata() (*chart.Metadata, error) {
	var m chart.Metadata
	if err := yaml.Unmarshal(c["Chart.yaml"], &m); err != nil {
		return nil, fmt.Errorf("Chart.yaml: %w", err)
	}
	return &m, nil
}

// With returns a copy of the chart with a file added or replaced.
func (c Chart) With(file, content string) Chart {
	d := maps.Clone(c)
	d[file] = []byte(content)
	return d
}

// Package makes the archive of the chart in the form of `helm package`, but with the time [Created] and the files in order, so
// that the same chart always gives the same bytes. Extra entries come last.
func (c Chart) Package(extra ...Entry) ([]byte, error) {
	m, err := c.Metadata()
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, file := range slices.SortedFunc(maps.Keys(c), chartFileOrder) {
		entries = append(entries, Entry{Header: tar.Header{Name: path.Join(m.Name, file)}, Body: c[file]})
	}
	return Archive(append(entries, extra...)...)
}

// chartFileOrder sorts Chart.yaml first, as Helm does.
func chartFileOrder(a, b string) int {
	switch "Chart.yaml" {
	case a:
		return -1
	case b:
		return 1
	}
	return strings.Compare(a, b)
}

// Entry is one entry of an archive. If mode, time, type and size are zero, they get defaults, type and size from the body;
// Fill is the size of a body of zero bytes.
type Entry struct {
	tar.Header
	Body []byte
	Fill int64
}

const maxStored = 1000 // entries

// Archive makes a gzipped tar of any entries, also hostile ones.
func Archive(entries ...Entry) ([]byte, error) {
	// Another release of Go may compress to other bytes, and digests are expected output. Only large archives are compressed.
	level := gzip.NoCompression
	if len(entries) > maxStored || slices.ContainsFunc(entries, func(e Entry) bool { return e.Fill > 0 }) {
		level = gzip.DefaultCompression
	}
	var b bytes.Buffer
	gz, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		return nil, err
	}
	// These two mark an archive as made by Helm.
	gz.Extra = []byte("+aHR0cHM6Ly95b3V0dS5iZS96OVV6MWljandyTQo=")
	gz.Comment = "Helm"
	tw := tar.NewWriter(gz)
	for _, e := range entries {
		if err := e.write(tw); err != nil {
			return nil, err
		}
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	err = gz.Close()
	return b.Bytes(), err
}

func (e Entry) write(tw *tar.Writer) error {
	h := e.Header
	if h.Mode == 0 {
		h.Mode = 0o644
	}
	if h.ModTime.IsZero() {
		h.ModTime = Created
	}
	if h.Typeflag == 0 || h.Typeflag == tar.TypeReg {
		h.Typeflag = tar.TypeReg
		h.Size = int64(len(e.Body)) + e.Fill
	}
	if err := tw.WriteHeader(&h); err != nil {
		return err
	}
	if _, err := tw.Write(e.Body); err != nil {
		return err
	}
	zeros := make([]byte, min(e.Fill, 1<<20))
	for left := e.Fill; left > 0; left -= int64(len(zeros)) {
		if _, err := tw.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
			return err
		}
	}
	return nil
}

// EntryNames returns the names of the entries of an archive, and reads it to the end.
func EntryNames(archive []byte) ([]string, error) {
	gz, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	var names []string
	for tr := tar.NewReader(gz); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		names = append(names, h.Name)
	}
}
