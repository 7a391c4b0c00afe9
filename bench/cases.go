//go:build bench

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/helmsrc/helmsrc/internal/index/indextest"
)

// group is a task that several programs do.
type group struct {
	name       string
	contenders []contender
	runs       int // at least; 0 for the usual number
	// after prints more below the table, unless it is nil.
	after func(context.Context, *runner, io.Writer) error
}

// contender is a program with arguments for the task.
type contender struct {
	name string
	tool string
	slow bool // a few runs are enough
	warm bool // the files of an earlier run of the command exist
	// first is a command that runs before and is not measured, or nil.
	first func(*job) ([]string, error)
	args  func(*job) ([]string, error)
}

// job holds the values for the arguments of a contender.
type job struct {
	addr  string
	scale scale
	work  string // an empty directory, and the working directory
	data  string // the directory of the server
}

func (j *job) repository(index int) string {
	return "http://" + j.addr + "/" + j.scale.Indexes[index].Name
}

// manifests writes a file of objects.
func (j *job) manifests(objects ...string) (string, error) {
	file := filepath.Join(j.work, "manifests.yaml")
	return file, os.WriteFile(file, []byte(strings.Join(objects, "---\n")), 0o600)
}

func helmRepository(url, spec string) string {
	return fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: bench}
spec: {interval: 1h, url: %q%s}
`, url, spec)
}

func helmChart(name, chart, version string) string {
	return fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: %q}
spec: {interval: 1h, chart: %q, version: %q, sourceRef: {kind: HelmRepository, name: bench}}
`, name, chart, version)
}

const raisedLimit = "--helm-index-max-size=1Gi"

func groups(o *options) []group {
	return []group{
		version(),
		{name: fmt.Sprintf("validate, %d objects", scaleOf(o).Objects), contenders: validated()},
		{name: fmt.Sprintf("a repository of %d apps with a Kustomization each", scaleOf(o).Apps), contenders: apps()},
		{name: fmt.Sprintf("a repository of %d apps in namespaces, below one Kustomization that patches them", scaleOf(o).Apps), contenders: namespaced()},
		{name: fmt.Sprintf("a repository of %d apps with components and settings", scaleOf(o).HomeApps), contenders: home()},
		{name: fmt.Sprintf("a repository of %d clusters with %d apps", scaleOf(o).Clusters, scaleOf(o).ClusterApps), contenders: fleet()},
		{name: fmt.Sprintf("one changed file of %d objects", 2*scaleOf(o).HookApps), contenders: changed()},
		{name: "index " + describe(o, 0), contenders: indexed(0, true)},
		{name: "index " + describe(o, 1), contenders: indexed(1, false)},
		{name: fmt.Sprintf("%d charts of one repository", scaleOf(o).Many), contenders: many()},
		far(o),
		{name: lockedName(o), contenders: manyLocked()},
		{name: "one chart, with a lock, of an index " + describe(o, 0), contenders: oneLocked(0)},
		{name: fmt.Sprintf("an umbrella chart with %d dependencies", umbrellaRepositories*umbrellaCharts), contenders: umbrella()},
		{name: "registry, exact version", contenders: registryPulls(exactVersion)},
		{name: fmt.Sprintf("registry, newest of %d tags", scaleOf(o).Tags), contenders: registryPulls(anyVersion)},
		{name: "a chart in a Git repository", contenders: cloned()},
		{name: "the signature of a chart in a registry", contenders: verified()},
	}
}

func describe(o *options, i int) string {
	s := scaleOf(o).Indexes[i]
	return fmt.Sprintf("of %d charts × %d versions", s.Charts, s.Versions)
}

func arguments(args ...string) func(*job) ([]string, error) {
	return func(*job) ([]string, error) { return args, nil }
}

// indexed fetches an index and one archive.
func indexed(i int, helm bool) []contender {
	fetch := func(j *job) ([]string, error) {
		chart, version := j.scale.Indexes[i].chosen()
		file, err := j.manifests(helmRepository(j.repository(i), ""), helmChart("chart", chart, version))
		return []string{"fetch", "-f", file, raisedLimit}, err
	}
	list := []contender{
		{name: "curl", tool: "curl", args: func(j *job) ([]string, error) {
			chart, version := j.scale.Indexes[i].chosen()
			base := j.repository(i)
			archive := chart + "-" + version + ".tgz"
			return []string{"-sS", "-o", "index.yaml", base + "/index.yaml", "-o", archive, base + "/" + archive}, nil
		}},
		{name: "helmsrc fetch, cold", tool: "helmsrc", args: fetch},
		{name: "helmsrc fetch, warm", tool: "helmsrc", warm: true, args: fetch},
		{name: "helmsrc fetch, cold (before)", tool: "before", args: fetch},
		{name: "helmsrc fetch, warm (before)", tool: "before", warm: true, args: fetch},
	}
	if helm {
		list = append(list, contender{name: "helm pull --repo", tool: "helm", slow: true, args: func(j *job) ([]string, error) {
			chart, version := j.scale.Indexes[i].chosen()
			return []string{"pull", chart, "--repo", j.repository(i), "--version", version}, nil
		}})
	}
	return list
}

// many fetches very many charts of one repository.
func many() []contender {
	fetch := func(j *job) ([]string, error) {
		size := j.scale.Indexes[0]
		_, version := size.chosen()
		objects := []string{helmRepository(j.repository(0), "")}
		for i := range min(j.scale.Many, size.Charts) {
			name := indextest.ChartName(i)
			objects = append(objects, helmChart(name, name, version))
		}
		file, err := j.manifests(objects...)
		return []string{"fetch", "-f", file, raisedLimit}, err
	}
	return []contender{
		{name: "curl, one process", tool: "curl", args: func(j *job) ([]string, error) {
			size, base := j.scale.Indexes[0], j.repository(0)
			_, version := size.chosen()
			args := []string{"-sS", "-o", "index.yaml", base + "/index.yaml"}
			for i := range min(j.scale.Many, size.Charts) {
				archive := indextest.ChartName(i) + "-" + version + ".tgz"
				args = append(args, "-o", archive, base+"/"+archive)
			}
			return args, nil
		}},
		{name: "helmsrc fetch, cold", tool: "helmsrc", args: fetch},
		{name: "helmsrc fetch, warm", tool: "helmsrc", warm: true, args: fetch},
		{name: "helmsrc fetch, cold (before)", tool: "before", args: fetch},
		{name: "helmsrc fetch, warm (before)", tool: "before", warm: true, args: fetch},
	}
}

func exactVersion(s scale) string { return ociVersion(s.Tags - 1) }
func anyVersion(scale) string     { return ">=0.0.0" }

// registryPulls fetches a chart of an OCI registry.
func registryPulls(version func(scale) string) []contender {
	fetch := func(j *job) ([]string, error) {
		file, err := j.manifests(
			helmRepository("oci://"+j.addr+"/charts", ", type: oci, insecure: true"),
			helmChart("chart", ociChart, version(j.scale)))
		return []string{"fetch", "-f", file}, err
	}
	return []contender{
		{name: "helm pull oci://…", tool: "helm", args: func(j *job) ([]string, error) {
			return []string{"pull", "oci://" + j.addr + "/charts/" + ociChart, "--plain-http", "--version", version(j.scale)}, nil
		}},
		{name: "oras pull", tool: "oras", args: func(j *job) ([]string, error) {
			return []string{"pull", "--plain-http", j.addr + "/charts/" + ociChart + ":" + exactVersion(j.scale)}, nil
		}},
		{name: "helmsrc fetch, cold", tool: "helmsrc", args: fetch},
		{name: "helmsrc fetch, warm", tool: "helmsrc", warm: true, args: fetch},
		{name: "helmsrc fetch, cold (before)", tool: "before", args: fetch},
		{name: "helmsrc fetch, warm (before)", tool: "before", warm: true, args: fetch},
	}
}
