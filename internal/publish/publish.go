// Package publish writes the reports of a run: to files, to standard output, and to GitHub Actions.
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

// Target is a report: its format, and its file, or "-" for standard output.
type Target struct{ Format, File string }

// Reports configure which reports of a run are written.
type Reports struct {
	Targets  []Target
	Silenced bool   // also list findings that comments silence
	NoGitHub bool   // do not report to GitHub Actions
	Findings string // the format of findings on standard output: json, jsonl, or any other for no findings
}

// ListsFindings reports whether findings are written to standard output.
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

// ShowsTrees reports whether a report shows trees and published versions.
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

// Publish writes the reports of a finished run, including those for GitHub, with additional outputs of the step. It returns an
// error for each report that could not be written.
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
