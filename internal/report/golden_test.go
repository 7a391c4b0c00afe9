package report

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/plan"
)

var update = flag.Bool("update", false, "rewrite the expected reports")

// reported returns runs and plans with all and without any content of a report.
func reported() map[string]*Run {
	usual := runs()["usual"]
	usual.Count[StateResolved], usual.Count[StateVerified] = 3, 4
	usual.Findings = append(usual.Findings, finding.Finding{
		Code: finding.ShortInterval, Severity: finding.Warning, Kind: "HelmChart", Namespace: "apps", Name: "podinfo",
		Pos: manifest.Pos{File: "a.yaml", Line: 7, Column: 3}, Length: 4, Line: "  each: 1s", Message: "is short", Fix: "make it longer",
	})
	usual.Findings = append(usual.Findings, finding.Finding{Code: finding.Syntax, Severity: finding.Error, Pos: manifest.Pos{File: manifest.StdinName, Line: 2}, Message: "is no YAML"})
	usual.Objects = append(usual.Objects, Object{Kind: "HelmRepository", Name: "valid", State: StateReady})
	usual.Count[StateBlocked] = 1
	usual.Findings = append(usual.Findings, finding.Finding{
		Code: finding.Unreachable, Severity: finding.Error, Kind: "HelmRepository", Name: "down", Pos: manifest.Pos{File: "a.yaml", Line: 3}, Message: "is down",
		Blocks: []finding.Object{{Kind: "HelmRelease", Namespace: "apps", Name: "blocked", Pos: manifest.Pos{File: "b.yaml", Line: 9}}, {Kind: "HelmChart", Name: "other"}},
	})
	usual.Objects = append(usual.Objects, Object{
		Kind: "HelmRelease", Namespace: "apps", Name: "blocked", State: StateBlocked, BlockedBy: finding.Object{Kind: "HelmRepository", Name: "down"},
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
	large.Diffs = slices.Repeat([]plan.Diff{{Of: "chart", Text: strings.Repeat("+", maxComment)}}, 2)
	planned.Findings = usual.Findings[:1]
	planned.Plan.Changes = append(changes, twice, elsewhere, large)
	return map[string]*Run{"usual": usual, "silenced": silenced, "plan": planned, "empty": runs()["empty"], "cut": {
		Command: "fetch", Started: usual.Started, Duration: time.Second, Broken: true, Count: map[string]int{StateInterrupted: 1}, Objects: []Object{{Kind: "HelmChart", Name: "x", State: StateInterrupted, Reason: "R", Message: "m"}},
	}}
}

// TestReports compares each report with the reviewed one; go test -update writes them.
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
			if format == "html" {
				continue // a browser looks at it
			}
			got.Files = append(got.Files, txtar.File{Name: name + "." + format, Data: []byte(written(t, format, runs[name]))})
		}
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if len(got.Files) != len(want.Files) {
		t.Errorf("%d reports, want %d", len(got.Files), len(want.Files))
	}
	for i, file := range got.Files {
		if i >= len(want.Files) || want.Files[i].Name != file.Name || !bytes.Equal(want.Files[i].Data, file.Data) {
			t.Errorf("%s is\n%s", file.Name, file.Data)
		}
	}
}

// TestManyFindings: findings precede silenced ones, and the rest beyond the limit is counted.
func TestManyFindings(t *testing.T) {
	many := make([]finding.Finding, maxFindings-2)
	run := &Run{Findings: many, Silenced: make([]finding.Finding, 5), ListSilenced: true}
	if b := run.bounded(); len(b.Findings) != len(many) || len(b.Silenced) != 2 || b.omitted != 3 || b.silenced != 5 {
		t.Errorf("%d and %d findings, %d omitted", len(b.Findings), len(b.Silenced), b.omitted)
	}
	run = &Run{Findings: append(many, finding.Finding{Pos: manifest.Pos{File: "a\x1b.yaml"}}, finding.Finding{}, finding.Finding{})}
	var b bytes.Buffer
	if left, err := Annotations(&b, run, 3); left != maxFindings+1-3 || err != nil {
		t.Errorf("%d left: %v", left, err)
	}
	b.Reset()
	if _, err := Annotations(&b, run, maxFindings); err != nil || strings.Contains(b.String(), "\x1b") || strings.Count(b.String(), "\n") != maxFindings {
		t.Errorf("%d annotations: %v", strings.Count(b.String(), "\n"), err)
	}
	for severity, want := range map[finding.Severity]string{finding.Error: "Errors", finding.Warning: "Warnings and notes"} {
		for i := range many {
			many[i].Severity = severity
		}
		page := written(t, "markdown", &Run{Findings: append(many, many[:5]...)})
		if before, _, _ := strings.Cut(page, "and 3 more"); strings.Count(page, "and 3 more") != 1 || !strings.Contains(before, want) {
			t.Errorf("%s: %d times", want, strings.Count(page, "and 3 more"))
		}
	}
	text := written(t, "sarif", run)
	if !strings.Contains(text, run.bounded().omission()) || run.bounded().omission() == "" {
		t.Error("SARIF does not say that findings are left out")
	}
}

// refusing refuses all writes.
type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// short accepts a number of bytes, and refuses more.
type short struct{ room int }

func (s *short) Write(p []byte) (int, error) {
	n := min(len(p), s.room)
	if s.room -= n; n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

// TestRefused: a report that cannot be written is an error, and so is an unknown format.
func TestRefused(t *testing.T) {
	run := reported()["plan"]
	_, annotations := Annotations(refusing{}, run, 1)
	for name, err := range map[string]error{
		"annotations": annotations, "plan": WritePlan(refusing{}, run.Plan), "lines": EncodeLines(refusing{}, run.Plan.Changes),
		"report": Write(refusing{}, "json", run), "table": MarkdownTable(refusing{}, []string{"A"}, nil),
	} {
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, format := range slices.Concat(Formats(), Bills()) {
		run := billed()
		run.Findings = runs()["usual"].Findings
		whole := written(t, format, run)
		for _, room := range []int{0, 1, len(whole) / 2, len(whole) - 1} {
			if err := Write(&short{room}, format, run); !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("%s, of which %d bytes are taken: %v", format, room, err)
			}
		}
	}
	var found bytes.Buffer
	for _, lines := range []bool{true, false} {
		if err := WriteFindings(&short{1}, runs()["usual"], lines); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("findings: %v", err)
		}
		if err := WriteFindings(&found, runs()["usual"], lines); err != nil || strings.Count(found.String(), "HS999") != map[bool]int{true: 1, false: 2}[lines] {
			t.Errorf("%v\n%s", err, &found)
		}
	}
	if err := Write(io.Discard, "pdf", run); err == nil || !strings.Contains(err.Error(), "sarif") {
		t.Errorf("another format: %v", err)
	}
}

// TestPlanLines: a line of JSON for each release, with readable text.
func TestPlanLines(t *testing.T) {
	p := &plan.Plan{Changes: []plan.Change{{Chart: "app >1 <2"}, {Chart: "b"}}}
	var b bytes.Buffer
	if err := EncodeLines(&b, p.Changes); err != nil || strings.Count(b.String(), "\n") != 2 || !strings.Contains(b.String(), `"app >1 <2"`) {
		t.Errorf("%s: %v", b.String(), err)
	}
	if page := PlanMarkdown(p); strings.Contains(page, "no room") {
		t.Errorf("diffs are missing in\n%s", page)
	}
}

func TestObjectName(t *testing.T) {
	for want, parts := range map[string][3]string{"": {"", "n", ""}, "K ": {"K", "", ""}, " x": {"", "", "x"}, "K x": {"K", "", "x"}, "K n/x": {"K", "n", "x"}} {
		if got := objectName(parts[0], parts[1], parts[2]); got != want {
			t.Errorf("%q: %q, want %q", parts, got, want)
		}
	}
}

// TestClean: clean keeps all characters that every format can hold, up to the limits of the dropped ranges.
func TestClean(t *testing.T) {
	if got := clean("a\tb\nc\x1f\x20~\x7f\u0080\u009f\u00a0\ufffd\ufffe\uffff\U00010000\xff"); got != "a\tb\nc ~\u00a0\ufffd\U00010000\ufffd" {
		t.Errorf("%q", got)
	}
	if got := clean(strings.Repeat("x", maxText)); len(got) != maxText {
		t.Errorf("%d bytes", len(got))
	}
}

// TestPageRoom: a page is filled to the last byte, and counts the missing rows.
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
