package render

import (
	"cmp"
	"path"
	"slices"
	"strings"

	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Source is a directory that replaces a source, or only the source. An empty namespace matches all.
type Source struct{ Kind, Namespace, Name, Dir string }

func (s Source) key() string { return datumKey(s.Kind, s.Namespace, s.Name) }

func datumKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

func (s Source) shownAs() string { return path.Join(s.Kind, s.Namespace, s.Name) }

// sourceRef returns the source that a Kustomization names.
func sourceRef(o *manifest.Object) Source {
	ref := func(name string) string { return manifest.At[string](o.Content, "spec", "sourceRef", name) }
	return Source{Kind: ref("kind"), Namespace: cmp.Or(ref("namespace"), o.Namespace), Name: ref("name")}
}

// sources holds objects of source.toolkit.fluxcd.io by kind, namespace and name.
type sources map[string]*manifest.Object

// add adds the first source of a name. It reports whether it did.
func (s sources) add(o *manifest.Object) bool {
	key := datumKey(o.Kind, o.Namespace, o.Name)
	if s[key] != nil {
		return false
	}
	s[key] = o
	return true
}

type index struct {
	sources    map[string][]placed // in the order of the input
	data       map[string][]placed // ConfigMaps and Secrets, in the order of the input
	generators map[string][]placed // of such objects, in the cluster only

	artifactGenerators []placed            // in the order of the input
	sourcePaths        map[string][]string // of the Kustomizations of each source, by kind, namespace and name
}

// placed is an object and the real path of its file.
type placed struct {
	object *manifest.Object
	path   string
}

// Need names a source whose tree is not available.
type Need struct {
	Source
	Generator bool // an ArtifactGenerator uses it
}

type arrivals struct {
	asked map[Need]bool
	trees []Source        // that were fetched
	lost  map[Source]bool // that could not be fetched
}

func newArrivals() *arrivals { return &arrivals{asked: map[Need]bool{}, lost: map[Source]bool{}} }

const externalArtifact = "ExternalArtifact"

// output holds the artifacts that an ArtifactGenerator makes from the available files, or its error.
type output struct {
	object    *manifest.Object
	spec      *swv1.ArtifactGeneratorSpec
	id        int
	artifacts []generate.Artifact
	doubts    []generate.Doubt
	err       error // an *elsewhereError if only a source is not available
	used      []Source
	lacks     []Source // that are not available
	views     map[string]*repository
}

// makes reports whether a generator makes the named artifact, or would if its sources were available.
func (m *output) makes(name string) bool {
	if m.spec == nil {
		return false
	}
	named := slices.ContainsFunc(m.spec.OutputArtifacts, func(a swv1.OutputArtifact) bool {
		return a.Name == name || m.spec.PathPattern != "" && m.err != nil && mayRender(a.Name, name)
	})
	return named || m.artifact(name) != nil
}

func (m *output) artifact(name string) *generate.Artifact {
	for i := range m.artifacts {
		if m.artifacts[i].Spec.Name == name {
			return &m.artifacts[i]
		}
	}
	return nil
}

func mayRender(pattern, name string) bool {
	before, _, _ := strings.Cut(pattern, "{")
	after := pattern[strings.LastIndex(pattern, "}")+1:]
	return strings.HasPrefix(name, strings.ToLower(before)) && strings.HasSuffix(name, strings.ToLower(after))
}

// begins returns the paths that are copied from a source, up to the first wildcard.
func (m *output) begins(alias string) []string {
	prefix := "@" + alias + "/"
	var list []string
	for _, a := range m.spec.OutputArtifacts {
		for _, op := range a.Copy {
			if at, ok := strings.CutPrefix(op.From, prefix); ok {
				if glob := strings.IndexAny(at, "*?[]{"); glob >= 0 {
					at = path.Dir(at[:glob] + "x")
				}
				list = append(list, path.Clean("/"+at))
			}
		}
	}
	return list
}

func isGenerator(o *manifest.Object) bool {
	return o.Group() == generate.Group && o.Kind == generate.Kind
}

// unmadeError is the error of an artifact that a generator does not make because of a mistake, which is reported with the generator.
type unmadeError struct{ err error }

func (e *unmadeError) Error() string { return e.err.Error() }

func (e *unmadeError) Unwrap() error { return e.err }
