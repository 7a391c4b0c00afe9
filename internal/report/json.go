package report

import (
	"io"
	"slices"
	"time"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// jsonSchema is where the schema of these reports is published. A change that old readers do not understand gets another
// name.
const jsonSchema = "https://raw.githubusercontent.com/helmsrc/helmsrc/main/schema/report.schema.json"

type (
	jsonReport struct {
		Schema   string        `json:"$schema"`
		Version  string        `json:"version"`
		Command  string        `json:"command"`
		Started  string        `json:"started"`
		Duration float64       `json:"durationSeconds"`
		Summary  jsonSummary   `json:"summary"`
		Findings []jsonFinding `json:"findings"`
		Omitted  int           `json:"omittedFindings,omitempty"`
		Objects  []jsonObject  `json:"objects"`
		Plan     *jsonPlan     `json:"plan,omitempty"`
	}
	jsonSummary struct {
		Ready    int `json:"ready"`
		Resolved int `json:"resolved"`
		Verified int `json:"verified"`
		Failed   int `json:"failed"`
		Blocked  int `json:"blocked"`
		Skipped  int `json:"skipped"`
		Cut      int `json:"interrupted"`
		Errors   int `json:"errors"`
		Warnings int `json:"warnings"`
		Notes    int `json:"notes"`
		Silenced int `json:"silenced"`
	}
	jsonFinding struct {
		Code        finding.Code     `json:"code"`
		Rule        string           `json:"rule,omitempty"`
		Severity    finding.Severity `json:"severity"`
		Kind        string           `json:"kind,omitempty"`
		Namespace   string           `json:"namespace,omitempty"`
		Name        string           `json:"name,omitempty"`
		Position    *jsonPosition    `json:"place,omitempty"`
		Message     string           `json:"message"`
		Fix         string           `json:"fix,omitempty"`
		Related     []*jsonPosition  `json:"related,omitempty"`
		Blocks      []*jsonReference `json:"blocks,omitempty"`
		Fingerprint string           `json:"fingerprint"`
		Silenced    bool             `json:"silenced,omitempty"`
		Reason      string           `json:"reason,omitempty"`
	}
	jsonPosition struct {
		File      string `json:"file"`
		Line      int    `json:"line,omitempty"`
		Column    int    `json:"column,omitempty"`
		EndColumn int    `json:"endColumn,omitempty"`
		Text      string `json:"text,omitempty"`
	}
	jsonReference struct {
		Kind      string        `json:"kind"`
		Namespace string        `json:"namespace,omitempty"`
		Name      string        `json:"name"`
		Position  *jsonPosition `json:"place,omitempty"`
	}
	jsonObject struct {
		APIVersion string        `json:"apiVersion"`
		Kind       string        `json:"kind"`
		Namespace  string        `json:"namespace,omitempty"`
		Name       string        `json:"name"`
		Position   *jsonPosition `json:"place,omitempty"`
		State      string        `json:"state"`
		Reason     string        `json:"reason,omitempty"`
		Message    string        `json:"message,omitempty"`
		Version    string        `json:"version,omitempty"`
		Revision   string        `json:"revision,omitempty"`
		Digest     string        `json:"digest,omitempty"`
		Path       string        `json:"path,omitempty"`
		Duration   float64       `json:"durationSeconds,omitempty"`

		BlockedBy *jsonReference `json:"blockedBy,omitempty"`
	}
)

func writeJSON(w io.Writer, run *Run) error {
	n := counts(run.Findings)
	out := jsonReport{
		Schema:   jsonSchema,
		Version:  run.Version,
		Command:  run.Command,
		Started:  run.Started.UTC().Format(time.RFC3339),
		Duration: milliseconds(run.Duration),
		Summary:  jsonSummary{run.Ready, run.Resolved, run.Verified, run.Failed, run.Blocked, run.Skipped, run.Interrupted(), n[finding.Error], n[finding.Warning], n[finding.Note], run.silenced},
		Findings: []jsonFinding{},
		Omitted:  run.omitted,
		Objects:  []jsonObject{},
		Plan:     newJSONPlan(run.Plan),
	}
	all := slices.Concat(run.Findings, run.Silenced)
	prints := fingerprints(all)
	for i := range all {
		f := newJSONFinding(&all[i], prints[i])
		f.Silenced = i >= len(run.Findings)
		out.Findings = append(out.Findings, f)
	}
	for _, o := range run.Objects {
		out.Objects = append(out.Objects, jsonObject{
			o.APIVersion, o.Kind, o.Namespace, o.Name, newJSONPosition(o.Pos), o.State, o.Reason, o.Message, o.Version, o.Revision,
			o.Digest, o.Path, milliseconds(o.Duration), newJSONReference(o.BlockedBy),
		})
	}
	return Encode(w, out)
}

// findingList is what was found, in the shape that kubectl gives to any number of objects.
type findingList struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Items      []jsonFinding `json:"items"`
}

// WriteFindings writes the findings of a run as one JSON List, or as one JSON object a line. All of them are there.
func WriteFindings(w io.Writer, run *Run, lines bool) error {
	list := findingList{"v1", "List", []jsonFinding{}}
	all := cleaned(run.Findings, len(run.Findings))
	prints := fingerprints(all)
	for i := range all {
		list.Items = append(list.Items, newJSONFinding(&all[i], prints[i]))
	}
	if !lines {
		return Encode(w, list)
	}
	return EncodeLines(w, list.Items)
}

// milliseconds is a duration in seconds, without more digits than mean something.
func milliseconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

func newJSONFinding(f *finding.Finding, fingerprint string) jsonFinding {
	out := jsonFinding{
		Code: f.Code, Rule: ruleName(f.Code), Severity: f.Severity, Kind: f.Kind, Namespace: f.Namespace, Name: f.Name,
		Position: newJSONPosition(f.Pos), Message: f.Message, Fix: f.Fix, Fingerprint: fingerprint, Reason: f.Reason,
	}
	if out.Position != nil {
		out.Position.EndColumn, out.Position.Text = endColumn(f), f.Line
	}
	for _, pos := range f.Related {
		out.Related = append(out.Related, newJSONPosition(pos))
	}
	for _, o := range f.Blocks {
		out.Blocks = append(out.Blocks, newJSONReference(o))
	}
	return out
}

func newJSONReference(o finding.Object) *jsonReference {
	if o == (finding.Object{}) {
		return nil
	}
	return &jsonReference{o.Kind, o.Namespace, o.Name, newJSONPosition(o.Pos)}
}

func newJSONPosition(pos manifest.Pos) *jsonPosition {
	if pos.File == "" {
		return nil
	}
	return &jsonPosition{File: pos.File, Line: pos.Line, Column: pos.Column}
}
