package load

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/diff"
	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/marked"
	"github.com/helmsrc/helmsrc/internal/rewrite"
)

// Diff returns the diff of the edits of a file. Lines that may contain a password are hidden around an edit, and masked in it.
func (l *Reader) Diff(file *rewrite.File, before *edit.File, after []byte) []byte {
	private := PrivateLinesOf(before)
	name := strings.TrimPrefix(filepath.ToSlash(file.Name), "/")
	text := diff.Unified("a/"+name, "b/"+name, file.Data, after, func(line int, text string, edited bool) string {
		switch _, hidden := private[line]; {
		case edited:
			return private.Mask(line, text)
		case hidden:
			return ""
		}
		return text
	})
	return []byte(l.Console.Secrets().Text(text))
}

// PrivateLines holds the lines of a file that may contain a password, from 1. The value is true if the whole line may be one.
type PrivateLines map[int]bool

// PrivateLinesOf finds the private lines of a file.
func PrivateLinesOf(file *edit.File) PrivateLines {
	private := PrivateLines{}
	if lines := file.LoneReturns(); lines > 0 { // lines in diffs are different
		private.hide(1, lines, true)
	}
	for _, d := range file.Documents() {
		first, last := d.Lines()
		if d.Err != nil {
			private.hide(first, last, true)
		}
		private.visit(d, d.Root, last)
	}
	return private
}

// Mask returns the text of a line without passwords.
func (p PrivateLines) Mask(line int, text string) string {
	if p[line] {
		return firstKey().ReplaceAllString(text, "${1}"+conceal.Hidden)
	}
	return auth.RedactText(manifest.MaskedLine(text))
}

// Shown returns a value in a line, or a placeholder if it must not be shown.
func (p PrivateLines) Shown(line int, text, value string) string {
	if strings.Contains(p.Mask(line, text), value) {
		return value
	}
	return conceal.Hidden
}

// firstKey matches a line that is not empty, with a group for the text before the value of its first key.
var firstKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\s*(?:- +)*(?:[\w./-]+:[ \t]+)?)\S(?:[^\r\n]|\r[^\n])*`)
})

// hide hides lines. whole reports whether the first line is hidden entirely, and not only in the values of sensitive keys.
func (p PrivateLines) hide(first, last int, whole bool) {
	for line := first; line <= max(first, last); line++ {
		p[line] = p[line] || whole || line > first
	}
}

// visit hides private lines in a value; last is the last line of the value.
func (p PrivateLines) visit(d *edit.Document, n *yaml.Node, last int) {
	switch {
	case n == nil:
	case marked.ObjectOf(n).Kind == "Secret" && (marked.Value(n, "apiVersion") != nil || marked.Value(n, "data") != nil || marked.Value(n, "stringData") != nil):
		p.hide(d.Line(n), last, true)
	case n.Kind == yaml.MappingNode:
		name := marked.Value(n, "name")
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value, end := n.Content[i], n.Content[i+1], last
			if i+2 < len(n.Content) {
				end = d.Line(n.Content[i+2]) - 1
			}
			named := key.Value == "value" && name != nil && manifest.Sensitive(name.Value, value) // of an environment
			if named || manifest.Sensitive(key.Value, value) || key.Value == "secretGenerator" || mayQuote(value) {
				p.hide(d.Line(key), end, named)
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
				p.hide(d.Line(item), end, false)
			}
			p.visit(d, item, end)
		}
	}
}

func mayQuote(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (auth.RedactText(n.Value) != n.Value || strings.Contains(n.Value, "\n") && strings.Contains(n.Value, "Secret"))
}
