package outline

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/table"
)

// TestShared: shared children are drawn below the first of their parents only, or a chain of a hundred generators with two
// sources each would have no end.
func TestShared(t *testing.T) {
	n := &Node{Kind: "ExternalArtifact", Namespace: "a", Name: "last"}
	for range 100 {
		n = &Node{Kind: "ArtifactGenerator", Namespace: "a", Name: "g", Children: []*Node{n, n}}
	}
	for _, draw := range []func(*strings.Builder) error{
		func(b *strings.Builder) error { return Draw(b, []*Node{n}, table.Style{}) },
		func(b *strings.Builder) error { return Mermaid(b, []*Node{n}) },
		func(b *strings.Builder) error { return DOT(b, []*Node{n}) },
	} {
		var b strings.Builder
		if err := draw(&b); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(b.String(), "\n"); lines < 101 || lines > 400 {
			t.Errorf("%d lines", lines)
		}
	}
}

// TestSharedFailing: shared children stay shared, and are visited once, not for each path to them.
func TestSharedFailing(t *testing.T) {
	n, depth := &Node{Name: "last", State: Missing}, 100
	for range depth {
		n = &Node{Children: []*Node{n, {Name: "good"}, n}}
	}
	for _, left := range [][]*Node{Failing([]*Node{n}), Keep([]*Node{n}, func(n *Node) bool { return n.State == Missing })} {
		for range depth {
			if len(left) == 0 || left[0] != left[len(left)-1] {
				t.Fatalf("%d nodes", len(left))
			}
			left = left[0].Children
		}
		if len(left) != 2 || left[0].Name != "last" {
			t.Errorf("%+v", left)
		}
	}
	for state, want := range map[string]int{"failed": 1, "interrupted": 1, Invalid: 1, Missing: 1, "ready": 0, Suspended: 0, "": 0} {
		if got := Failing([]*Node{{State: state}}); len(got) != want {
			t.Errorf("%q: %d nodes", state, len(got))
		}
	}
}

// TestHostileNames: no name ends its label, its line, or a comment.
func TestHostileNames(t *testing.T) {
	hostile := "x\"]; end\nclick n0 href \"javascript:alert(1)\"<img src=x onerror=alert(1)>`|\\\x1b[31m\u202e#quot;"
	roots := []*Node{{Kind: Cluster, Name: hostile, Children: []*Node{{Kind: "HelmChart", Namespace: hostile, Name: hostile, Chart: hostile, Version: hostile, State: hostile}}}}
	var tree, mermaid, dot strings.Builder
	for _, err := range []error{Draw(&tree, roots, table.Style{}), Mermaid(&mermaid, roots), DOT(&dot, roots)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"tree": tree.String(), "Mermaid": mermaid.String(), "DOT": dot.String()} {
		if strings.ContainsAny(text, "\x1b\u202e") || strings.Contains(text, "\nclick") {
			t.Errorf("%s: %q", name, text)
		}
	}
	if got := escapeMermaid("a\"]é"); got != "a#34;#93;#233;" {
		t.Error(got)
	}
	if got := escapeMermaid("azAZ09"); got != "azAZ09" {
		t.Errorf("escaped: %s", got)
	}
	if strings.Contains(mermaid.String(), "<img") || strings.Count(mermaid.String(), `"`) != 4 {
		t.Errorf("Mermaid\n%s", mermaid.String())
	}
	if strings.Count(dot.String(), `"`)-strings.Count(dot.String(), `\"`) != 6 {
		t.Errorf("DOT\n%s", dot.String())
	}
}

// FuzzGraphs: whatever a node is called, each line is a node, an edge or one of the lines that are always there.
func FuzzGraphs(f *testing.F) {
	for _, text := range []string{
		"a", "x\"]; end\nclick n0 href \"javascript:alert(1)\"", "<img src=x onerror=alert(1)>", "\\", `\"`, "`|\x1b[31m\u202e#quot;", "%%{init: {}}%%",
		":::bad", "subgraph x", "}\r\n  n0 [URL=\"javascript:x\"]", "\u2028end\u0085", "\xff\x00", "<br/>", "n1 --> n0",
	} {
		f.Add(text)
	}
	mermaid := regexp.MustCompile(`^(flowchart LR|    n\d+\["([ ./_:+,A-Za-z0-9-]|#\d+;|<br/>)*"\](:::(bad|off))?|    n\d+ --> n\d+|    classDef (bad|off) [a-z0-9#:, -]+)$`)
	dot := regexp.MustCompile(`^(digraph helmsrc \{|  rankdir=LR|  node \[shape=box, fontname="sans-serif"\]|  n\d+ \[label="([^"\\\pC]|\\["\\n])*"(, color=red|, style=dashed)?\]|  n\d+ -> n\d+|\})$`)
	f.Fuzz(func(t *testing.T, text string) {
		n := &Node{Kind: text, Namespace: text, Name: text, Chart: text, Version: text, Constraint: text, State: text}
		roots := []*Node{{Kind: Cluster, Name: text, Children: []*Node{n, {Kind: "HelmChart", Name: text, State: Suspended}}}}
		var flow, graph strings.Builder
		if err := errors.Join(Mermaid(&flow, roots), DOT(&graph, roots)); err != nil {
			t.Fatal(err)
		}
		for drawn, line := range map[string]*regexp.Regexp{flow.String(): mermaid, graph.String(): dot} {
			for got := range strings.SplitSeq(strings.TrimSuffix(drawn, "\n"), "\n") {
				if !line.MatchString(got) {
					t.Errorf("%q makes the line %q", text, got)
				}
			}
		}
	})
}

// TestNarrow: of a line that is too wide, the end of the name goes before the version does.
func TestNarrow(t *testing.T) {
	long := strings.Repeat("long-", 12) + "name"
	roots := []*Node{
		{Kind: "HelmChart", Namespace: "apps", Name: long, Chart: "podinfo", Version: "6.0.0", State: "ready"},
		{Kind: "HelmRepository", Name: long, URL: "https://charts.example.com/" + long},
		{Kind: "HelmRelease", Name: "short", State: Suspended},
	}
	var b strings.Builder
	if err := Draw(&b, roots, table.Style{Columns: 60}); err != nil {
		t.Fatal(err)
	}
	want := "HelmChart apps/long-long-long-long-long-lon…  podinfo 6.0.0…\nHelmRepository long-long-long-lo…  https://charts.example.c…\nHelmRelease short  suspended\n"
	if b.String() != want {
		t.Errorf("drawn\n%swant\n%s", b.String(), want)
	}
}

// TestStates: each drawing has the fields of a node after its name, its notes below it, and shows its state.
func TestStates(t *testing.T) {
	roots := []*Node{{Kind: Cluster, Name: "c", Children: []*Node{
		{Kind: "a", Namespace: "n", Name: "bad", State: Missing, Chart: "podinfo", Constraint: "6.x", Version: "6.1.0", Path: "./p", URL: "https://u", Message: "m",
			Notes: []Note{{Taken, "6.1.0"}, {Left, "6.0.0"}, {"", "why"}}, Children: []*Node{{Kind: "b", Name: "x", Constraint: "1"}}},
		{Kind: "b", Name: "off", State: Suspended, Constraint: "1", Version: "1"},
	}}}
	for want, style := range map[string]table.Style{
		"c\n├─ ✗ a n/bad  podinfo 6.x → 6.1.0  " + Missing + "  ./p  https://u  m\n│  │  ✓ 6.1.0\n│  │  ✗ 6.0.0\n│  │  why\n│  └─ b x  1\n└─ b off  suspended  1\n":  {},
		"c\n|- x a n/bad  podinfo 6.x -> 6.1.0  " + Missing + "  ./p  https://u  m\n|  |  * 6.1.0\n|  |  x 6.0.0\n|  |  why\n|  `- b x  1\n`- b off  suspended  1\n": {ASCII: true},
	} {
		var b strings.Builder
		if err := Draw(&b, roots, style); err != nil || b.String() != want {
			t.Errorf("%v, drawn\n%swant\n%s", err, b.String(), want)
		}
	}
	var colored strings.Builder
	if err := Draw(&colored, roots, table.Style{Color: true}); err != nil {
		t.Fatal(err)
	}
	style := table.Style{Color: true}
	for text, color := range map[string]table.Color{"a n/bad  podinfo 6.x → 6.1.0  " + Missing + "  ./p  https://u  m": table.Red, "6.1.0": table.Green, "b off  suspended  1": table.Yellow} {
		if line := style.Paint(text, color) + "\n"; line == text+"\n" || strings.Count(colored.String(), line) != 1 {
			t.Errorf("%q is not once in\n%q", line, colored.String())
		}
	}
	if n := strings.Count(colored.String(), "\x1b[0m"); n != 3 {
		t.Errorf("%d parts have a colour in\n%q", n, colored.String())
	}
	var mermaid, dot strings.Builder
	if err := errors.Join(Mermaid(&mermaid, roots), DOT(&dot, roots)); err != nil {
		t.Fatal(err)
	}
	for text, marks := range map[string][]string{mermaid.String(): {"\"]:::bad\n", "\"]:::off\n"}, dot.String(): {"\", color=red]\n", "\", style=dashed]\n"}} {
		for _, mark := range marks {
			if strings.Count(text, mark) != 1 {
				t.Errorf("%q is not once in\n%s", mark, text)
			}
		}
	}
	for want, n := range map[string]*Node{"a|n/bad|podinfo 6.x -> 6.1.0|" + Missing: roots[0].Children[0], Cluster + "|c": roots[0], "b|x|1": roots[0].Children[0].Children[0]} {
		if got := strings.Join(label(n), "|"); got != want {
			t.Errorf("labelled %q, want %q", got, want)
		}
	}
}

func TestKeep(t *testing.T) {
	leaf, other := &Node{Kind: "b", Name: "leaf"}, &Node{Kind: "c", Name: "other"}
	root := &Node{Kind: Cluster, Name: "root", Children: []*Node{{Kind: "a", Name: "up", Children: []*Node{leaf}}, other}}
	var b strings.Builder
	if err := Draw(&b, Keep([]*Node{root}, func(n *Node) bool { return n == leaf }), table.Style{}); err != nil {
		t.Fatal(err)
	}
	if want := "root\n└─ a up\n   └─ b leaf\n"; b.String() != want {
		t.Errorf("kept\n%s", b.String())
	}
	if len(root.Children) != 2 {
		t.Error("the outline itself changed")
	}
}
