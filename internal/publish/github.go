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
	// maxStepSummary is what GitHub takes of all summaries of a step together.
	maxStepSummary = 1 << 20
	// maxNamedFailures bounds the list of failed objects in the outputs of a step.
	maxNamedFailures = 100
)

// Output is an output of a step of GitHub Actions.
type Output struct{ Name, Value string }

// reportGitHub reports to GitHub Actions what was found: annotations in the log, a summary of
// the step, its outputs. What does not work is a warning: the run is what counts.
func (p *Publisher) reportGitHub(run *report.Run, outputs []Output) {
	if !p.Console.JSON() { // the lines there are for a program that expects nothing else
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

// annotate writes workflow commands to stderr, where GitHub finds them as well: stdout
// is for documents.
func (p *Publisher) annotate(run *report.Run) {
	var commands bytes.Buffer
	left, err := report.Annotations(&commands, run, report.AnnotationsPerStep)
	if err != nil { // a buffer takes everything
		return
	}
	p.Console.Verbatim(commands.String())
	if left > 0 {
		p.Console.Info(console.Subject{}, fmt.Sprintf("%d more findings have no annotation: GitHub keeps %d of each type", left, report.AnnotationsPerStep))
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
func runOutputs(run *report.Run) []Output {
	findings, of := report.Counts(run.Findings), run.Count
	var failed []string
	for _, o := range run.Objects {
		if o.State == report.StateFailed && len(failed) < maxNamedFailures {
			name := console.Subject{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}.String()
			failed = append(failed, strings.Join(strings.Fields(name), " ")) // a name is a line
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

// encodeOutputs writes each value between delimiters that cannot be guessed:
// no value ends its output and begins another.
func encodeOutputs(outputs []Output) string {
	var b strings.Builder
	for _, o := range outputs {
		value := console.Printable(o.Value)
		delimiter := "helmsrc_" + rand.Text()
		fmt.Fprintf(&b, "%s<<%s\n%s\n%s\n", o.Name, delimiter, value, delimiter)
	}
	return b.String()
}
