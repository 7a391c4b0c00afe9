package program

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// mistake is a mistake that people make in an object.
type mistake struct {
	name  string
	plant func(object *yaml.Node) bool         // makes the mistake; false if the object has no place for it
	pair  func(object, second *yaml.Node) bool // makes it in two objects of a file, in place of plant

	builds bool // it appears when the object's path is built: the content of a missing source is unknown
	refers bool // it is in the reference to a source: an undefined one may be in the cluster, under any name
}

var mistakes = []mistake{
	{name: "typo of a field", plant: plantTypo},
	{name: "missing source", refers: true, plant: func(o *yaml.Node) bool { return plantReference(o, "name") }},
	{name: "wrong namespace", refers: true, plant: func(o *yaml.Node) bool { return kindOf(o) != "HelmChart" && plantReference(o, "namespace") }},
	{name: "dependency on itself", plant: func(o *yaml.Node) bool { return plantCycle(o, o) }},
	{name: "cycle of two", pair: func(o, second *yaml.Node) bool {
		return nameOf(o) != nameOf(second) && plantCycle(o, second) && plantCycle(second, o)
	}},
	{name: "missing file", plant: plantMissingFile, builds: true},
	{name: "patch of an object that is not there", builds: true, plant: func(o *yaml.Node) bool {
		return plantPatch(o, "{apiVersion: v1, kind: ConfigMap, metadata: {name: planted}, data: {planted: yes}}")
	}},
	{name: "JSON patch without a target", builds: true, plant: func(o *yaml.Node) bool {
		return plantPatch(o, "[{op: add, path: /spec/planted, value: 1}]")
	}},
	{name: "broken YAML"}, // TestMistakes writes it: a tree cannot contain it
}

// hiding are the codes of errors that hide other errors in a file: of a failed build, and of objects that are defined twice.
var hiding = []string{"HS004", "HS005", "HS006"}

// TestMistakes plants mistakes into each object of the repositories. Runs over the whole repository, over the clusters and
// over the changed file report each in its file. The first two skip files that no cluster applies.
func TestMistakes(t *testing.T) {
	count, whole := map[string]int{}, 0
	for _, f := range repositoryFixtures {
		t.Run(f.script, func(t *testing.T) {
			f.unpack(t)
			whole++
			stdout, _ := validate(t, "-R", "-f", ".", "--unreached")
			modes := map[string][][]string{"whole": {{"-R", "-f", "."}}}
			for _, c := range f.clusters {
				modes["clusters"] = append(modes["clusters"], []string{"-R", "-f", c})
			}
			var all []*yaml.Node
			for _, name := range manifestsHere(t) {
				all = append(all, documentsOf(t, read(t, name))...)
			}
			for _, name := range manifestsHere(t) {
				modes["file"] = [][]string{{"--lookup-dir", ".", name}}
				planted := planting{modes: modes, file: name, all: all, unreached: slices.Contains(strings.Fields(stdout), name), planted: count}
				planted.everywhere(t)
			}
		})
	}
	for _, m := range mistakes {
		if whole == len(repositoryFixtures) && count[m.name] == 0 {
			t.Errorf("%s was not planted", m.name)
		}
	}
}

// String returns the finding in one line.
func (f reported) String() string {
	return fmt.Sprintf("%s: %s %s", f.Position.File, f.Code, f.Message)
}

// planting plants mistakes into one file.
type planting struct {
	modes     map[string][][]string // the runs of each
	file      string
	unreached bool         // nothing applies the file
	all       []*yaml.Node // the objects of the repository
	before    map[string][]reported
	planted   map[string]int // the number of times, by mistake
}

func (p planting) everywhere(t *testing.T) {
	t.Helper()
	text := read(t, p.file)
	defer p.write(t, text)
	p.before = p.findings(t)
	if slices.ContainsFunc(p.before["file"], func(f reported) bool { return slices.Contains(hiding, f.Code) }) {
		return
	}
	for at := range documentsOf(t, text) {
		for _, m := range mistakes {
			documents := documentsOf(t, text)
			object := documents[at]
			switch {
			case !isKustomization(p.file) && fieldOf(object, "apiVersion") == nil: // not a manifest
			case m.pair != nil:
				if at > 0 && m.pair(object, documents[at-1]) {
					p.write(t, encode(t, documents))
					p.judge(t, m, object)
				}
			case m.plant == nil:
				p.write(t, breakDocument(t, documents, at))
				p.judge(t, m, object)
			case m.builds && p.unbuilt(object), p.refused(object), m.refers && !p.defined(object):
			case m.plant(object):
				p.write(t, encode(t, documents))
				p.judge(t, m, object)
			}
		}
	}
}

// unbuilt reports whether the files of an object are not in this repository, or invalid YAML prevents all builds.
func (p planting) unbuilt(object *yaml.Node) bool {
	return slices.ContainsFunc(p.before["whole"], func(f reported) bool {
		return f.Code == "HS150" && f.Kind == kindOf(object) && f.Name == nameOf(object) || f.Code == "HS002"
	})
}

// refused reports whether the API server refuses the object, with or without the mistake.
func (p planting) refused(object *yaml.Node) bool {
	return slices.ContainsFunc(p.before["file"], func(f reported) bool {
		return f.Code == "HS010" && f.Kind == kindOf(object) && f.Name == nameOf(object)
	})
}

// otherRevision reports whether the file is at the path of a Kustomization of another revision, so that it is not applied.
func (p planting) otherRevision() bool {
	return slices.ContainsFunc(p.all, func(o *yaml.Node) bool {
		at := strings.TrimPrefix(valueOf(o, "spec", "path"), "./") + "/"
		return kindOf(o) == "Kustomization" && at != "/" && strings.HasPrefix(p.file, at) && slices.ContainsFunc(p.before["whole"], func(f reported) bool {
			return f.Code == "HS150" && f.Name == nameOf(o)
		})
	})
}

// defined reports whether a file defines the source of an object, or an operator creates the first source of a cluster.
func (p planting) defined(object *yaml.Node) bool {
	reference := referenceOf(object)
	return reference != nil && slices.ContainsFunc(p.all, func(o *yaml.Node) bool {
		return kindOf(o) == valueOf(reference, "kind") && nameOf(o) == valueOf(reference, "name") || fieldOf(o, "spec", "sync") != nil
	})
}

// judge checks that each mode reports more findings in the file than before.
func (p planting) judge(t *testing.T, m mistake, object *yaml.Node) {
	t.Helper()
	p.planted[m.name]++
	for mode, found := range p.findings(t) {
		if (p.unreached || p.otherRevision()) && mode != "file" {
			continue
		}
		fresh := slices.DeleteFunc(found, func(f reported) bool {
			return slices.ContainsFunc(p.before[mode], f.same)
		})
		at := func(f reported) bool { return filepath.ToSlash(f.Position.File) == p.file }
		if !slices.ContainsFunc(fresh, at) {
			t.Errorf("%s: %s: %s in %s %s: only %s", p.file, mode, m.name, kindOf(object), nameOf(object), fresh)
		}
	}
}

func (p planting) findings(t *testing.T) map[string][]reported {
	t.Helper()
	all := map[string][]reported{}
	for mode, runs := range p.modes {
		for _, args := range runs {
			all[mode] = append(all[mode], findingsOf(t, args...)...)
		}
	}
	return all
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (p planting) write(t *testing.T, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.FromSlash(p.file), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func plantTypo(object *yaml.Node) bool {
	if isPlain(object) || kindOf(object) == "FluxInstance" { // whose newer versions may have unknown fields
		return false
	}
	if kindOf(object) == "" || strings.HasPrefix(fieldOf(object, "apiVersion").Value, "kustomize.config.k8s.io/") {
		set(object, "resuorces", sequence())
		return true
	}
	if fieldOf(object, "spec") == nil {
		return false
	}
	set(fieldOf(object, "spec"), "planted", scalar("1"))
	return true
}

func plantReference(object *yaml.Node, field string) bool {
	reference := referenceOf(object)
	if reference != nil {
		set(reference, field, scalar("planted"))
	}
	return reference != nil
}

// referenceOf returns the reference of an object to its source, or nil.
func referenceOf(object *yaml.Node) *yaml.Node {
	for _, keys := range [][]string{{"spec", "sourceRef"}, {"spec", "chartRef"}, {"spec", "chart", "spec", "sourceRef"}} {
		if reference := fieldOf(object, keys...); reference != nil {
			return reference
		}
	}
	return nil
}

func plantCycle(object, on *yaml.Node) bool {
	if !slices.Contains([]string{"Kustomization", "HelmRelease"}, kindOf(object)) || fieldOf(object, "spec") == nil ||
		kindOf(on) != kindOf(object) || valueOf(on, "metadata", "namespace") != valueOf(object, "metadata", "namespace") {
		return false
	}
	set(fieldOf(object, "spec"), "dependsOn", sequence(mapping("name", scalar(nameOf(on)))))
	return true
}

func plantMissingFile(object *yaml.Node) bool {
	switch {
	case isFlux(object) && kindOf(object) == "Kustomization":
		set(fieldOf(object, "spec"), "path", scalar("./planted"))
	case isFlux(object) || isPlain(object):
		return false
	default:
		add(object, "resources", scalar("planted.yaml"))
	}
	return true
}

func plantPatch(object *yaml.Node, patch string) bool {
	switch {
	case isFlux(object) && kindOf(object) == "Kustomization":
		object = fieldOf(object, "spec")
	case isFlux(object) || isPlain(object):
		return false
	}
	add(object, "patches", mapping("patch", scalar(patch)))
	return true
}

// isFlux reports whether a controller of Flux reconciles the object.
func isFlux(object *yaml.Node) bool {
	version := fieldOf(object, "apiVersion")
	return version != nil && (strings.Contains(version.Value, ".toolkit.fluxcd.io/") || strings.HasPrefix(version.Value, "fluxcd.controlplane.io/"))
}

// isPlain reports whether the object is neither an object of Flux nor a kustomization file.
func isPlain(object *yaml.Node) bool {
	version := fieldOf(object, "apiVersion")
	return !isFlux(object) && version != nil && !strings.HasPrefix(version.Value, "kustomize.config.k8s.io/")
}

func isKustomization(file string) bool { return path.Base(file) == "kustomization.yaml" }

func kindOf(object *yaml.Node) string { return valueOf(object, "kind") }
func nameOf(object *yaml.Node) string { return valueOf(object, "metadata", "name") }

func valueOf(object *yaml.Node, keys ...string) string {
	if value := fieldOf(object, keys...); value != nil {
		return value.Value
	}
	return ""
}

// fieldOf returns the value at keys, or nil.
func fieldOf(node *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		var value *yaml.Node
		for i := 0; node.Kind == yaml.MappingNode && i < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				value = node.Content[i+1]
			}
		}
		if value == nil {
			return nil
		}
		node = value
	}
	return node
}

func set(object *yaml.Node, key string, value *yaml.Node) {
	if old := fieldOf(object, key); old != nil {
		*old = *value
		return
	}
	object.Content = append(object.Content, scalar(key), value)
}

func add(object *yaml.Node, key string, value *yaml.Node) {
	if fieldOf(object, key) == nil {
		set(object, key, sequence())
	}
	list := fieldOf(object, key)
	list.Content = append(list.Content, value)
}

func scalar(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

func sequence(values ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: values}
}

func mapping(key string, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar(key), value}}
}

// documentsOf parses the documents of a file.
func documentsOf(t *testing.T, text []byte) []*yaml.Node {
	t.Helper()
	var documents []*yaml.Node
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document yaml.Node
		if err := d.Decode(&document); errors.Is(err, io.EOF) {
			return documents
		} else if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document.Content[0])
	}
}

func encode(t *testing.T, documents []*yaml.Node) []byte {
	t.Helper()
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	for _, d := range documents {
		if err := e.Encode(d); err != nil {
			t.Fatal(err)
		}
	}
	return text.Bytes()
}

// breakDocument writes the documents of a file with a line in one of them that is not YAML.
func breakDocument(t *testing.T, documents []*yaml.Node, at int) []byte {
	t.Helper()
	var parts [][]byte
	for i, d := range documents {
		part := encode(t, []*yaml.Node{d})
		if i == at {
			part = append(part, "broken: [\n"...)
		}
		parts = append(parts, part)
	}
	return bytes.Join(parts, []byte("---\n"))
}
