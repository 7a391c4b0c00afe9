package publish

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
	// maxStepSummary is GitHub's limit, in bytes, of all summaries of a step together.
	maxStepSummary = 1 << 20
	// maxNamedFailures is the limit of the list of failed objects in the outputs of a step.
	maxNamedFailures = 100
)

// Output is an output of a step of GitHub Actions.
type Output struct{ Name, Value string }

// reportGitHub reports findings to GitHub Actions: annotations in the log, a summary of the
// step, and outputs. An error is only a warning: it must not fail the run.
func (p *Publisher) reportGitHub(run *report.Run, outputs []Output) {
	if !p.Console.JSON() { // a program that reads JSON lines expects no commands
		p.annotate(run)
	}
	if path := p.Getenv("GITHUB_STEP_SUMMARY"); path != "" {
		if err := appendSummary(path, run); err != nil {
			p.Console.Warn("GITHUB_STEP_SUMMARY: " + err.Error())
		}
	}
	if path := p.Getenv("GITHUB_OUTPUT"); path != "" {
		if err := appendFile(path, encodeOutputs(append(runOutputs(run), outputs...))); err != nil {
			p.Console.Warn("GITHUB_OUTPUT: " + err.Error())
		}
	}
}

// annotate writes workflow commands to stderr, where GitHub also reads them: stdout
// is for documents.
func (p *Publisher) annotate(run *report.Run) {
	var commands bytes.Buffer
	left, err := report.Annotations(&commands, run, report.AnnotationsPerStep)
	if err != nil { // writing to a buffer does not fail
		return
	}
	p.Console.Verbatim(commands.String())
	if left > 0 {
		p.Console.Info(console.Subject{}, fmt.Sprintf("%d more findings have no annotation: GitHub keeps %d of each type", left, report.AnnotationsPerStep))
	}
}

// appendSummary adds a page after the summaries of other programs of the step.
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

// runOutputs returns the outputs that all commands have.
func runOutputs(run *report.Run) []Output {
	findings, of := report.Counts(run.Findings), run.Count
	var failed []string
	for _, o := range run.Objects {
		if o.State == report.StateFailed && len(failed) < maxNamedFailures {
			name := console.Subject{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}.String()
			failed = append(failed, strings.Join(strings.Fields(name), " ")) // one line per name
		}
	}
	return []Output{
		{"ready", strconv.Itoa(of[report.StateReady])},
		{"resolved", strconv.Itoa(of[report.StateResolved])},
		{"verified", strconv.Itoa(of[report.StateVerified])},
		{"failed", strconv.Itoa(of[report.StateFailed])},
		{"blocked", strconv.Itoa(of[report.StateBlocked])},
		{"skipped", strconv.Itoa(of[report.StateSuspended])},
		{"errors", strconv.Itoa(findings[finding.Error])},
		{"warnings", strconv.Itoa(findings[finding.Warning])},
		{"notes", strconv.Itoa(findings[finding.Note])},
		{"failed-objects", strings.Join(failed, "\n")},
	}
}

// encodeOutputs writes each value between random delimiters, so that no value
// can end its output and begin another.
func encodeOutputs(outputs []Output) string {
	var b strings.Builder
	for _, o := range outputs {
		value := console.Printable(o.Value)
		delimiter := "helmsrc_" + rand.Text()
		fmt.Fprintf(&b, "%s<<%s\n%s\n%s\n", o.Name, delimiter, value, delimiter)
	}
	return b.String()
}
