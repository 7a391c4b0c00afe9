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

// Diff describes the edits of a file. Lines that may contain a password are not shown around an edit, and masked in one.
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

// PrivateLines are the lines of a file that may contain a password, counted from 1, and whether all of a line may be one.
type PrivateLines map[int]bool

// PrivateLinesOf finds them.
func PrivateLinesOf(file *edit.File) PrivateLines {
	private := PrivateLines{}
	if lines := file.LoneReturns(); lines > 0 { // diffs have other lines
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

// Shown returns a value that stands in a line if it may be shown.
func (p PrivateLines) Shown(line int, text, value string) string {
	if strings.Contains(p.Mask(line, text), value) {
		return value
	}
	return conceal.Hidden
}

// firstKey matches a line that is not empty, and in it what stands before the value of its first key.
var firstKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\s*(?:- +)*(?:[\w./-]+:[ \t]+)?)\S(?:[^\r\n]|\r[^\n])*`)
})

// hide hides lines. Of the first, whole says whether more than the values of such keys is hidden.
func (p PrivateLines) hide(first, last int, whole bool) {
	for line := first; line <= max(first, last); line++ {
		p[line] = p[line] || whole || line > first
	}
}

// visit looks through a value whose last line is given.
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
