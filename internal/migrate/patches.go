package migrate

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/marked"
)

// isSelector reports whether a mapping is a selector, with a version, of a patch or a replacement of kustomize.
func isSelector(m *yaml.Node) bool {
	for i := 0; i < len(m.Content); i += 2 {
		switch m.Content[i].Value {
		case "group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector", "fieldPath", "options":
		default:
			return false
		}
	}
	return marked.Text(child(m, "kind")) != "" && marked.Text(child(m, "version")) != ""
}

// inline returns the patches that a mapping holds as text.
func inline(m *yaml.Node) []*yaml.Node {
	var list []*yaml.Node
	if patches := child(m, "patchesStrategicMerge"); patches != nil {
		list = slices.Clone(patches.Content)
	}
	if patch := child(m, "patch"); patch != nil {
		list = append(list, patch)
	}
	return slices.DeleteFunc(list, func(n *yaml.Node) bool { return !strings.Contains(marked.Text(n), "toolkit.fluxcd.io") })
}

func (p *planner) upgradeInline(at location, d *edit.Document, m *yaml.Node) error {
	for _, n := range inline(m) {
		line := at.line + d.Line(n)
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			line--
		}
		f := edit.Parse([]byte(n.Value))
		for _, patch := range f.Documents() {
			first, _ := patch.Lines()
			if text := p.upgradeAll(at.t, patch.Text(), line+first-1); !bytes.Equal(text, patch.Text()) {
				patch.Put(text)
			}
		}
		after, _, _ := f.Apply()
		if string(after) == n.Value {
			continue
		}
		if marked.Sealed(d.Root) {
			return fmt.Errorf("%s", sealedText)
		}
		if err := d.Set(n, string(after)); err != nil {
			return err
		}
	}
	return nil
}

// groups returns the API groups of Flux whose objects are migrated.
func groups() []string {
	return []string{sourceGroup, releaseGroup, "kustomize.toolkit.fluxcd.io", "image.toolkit.fluxcd.io", "notification.toolkit.fluxcd.io"}
}

// upgradeSelector writes the new version of the selected objects. A selector that matches no object still matches none.
func (p *planner) upgradeSelector(at location, d *edit.Document, m *yaml.Node) error {
	if !isSelector(m) {
		return nil
	}
	version, s := child(m, "version"), newSelector(m)
	next, wider := p.selected(s)
	switch {
	case next == "" || next == version.Value:
		return nil
	case marked.Sealed(d.Root):
		return fmt.Errorf("%s", sealedText)
	case regexp.QuoteMeta(version.Value) != version.Value:
		return fmt.Errorf("it selects by the pattern %s, but the selected version becomes %s", version.Value, next)
	}
	if err := d.Set(version, next); err != nil {
		return err
	}
	id := ID{marked.Text(child(m, "kind")), marked.Text(child(m, "namespace")), marked.Text(child(m, "name"))}
	p.changed(at, d, version, id, "selected by version "+s.version.expression+" -> "+next)
	if wider != nil {
		p.result.Wider = append(p.result.Wider, Note{ID: wider.ID, File: at.t.file.Name, Line: at.line + d.Line(version),
			Text: "it has the version " + next + " already: the selector for " + s.version.expression + " may match it now"})
	}
	return nil
}

// selected returns the new version of the objects of a selector, "" if it does not change, and an object that already has it.
func (p *planner) selected(s *selector) (next string, wider *Object) {
	known := false
	for _, o := range p.in.Objects {
		group, old, _ := strings.Cut(o.APIVersion, "/")
		if !s.group.matches(group) || !s.kind.matches(o.Kind) || !s.name.matches(o.Name) || !s.namespace.matches(o.Namespace) {
			continue
		}
		known = true
		_, now, _ := strings.Cut(p.in.Current(o.APIVersion, o.Kind), "/")
		switch {
		case !s.version.matches(old):
			wider = o
		case now != "" && !s.version.matches(now):
			next = now
		}
	}
	for _, group := range groups() {
		if !known && next == "" && s.group.matches(group) {
			_, next, _ = strings.Cut(p.in.Current(group+"/"+s.version.expression, s.kind.expression), "/")
		}
	}
	return next, wider
}

// selector holds the patterns of a selector of kustomize.
type selector struct{ group, version, kind, namespace, name pattern }

func newSelector(m *yaml.Node) *selector {
	of := func(key string) pattern {
		expression := marked.Text(child(m, key))
		return pattern{expression, bound.Whole(expression)}
	}
	return &selector{of("group"), of("version"), of("kind"), of("namespace"), of("name")}
}

type pattern struct {
	expression string
	matches    func(text string) bool
}
