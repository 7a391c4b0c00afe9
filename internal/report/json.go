package report

import (
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// jsonSchema is the URL of the schema of these reports. A change that old readers do not understand gets another name.
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
		Clusters    []string         `json:"clusters,omitempty"`
		Position    *jsonPosition    `json:"place,omitempty"`
		Message     string           `json:"message"`
		Fix         string           `json:"fix,omitempty"`
		Related     []finding.Pos    `json:"related,omitempty"`
		Blocks      []finding.Object `json:"blocks,omitempty"`
		Fingerprint string           `json:"fingerprint"`
		Silenced    bool             `json:"silenced,omitempty"`
		Reason      string           `json:"reason,omitempty"`
	}
	// jsonPosition is the place of a finding, with the line.
	jsonPosition struct {
		finding.Pos
		EndColumn int    `json:"endColumn,omitempty"`
		Text      string `json:"text,omitempty"`
	}
	jsonObject struct {
		*Object
		Duration  float64        `json:"durationSeconds,omitempty"`
		BlockedBy finding.Object `json:"blockedBy,omitzero"`
	}
)

func writeJSON(w io.Writer, run *Run) error {
	n, of := Counts(run.Findings), run.Count
	out := jsonReport{
		Schema:   jsonSchema,
		Version:  run.Version,
		Command:  run.Command,
		Started:  run.Started.UTC().Format(time.RFC3339),
		Duration: milliseconds(run.Duration),
		Summary: jsonSummary{
			of[StateReady], of[StateResolved], of[StateVerified], of[StateFailed], of[StateBlocked], of[StateSuspended], of[StateInterrupted],
			n[finding.Error], n[finding.Warning], n[finding.Note], run.silenced,
		},
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
	for i := range run.Objects {
		o := &run.Objects[i]
		out.Objects = append(out.Objects, jsonObject{o, milliseconds(o.Duration), o.BlockedBy})
	}
	return Encode(w, out)
}

// WriteFindings writes all findings of a run as one JSON List, or as one JSON object a line.
func WriteFindings(w io.Writer, run *Run, lines bool) error {
	list := []jsonFinding{}
	all := cleaned(run.Findings, len(run.Findings))
	prints := fingerprints(all)
	for i := range all {
		list = append(list, newJSONFinding(&all[i], prints[i]))
	}
	if lines {
		return EncodeLines(w, list)
	}
	// kubectl prints any number of objects as a List.
	return Encode(w, struct {
		APIVersion string        `json:"apiVersion"`
		Kind       string        `json:"kind"`
		Items      []jsonFinding `json:"items"`
	}{"v1", "List", list})
}

// milliseconds returns a duration in seconds, rounded down to milliseconds.
func milliseconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

func newJSONFinding(f *finding.Finding, fingerprint string) jsonFinding {
	out := jsonFinding{
		Code: f.Code, Rule: ruleName(f.Code), Severity: f.Severity, Kind: f.Kind, Namespace: f.Namespace, Name: f.Name, Clusters: f.Clusters,
		Message: f.Message, Fix: f.Fix, Related: f.Related, Blocks: f.Blocks, Fingerprint: fingerprint, Reason: f.Reason,
	}
	if f.Pos.File != "" {
		out.Position = &jsonPosition{f.Pos, endColumn(f), f.Line}
	}
	return out
}

// Encode writes an indented JSON document.
func Encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// EncodeLines writes one JSON object a line.
func EncodeLines[T any](w io.Writer, items []T) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for i := range items {
		if err := e.Encode(&items[i]); err != nil {
			return err
		}
	}
	return nil
}
