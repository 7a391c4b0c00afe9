package report

import (
	"cmp"
	"io"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// The parts of SARIF 2.1.0 that reports use.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        map[string]sarifDriver          `json:"tool"`
		Invocations []sarifInvocation               `json:"invocations"`
		Bases       map[string]map[string]sarifText `json:"originalUriBaseIds"`
		Results     []sarifResult                   `json:"results"`
		ColumnKind  string                          `json:"columnKind"`
		Properties  map[string]sarifSummaries       `json:"properties,omitempty"`
	}
	sarifSummaries struct {
		Ready   int `json:"ready"`
		Failed  int `json:"failed"`
		Blocked int `json:"blocked"`
		Skipped int `json:"skipped"`

		Resolved int `json:"resolved"`
		Verified int `json:"verified"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		URI     string      `json:"informationUri"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID            string            `json:"id"`
		Name          string            `json:"name,omitempty"`
		Short         *sarifText        `json:"shortDescription,omitempty"`
		Full          *sarifText        `json:"fullDescription,omitempty"`
		Help          *sarifText        `json:"help,omitempty"`
		HelpURI       string            `json:"helpUri,omitempty"`
		Configuration map[string]string `json:"defaultConfiguration"`
		Properties    map[string]any    `json:"properties,omitempty"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifInvocation struct {
		CommandLine   string              `json:"commandLine,omitempty"`
		Successful    bool                `json:"executionSuccessful"`
		Start         string              `json:"startTimeUtc"`
		End           string              `json:"endTimeUtc"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Related      []sarifLocation    `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
		Fixes        []sarifFix         `json:"fixes,omitempty"`
	}
	sarifFix struct {
		Description sarifText     `json:"description"`
		Changes     []sarifChange `json:"artifactChanges"`
	}
	sarifChange struct {
		Artifact     sarifArtifact      `json:"artifactLocation"`
		Replacements []sarifReplacement `json:"replacements"`
	}
	sarifReplacement struct {
		Deleted  sarifRegion `json:"deletedRegion"`
		Inserted sarifText   `json:"insertedContent"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification,omitempty"`
	}
	sarifLocation struct {
		ID       int            `json:"id,omitempty"`
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI  string `json:"uri"`
		Base string `json:"uriBaseId,omitempty"`
	}
	sarifRegion struct {
		StartLine   int        `json:"startLine"`
		StartColumn int        `json:"startColumn,omitempty"`
		EndColumn   int        `json:"endColumn,omitempty"`
		Snippet     *sarifText `json:"snippet,omitempty"`
	}
	sarifLogical struct {
		Name     string `json:"name"`
		FullName string `json:"fullyQualifiedName"`
		Kind     string `json:"kind"`
	}
)

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	sarifRoot   = "%SRCROOT%"
)

func writeSARIF(w io.Writer, run *Run) error {
	all := slices.Concat(run.Findings, run.Silenced)
	rules, of := sarifRules(all), run.Count
	out := sarifRun{
		Tool: map[string]sarifDriver{"driver": {Name: "helmsrc", Version: run.Version, URI: home, Rules: rules}},
		// The path of the root on this machine is private, and would make the reports of two machines differ.
		Bases:      map[string]map[string]sarifText{sarifRoot: {"description": {Text: "the root of the repository"}}},
		Results:    []sarifResult{},
		ColumnKind: "unicodeCodePoints",
		Properties: map[string]sarifSummaries{"objects": {of[StateReady], of[StateFailed], of[StateBlocked], of[StateSuspended], of[StateResolved], of[StateVerified]}},
	}
	invocation := sarifInvocation{
		CommandLine: "helmsrc " + run.Command,
		Successful:  of[StateInterrupted] == 0 && !run.Broken,
		Start:       run.Started.UTC().Format(time.RFC3339),
		End:         run.Started.Add(run.Duration).UTC().Format(time.RFC3339),
	}
	prints := fingerprints(all)
	for i := range all {
		f := &all[i]
		if f.Pos.File == "" { // code scanning accepts no result without a file
			invocation.Notifications = append(invocation.Notifications, sarifNotification{string(f.Severity), sarifText{Text: headline(f)}})
			continue
		}
		result := newSARIFResult(f, prints[i])
		result.RuleIndex = slices.IndexFunc(rules, func(r sarifRule) bool { return r.ID == string(f.Code) })
		if i >= len(run.Findings) {
			result.Suppressions = []sarifSuppression{{"inSource", f.Reason}}
		}
		out.Results = append(out.Results, result)
	}
	if text := run.omission(); text != "" {
		invocation.Notifications = append(invocation.Notifications, sarifNotification{"warning", sarifText{Text: text}})
	}
	out.Invocations = []sarifInvocation{invocation}
	return Encode(w, sarifLog{sarifSchema, "2.1.0", []sarifRun{out}})
}

// sarifRules describes the rules of the findings.
func sarifRules(findings []finding.Finding) []sarifRule {
	codes := map[finding.Code]bool{}
	for _, f := range findings {
		codes[f.Code] = true
	}
	rules := []sarifRule{}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		rules = append(rules, newSARIFRule(code))
	}
	return rules
}

func newSARIFRule(code finding.Code) sarifRule {
	r, ok := finding.Lookup(string(code))
	if !ok {
		return sarifRule{ID: string(code), Configuration: map[string]string{"level": "error"}}
	}
	return sarifRule{
		ID:            string(code),
		Name:          r.Name,
		Short:         &sarifText{Text: r.Summary},
		Full:          &sarifText{Text: r.Explanation},
		Help:          &sarifText{Text: r.Explanation + "\n\n" + r.Fix, Markdown: helpOf(r)},
		HelpURI:       ruleURL(code),
		Configuration: map[string]string{"level": string(r.Severity)},
		Properties:    map[string]any{"tags": []string{"flux", "helm"}, "precision": "very-high", "problem.severity": problemSeverity(r.Severity)},
	}
}

// problemSeverity returns GitHub's word for a severity.
func problemSeverity(s finding.Severity) string {
	if s == finding.Note {
		return "recommendation"
	}
	return string(s)
}

// ruleURL returns the URL of a rule in the catalogue.
func ruleURL(code finding.Code) string {
	page := home + "/blob/main/docs/findings.md"
	if name := ruleName(code); name != "" {
		page += "#" + strings.ToLower(string(code)) + "-" + name
	}
	return page
}

// ruleName returns the name of a rule, "" for an unknown code.
func ruleName(code finding.Code) string {
	r, _ := finding.Lookup(string(code))
	return r.Name
}

// helpOf returns the long form of a rule in Markdown.
func helpOf(r finding.Rule) string {
	text := r.Explanation + "\n\n**Fix:** " + r.Fix + "\n"
	if r.Example != "" {
		text += "\nFound in:\n\n" + fenced(r.Example)
	}
	if r.Better != "" {
		text += "\nNot in:\n\n" + fenced(r.Better)
	}
	return text
}

func fenced(text string) string { return "```yaml\n" + strings.TrimRight(text, "\n") + "\n```\n" }

func newSARIFResult(f *finding.Finding, fingerprint string) sarifResult {
	text := headline(f) + details(f)
	result := sarifResult{
		RuleID:       string(f.Code),
		Level:        string(f.Severity),
		Message:      sarifText{Text: strings.ReplaceAll(text, "](", "] (")}, // "[text](address)" is a link
		Locations:    []sarifLocation{{Physical: locationOf(f.Pos)}},
		Fingerprints: map[string]string{"helmsrc/v1": fingerprint},
	}
	first := &result.Locations[0]
	if region := first.Physical.Region; region != nil {
		region.EndColumn = endColumn(f)
		if f.Line != "" {
			region.Snippet = &sarifText{Text: f.Line}
		}
	}
	if f.Name != "" {
		first.Logical = logicalOf(f.Object())
	}
	if r := f.Repair; r != nil {
		location := locationOf(r.Pos)
		region := sarifRegion{StartLine: r.Line, StartColumn: r.Column, EndColumn: r.EndColumn}
		result.Fixes = []sarifFix{{
			sarifText{Text: cmp.Or(f.Fix, "change the text")}, []sarifChange{{location.Artifact, []sarifReplacement{{region, sarifText{Text: r.Text}}}}},
		}}
	}
	for i, pos := range f.Related {
		result.Related = append(result.Related, sarifLocation{ID: i + 1, Physical: locationOf(pos)})
	}
	for _, o := range f.Blocks {
		if o.Pos.File == "" {
			continue
		}
		result.Related = append(result.Related, sarifLocation{
			ID: len(result.Related) + 1, Physical: locationOf(o.Pos), Logical: logicalOf(o), Message: &sarifText{Text: "blocks " + o.String()},
		})
	}
	return result
}

func logicalOf(o finding.Object) []sarifLogical {
	return []sarifLogical{{o.Name, path.Join(o.Kind, o.Namespace, o.Name), "object"}}
}

func locationOf(pos manifest.Pos) sarifPhysical {
	p := sarifPhysical{Artifact: sarifArtifact{URI: (&url.URL{Path: pos.File}).String(), Base: sarifRoot}}
	switch {
	case pos.File == manifest.StdinName: // no file of the repository
		p.Artifact = sarifArtifact{URI: "stdin"}
	case outside(pos.File):
		p.Artifact = sarifArtifact{URI: (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(pos.File, "/")}).String()}
	}
	if pos.Line > 0 {
		p.Region = &sarifRegion{StartLine: pos.Line, StartColumn: pos.Column}
	}
	return p
}

// outside reports whether a file is not below the root of the repository: /etc/x, C:/x.
func outside(file string) bool {
	return strings.HasPrefix(file, "/") || len(file) > 1 && file[1] == ':'
}
