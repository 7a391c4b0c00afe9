//go:build bench

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/index/indextest"
)

// lockedIndexes is the position of the first index for a locked run in the indexes of a scale.
const lockedIndexes = umbrellaIndexes + umbrellaRepositories

// lockedSizes returns the sizes of repositories with the charts of a locked run.
func lockedSizes(repositories, charts int) []size {
	var list []size
	for i := range repositories {
		list = append(list, size{fmt.Sprintf("locked%d", i), charts, 20})
	}
	return list
}

func lockedName(o *options) string {
	sizes := scaleOf(o).Indexes[lockedIndexes:]
	return fmt.Sprintf("%d charts of %d repositories, with a lock", len(sizes)*sizes[0].Charts, len(sizes))
}

// manyLocked fetches every chart of several repositories.
func manyLocked() []contender {
	manifests := func(j *job) (string, error) { return j.manyManifests("") }
	return []contender{
		{name: "helmsrc fetch, cold", tool: "helmsrc", args: with(manifests, "fetch", "-q", "-o", "name")},
		{name: "helmsrc fetch, warm", tool: "helmsrc", warm: true, args: with(manifests, "fetch", "-q", "-o", "name")},
		{name: "helmsrc fetch --locked, cold", tool: "helmsrc", first: with(manifests, "lock", "-q", "--no-cache"), args: with(manifests, "fetch", "-q", "-o", "name", "--locked")},
		{name: "helmsrc fetch --locked, warm", tool: "helmsrc", first: with(manifests, "lock", "-q", "--no-cache"), warm: true, args: with(manifests, "fetch", "-q", "-o", "name", "--locked")},
		{name: "helmsrc fetch --locked, warm (before)", tool: "before", first: with(manifests, "lock", "-q", "--no-cache"), warm: true, args: with(manifests, "fetch", "-q", "-o", "name", "--locked")},
	}
}

// manyManifests writes the manifests of every chart of several repositories, whose paths begin with a prefix.
func (j *job) manyManifests(prefix string) (string, error) {
	var objects []string
	for i, size := range j.scale.Indexes[lockedIndexes:] {
		url := "http://" + j.addr + prefix + strings.TrimPrefix(j.repository(lockedIndexes+i), "http://"+j.addr)
		objects = append(objects, strings.Replace(helmRepository(url, ""), "name: bench", "name: "+size.Name, 1))
		_, version := size.chosen()
		for c := range size.Charts {
			name := indextest.ChartName(c)
			chart := helmChart(size.Name+"-"+name, name, version)
			objects = append(objects, strings.Replace(chart, "name: bench", "name: "+size.Name, 1))
		}
	}
	return j.manifests(objects...)
}

// oneLocked fetches one chart of an index from the URL in a lock. The index is not requested.
func oneLocked(i int) []contender {
	manifests := func(j *job) (string, error) {
		chart, version := j.scale.Indexes[i].chosen()
		return j.manifests(helmRepository(j.repository(i), ""), helmChart("chart", chart, version))
	}
	locked := with(manifests, "lock", "-q", "--no-cache", raisedLimit)
	return []contender{
		{name: "curl, the archive alone", tool: "curl", args: func(j *job) ([]string, error) {
			chart, version := j.scale.Indexes[i].chosen()
			archive := chart + "-" + version + ".tgz"
			return []string{"-sS", "-o", archive, j.repository(i) + "/" + archive}, nil
		}},
		{name: "helmsrc fetch --locked, cold", tool: "helmsrc", first: locked, args: with(manifests, "fetch", "--locked")},
		{name: "helmsrc fetch --locked, cold (before)", tool: "before", first: locked, args: with(manifests, "fetch", "--locked")},
		{name: "helmsrc fetch --locked, warm", tool: "helmsrc", first: locked, warm: true, args: with(manifests, "fetch", "--locked")},
		{name: "helmsrc version", tool: "helmsrc", args: arguments("version")},
	}
}

// with returns the arguments of a command, with manifests that it writes.
func with(manifests func(*job) (string, error), args ...string) func(*job) ([]string, error) {
	return func(j *job) ([]string, error) {
		file, err := manifests(j)
		return append(slices.Clone(args), "-f", file), err
	}
}
