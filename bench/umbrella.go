//go:build bench

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/helmsrc/helmsrc/internal/index/indextest"
)

// An umbrella chart has dependencies from several repositories. Other groups use the first indexes of a scale.
const (
	umbrellaIndexes      = 2 // those before
	umbrellaRepositories = 4
	umbrellaCharts       = 5 // from each repository
)

// umbrellaSizes returns the sizes of the repositories with the dependencies of an umbrella chart.
func umbrellaSizes(charts, versions int) []size {
	var list []size
	for i := range umbrellaRepositories {
		list = append(list, size{fmt.Sprintf("umbrella%d", i), charts, versions})
	}
	return list
}

// writeUmbrella writes the chart into a directory.
func (j *job) writeUmbrella(dir string) error {
	var b strings.Builder
	b.WriteString("apiVersion: v2\nname: umbrella\nversion: 1.0.0\ndependencies:\n")
	for i := range umbrellaRepositories {
		size := j.scale.Indexes[umbrellaIndexes+i]
		_, version := size.chosen()
		for c := range umbrellaCharts {
			fmt.Fprintf(&b, "- {name: %s, alias: r%dc%d, version: %s, repository: %q}\n",
				indextest.ChartName(c), i, c, version, j.repository(umbrellaIndexes+i))
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "Chart.yaml"), []byte(b.String()), 0o600)
}

const umbrellaManifests = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: bench}
spec: {interval: 1h, url: "https://git.example.org/charts"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: umbrella}
spec: {interval: 1h, chart: umbrella, sourceRef: {kind: GitRepository, name: bench}}
`

// umbrella packages a chart with its dependencies.
func umbrella() []contender {
	fetch := func(j *job) ([]string, error) {
		tree := filepath.Join(j.work, "tree")
		if err := j.writeUmbrella(filepath.Join(tree, "umbrella")); err != nil {
			return nil, err
		}
		file, err := j.manifests(umbrellaManifests)
		return []string{"fetch", "-f", file, "--source", "GitRepository/bench=" + tree, raisedLimit}, err
	}
	return []contender{
		{name: "helm package --dependency-update", tool: "helm", slow: true, args: func(j *job) ([]string, error) {
			dir := filepath.Join(j.work, "umbrella")
			return []string{"package", "--dependency-update", dir}, j.writeUmbrella(dir)
		}},
		{name: "helmsrc fetch, cold", tool: "helmsrc", args: fetch},
		{name: "helmsrc fetch, warm", tool: "helmsrc", warm: true, args: fetch},
		{name: "helmsrc fetch, cold (before)", tool: "before", args: fetch},
		{name: "helmsrc fetch, warm (before)", tool: "before", warm: true, args: fetch},
	}
}
