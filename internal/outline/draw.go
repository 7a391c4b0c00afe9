package outline

import (
	"io"
	"strings"

	"github.com/helmsrc/helmsrc/internal/table"
)

// maxIndents is the limit of indentation: deeper nodes are not indented further.
const maxIndents = 40

// A long name leaves up to maxKept columns to the version after it, and has at least minTitle columns itself.
const maxKept, minTitle = 24, 32

// lines are the characters that a tree is drawn with.
type lines struct{ branch, last, down, blank, arrow, taken, left string }

func linesOf(s table.Style) lines {
	if s.ASCII {
		return lines{"|- ", "`- ", "|  ", "   ", "->", "*", "x"}
	}
	return lines{"├─ ", "└─ ", "│  ", "   ", "→", "✓", "✗"}
}

// Draw draws a tree, with a line for each node and note. Lines that are wider than the style are cut.
func Draw(w io.Writer, roots []*Node, s table.Style) error {
	d := &drawing{style: s, lines: linesOf(s)}
	for _, n := range Unfold(roots) {
		d.node(n, "", "", 0)
	}
	_, err := io.WriteString(w, d.text.String())
	return err
}

type drawing struct {
	style table.Style
	lines lines
	text  strings.Builder
}

func (d *drawing) node(n *Node, first, rest string, depth int) {
	mark, color := "", table.Plain
	switch {
	case n.bad():
		mark, color = d.lines.left+" ", table.Red
	case n.State == Suspended:
		color = table.Yellow
	}
	title, details := n.title(), d.details(n)
	if d.style.Columns > 0 && len(details) > 0 {
		kept := min(table.Width(details[0]), maxKept) + len("  .")
		title = d.style.Cut(title, max(d.style.Columns-table.Width(first+mark)-kept, minTitle))
	}
	d.line(first+mark, strings.Join(append([]string{title}, details...), "  "), color)
	stem := rest + d.lines.blank
	if len(n.Children) > 0 {
		stem = rest + d.lines.down
	}
	for _, note := range n.Notes {
		d.note(stem, note)
	}
	for i, child := range n.Children {
		branch, down := d.lines.branch, d.lines.down
		if i == len(n.Children)-1 {
			branch, down = d.lines.last, d.lines.blank
		}
		if depth >= maxIndents {
			branch, down = "", ""
		}
		d.node(child, rest+branch, rest+down, depth+1)
	}
}

func (d *drawing) note(stem string, note Note) {
	switch note.Mark {
	case Taken:
		d.line(stem+d.lines.taken+" ", note.Text, table.Green)
	case Left:
		d.line(stem+d.lines.left+" ", note.Text, table.Plain)
	default:
		d.line(stem, note.Text, table.Plain)
	}
}

// line writes a line. The colour applies to the text after the stem.
func (d *drawing) line(stem, text string, color table.Color) {
	cut := d.style.Cut(stem+table.Printable(text), d.style.Columns)
	if at := len(stem); color != table.Plain && len(cut) > at {
		cut = cut[:at] + d.style.Paint(cut[at:], color)
	}
	d.text.WriteString(strings.TrimRight(cut, " ") + "\n")
}

// details returns the texts after the name of a node.
func (d *drawing) details(n *Node) []string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, text)
		}
	}
	version := versions(n, d.lines.arrow)
	if n.Chart != "" {
		add(strings.TrimSpace(n.Chart + " " + version))
		version = ""
	}
	add(n.State)
	add(n.Path)
	add(n.URL)
	add(version)
	add(n.Message)
	return parts
}

// versions returns the version that a manifest allows, and the version that was chosen.
func versions(n *Node, arrow string) string {
	version := table.Short(n.Version)
	switch {
	case n.Constraint == "" || n.Constraint == n.Version:
		return version
	case version == "":
		return n.Constraint
	}
	return n.Constraint + " " + arrow + " " + version
}
