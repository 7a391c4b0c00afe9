package load

import (
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/diff"
	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/marked"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/rewrite"
)

// Diff describes the edits of a file. Lines that may hold a password are not shown around an edit, and masked in one.
func (l *Reader) Diff(file *rewrite.File, before *edit.File, after []byte) []byte {
	private := privateLines{}
	for _, d := range before.Documents() {
		first, last := d.Lines()
		if d.Err != nil {
			private.hide(first, last)
			continue
		}
		private.visit(d, d.Root, last)
	}
	name := strings.TrimPrefix(filepath.ToSlash(file.Name), "/")
	var text strings.Builder
	for line := range strings.Lines(diff.Unified("a/"+name, "b/"+name, file.Data, after, func(line int) bool { return private[line] })) {
		if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+") {
			line = reconcile.RedactText(manifest.MaskedLine(line))
		}
		text.WriteString(line)
	}
	return []byte(l.Console.Secrets().Text(text.String()))
}

type privateLines map[int]bool

func (p privateLines) hide(first, last int) {
	for line := first; line <= max(first, last); line++ {
		p[line] = true
	}
}

// visit looks through a value whose last line is given.
func (p privateLines) visit(d *edit.Document, n *yaml.Node, last int) {
	switch {
	case n == nil:
	case marked.ObjectOf(n).Kind == "Secret" && (marked.Value(n, "apiVersion") != nil || marked.Value(n, "data") != nil || marked.Value(n, "stringData") != nil):
		p.hide(d.Line(n), last)
	case n.Kind == yaml.MappingNode:
		name := marked.Value(n, "name")
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value, end := n.Content[i], n.Content[i+1], last
			if i+2 < len(n.Content) {
				end = d.Line(n.Content[i+2]) - 1
			}
			named := key.Value == "value" && name != nil && manifest.Sensitive(name.Value, value) // of an environment
			if named || manifest.Sensitive(key.Value, value) || key.Value == "secretGenerator" || mayQuote(value) {
				p.hide(d.Line(key), end)
				continue
			}
			p.visit(d, value, end)
		}
	default:
		for i, item := range n.Content {
			end := last
			if i+1 < len(n.Content) {
				end = d.Line(n.Content[i+1]) - 1
			}
			if mayQuote(item) {
				p.hide(d.Line(item), end)
				continue
			}
			p.visit(d, item, end)
		}
	}
}

func mayQuote(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (reconcile.RedactText(n.Value) != n.Value || strings.Contains(n.Value, "\n") && strings.Contains(n.Value, "Secret"))
}
