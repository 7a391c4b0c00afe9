// Package publish hands the reports of a run to those who read them: files, standard output, GitHub Actions.
package publish

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/report"
)

// Target is one report: a format, and the file for it, - for standard output.
type Target struct{ Format, File string }

// Reports say which reports of a run are written.
type Reports struct {
	Targets  []Target
	Silenced bool   // what comments silence is listed, too
	NoGitHub bool   // nothing is reported to GitHub Actions
	Findings string // the format in which standard output has what was found: json, jsonl, or none of these
}

// ListsFindings reports whether standard output gets what was found.
func (o *Reports) ListsFindings() bool { return o.Findings == "json" || o.Findings == "jsonl" }

// Bills reports whether a bill of materials is among the reports.
func (o *Reports) Bills() bool {
	return slices.ContainsFunc(o.Targets, func(t Target) bool { return slices.Contains(report.Bills(), t.Format) })
}

// A Publisher writes reports. One goroutine at a time may use it.
type Publisher struct {
	Console *console.Console
	Getenv  func(string) string
	Stdout  io.Writer
}

// ShowsTrees reports whether one of the reports shows trees and what is published.
func (p *Publisher) ShowsTrees(o *Reports) bool {
	return p.onGitHub(o) || slices.ContainsFunc(o.Targets, func(t Target) bool { return t.Format == "html" || t.Format == "markdown" })
}

// Wanted reports whether there is any report to write.
func (p *Publisher) Wanted(o *Reports) bool {
	return len(o.Targets) > 0 || o.ListsFindings() || p.onGitHub(o)
}

func (p *Publisher) onGitHub(o *Reports) bool {
	return !o.NoGitHub && p.Getenv("GITHUB_ACTIONS") == "true"
}

// Publish writes the reports of a run that is over, those for GitHub too, with further outputs of the step. It returns an error for
// each report that could not be written.
func (p *Publisher) Publish(ctx context.Context, o *Reports, run *report.Run, outputs []Output) []error {
	if !p.Wanted(o) {
		return nil
	}
	run.ListSilenced = o.Silenced
	mapFiles(repositoryRoot(p.Getenv), run)
	var failed []error
	if o.ListsFindings() {
		if err := report.WriteFindings(p.Stdout, run, o.Findings == "jsonl"); err != nil {
			failed = append(failed, fmt.Errorf("stdout: %w", err))
		}
	}
	for _, t := range o.Targets {
		if err := p.write(ctx, t, run); err != nil {
			failed = append(failed, &exit.OptionError{Option: "report", Value: t.Format + "=" + t.File, Err: err})
		}
	}
	if p.onGitHub(o) {
		p.reportGitHub(run, outputs)
	}
	return failed
}

func (p *Publisher) write(ctx context.Context, t Target, run *report.Run) error {
	var content bytes.Buffer
	if err := report.Write(&content, t.Format, run); err != nil {
		return err
	}
	if t.File == "-" {
		_, err := p.Stdout.Write(content.Bytes())
		return err
	}
	return writeWhole(ctx, t.File, content.Bytes())
}
