package outline

import (
	"fmt"
	"io"
	"strings"

	"github.com/helmsrc/helmsrc/internal/table"
)

// graph writes each node and each edge once.
type graph struct {
	text  strings.Builder
	ids   map[*Node]string
	drawn map[*Node]bool
	node  func(id string, n *Node)
	edge  func(from, to string)
}

func (g *graph) id(n *Node) string {
	if g.ids[n] == "" {
		g.ids[n] = fmt.Sprintf("n%d", len(g.ids))
	}
	return g.ids[n]
}

func (g *graph) visit(nodes []*Node) {
	for _, n := range nodes {
		if g.drawn[n] {
			continue
		}
		g.drawn[n] = true
		g.node(g.id(n), n)
		g.visit(n.Children)
		for _, child := range n.Children {
			g.edge(g.id(n), g.id(child))
		}
	}
}

func newGraph() *graph { return &graph{ids: map[*Node]string{}, drawn: map[*Node]bool{}} }

// label is what a graph says of a node, in lines.
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
	g := newGraph()
	g.text.WriteString("flowchart LR\n")
	g.node = func(id string, n *Node) {
		var lines []string
		for _, line := range label(n) {
			lines = append(lines, escapeMermaid(line))
		}
		class := ""
		if n.bad() {
			class = ":::bad"
		} else if n.State == Suspended {
			class = ":::off"
		}
		fmt.Fprintf(&g.text, "    %s[\"%s\"]%s\n", id, strings.Join(lines, "<br/>"), class)
	}
	g.edge = func(from, to string) { fmt.Fprintf(&g.text, "    %s --> %s\n", from, to) }
	g.visit(roots)
	g.text.WriteString("    classDef bad stroke:#c0392b,stroke-width:3px\n    classDef off stroke-dasharray:4 4\n")
	_, err := io.WriteString(w, g.text.String())
	return err
}

// escapeMermaid writes everything but what names and versions are made of as a number.
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
	g := newGraph()
	g.text.WriteString("digraph helmsrc {\n  rankdir=LR\n  node [shape=box, fontname=\"sans-serif\"]\n")
	g.node = func(id string, n *Node) {
		style := ""
		if n.bad() {
			style = ", color=red"
		} else if n.State == Suspended {
			style = ", style=dashed"
		}
		fmt.Fprintf(&g.text, "  %s [label=\"%s\"%s]\n", id, escapeDOT(strings.Join(label(n), "\n")), style)
	}
	g.edge = func(from, to string) { fmt.Fprintf(&g.text, "  %s -> %s\n", from, to) }
	g.visit(roots)
	g.text.WriteString("}\n")
	_, err := io.WriteString(w, g.text.String())
	return err
}

func escapeDOT(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}
