package outline

import (
	"fmt"
	"io"
	"strings"

	"github.com/helmsrc/helmsrc/internal/table"
)

// notation is a format of graphs: node is formatted with the id, label and style of a node, edge with two ids.
type notation struct {
	head, node, edge, tail string
	bad, off               string // styles
	label                  func(lines []string) string
}

// write writes each node and each edge once.
func (f *notation) write(w io.Writer, roots []*Node) error {
	var text strings.Builder
	text.WriteString(f.head)
	ids := map[*Node]string{}
	var visit func(nodes []*Node)
	visit = func(nodes []*Node) {
		for _, n := range nodes {
			if ids[n] != "" {
				continue
			}
			ids[n] = fmt.Sprintf("n%d", len(ids))
			style := ""
			if n.bad() {
				style = f.bad
			} else if n.State == Suspended {
				style = f.off
			}
			fmt.Fprintf(&text, f.node, ids[n], f.label(label(n)), style)
			visit(n.Children)
			for _, child := range n.Children {
				fmt.Fprintf(&text, f.edge, ids[n], ids[child])
			}
		}
	}
	visit(roots)
	text.WriteString(f.tail)
	_, err := io.WriteString(w, text.String())
	return err
}

// label returns the lines of the label of a node.
func label(n *Node) []string {
	name := n.Name
	if n.Namespace != "" {
		name = n.Namespace + "/" + name
	}
	var lines []string
	for _, line := range []string{n.Kind, name, strings.TrimSpace(n.Chart + " " + versions(n, "->")), n.State} {
		if line != "" {
			lines = append(lines, table.Printable(line))
		}
	}
	return lines
}

// Mermaid draws a flow chart, as GitHub and GitLab show it in Markdown. Names cannot break out of their labels.
func Mermaid(w io.Writer, roots []*Node) error {
	return (&notation{
		head: "flowchart LR\n", node: "    %s[\"%s\"]%s\n", edge: "    %s --> %s\n", bad: ":::bad", off: ":::off",
		tail: "    classDef bad stroke:#c0392b,stroke-width:3px\n    classDef off stroke-dasharray:4 4\n",
		label: func(lines []string) string {
			for i := range lines {
				lines[i] = escapeMermaid(lines[i])
			}
			return strings.Join(lines, "<br/>")
		},
	}).write(w, roots)
}

// escapeMermaid writes all characters as numbers, except those of names and versions.
func escapeMermaid(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(" ./-_:+,", r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}

// DOT draws a graph for Graphviz.
func DOT(w io.Writer, roots []*Node) error {
	return (&notation{
		head: "digraph helmsrc {\n  rankdir=LR\n  node [shape=box, fontname=\"sans-serif\"]\n",
		node: "  %s [label=\"%s\"%s]\n", edge: "  %s -> %s\n", tail: "}\n", bad: ", color=red", off: ", style=dashed",
		label: func(lines []string) string { return escapeDOT(strings.Join(lines, "\n")) },
	}).write(w, roots)
}

func escapeDOT(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}
