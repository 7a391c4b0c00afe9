package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/marked"
)

// versions writes current API versions: of objects, of list items, in references to objects, and in patches.
func (p *planner) versions() {
	for _, t := range p.drafts {
		if !p.asked(t) {
			continue
		}
		t.text = p.upgradeAll(t, t.text, t.first-1)
	}
}

// upgradeAll upgrades the text of a document that begins after the given line of its file.
func (p *planner) upgradeAll(t *draft, text []byte, line int) []byte {
	for i := 0; ; i++ {
		next, more := p.upgradeOne(location{t, line}, text, i)
		if !more {
			return text
		}
		text = next
	}
}

// location is the place of a text: its document, and the line of the file before it.
type location struct {
	t    *draft
	line int
}

// upgradeOne upgrades the mapping with the given number, in the order of the text. It returns false if there is no such mapping.
func (p *planner) upgradeOne(at location, text []byte, number int) ([]byte, bool) {
	var found *yaml.Node
	n, line, changes, lost := 0, 0, len(p.result.Changes), len(p.result.Lost)
	next, err := edited(text, func(d *edit.Document, root *yaml.Node) error {
		versioned(root, func(m *yaml.Node) {
			if n == number {
				found = m
			}
			n++
		})
		if found == nil {
			return nil
		}
		line = at.line + d.Line(found)
		return p.upgrade(at, d, found)
	})
	if err != nil {
		p.result.Changes, p.result.Lost = p.result.Changes[:changes], p.result.Lost[:lost]
		note := at.t.note(fmt.Sprintf("%s is not migrated: %v", called(found), err))
		if found != nil && child(found, "apiVersion") == nil {
			note.Line = line
		}
		p.refuse(note, "")
		next = text
	}
	return next, number < n
}

func called(m *yaml.Node) string {
	if m == nil {
		return "the document"
	}
	if child(m, "apiVersion") == nil && child(m, "kind") == nil {
		return "the patch"
	}
	return marked.Text(child(m, "kind")) + " " + cmp.Or(marked.Text(child(m, "apiVersion")), marked.Text(child(m, "version")))
}

// versioned visits mappings that have an apiVersion and a kind, select objects by a version, or are patches. It skips the values
// and post-renderers of releases, which belong to their charts.
func versioned(n *yaml.Node, visit func(*yaml.Node)) {
	release := false
	if n.Kind == yaml.MappingNode && (marked.Text(child(n, "apiVersion")) != "" && marked.Text(child(n, "kind")) != "" || isSelector(n) || len(inline(n)) > 0) {
		visit(n)
		release = marked.Text(child(n, "kind")) == "HelmRelease"
	}
	for i, c := range n.Content {
		if release && i%2 == 1 && n.Content[i-1].Value == "spec" {
			for j := 1; j < len(c.Content); j += 2 {
				if name := c.Content[j-1].Value; c.Kind == yaml.MappingNode && name != "values" && name != "postRenderers" {
					versioned(c.Content[j], visit)
				}
			}
			continue
		}
		versioned(c, visit)
	}
}

// removedFields returns the fields that a current version does not have, and that were ignored before.
func removedFields(kind string) []string {
	switch kind {
	case "HelmChart", "Bucket":
		return []string{"accessFrom"}
	case "GitRepository":
		return []string{"accessFrom", "gitImplementation"}
	}
	return nil
}

// byHand returns the reason why a mapping has to be migrated by hand, "" if it does not.
func byHand(m *yaml.Node) string {
	spec := child(m, "spec")
	switch kind := marked.Text(child(m, "kind")); kind {
	case "HelmRelease":
		if renderers := child(spec, "postRenderers"); renderers != nil {
			for _, r := range renderers.Content {
				for _, name := range []string{"patchesStrategicMerge", "patchesJson6902"} {
					if child(r, "kustomize", name) != nil {
						return "spec.postRenderers[].kustomize." + name + " has to be written as patches"
					}
				}
			}
		}
	case "Kustomization":
		for _, name := range []string{"patchesStrategicMerge", "patchesJson6902", "validation"} {
			if child(spec, name) != nil {
				return "v1 has no spec." + name
			}
		}
	case "ImageUpdateAutomation":
		message := marked.Text(child(spec, "git", "commit", "messageTemplate"))
		if strings.Contains(message, ".Updated") || strings.Contains(message, ".ImageResult") {
			return "v1 gives spec.git.commit.messageTemplate .Changed, and neither .Updated nor .ImageResult"
		}
	case "HelmChart", "HelmRepository", "GitRepository", "Bucket", "OCIRepository", "ImageRepository", "ImagePolicy", "Alert", "Provider", "Receiver":
	default:
		return "the changes between the versions are not known"
	}
	return ""
}

func (p *planner) upgrade(at location, d *edit.Document, m *yaml.Node) error {
	version, kind := child(m, "apiVersion"), marked.Text(child(m, "kind"))
	if version == nil {
		return errors.Join(p.upgradeSelector(at, d, m), p.upgradeInline(at, d, m))
	}
	next := p.in.Current(version.Value, kind)
	if next == "" || next == version.Value || strings.Contains(version.Value, "${") {
		return nil
	}
	if marked.Sealed(d.Root) {
		return fmt.Errorf("%s", sealedText)
	}
	spec := child(m, "spec")
	if spec != nil {
		if reason := byHand(m); reason != "" {
			return fmt.Errorf("%s", reason)
		}
		for _, name := range removedFields(kind) {
			if child(spec, name) == nil {
				continue
			}
			if err := d.ReplaceField(spec, name, nil); err != nil {
				return err
			}
			p.result.Lost = append(p.result.Lost, at.t.note("spec."+name+" is left out: Flux ignores it, and the current API does not have it"))
		}
		chart := spec
		if kind == "HelmRelease" {
			chart = child(spec, "chart", "spec")
		}
		if kind == "HelmRelease" || kind == "HelmChart" {
			if err := valuesFile(d, chart); err != nil {
				return err
			}
		}
		if kind == "HelmRepository" {
			if n := child(spec, "type"); marked.Text(n) == "OCI" || marked.Text(n) == "Default" {
				if err := d.Set(n, strings.ToLower(n.Value)); err != nil {
					return err
				}
			}
		}
	}
	if err := d.Set(version, next); err != nil {
		return err
	}
	var namespace, name string
	if meta := child(m, "metadata"); m != d.Root || at.line != at.t.first-1 {
		namespace, name = marked.Text(child(meta, "namespace")), marked.Text(child(meta, "name"))
	} else {
		note := at.t.note("")
		namespace, name = note.Namespace, note.Name
	}
	p.changed(at, d, version, ID{kind, namespace, name}, version.Value+" -> "+next)
	return nil
}

func (p *planner) changed(at location, d *edit.Document, n *yaml.Node, id ID, text string) {
	p.result.Changes = append(p.result.Changes, Note{ID: id, File: at.t.file.Name, Line: at.line + d.Line(n), Text: text})
}

// valuesFile puts the deprecated valuesFile in front of the other values files.
func valuesFile(d *edit.Document, chart *yaml.Node) error {
	n := child(chart, "valuesFile")
	if n == nil {
		return nil
	}
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("valuesFile is not a string")
	}
	if n.Value == "" {
		return d.ReplaceField(chart, "valuesFile", nil)
	}
	if files := child(chart, "valuesFiles"); files != nil && len(files.Content) > 0 {
		if slices.ContainsFunc(files.Content, func(f *yaml.Node) bool { return f.Kind != yaml.ScalarNode }) {
			return fmt.Errorf("valuesFiles is not a list of strings")
		}
		list := []string{n.Value}
		for _, f := range files.Content {
			list = append(list, f.Value)
		}
		if err := d.ReplaceField(chart, "valuesFile", nil); err != nil {
			return err
		}
		return d.ReplaceField(chart, "valuesFiles", []edit.Field{{Key: "valuesFiles", Items: list}})
	}
	return d.ReplaceField(chart, "valuesFile", []edit.Field{{Key: "valuesFiles", Items: []string{n.Value}}})
}
