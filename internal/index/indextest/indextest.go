// Package indextest writes Helm repository indexes of any size, for benchmarks. It is linked into tests only.
package indextest

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"time"
)

// Generate writes an index of charts with the same number of versions each, as Helm writes it, with entries as large as in
// public repositories: about 1.1 KB each. The same arguments give the same bytes. URLs begin with baseURL, if it is not empty.
func Generate(w io.Writer, charts, versions int, baseURL string) error {
	b := bufio.NewWriterSize(w, 64<<10)
	fmt.Fprint(b, "apiVersion: v1\nentries:\n")
	for c := range charts {
		name := ChartName(c)
		fmt.Fprintf(b, "  %s:\n", name)
		for v := versions - 1; v >= 0; v-- {
			entry(b, name, c, v, baseURL)
		}
	}
	fmt.Fprintf(b, "generated: %q\n", stamp(charts*versions))
	return b.Flush()
}

// ChartName returns the name of a chart, counted from 0. Names are sorted like their numbers.
func ChartName(chart int) string { return fmt.Sprintf("chart-%05d", chart) }

// Version returns a version of a chart, counted from 0, the oldest.
func Version(version int) string {
	return fmt.Sprintf("%d.%d.%d", version/50, version/5%10, version%5)
}

func stamp(n int) string {
	return time.Date(2020, 1, 1, 0, 0, n, 123456789, time.UTC).Format(time.RFC3339Nano)
}

func entry(w io.Writer, name string, c, v int, baseURL string) {
	version := Version(v)
	image := fmt.Sprintf("docker.io/example/%s:%d.%d.%d-debian-12-r%d", name, v%7, c%11, v%13, v)
	fmt.Fprintf(w, `  - annotations:
      category: Infrastructure
      images: |
        - name: %[1]s
          image: %[2]s
      licenses: Apache-2.0
    apiVersion: v2
    appVersion: %[3]d.%[4]d.%[5]d
    created: %[6]q
    dependencies:
    - name: common
      repository: oci://registry-1.docker.io/example
      tags:
      - example-common
      version: 2.x.x
    - condition: cache.enabled
      name: cache
      repository: oci://registry-1.docker.io/example
      version: %[4]d.x.x
    description: 'Chart %[4]d is a fast and scalable service: it stores and serves
      the objects of an application.'
    digest: %[7]x
    home: https://example.com/%[1]s
    keywords:
    - %[1]s
    - storage
    - cluster
    maintainers:
    - email: charts@example.com
      name: Example, Inc.
      url: https://github.com/example/charts
    name: %[1]s
    sources:
    - https://github.com/example/charts
    urls:
    - %[8]s%[1]s-%[9]s.tgz
    version: %[9]s
`, name, image, v%7, c, v%13, stamp(c*7919+v), sha256.Sum256([]byte(name+version)), prefix(baseURL), version)
}

func prefix(baseURL string) string {
	if baseURL == "" {
		return ""
	}
	return baseURL + "/"
}
