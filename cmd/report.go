package cmd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/listing"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/publish"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/trace"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// reportOptions are the flags of reports, which go to files, to stdout or to GitHub Actions.
type reportOptions struct {
	publish.Reports
	reports []string
	stdout  bool // stdout is free for a report
	billed  bool // bills of materials are among the formats: the command knows the resolved charts
	images  bool // bills of materials list images
}

func (o *reportOptions) formats() []string {
	if !o.billed {
		return report.Formats()
	}
	return slices.Sorted(slices.Values(slices.Concat(report.Formats(), report.Bills())))
}

// addBilled does the work of add for a command that writes bills of materials, with --images if its description is not "".
func (o *reportOptions) addBilled(fs *pflag.FlagSet, images string) {
	o.billed = true
	o.add(fs)
	if images != "" {
		fs.BoolVar(&o.images, "images", false, "also list in bills of materials the container images that "+images)
	}
}

// annotatedImages describes the images that the bills of materials of most commands can list.
const annotatedImages = "charts name in the annotation " + listing.ImagesAnnotation

// findingsAnnotation marks a command whose stdout is for findings, or free for a report.
const findingsAnnotation = "helmsrc.dev/findings"

func (o *reportOptions) add(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.reports, "report", nil, "also write a report: `FORMAT=FILE`, where the format is one of "+strings.Join(o.formats(), ", ")+" (repeatable)")
	fs.BoolVar(&o.Silenced, "report-silenced", false, "also report findings that comments silence: in SARIF as suppressed, in JSON as silenced")
	fs.BoolVar(&o.NoGitHub, "no-github", false, "in GitHub Actions, write no annotations, step summary or outputs")
}

// check parses the values, before the command does anything. Standard output takes a report only from commands that print
// nothing there.
func (o *reportOptions) check(stdoutTaken bool) error {
	for _, text := range o.reports {
		format, file, _ := strings.Cut(text, "=")
		if file == "" {
			return exit.Usagef("--report %s: not of the form FORMAT=FILE", text)
		}
		if slices.Contains(report.Bills(), format) && !o.billed {
			return &exit.UsageError{Err: fmt.Errorf("--report %s: this command resolves no charts", text), Advice: "fetch, resolve, verify, template, bundle and mirror write bills of materials"}
		}
		if !slices.Contains(o.formats(), format) {
			hint := "the formats are " + strings.Join(o.formats(), ", ")
			if near, ok := finding.Nearest(format, o.formats()); ok {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return &exit.UsageError{Err: fmt.Errorf("--report %s: unknown format %q", text, format), Advice: hint}
		}
		if file == "-" && stdoutTaken {
			return &exit.UsageError{Err: fmt.Errorf("--report %s: the objects are printed there", text), Advice: "name a file"}
		}
		same := func(t publish.Target) bool { return filepath.Clean(t.File) == filepath.Clean(file) }
		if slices.ContainsFunc(o.Targets, same) {
			return exit.Usagef("--report %s: another report is written to this file", text)
		}
		o.Targets = append(o.Targets, publish.Target{Format: format, File: file})
	}
	if o.images && !o.Bills() {
		return exit.Usagef("--images: --report names no bill of materials: cyclonedx, intoto or spdx")
	}
	return nil
}

// outlined adds to a run the outlines and outdated charts, if its page shows them.
func (a *app) outlined(o *reportOptions, run *report.Run, inputs []*load.Input, results []*reconcile.Result) *report.Run {
	if a.publisher.ShowsTrees(&o.Reports) {
		run.Outline, run.Outdated = trace.Tracer{Console: a.console}.Outlines(inputs, run.Objects), a.lister.Outdated(results)
	}
	return run
}

// reportFailure reports the error that ended a command before it had a run to report, so that every requested report is
// written.
func (a *app) reportFailure(c *cobra.Command, err error, code int) int {
	var o reportOptions
	var failed error
	if o.reports, failed = c.Flags().GetStringArray("report"); failed != nil || a.reported {
		return code
	}
	o.NoGitHub, _ = c.Flags().GetBool("no-github")
	o.Silenced, _ = c.Flags().GetBool("report-silenced")
	o.billed = true
	lists := c.Annotations[findingsAnnotation] != ""
	if lists {
		o.Findings, _ = c.Flags().GetString("output")
	}
	if o.check(!lists || o.ListsFindings()) != nil {
		o.Targets = nil // the error is about the reports, or writing them would fail, too
	}
	// There are no components to list, and an empty bill of materials would look complete.
	o.Targets = slices.DeleteFunc(o.Targets, func(t publish.Target) bool { return slices.Contains(report.Bills(), t.Format) })
	a.command = c.Name()
	f := validate.New(nil, finding.NoRun, err.Error(), "", manifest.Excerpt{})
	f.Fix = auth.RedactText(strings.Join(finding.Hints(err), "; "))
	a.console.Keep(f)
	run := a.worker.Report(nil)
	run.Broken = true
	return a.report(c.Context(), &o, run, nil, code)
}

// report writes the reports of a finished run. It returns the exit code: a missing report is a failure, also with --exit-zero.
func (a *app) report(ctx context.Context, o *reportOptions, run *report.Run, outputs []publish.Output, code int) int {
	a.reported = true
	run.Command, run.Version, run.Started, run.Duration = a.command, versionString(), a.began, a.now().Sub(a.began)
	for _, err := range a.publisher.Publish(ctx, &o.Reports, run, outputs) {
		a.console.Fail(advised(ctx, err))
		code = exit.Worst(code, exit.CodeOf(err))
	}
	return code
}
