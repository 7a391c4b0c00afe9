package report

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/outline"
	"github.com/helmsrc/helmsrc/internal/plan"
)

// hostileRun returns a run with the same text in each field that comes from manifests, charts and servers.
func hostileRun(text string) *Run {
	id := plan.ID{Cluster: text, Kind: text, Namespace: text, Name: text}
	chart := &plan.Chart{Name: text, Version: text, Digest: text}
	return &Run{
		Command: "plan", Version: "1",
		Findings: []finding.Finding{{
			Code: finding.Code(text), Severity: finding.Error, Kind: text, Namespace: text, Name: text, Pos: manifest.Pos{File: text, Line: 1, Column: 2},
			Length: 3, Line: text, Message: text, Fix: text, Related: []manifest.Pos{{File: text}},
		}},
		Objects: []Object{{Cluster: text, Kind: text, Namespace: text, Name: text, State: text, Message: text, Version: text, Revision: text, Digest: text, Pos: manifest.Pos{File: text}}},
		Plan: &plan.Plan{Against: text, Changes: []plan.Change{{
			ID: id, Action: plan.Action(text), Chart: text, Before: chart, After: chart, Reasons: []plan.Reason{{Code: text, Text: text, Note: text}},
			Diffs: []plan.Diff{{Of: text, Text: "--- a/" + text + "\n+++ b/x\n@@ -1 +1 @@\n-" + text + "\n+" + text + "\n"}},
		}}},
		Outline:  []*outline.Node{{Kind: outline.Cluster, Name: text, Children: []*outline.Node{{Kind: text, Namespace: text, Name: text, Chart: text, Version: text, State: text}}}},
		Outdated: []Outdated{{Kind: text, Namespace: text, Name: text, Chart: text, Current: text, Wanted: text, Latest: text, Versions: []PublishedVersion{{Version: text}, {Version: text + "2", Created: time.Unix(1, 0)}}}},
	}
}

// FuzzPage: the text of a manifest or a chart stays text. It adds no element, attribute or link.
func FuzzPage(f *testing.F) {
	for _, text := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' autofocus onfocus='alert(1)`, `javascript:alert(1)`,
		`</title></style></script><svg onload=alert(1)>`, `{{.Policy}}`, `<!--`, `--><b>`, "]]>", "\x00\x1b[31m\u202e", "`x`=y", "&lt;b&gt;&#60;", "\xff<", "//x/",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, got := elementsOf(t, "plain"), elementsOf(t, "a"+text) // a text that is empty is left out
		if strings.ContainsAny(clean(text), "\n") {
			return // a diff has a row for each line
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q makes another page: %d elements, want %d", text, len(got), len(want))
		}
	})
}

// elementsOf returns the elements of the page of a hostile run, with the names of their attributes.
func elementsOf(t *testing.T, text string) (shape []string) {
	t.Helper()
	for z := html.NewTokenizer(strings.NewReader(written(t, "html", hostileRun(text)))); z.Next() != html.ErrorToken; {
		token := z.Token()
		if token.Type != html.StartTagToken {
			continue
		}
		names := token.Data
		for _, a := range token.Attr {
			names += " " + a.Key
			if a.Key == "href" && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "https://github.com/helmsrc/") {
				t.Errorf("%q leads to %q", text, a.Val)
			}
		}
		shape = append(shape, names)
	}
	return shape
}

// TestPageTells checks that the page has the content of each part of a run.
func TestPageTells(t *testing.T) {
	run := hostileRun("in-everything")
	run.Plan.Against = "in-plan"
	run.Outdated[0].Latest = "in-outdated"
	run.Outdated = append(run.Outdated, Outdated{Chart: "unpublished"})
	run.Outline[0].Name = "in-outline"
	page := written(t, "html", run)
	for _, text := range []string{"in-plan", "in-outdated", "in-outline", "unpublished: - · wanted - · latest -"} {
		if !strings.Contains(page, text) {
			t.Errorf("%s is not on the page", text)
		}
	}
}

// TestPageNeedsNothing: a page loads nothing, and its policy allows only its own script and style.
func TestPageNeedsNothing(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, "html", runs()["usual"]); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if m := regexp.MustCompile(`(?i)(src=|@import|url\(|<link|<iframe|<object|fetch\(|XMLHttpRequest)`).FindString(page); m != "" {
		t.Errorf("the page has %q", m)
	}
	for tag, kind := range map[string]string{"style": "style-src", "script": "script-src"} {
		text := page[strings.Index(page, "<"+tag+">")+len(tag)+2 : strings.Index(page, "</"+tag+">")]
		if !strings.Contains(strings.NewReplacer("&#43;", "+", "&#39;", "'").Replace(page), kind+" '"+hashOf(text)+"'") {
			t.Errorf("the policy does not name the %s", tag)
		}
	}
}

// TestTimeline places versions by date, the oldest first, or by rank if a date is missing.
func TestTimeline(t *testing.T) {
	day := func(n int) time.Time { return time.Unix(int64(n)*24*60*60, 0) }
	o := &Outdated{Chart: "c", Current: "1", Wanted: "2", Latest: "4", Versions: []PublishedVersion{{"4", day(100)}, {"3", day(75)}, {"2", day(50)}, {"1", day(0)}}}
	points := func() (list []string) {
		for _, p := range timeline(o) {
			list = append(list, fmt.Sprint(p.X, " ", p.R, " ", p.Class, " ", p.Text))
		}
		return list
	}
	want := []string{"10 7 current 1 1970-01-01", "500 7 wanted 2 1970-02-20", "745 4  3 1970-03-17", "990 7 latest 4 1970-04-11"}
	if got := points(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	o.Versions[2].Created = time.Time{}
	want = []string{"10 7 current 1 1970-01-01", "337 7 wanted 2", "664 4  3 1970-03-17", "990 7 latest 4 1970-04-11"}
	if got := points(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	o.Versions = o.Versions[:1]
	if got := points(); !slices.Equal(got, []string{"10 7 latest 4 1970-04-11"}) {
		t.Errorf("got %q", got)
	}
	o.Versions = slices.Repeat(o.Versions, timelineMost+1)
	if got := timeline(o); len(got) != timelineMost || got[0].Text != "4 1970-04-11" {
		t.Errorf("%d points from %v", len(got), got[0])
	}
}

func TestSideBySide(t *testing.T) {
	rows := sideBySide("--- a/values.yaml\n+++ b/values.yaml\n@@ -1,3 +1,3 @@\n a: 1\n-b: 1\n-c: 1\n+b: 2\n d: 1\n")
	want := []diffRow{
		{Heading: "--- a/values.yaml"}, {Heading: "+++ b/values.yaml"}, {Heading: "@@ -1,3 +1,3 @@"}, {Left: "a: 1", Right: "a: 1"},
		{Left: "b: 1", Right: "b: 2", Removed: true, Added: true}, {Left: "c: 1", Removed: true}, {Left: "d: 1", Right: "d: 1"},
	}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %+v", rows)
	}
}

// TestPageTree: a tree links to the rows of its objects, and is open up to a number of nodes.
func TestPageTree(t *testing.T) {
	run := &Run{Command: "tree", Version: "1"}
	cluster := &outline.Node{Kind: outline.Cluster, Name: "main"}
	for i := range 2 * openNodes {
		name := strings.Repeat("x", i+1)
		cluster.Children = append(cluster.Children, &outline.Node{Kind: "HelmRelease", Namespace: "apps", Name: name, Children: []*outline.Node{{Kind: "HelmChart", Name: "c" + name}}})
		run.Objects = append(run.Objects, Object{Cluster: "main", Kind: "HelmRelease", Namespace: "apps", Name: name})
	}
	run.Outline = []*outline.Node{cluster}
	page := written(t, "html", run)
	if open, all := strings.Count(page, "<details open>"), strings.Count(page, "<details"); open != openNodes/2 || all < 2*openNodes {
		t.Errorf("%d of %d are open", open, all)
	}
	for i := range run.Objects {
		if link := fmt.Sprintf(`href="#o%d"`, i); !strings.Contains(page, link) {
			t.Fatalf("no %s", link)
		}
	}
}
