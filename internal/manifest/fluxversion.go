package manifest

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	sigsyaml "sigs.k8s.io/yaml"
)

// API groups of Flux of whose objects only the version is checked.
const (
	ImageGroup        = "image.toolkit.fluxcd.io"
	NotificationGroup = "notification.toolkit.fluxcd.io"

	// OperatorGroup is the group of the Flux Operator, which installs Flux and creates objects from templates.
	OperatorGroup = "fluxcd.controlplane.io"
)

// FluxNote is a version of Flux that the input installs, and its position.
type FluxNote struct {
	Version string
	Pos     Pos
}

// FluxVersions lists the versions of Flux that the input installs: in the files that flux bootstrap writes, in
// FluxInstances, and in the sources that Flux itself is published in. Each version appears once, as it is written.
func (s *Set) FluxVersions() []FluxNote { return s.flux }

// installed returns the version of Flux that a source installs, or that a release of the chart flux-instance sets, else "".
func installed(o *Object) string {
	of := func(path ...any) string { return At[string](o.Content["spec"], path...) }
	url := strings.TrimSuffix(of("url"), ".git")
	switch {
	case o.Kind == "OCIRepository" && strings.HasSuffix(url, "/fluxcd/flux-manifests"), o.Kind == "GitRepository" && strings.HasSuffix(url, "fluxcd/flux2"):
		return cmp.Or(of("ref", "semver"), of("ref", "tag"), strings.TrimPrefix(of("ref", "name"), "refs/tags/"))
	case o.Group() == ReleaseGroup:
		return of("values", "instance", "distribution", "version")
	}
	return ""
}

// Versioned lists the objects of Flux that the run does not resolve. Only their API version can be checked.
func (s *Set) Versioned() []*Object { return s.versioned }

// Content reads the content of an object of [Set.Versioned].
func (s *Set) Content(o *Object) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contentOf(o)
}

// maxComponentsHead is the length in bytes of the head of a file in which flux bootstrap and flux install write the version.
const maxComponentsHead = 4 << 10

var (
	componentsVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^# Flux Version: (v?[0-9][0-9A-Za-z.+-]*)\s*$`) })

	// remoteVersion finds the manifests of Flux among the resources of a kustomization file.
	remoteVersion = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^\s*-\s+["']?(?:https://)?github\.com/fluxcd/flux2(?:\.git)?//?(?:manifests/[\w/-]+\?ref=|releases/download/)(v?[0-9][0-9A-Za-z.+-]*)`)
	})
)

// components notes the version of Flux in the text of a file: a file that flux bootstrap or flux install wrote, a
// kustomization file that includes the manifests of Flux by URL, or the values of the chart that creates a FluxInstance.
func (s *Set) components(name string, data []byte) {
	var m []int
	switch head := data[:min(len(data), maxComponentsHead)]; {
	case bytes.Contains(head, []byte("# Flux Version:")):
		m = componentsVersion().FindSubmatchIndex(head)
	case IsKustomizationFile(name) && bytes.Contains(data, []byte("fluxcd/flux2")):
		m = remoteVersion().FindSubmatchIndex(data)
	case bytes.HasPrefix(data, []byte("instance:")) || bytes.Contains(data, []byte("\ninstance:")):
		var values map[string]any
		if CheckExpansion(name, data) == nil && sigsyaml.Unmarshal(data, &values) == nil {
			s.install(FluxNote{At[string](values, "instance", "distribution", "version"), Pos{File: name, Line: 1, Column: 1}})
		}
	}
	if m != nil {
		line := 1 + bytes.Count(data[:m[2]], []byte("\n"))
		s.install(FluxNote{string(data[m[2]:m[3]]), Pos{File: name, Line: line, Column: 1}})
	}
}

func (s *Set) install(n FluxNote) {
	if n.Version != "" && !slices.ContainsFunc(s.flux, func(other FluxNote) bool { return other.Version == n.Version }) {
		s.flux = append(s.flux, n)
	}
}

func isInstance(o *Object) bool { return o.Kind == "FluxInstance" && o.Group() == OperatorGroup }

// isVersioned reports whether only the API version of an object can be checked.
func isVersioned(o *Object) bool {
	switch o.Group() {
	case ImageGroup:
		return o.Kind == "ImageUpdateAutomation"
	case NotificationGroup:
		return o.Kind != "" && !strings.HasSuffix(o.Kind, "List")
	case KustomizeGroup:
		return o.Kind == "Kustomization"
	}
	return false
}

func (s *Set) version(o *Object) {
	switch {
	case isInstance(o):
		s.install(FluxNote{At[string](o.Content, "spec", "distribution", "version"), o.Pos})
	case isVersioned(o):
		s.versioned = append(s.versioned, o)
	}
}
