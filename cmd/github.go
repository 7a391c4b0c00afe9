package cmd

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/report"
)

const (
	// maxStepSummary is what GitHub takes of all summaries of a step together.
	maxStepSummary = 1 << 20
	// maxNamedFailures bounds the list of failed objects in the outputs of a step.
	maxNamedFailures = 100
)

// githubOutput is an output of a step of GitHub Actions.
type githubOutput struct{ name, value string }

// reportGitHub reports to GitHub Actions what was found: annotations in the log, a summary of
// the step, its outputs. What does not work is a warning: the run is what counts.
func (a *app) reportGitHub(run *report.Run, outputs []githubOutput) {
	if !a.console.JSON() { // the lines there are for a program that expects nothing else
		a.annotate(run)
	}
	if path := a.env.Getenv("GITHUB_STEP_SUMMARY"); path != "" {
		if err := appendSummary(path, run); err != nil {
			a.console.Warn("GITHUB_STEP_SUMMARY: " + err.Error())
		}
	}
	if path := a.env.Getenv("GITHUB_OUTPUT"); path != "" {
		if err := appendFile(path, encodeOutputs(append(runOutputs(run), outputs...))); err != nil {
			a.console.Warn("GITHUB_OUTPUT: " + err.Error())
		}
	}
}

// annotate writes workflow commands to stderr, where GitHub finds them as well: stdout
// is for documents.
func (a *app) annotate(run *report.Run) {
	var commands bytes.Buffer
	left, err := report.Annotations(&commands, run, report.AnnotationsPerStep)
	if err != nil { // a buffer takes everything
		return
	}
	a.console.Verbatim(commands.String())
	if left > 0 {
		a.console.Info(console.Subject{}, fmt.Sprintf("%d more findings have no annotation: GitHub keeps %d of each type", left, report.AnnotationsPerStep))
	}
}

// appendSummary adds a page to those that other programs of the step wrote.
func appendSummary(path string, run *report.Run) error {
	there := 0
	if info, err := os.Stat(path); err == nil {
		there = int(min(info.Size(), maxStepSummary))
	}
	page := report.Summary(run, maxStepSummary-there-1)
	if page == "" {
		return fmt.Errorf("%s has no room left", filepath.Base(path))
	}
	if there > 0 {
		page = "\n" + page
	}
	return appendFile(path, page)
}

func appendFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// runOutputs are the outputs that every command has.
func runOutputs(run *report.Run) []githubOutput {
	findings := map[finding.Severity]int{}
	for _, f := range run.Findings {
		findings[f.Severity]++
	}
	var failed []string
	for _, o := range run.Objects {
		if o.State == report.StateFailed && len(failed) < maxNamedFailures {
			name := console.Subject{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}.String()
			failed = append(failed, strings.Join(strings.Fields(name), " ")) // a name is a line
		}
	}
	return []githubOutput{
		{"ready", strconv.Itoa(run.Ready)},
		{"resolved", strconv.Itoa(run.Resolved)},
		{"verified", strconv.Itoa(run.Verified)},
		{"failed", strconv.Itoa(run.Failed)},
		{"blocked", strconv.Itoa(run.Blocked)},
		{"skipped", strconv.Itoa(run.Skipped)},
		{"errors", strconv.Itoa(findings[finding.Error])},
		{"warnings", strconv.Itoa(findings[finding.Warning])},
		{"notes", strconv.Itoa(findings[finding.Note])},
		{"failed-objects", strings.Join(failed, "\n")},
	}
}

// encodeOutputs writes each value between delimiters that cannot be guessed:
// no value ends its output and begins another.
func encodeOutputs(outputs []githubOutput) string {
	var b strings.Builder
	for _, o := range outputs {
		value := console.Printable(o.value)
		delimiter := "helmsrc_" + rand.Text()
		fmt.Fprintf(&b, "%s<<%s\n%s\n%s\n", o.name, delimiter, value, delimiter)
	}
	return b.String()
}
