package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/plan"
)

var update = flag.Bool("update", false, "rewrite the expected reports")

// reported are runs and plans that have everything that a report may say, and nothing.
func reported() map[string]*Run {
	usual := runs()["usual"]
	usual.Resolved, usual.Verified = 3, 4
	usual.Findings = append(usual.Findings, finding.Finding{
		Code: finding.ShortInterval, Severity: finding.Warning, Kind: "HelmChart", Namespace: "apps", Name: "podinfo",
		Pos: manifest.Pos{File: "a.yaml", Line: 7, Column: 3}, Length: 4, Line: "  each: 1s", Message: "is short", Fix: "make it longer",
	})
	silenced := runs()["silenced"]
	silenced.Findings = nil
	chart := func(name, version string) *plan.Chart { return &plan.Chart{Name: name, Version: version} }
	change := func(name string, action plan.Action, before, after *plan.Chart) plan.Change {
		return plan.Change{ID: plan.ID{Namespace: "apps", Name: name}, Action: action, Chart: "app 1.x", Before: before, After: after,
			Reasons: []plan.Reason{{Code: plan.ReasonUnchanged, Text: "unchanged"}}}
	}
	planned := &Run{Command: "plan", Started: usual.Started, Plan: &plan.Plan{Against: "main", Changes: []plan.Change{
		change("neither", plan.Install, nil, nil), change("new", plan.Install, nil, chart("app", "1.0.0")),
		change("gone", plan.Uninstall, chart("app", "1.0.0"), nil), change("unknown", plan.Upgrade, chart("app", "1.0.0"), nil),
		change("equal", plan.Upgrade, chart("app", "1.0.0"), chart("app", "1.0.0")), change("same", plan.None, nil, nil),
		change("newer", plan.Upgrade, chart("app", "1.0.0"), chart("app", "1.1.0")), change("other", plan.Upgrade, chart("app", "1.0.0"), chart("web", "1.0.0")),
	}}}
	changes := planned.Plan.Changes
	changes[6].Cluster = "prod"
	changes[6].Diffs = []plan.Diff{{Of: "values", Text: "-a: 1\n+a: \u00a0 ~\x7f\u0080\n"}}
	twice := change("twice", plan.None, nil, nil)
	twice.Reasons = append(twice.Reasons, plan.Reason{Code: plan.ReasonValues, Text: "values differ"})
	elsewhere := change("elsewhere", plan.None, nil, nil)
	elsewhere.Reasons[0].Code = plan.ReasonValues
	large := change("large", plan.Upgrade, nil, nil)
	large.Diffs = []plan.Diff{{Of: "chart", Text: strings.Repeat("+", maxComment)}}
	planned.Plan.Changes = append(changes, twice, elsewhere, large)
	return map[string]*Run{"usual": usual, "silenced": silenced, "plan": planned, "empty": runs()["empty"], "cut": {
		Command: "fetch", Started: usual.Started, Duration: time.Second, Broken: true, Objects: []Object{{Kind: "HelmChart", Name: "x", State: StateInterrupted, Reason: "R", Message: "m"}},
	}}
}

// TestReports compares each report with the one that was looked at; go test -update writes them.
func TestReports(t *testing.T) {
	path := filepath.Join("testdata", "reports.txtar")
	want, err := txtar.ParseFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	got := &txtar.Archive{}
	runs := reported()
	for _, name := range []string{"empty", "usual", "silenced", "cut", "plan"} {
		for _, format := range Formats() {
			got.Files = append(got.Files, txtar.File{Name: name + "." + format, Data: []byte(written(t, format, runs[name]))})
		}
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	for i, file := range got.Files {
		if i >= len(want.Files) || want.Files[i].Name != file.Name || !bytes.Equal(want.Files[i].Data, file.Data) {
			t.Errorf("%s is\n%s", file.Name, file.Data)
		}
	}
}

// TestClean: what every format can hold stays, at both ends of what none can.
func TestClean(t *testing.T) {
	if got := clean("a\tb\nc\x1f\x20~\x7f\u0080\u009f\u00a0\ufffd\ufffe\uffff\U00010000\xff"); got != "a\tb\nc ~\u00a0\ufffd\U00010000\ufffd" {
		t.Errorf("%q", got)
	}
	if got := clean(strings.Repeat("x", maxText)); len(got) != maxText {
		t.Errorf("%d bytes", len(got))
	}
}

// TestPageRoom: a page takes what it has room for to the last byte, and counts the rest.
func TestPageRoom(t *testing.T) {
	const head = "\n### T\n\nH\n"
	for most, want := range map[int]string{
		len(head) - 1:  "",
		len(head) + 5:  head + "\n… and 4 more\n",
		len(head) + 6:  head + "row 1\n" + "\n… and 3 more\n",
		len(head) + 12: head + "row 1\nrow 2\n" + "\n… and 2 more\n",
		len(head) + 18: head + "row 1\nrow 2\nrow 3\n" + "\n… and 1 more\n",
	} {
		p := &page{most: most}
		p.table("T", "H\n", []string{"row 1\n", "row 2\n", "row 3\n"}, 1)
		if got := p.text.String(); got != want {
			t.Errorf("%d bytes: %q, want %q", most, got, want)
		}
	}
	p := &page{most: 99}
	p.table("T", "H\n", []string{"row\n"}, 0)
	p.table("none", "H\n", nil, 1)
	if got := p.whole(len(head) + 4); got != head+"row\n" {
		t.Errorf("%q", got)
	}
	if got := p.whole(len(head) + 3); got != "" {
		t.Errorf("%q in less", got)
	}
}
