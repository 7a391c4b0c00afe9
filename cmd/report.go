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

// reportOptions say where else goes what was found.
type reportOptions struct {
	publish.Reports
	reports []string
	stdout  bool // is free for a report
	billed  bool // bills of materials are among the formats: the command knows what objects were resolved to
	images  bool // these list images
}

func (o *reportOptions) formats() []string {
	if !o.billed {
		return report.Formats()
	}
	return slices.Sorted(slices.Values(slices.Concat(report.Formats(), report.Bills())))
}

// addBilled is add for a command that writes bills of materials, also with the images that a text names unless it is empty.
func (o *reportOptions) addBilled(fs *pflag.FlagSet, images string) {
	o.billed = true
	o.add(fs)
	if images != "" {
		fs.BoolVar(&o.images, "images", false, "also list in bills of materials the container images that "+images)
	}
}

// annotatedImages are those that the bills of most commands can list.
const annotatedImages = "charts name in the annotation " + listing.ImagesAnnotation

// findingsAnnotation is on a command whose stdout is for findings, or free for a report.
const findingsAnnotation = "helmsrc.dev/findings"

func (o *reportOptions) add(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.reports, "report", nil, "also write a report: `FORMAT=FILE`, where the format is one of "+strings.Join(o.formats(), ", ")+" (repeatable)")
	fs.BoolVar(&o.Silenced, "report-silenced", false, "also report findings that comments silence: in SARIF as suppressed, in JSON as silenced")
	fs.BoolVar(&o.NoGitHub, "no-github", false, "under GitHub Actions, leave annotations, step summary and outputs alone")
}

// check reads the values, before anything is done. Standard output takes a report only
// from commands that print nothing there.
func (o *reportOptions) check(stdoutTaken bool) error {
	for _, text := range o.reports {
		format, file, _ := strings.Cut(text, "=")
		if file == "" {
			return exit.Usagef("--report %s: is not of the form FORMAT=FILE", text)
		}
		if slices.Contains(report.Bills(), format) && !o.billed {
			return &exit.UsageError{Err: fmt.Errorf("--report %s: no chart is resolved here", text), Advice: "fetch, resolve, verify, template, bundle and mirror write bills of materials"}
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
			return exit.Usagef("--report %s: another report goes there, too", text)
		}
		o.Targets = append(o.Targets, publish.Target{Format: format, File: file})
	}
	if o.images && !o.Bills() {
		return exit.Usagef("--images: --report names no bill of materials: cyclonedx, intoto or spdx")
	}
	return nil
}

// outlined adds to a run what its page shows beside findings and objects.
func (a *app) outlined(o *reportOptions, run *report.Run, inputs []*load.Input, results []*reconcile.Result) *report.Run {
	if a.publisher.ShowsTrees(&o.Reports) {
		run.Outline, run.Outdated = trace.Tracer{Console: a.console}.Outlines(inputs, run.Objects), a.lister.Outdated(results)
	}
	return run
}

// reportFailure reports what ended a command before there was a run to report: a reader who
// waits for a report gets one.
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
		o.Targets = nil // that is what the error is about, or would be the next one
	}
	// There is nothing to list, and a list of nothing would look whole.
	o.Targets = slices.DeleteFunc(o.Targets, func(t publish.Target) bool { return slices.Contains(report.Bills(), t.Format) })
	a.command = c.Name()
	f := validate.New(nil, finding.NoRun, err.Error(), "", manifest.Excerpt{})
	f.Fix = auth.RedactText(strings.Join(finding.Hints(err), "; "))
	a.console.Keep(f)
	run := a.worker.Report(nil)
	run.Broken = true
	return a.report(c.Context(), &o, run, nil, code)
}

// report writes the reports of a run that is over. It returns the exit code: a report that is missing is a failure, whatever else
// may be forgiven.
func (a *app) report(ctx context.Context, o *reportOptions, run *report.Run, outputs []publish.Output, code int) int {
	a.reported = true
	run.Command, run.Version, run.Started, run.Duration = a.command, versionString(), a.began, a.now().Sub(a.began)
	for _, err := range a.publisher.Publish(ctx, &o.Reports, run, outputs) {
		a.console.Fail(advised(ctx, err))
		code = exit.Worst(code, exit.CodeOf(err))
	}
	return code
}
