package migrate

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/marked"
)

// maxDepth bounds the depth of documents. Those of manifests are a few levels deep.
const maxDepth = 1000

// versions writes current API versions: of objects, of items of lists, and where others refer to them.
func (p *planner) versions() {
	for _, t := range p.drafts {
		if !p.asked(t) {
			continue
		}
		for i := 0; ; i++ {
			if !p.upgradeOne(t, i) {
				break
			}
		}
	}
}

// upgradeOne upgrades the mapping of a number, in the order of the text. It is false if there is none.
func (p *planner) upgradeOne(t *draft, number int) bool {
	var found *yaml.Node
	n := 0
	err := t.step(func(d *edit.Document, root *yaml.Node) error {
		versioned(root, 0, func(m *yaml.Node) {
			if n == number {
				found = m
			}
			n++
		})
		if found == nil {
			return nil
		}
		return p.upgrade(t, d, found)
	})
	if err != nil {
		kind, version := text(child(found, "kind")), text(child(found, "apiVersion"))
		p.refuse(t.note(fmt.Sprintf("%s %s is not migrated: %v", kind, version, err)), "")
	}
	return number < n
}

// versioned visits what has an apiVersion and a kind. Values of releases are their charts' business.
func versioned(n *yaml.Node, depth int, visit func(*yaml.Node)) {
	if n == nil || depth > maxDepth {
		return
	}
	release := false
	if n.Kind == yaml.MappingNode && text(child(n, "apiVersion")) != "" && text(child(n, "kind")) != "" {
		visit(n)
		release = text(child(n, "kind")) == "HelmRelease"
	}
	for i, c := range n.Content {
		if release && i%2 == 1 && n.Content[i-1].Value == "spec" {
			for j := 1; j < len(c.Content); j += 2 {
				if c.Kind == yaml.MappingNode && c.Content[j-1].Value != "values" {
					versioned(c.Content[j], depth+2, visit)
				}
			}
			continue
		}
		versioned(c, depth+1, visit)
	}
}

// removedFields are those that a current version has not, and that were ignored before.
func removedFields(kind string) []string {
	switch kind {
	case "HelmChart", "Bucket":
		return []string{"accessFrom"}
	case "GitRepository":
		return []string{"accessFrom", "gitImplementation"}
	}
	return nil
}

// byHand is what no edit here does, "" for nothing.
func byHand(m *yaml.Node) string {
	spec := child(m, "spec")
	switch kind := text(child(m, "kind")); kind {
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
		message := text(child(spec, "git", "commit", "messageTemplate"))
		if strings.Contains(message, ".Updated") || strings.Contains(message, ".ImageResult") {
			return "v1 gives spec.git.commit.messageTemplate .Changed, and neither .Updated nor .ImageResult"
		}
	case "HelmChart", "HelmRepository", "GitRepository", "Bucket", "OCIRepository", "ImageRepository", "ImagePolicy", "Alert", "Provider", "Receiver":
	default:
		return "it is not known here what changed between the versions"
	}
	return ""
}

func (p *planner) upgrade(t *draft, d *edit.Document, m *yaml.Node) error {
	version, kind := child(m, "apiVersion"), text(child(m, "kind"))
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
			p.result.Lost = append(p.result.Lost, t.note("spec."+name+" is left out: Flux ignores it, and the current API has none"))
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
			if n := child(spec, "type"); text(n) == "OCI" || text(n) == "Default" {
				if err := d.Set(n, strings.ToLower(n.Value)); err != nil {
					return err
				}
			}
		}
	}
	if err := d.Set(version, next); err != nil {
		return err
	}
	note := t.note(version.Value + " -> " + next)
	note.ID.Kind = kind
	if m != d.Root {
		note.ID = ID{kind, text(child(m, "metadata", "namespace")), text(child(m, "metadata", "name"))}
	}
	note.Line = t.first + d.Line(version) - 1
	p.result.Changes = append(p.result.Changes, note)
	return nil
}

// valuesFile puts the file of the old versions in front of the others.
func valuesFile(d *edit.Document, chart *yaml.Node) error {
	n := child(chart, "valuesFile")
	if n == nil {
		return nil
	}
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("valuesFile is no text")
	}
	if n.Value == "" {
		return d.ReplaceField(chart, "valuesFile", nil)
	}
	if files := child(chart, "valuesFiles"); files != nil && len(files.Content) > 0 {
		if slices.ContainsFunc(files.Content, func(f *yaml.Node) bool { return f.Kind != yaml.ScalarNode }) {
			return fmt.Errorf("valuesFiles is no list of texts")
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
