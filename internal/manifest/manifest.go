// Package manifest reads YAML and JSON into objects that remember file, line and column, and finds them by reference.
// It does not judge them: whether the API server would take an object is the business of package admission.
package manifest

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// The API groups of the objects that are kept. The name of a kind alone is not unique: k3s has a HelmChart too.
const (
	SourceGroup    = "source.toolkit.fluxcd.io"
	ReleaseGroup   = "helm.toolkit.fluxcd.io"
	KustomizeGroup = "kustomize.toolkit.fluxcd.io"

	ExtensionsGroup = "source.extensions.fluxcd.io"

	// The groups of the HelmReleases of Flux 1.
	flux1Group      = "helm.fluxcd.io"
	olderFlux1Group = "flux.weave.works"

	oldestFlux1Group = "helm.integrations." + olderFlux1Group
)

// Pos is a place in a file.
type Pos = finding.Pos

// Object is one object as it was written. The reader of its file creates it; a build or Derive creates objects that are
// in no file. Only the package that created it changes it, and only before a run has it; it lives as long as its Set.
type Object struct {
	// Kind is the kind as [Called] returns it: objects with the same Kind are of the same API group.
	APIVersion, Kind, Namespace, Name string

	// Content is the object that kubectl would send to the API server, in the types of JSON: map[string]any, []any, string,
	// int64, float64, bool and nil. It is shared: copy before changing it. A missing namespace is not filled in here.
	Content map[string]any

	// Pos is the position at which the object begins.
	Pos Pos

	// Built names the Kustomization or the file that built the object. It is empty if the object is as it was
	// written.
	Built string

	// ReferenceOnly is true if the object was built only to resolve references to it: the input is not about it.
	ReferenceOnly bool

	// Open is true if the object has variables that only the cluster knows: they are left as they were written.
	Open bool

	// Sealed names the key that would decrypt an object that was built but is still encrypted.
	Sealed string

	// Secrets are the values that the run does not show.
	Secrets *conceal.Values

	// confidential are texts of the object that come from Secrets or were encrypted, shown is the object without them.
	confidential []string
	muted        []string // values that no message about a fault quotes
	shown        map[string]any

	// Origin is the object from which this object is derived, nil for an object that is in a file. See Derive.
	Origin *Object

	at         location
	originPath func(path []any) []any
	patches    func(*Object) []Patch // nil if the object was not patched
}

// String names the object as messages do: HelmChart apps/podinfo.
func (o *Object) String() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// Derive returns an object that is in no file but follows from o, as a HelmChart follows from a HelmRelease. Its
// positions are those of o: fieldOf returns the field of o from which a field of the derived object comes.
func (o *Object) Derive(derived Object, fieldOf func(path []any) []any) *Object {
	derived.Origin, derived.originPath = o, fieldOf
	derived.Built, derived.ReferenceOnly, derived.Open, derived.confidential = o.Built, o.ReferenceOnly, o.Open, o.confidential
	derived.Secrets, derived.muted = o.Secrets, o.muted
	derived.Pos = o.Pos // to find its own would take parsing the file again
	return &derived
}

// PartHint returns the hint for an object whose file is named by a kustomization file beside it: the object may be
// only a patch. It returns "" for every other object.
func (o *Object) PartHint() string {
	if o.Built != "" {
		return ""
	}
	dir, own := filepath.Split(o.Pos.File)
	for _, name := range KustomizationFiles() {
		name = filepath.Join(dir, name)
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if text, err := read(context.Background(), name); err == nil && slices.Contains(namesIn(text), own) {
			return name + finding.NamesThisFile
		}
	}
	return ""
}

// namesIn returns the names in a text: the words between blanks, quotes, brackets and slashes.
func namesIn(text []byte) []string {
	return strings.FieldsFunc(string(text), func(r rune) bool { return strings.ContainsRune(" \t\r\n\"',[]{}/", r) })
}

// Group returns the part of the apiVersion before the slash.
func (o *Object) Group() string { return groupOf(o.APIVersion) }

// Position returns the position of a field: strings name map keys, ints index lists. It is the position of the key,
// or of the list element. A missing field has the position of the nearest existing parent. The file is parsed again
// when a position is first requested, so that objects without findings cost nothing.
func (o *Object) Position(path ...any) Pos { return o.find(path, false).Pos }

// Unresolved lists the ${VAR} expressions outside the status that a Flux Kustomization would have substituted.
func (o *Object) Unresolved() []Variable {
	var found []Variable
	for path, value := range Leaves(o.Content, nil) {
		text, _ := value.(string)
		if path[0] == "status" {
			continue
		}
		for _, name := range Variables(text) {
			found = append(found, Variable{name, o.Position(path...)})
		}
	}
	return found
}

// key identifies an object for references and duplicates. It does not include the version.
type key struct{ group, kind, namespace, name string }

func (o *Object) key() key {
	return key{o.Group(), o.Kind, o.Namespace, o.Name}
}

func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found && !isFluxGroup(group) {
		return ""
	}
	return group
}

// location ties an object to its text: a document, and the path inside it for the items of a List.
type location struct {
	doc  *document
	path []any
}

// Variable is a ${VAR} that was not substituted.
type Variable struct {
	Name string
	Pos  Pos
}

// expression matches a variable that Flux substitutes: a name in braces, with or without a default or another
// operation. A literal ${VAR} is written $${VAR}.
var expression = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$?\$\{([_A-Za-z][_A-Za-z0-9]*)[^}]*\}`) })

// Variables lists the names of the variables in a text.
func Variables(text string) []string {
	var names []string
	for _, m := range expression().FindAllStringSubmatch(text, -1) {
		if m[0][1] != '$' {
			names = append(names, m[1])
		}
	}
	return names
}
