package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// hostile is text that would be markup, a command or an end marker in one of the formats.
const hostile = "a\r\n::error::x\n##[error]y\x1b[31m|`<b>&]]>%0A\u0000\uFFFF\xff,col=1:![p](http://x/)"

func runs() map[string]*Run {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	many := &Run{Command: "validate", Validates: true, Started: started}
	for i := range maxFindings + 7 {
		many.Findings = append(many.Findings, finding.Finding{
			Code: "HS001", Severity: finding.Error, Pos: manifest.Pos{File: "a.yaml", Line: i + 1, Column: 1}, Message: "m", Line: "x",
		})
	}
	return map[string]*Run{
		"empty": {Command: "validate", Validates: true, Started: started},
		"silenced": {
			Command: "validate", Validates: true, Started: started, ListSilenced: true,
			Findings: []finding.Finding{{Code: finding.ShortInterval, Severity: finding.Warning, Pos: manifest.Pos{File: "a.yaml", Line: 1}, Line: "x", Message: "reported"}},
			Silenced: []finding.Finding{
				{Code: finding.ShortInterval, Severity: finding.Warning, Pos: manifest.Pos{File: "a.yaml", Line: 1}, Line: "x", Message: "quiet", Reason: hostile},
				{Code: finding.UselessSetting, Severity: finding.Warning, Pos: manifest.Pos{File: "a.yaml", Line: 2}, Message: "quiet"},
			},
		},
		"many": many,
		"usual": {
			Command: "fetch", Version: "1.2.3", Started: started, Duration: 3400 * time.Millisecond,
			Count: map[string]int{StateReady: 1, StateFailed: 2, StateSuspended: 1, StateInterrupted: 1},
			Findings: []finding.Finding{
				{
					Code: finding.DuplicateObject, Severity: finding.Error, Kind: "HelmChart", Namespace: "apps", Name: "podinfo",
					Pos: manifest.Pos{File: "clusters/a b.yaml", Line: 3, Column: 9}, Length: 6, Line: "  näme: pödinfo",
					Message: "is defined 2 times", Fix: "remove one", Related: []manifest.Pos{{File: "/etc/b.yaml", Line: 1, Column: 1}},
				},
				{Code: finding.Syntax, Severity: finding.Error, Pos: manifest.Pos{File: "broken.yaml"}, Message: "is no YAML"},
				{Code: "HS999", Severity: finding.Warning, Message: "belongs to nothing"},
				{Code: finding.Syntax, Severity: finding.Note, Kind: "HelmRepository", Name: "x", Pos: manifest.Pos{File: "c.yaml", Line: 1, Column: 1}, Message: "n"},
			},
			Objects: []Object{
				{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "HelmChart", Namespace: "apps", Name: "podinfo", State: StateFailed, Pos: manifest.Pos{File: "a.yaml", Line: 1, Column: 1}},
				{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "HelmChart", Namespace: "apps", Name: "other", State: StateFailed, Reason: "ChartPullError", Message: "gone"},
				{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "HelmChart", Namespace: "apps", Name: "asleep", State: StateSuspended},
				{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "HelmChart", Namespace: "apps", Name: "cut", State: StateInterrupted},
				{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "HelmChart", Namespace: "apps", Name: "good", State: StateReady, Version: "6.5.0", Digest: "sha256:0", Path: "helmchart/apps/good/good-6.5.0.tgz", Duration: time.Second},
			},
		},
		"hostile": {
			Command: "fetch", Version: hostile, Started: started,
			Findings: []finding.Finding{{
				Code: finding.Syntax, Severity: finding.Error, Kind: hostile, Namespace: hostile, Name: hostile,
				Pos: manifest.Pos{File: hostile, Line: 1, Column: 70}, Length: 500, Line: hostile, Message: hostile, Fix: strings.Repeat("ö", maxText),
			}},
			Objects: []Object{{Kind: hostile, Namespace: hostile, Name: hostile, State: StateReady, Message: hostile, Version: hostile}},
		},
	}
}

func written(t *testing.T, format string, run *Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, format, run); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestFormats checks rules for every format: the same bytes each time, printable characters, complete lines.
func TestFormats(t *testing.T) {
	for _, format := range Formats() {
		for name, run := range runs() {
			t.Run(format+"/"+name, func(t *testing.T) {
				text := written(t, format, run)
				if again := written(t, format, run); again != text {
					t.Error("two reports of one run differ")
				}
				if clean := strings.ToValidUTF8(text, "?"); clean != text {
					t.Error("not UTF-8")
				}
				if text != "" && !strings.HasSuffix(text, "\n") {
					t.Error("the last line has no end")
				}
				if strings.ContainsAny(text, "\x00\x1b\r") {
					t.Errorf("control characters in\n%q", text)
				}
			})
		}
	}
	if err := Write(&bytes.Buffer{}, "pdf", &Run{}); err == nil {
		t.Error("a format that there is not")
	}
}

// TestRunStaysAsItIs checks that a report does not change its run.
func TestRunStaysAsItIs(t *testing.T) {
	run := runs()["hostile"]
	written(t, "json", run)
	if run.Findings[0].Message != hostile || run.Objects[0].Message != hostile {
		t.Error("the run was changed")
	}
}

func compile(t *testing.T, path string) *jsonschema.Schema {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchemas validates the JSON formats with their schemas, and checks that these refuse a mistake.
func TestSchemas(t *testing.T) {
	for format, path := range map[string]string{
		"sarif": filepath.Join("testdata", "sarif-schema-2.1.0.json"),
		"json":  filepath.Join("..", "..", "schema", "report.schema.json"),
	} {
		s := compile(t, path)
		for name, run := range runs() {
			text := written(t, format, run)
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(value); err != nil {
				t.Errorf("%s/%s: %v", format, name, err)
			}
		}
		text := written(t, format, runs()["usual"])
		for _, wrong := range []string{
			strings.Replace(text, `"version"`, `"vershun"`, 1),
			strings.ReplaceAll(text, `"error"`, `"terror"`),
			strings.Replace(text, `: 3,`, `: "3",`, 1),
		} {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(wrong))
			if err != nil {
				t.Fatal(err)
			}
			if wrong == text || s.Validate(value) == nil {
				t.Errorf("%s: the schema accepts a mistake", format)
			}
		}
	}
}

func TestSARIF(t *testing.T) {
	var log sarifLog
	if err := json.Unmarshal([]byte(written(t, "sarif", runs()["usual"])), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if n := len(run.Results); n != 3 {
		t.Fatalf("%d results, want those with a file", n)
	}
	first := run.Results[0].Locations[0].Physical
	if first.Artifact.URI != "clusters/a%20b.yaml" || first.Artifact.Base != sarifRoot {
		t.Errorf("artifact %+v", first.Artifact)
	}
	if first.Region.StartColumn != 9 || first.Region.EndColumn != 14 { // five characters in six bytes
		t.Errorf("region %+v", first.Region)
	}
	if related := run.Results[0].Related[0].Physical.Artifact; related.URI != "file:///etc/b.yaml" || related.Base != "" {
		t.Errorf("related %+v", related)
	}
	for _, r := range run.Results {
		if rule := run.Tool["driver"].Rules[r.RuleIndex]; rule.ID != r.RuleID || rule.Help == nil || rule.Help.Text == "" {
			t.Errorf("rule of %s: %+v", r.RuleID, rule)
		}
	}
	if n := run.Invocations[0].Notifications; len(n) != 1 || n[0].Message.Text != "belongs to nothing" {
		t.Errorf("notifications %+v", n)
	}
	if run.Invocations[0].Successful {
		t.Error("a run that was interrupted is called successful")
	}
}

// TestSARIFFix: the remedy of a finding is a fix in SARIF, and the blocked objects are in the result.
func TestSARIFFix(t *testing.T) {
	there := manifest.Pos{File: "a.yaml", Line: 2, Column: 3}
	f := finding.Finding{
		Code: "HS001", Severity: finding.Note, Message: "m [a](b)", Pos: there, Repair: &finding.Repair{Pos: there, EndColumn: 5, Text: "x"},
		Blocks: []finding.Object{{Kind: "HelmChart", Name: "nowhere"}, {Kind: "HelmChart", Namespace: "apps", Name: "b", Pos: there}}, Related: []manifest.Pos{{File: manifest.StdinName}},
	}
	result := newSARIFResult(&f, "")
	change := result.Fixes[0].Changes[0]
	if r := change.Replacements[0]; change.Artifact.URI != "a.yaml" || r.Deleted != (sarifRegion{StartLine: 2, StartColumn: 3, EndColumn: 5}) || r.Inserted.Text != "x" || result.Fixes[0].Description.Text != "change the text" {
		t.Errorf("fix %+v", result.Fixes[0])
	}
	if related := result.Related; len(related) != 2 || related[0].ID != 1 || related[0].Physical.Artifact != (sarifArtifact{URI: "stdin"}) || related[1].ID != 2 || related[1].Message.Text != "blocks HelmChart apps/b" || related[1].Logical[0] != (sarifLogical{"b", "HelmChart/apps/b", "object"}) {
		t.Errorf("related %+v", related)
	}
	if !strings.Contains(result.Message.Text, "m [a] (b)") || result.Locations[0].Logical != nil {
		t.Errorf("%+v", result)
	}
	f.Fix = "write x"
	if text := newSARIFResult(&f, "").Fixes[0].Description.Text; text != f.Fix {
		t.Errorf("fix %q", text)
	}
	for severity, want := range map[finding.Severity]string{finding.Error: "error", finding.Warning: "warning", finding.Note: "recommendation"} {
		if got := problemSeverity(severity); got != want {
			t.Errorf("%s: %s", severity, got)
		}
	}
}

// TestSilenced: reports that can mark silenced findings contain them on request, and otherwise count them.
func TestSilenced(t *testing.T) {
	run := runs()["silenced"]
	var log sarifLog
	if err := json.Unmarshal([]byte(written(t, "sarif", run)), &log); err != nil {
		t.Fatal(err)
	}
	results := log.Runs[0].Results
	if len(results) != 3 || results[0].Suppressions != nil || results[1].Suppressions[0] != (sarifSuppression{"inSource", clean(hostile)}) {
		t.Errorf("results %+v", results)
	}
	if results[0].Fingerprints["helmsrc/v1"] == results[1].Fingerprints["helmsrc/v1"] {
		t.Error("two findings are one")
	}
	var got jsonReport
	if err := json.Unmarshal([]byte(written(t, "json", run)), &got); err != nil {
		t.Fatal(err)
	}
	if f := got.Findings; len(f) != 3 || f[0].Silenced || !f[2].Silenced || f[2].Reason != "" || got.Summary.Silenced != 2 || got.Summary.Warnings != 1 {
		t.Errorf("%+v", got)
	}
	for _, format := range Formats() {
		listed := *run
		listed.ListSilenced = format != "sarif" && format != "json"
		text := written(t, format, &listed)
		if strings.Contains(text, "quiet") {
			t.Errorf("%s lists what is silenced:\n%s", format, text)
		}
		if counts := format == "json" || format == "markdown"; counts && !strings.Contains(text, "2 silenced") && !strings.Contains(text, `"silenced": 2`) {
			t.Errorf("%s does not count what is silenced:\n%s", format, text)
		}
	}
	many := *runs()["many"]
	many.Silenced, many.ListSilenced = run.Silenced, true
	if err := json.Unmarshal([]byte(written(t, "json", &many)), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Findings) != maxFindings || got.Omitted != 9 || got.Summary.Silenced != 2 {
		t.Errorf("%d findings, %d omitted, %+v", len(got.Findings), got.Omitted, got.Summary)
	}
}

// TestRulesAreLinked searches the catalogue for the heading in the URL of each rule.
func TestRulesAreLinked(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "findings.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range finding.Rules() {
		_, anchor, _ := strings.Cut(ruleURL(r.Code), "#")
		if !strings.Contains(strings.ToLower(string(page)), "\n### "+strings.Replace(anchor, "-", " ", 1)+"\n") {
			t.Errorf("no heading for %s", anchor)
		}
	}
}

// TestFingerprints checks which changes give a finding another fingerprint.
func TestFingerprints(t *testing.T) {
	base := finding.Finding{Code: "HS001", Pos: manifest.Pos{File: "a.yaml", Line: 1}, Name: "x", Line: "  a: b", Message: "m"}
	moved, reworded := base, base
	moved.Pos.Line, moved.Line = 9, "a: b"
	reworded.Message = "other words"
	other, renamed, elsewhere := base, base, base
	other.Code, renamed.Name, elsewhere.Pos.File = "HS002", "y", "b.yaml"
	prints := fingerprints([]finding.Finding{base, other, renamed, elsewhere, base})
	seen := map[string]bool{}
	for _, p := range prints {
		seen[p] = true
	}
	if len(seen) != len(prints) {
		t.Errorf("different findings are one: %v", prints)
	}
	for _, same := range []finding.Finding{moved, reworded} {
		if got := fingerprints([]finding.Finding{same})[0]; got != prints[0] {
			t.Errorf("%+v is another finding than %+v", same, base)
		}
	}
}

func TestJUnitCounts(t *testing.T) {
	var suites junitSuites
	if err := xml.Unmarshal([]byte(written(t, "junit", runs()["usual"])), &suites); err != nil {
		t.Fatal(err)
	}
	got := []int{suites.Tests, suites.Failures, suites.Errors, suites.Suite.Skipped}
	// Five objects, one of which was not selected, a file, and findings without either.
	if want := []int{8, 3, 1, 1}; !equal(got, want) {
		t.Errorf("tests, failures, errors, skipped are %v, want %v", got, want)
	}
}

func equal(a, b []int) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

func TestAnnotations(t *testing.T) {
	var b bytes.Buffer
	left, err := Annotations(&b, runs()["many"], AnnotationsPerStep)
	if err != nil || left != maxFindings+7-AnnotationsPerStep || strings.Count(b.String(), "::error ") != AnnotationsPerStep {
		t.Errorf("%d left, %v\n%s", left, err, b.String())
	}
	got := written(t, "github", runs()["usual"])
	want := "::error file=clusters/a b.yaml,line=3,endLine=3,col=9,endColumn=14,title=" + string(finding.DuplicateObject) +
		" duplicate-object::HelmChart apps/podinfo: is defined 2 times%0Aremove one\n"
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// One line, one command: text of a manifest begins no other command, and sets no property.
	got = written(t, "github", runs()["hostile"])
	properties, _, _ := strings.Cut(strings.TrimPrefix(got, "::error "), "::")
	if strings.Count(got, "\n") != 1 || strings.Count(properties, ",col=") != 1 {
		t.Errorf("got\n%s", got)
	}
	for _, p := range strings.Split(properties, ",") {
		if name, _, ok := strings.Cut(p, "="); !ok || !strings.Contains(" file line endLine col endColumn title ", " "+name+" ") {
			t.Errorf("property %q", p)
		}
	}
}

func TestSummaryIsBounded(t *testing.T) {
	many := runs()["many"]
	many.Objects = runs()["usual"].Objects
	for _, most := range []int{0, 100, 1000, 50_000, 1 << 20, math.MaxInt} {
		text := Summary(many, most)
		if len(text) > most {
			t.Errorf("%d bytes, at most %d", len(text), most)
		}
		if most >= 1000 && !strings.Contains(text, "more\n") {
			t.Errorf("%d: what is missing is not counted", most)
		}
	}
}

// TestMarkdownIsText: text from manifests stays text.
func TestMarkdownIsText(t *testing.T) {
	text := written(t, "markdown", runs()["hostile"])
	for _, markup := range []string{"<b>", "![p]", "](http://x", "http://x", "\n::error"} {
		if strings.Contains(text, markup) {
			t.Errorf("%q in\n%s", markup, text)
		}
	}
	for i, line := range strings.Split(text, "\n") {
		if cells := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); cells != 0 && cells != 5 {
			t.Errorf("line %d has %d bars: %s", i+1, cells, line)
		}
	}
}

// TestMarkdownCarriageReturn: a carriage return ends a line in some viewers, so it becomes a blank.
func TestMarkdownCarriageReturn(t *testing.T) {
	for text, want := range map[string]string{"a\rb": "a b", "a\r\nb": "a <br>b", "\ra\r": "a", "a\r| b": `a \| b`} {
		if got := escapeMarkdown(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// TestAnnotationKinds: the runner sorts annotations by the word after the first colons.
func TestAnnotationKinds(t *testing.T) {
	for severity, kind := range map[finding.Severity]string{finding.Error: "::error ", finding.Warning: "::warning ", finding.Note: "::notice "} {
		if got := annotation(&finding.Finding{Severity: severity, Message: "m"}); !strings.HasPrefix(got, kind) {
			t.Errorf("%s", got)
		}
	}
}

// TestGitLab validates the reports with GitLab's schema. GitLab shows only the last of several findings with one fingerprint.
func TestGitLab(t *testing.T) {
	schema := schemaOf(t, "testdata/gitlab-schema.json")
	for name, run := range runs() {
		text := written(t, "gitlab", run)
		if err := validate(t, schema, text); err != nil {
			t.Errorf("%s: %v\n%.2000s", name, err, text)
		}
		var issues []gitlabIssue
		if err := json.Unmarshal([]byte(text), &issues); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, i := range issues {
			if seen[i.Fingerprint] {
				t.Errorf("%s: two findings have the fingerprint of %+v", name, i)
			}
			seen[i.Fingerprint] = true
		}
	}
	const good = `[{"description": "a", "check_name": "b", "fingerprint": "c", "severity": "major", "location": {"path": "d.yaml", "lines": {"begin": 1}}}]`
	if err := validate(t, schema, good); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{`"severity"`, `"check_name"`, `"path"`, `"lines"`, `1`, `"major"`, `"d.yaml"`} {
		if validate(t, schema, strings.Replace(good, wrong, `"/"`, 1)) == nil {
			t.Errorf("the schema accepts another %s", wrong)
		}
	}
	if got := written(t, "gitlab", runs()["empty"]); got != "[]\n" {
		t.Errorf("nothing found is %q", got)
	}
}

func TestCleanIsShort(t *testing.T) {
	for n := maxText - 3; n < maxText+3; n++ {
		s := clean(strings.Repeat("x", n) + "öö")
		if len(s) > maxText+len("…") || !strings.HasSuffix(s, "…") && len(s) > maxText {
			t.Errorf("%s: %d bytes", strconv.Itoa(n), len(s))
		}
	}
}

// FuzzAnnotation parses a command as GitHub does: it is one line, and holds the text of the finding without characters that no
// format can hold.
func FuzzAnnotation(f *testing.F) {
	f.Add("a.yaml", "message", "fix")
	f.Add(hostile, hostile, hostile)
	f.Add("%25", "%0A", "\r\n")
	unescape := strings.NewReplacer("%3A", ":", "%2C", ",", "%0D", "\r", "%0A", "\n", "%25", "%")
	f.Fuzz(func(t *testing.T, file, message, fix string) {
		run := &Run{Findings: []finding.Finding{{Code: "HS999", Severity: finding.Error, Pos: manifest.Pos{File: "x" + file}, Message: message, Fix: fix}}}
		line := written(t, "github", run)
		rest, ok := strings.CutPrefix(line, "::error file=")
		if !ok || strings.Count(line, "\n") != 1 || strings.ContainsAny(line, "\r") || strings.Contains(line, "##[") {
			t.Fatalf("%q", line)
		}
		properties, data, _ := strings.Cut(strings.TrimSuffix(rest, "\n"), "::")
		gotFile, title, _ := strings.Cut(properties, ",")
		whole := func(s string) string { return strings.ReplaceAll(clean(s), "##[", "## [") }
		want := whole(message)
		if clean(fix) != "" {
			want += "\n" + whole(fix)
		}
		if unescape.Replace(gotFile) != whole("x"+file) || title != "title=HS999" || unescape.Replace(data) != want {
			t.Errorf("%q is read as file %q, %q, text %q", line, gotFile, title, data)
		}
	})
}

// FuzzMarkdown parses a cell of a table: it is one line, and shows the text without markup.
func FuzzMarkdown(f *testing.F) {
	for _, text := range []string{"a", hostile, "![p](http://x/)", "www.x.test www", "a|b\r| c |\n<b>", "\\| @name #1 &amp; :x: ~~y~~"} {
		f.Add(text)
	}
	const signs = "\\\\\x60*_{}[\\]()#+!|~$@:"
	cell := regexp.MustCompile("^(?:\\\\[." + signs + "]|&lt;|&gt;|&amp;|<br>|[^" + signs + "<>&\r\n])*$")
	shown := regexp.MustCompile(`\\(.)`)
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.TrimSpace(clean(text))
		var b bytes.Buffer
		if err := MarkdownTable(&b, []string{"A"}, [][]string{{text + "\r"}}); err != nil {
			t.Fatal(err)
		}
		row, _ := strings.CutPrefix(b.String(), "| A |\n| --- |\n| ")
		row, whole := strings.CutSuffix(row, " |\n")
		if !whole || !cell.MatchString(row) || strings.Contains(row, "www.") {
			t.Fatalf("%q becomes %q", text, row)
		}
		got := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(strings.ReplaceAll(shown.ReplaceAllString(row, "$1"), "<br>", "\n"))
		if got != text {
			t.Errorf("%q shows as %q", text, got)
		}
	})
}

// FuzzReports parses the texts of a finding in the formats of other programs.
func FuzzReports(f *testing.F) {
	for _, text := range []string{"a", hostile, "[a](http://x/)", "]]></failure>", "\"},{\"x\":\"", "\u2028\\u0000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		run := &Run{Command: "validate", Findings: []finding.Finding{{Code: "HS999", Severity: finding.Error, Pos: manifest.Pos{File: "a.yaml"}, Message: "x" + text}}}
		var log sarifLog
		if err := json.Unmarshal([]byte(written(t, "sarif", run)), &log); err != nil || log.Runs[0].Results[0].Message.Text != strings.ReplaceAll(clean("x"+text), "](", "] (") {
			t.Errorf("%q in SARIF: %+v, %v", text, log, err)
		}
		var issues []map[string]any
		if err := json.Unmarshal([]byte(written(t, "gitlab", run)), &issues); err != nil || len(issues) != 1 || issues[0]["description"] != clean("x"+text) {
			t.Errorf("%q for GitLab: %v, %v", text, issues, err)
		}
		var suites struct {
			Cases []struct {
				Failures []struct {
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testsuite>testcase"`
		}
		if err := xml.Unmarshal([]byte(written(t, "junit", run)), &suites); err != nil || len(suites.Cases) != 1 || len(suites.Cases[0].Failures) != 1 {
			t.Fatalf("%q in JUnit: %+v, %v", text, suites, err)
		}
		if f := suites.Cases[0].Failures[0]; f.Message != clean("x"+text) || f.Text != "a.yaml: "+clean("x"+text) {
			t.Errorf("%q in JUnit: %+v", text, f)
		}
	})
}
