package report

import (
	"cmp"
	"io"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// gitlabIssue is an entry of a Code Quality report.
type gitlabIssue struct {
	Description string         `json:"description"`
	Check       string         `json:"check_name"`
	Fingerprint string         `json:"fingerprint"`
	Severity    string         `json:"severity"`
	Location    gitlabLocation `json:"location"`
}

type gitlabLocation struct {
	Path  string         `json:"path"`
	Lines map[string]int `json:"lines"`
}

func writeGitLab(w io.Writer, run *Run) error {
	issues := []gitlabIssue{}
	prints := fingerprints(run.Findings)
	for i := range run.Findings {
		f := &run.Findings[i]
		issues = append(issues, gitlabIssue{
			Description: description(f),
			Check:       string(f.Code),
			Fingerprint: prints[i],
			Severity:    gitlabSeverity(f.Severity),
			// GitLab requires a place, also of a finding without one.
			Location: gitlabLocation{cmp.Or(f.Pos.File, "."), map[string]int{"begin": max(1, f.Pos.Line)}},
		})
	}
	return Encode(w, issues)
}

// description returns a finding in one line, with the objects that it blocks.
func description(f *finding.Finding) string {
	if len(f.Blocks) == 0 {
		return headline(f)
	}
	return headline(f) + " (blocks " + blockedNames(f) + ")"
}

// gitlabSeverity returns GitLab's word for a severity. Only a person assigns "blocker" and "critical".
func gitlabSeverity(s finding.Severity) string {
	return cmp.Or(map[finding.Severity]string{finding.Warning: "minor", finding.Note: "info"}[s], "major")
}
