package cmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/rewrite"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/trace"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// reportOptions say where else goes what was found.
type reportOptions struct {
	reports  []string
	silenced bool
	noGitHub bool
	stdout   bool // is free for a report
	targets  []reportTarget
	findings string // the format that stdout has them in, "" or text for none
	billed   bool   // bills of materials are among the formats: the command knows what objects were resolved to
}

func (o *reportOptions) formats() []string {
	if !o.billed {
		return report.Formats()
	}
	return slices.Sorted(slices.Values(slices.Concat(report.Formats(), report.Bills())))
}

// addBilled is add for a command that writes bills of materials.
func (o *reportOptions) addBilled(fs *pflag.FlagSet) {
	o.billed = true
	o.add(fs)
}

// stdinFile is what standard input is called in positions.
const stdinFile = "<stdin>"

// findingsAnnotation is on a command whose stdout is for findings, or free for a report.
const findingsAnnotation = "helmsrc.dev/findings"

// reportTarget is one report: a format, and the file for it.
type reportTarget struct{ format, file string }

func (o *reportOptions) add(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.reports, "report", nil, "write a report, too: `FORMAT=FILE`, where the format is one of "+strings.Join(o.formats(), ", ")+" (repeatable)")
	fs.BoolVar(&o.silenced, "report-silenced", false, "list in reports what comments silence, too: in SARIF as suppressed, in JSON as silenced")
	fs.BoolVar(&o.noGitHub, "no-github", false, "under GitHub Actions, leave annotations, step summary and outputs alone")
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
		same := func(t reportTarget) bool { return filepath.Clean(t.file) == filepath.Clean(file) }
		if slices.ContainsFunc(o.targets, same) {
			return exit.Usagef("--report %s: another report goes there, too", text)
		}
		o.targets = append(o.targets, reportTarget{format, file})
	}
	return nil
}

// report writes the reports of a run that is over, those for GitHub too. It returns the exit
// code: a report that is missing is a failure, whatever else may be forgiven.
func (a *app) report(ctx context.Context, o *reportOptions, run *report.Run, outputs []githubOutput, code int) int {
	a.reported = true
	if !a.reports(o) {
		return code
	}
	run.ListSilenced = o.silenced
	a.mapFiles(run)
	if o.listsFindings() {
		if err := report.WriteFindings(a.env.Stdout, run, o.findings == "jsonl"); err != nil {
			a.console.Fail(fmt.Errorf("stdout: %w", err))
			code = exit.Worst(code, exit.Failed)
		}
	}
	for _, t := range o.targets {
		if err := a.writeReport(ctx, t, run); err != nil {
			a.console.Fail(fmt.Errorf("--report %s=%s: %w", t.format, t.file, err))
			code = exit.Worst(code, exit.CodeOf(err))
		}
	}
	if a.onGitHub(o) {
		a.reportGitHub(run, outputs)
	}
	return code
}

// reports returns true if a report of the run is written.
func (a *app) reports(o *reportOptions) bool {
	return len(o.targets) > 0 || o.listsFindings() || a.onGitHub(o)
}

// listsFindings returns true if stdout gets what was found.
func (o *reportOptions) listsFindings() bool { return o.findings == "json" || o.findings == "jsonl" }

func (a *app) onGitHub(o *reportOptions) bool {
	return !o.noGitHub && a.env.Getenv("GITHUB_ACTIONS") == "true"
}

// wantsPage reports whether there is anyone who looks at trees.
func (o *reportOptions) wantsPage() bool {
	return slices.ContainsFunc(o.targets, func(t reportTarget) bool { return t.format == "html" || t.format == "markdown" })
}

// outlined adds to a run what its page shows beside findings and objects.
func (a *app) outlined(o *reportOptions, run *report.Run, inputs []*load.Input, results []*reconcile.Result) *report.Run {
	if o.wantsPage() || a.onGitHub(o) {
		tracer := trace.Tracer{Console: a.console}
		run.Outline, run.Outdated = tracer.Outlines(inputs, run.Objects), tracer.Published(results)
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
	o.noGitHub, _ = c.Flags().GetBool("no-github")
	o.silenced, _ = c.Flags().GetBool("report-silenced")
	o.billed = true
	lists := c.Annotations[findingsAnnotation] != ""
	if lists {
		o.findings, _ = c.Flags().GetString("output")
	}
	if o.check(!lists || o.listsFindings()) != nil {
		o.targets = nil // that is what the error is about, or would be the next one
	}
	// There is nothing to list, and a list of nothing would look whole.
	o.targets = slices.DeleteFunc(o.targets, func(t reportTarget) bool { return slices.Contains(report.Bills(), t.format) })
	a.command = c.Name()
	f := validate.New(nil, finding.NoRun, err.Error(), "", manifest.Excerpt{})
	f.Fix = reconcile.RedactText(strings.Join(finding.Hints(err), "; "))
	a.console.Keep(f)
	run := a.newReport(nil)
	run.Broken = true
	return a.report(c.Context(), &o, run, nil, code)
}

func (a *app) writeReport(ctx context.Context, t reportTarget, run *report.Run) error {
	var content bytes.Buffer
	if err := report.Write(&content, t.format, run); err != nil {
		return err
	}
	if t.file == "-" {
		_, err := a.env.Stdout.Write(content.Bytes())
		return err
	}
	return writeWhole(ctx, t.file, content.Bytes())
}

// writeWhole writes a file completely or not at all. What is no regular file, a pipe or
// a device, is written to as it is.
func writeWhole(ctx context.Context, path string, content []byte) error {
	if file.Outside(path) {
		return file.ErrOutside
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("is a directory")
	case err == nil && !info.Mode().IsRegular():
		return writeInBackground(ctx, path, content)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return rewrite.Write(path, content)
}

// readerPatience is how long a run that is cut short waits for the reader of its report.
const readerPatience = time.Second

// writeInBackground writes to a pipe or a device, which may have no reader.
func writeInBackground(ctx context.Context, path string, content []byte) error {
	done := make(chan error, 1)
	go func() { done <- os.WriteFile(path, content, 0o666) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(readerPatience):
		return context.Cause(ctx)
	}
}

// newReport describes a run that is over: what was found is in the app. Objects that are
// unusable, because it is not clear which one is meant, are only counted. What fails in several clusters for one reason is one
// failure.
func (a *app) newReport(objects []report.Object) *report.Run {
	reported, silenced := a.console.Findings()
	run := &report.Run{
		Command: a.command, Version: versionString(), Started: a.began, Duration: a.now().Sub(a.began),
		Findings: reported, Silenced: silenced, Objects: objects, Failed: a.worker.Unusable + a.worker.Unselected,
	}
	first := firstErrors(run.Findings)
	type failure struct{ kind, namespace, name, message string }
	failed := map[failure]bool{}
	for i := range objects {
		o := &objects[i]
		o.Message = reconcile.RedactText(o.Message)
		a.concealObject(o)
		switch o.State {
		case report.StateReady:
			run.Ready++
		case report.StateResolved:
			run.Resolved++
		case report.StateVerified:
			run.Verified++
		case report.StateSuspended:
			run.Skipped++
		case report.StateBlocked:
			run.Blocked++
		case report.StateFailed:
			o.Message = cmp.Or(o.Message, first[store.Key{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}])
			failed[failure{o.Kind, o.Namespace, o.Name, o.Message}] = true
		}
	}
	run.Failed += len(failed)
	return run
}

// firstErrors is what was found first of each object: one may have no status to say so.
func firstErrors(findings []finding.Finding) map[store.Key]string {
	first := map[store.Key]string{}
	for _, f := range findings {
		key := store.Key{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name}
		if _, ok := first[key]; !ok && f.Severity == finding.Error {
			first[key] = f.Message
		}
	}
	return first
}

// mapFiles names the files of a report as those who read it see them: from the root of
// the repository.
func (a *app) mapFiles(run *report.Run) {
	root := a.repositoryRoot()
	places := map[string]string{}
	mapPos := func(p *manifest.Pos) {
		if _, ok := places[p.File]; !ok {
			places[p.File] = fileInRepository(root, p.File)
		}
		p.File = places[p.File]
	}
	run.Findings, run.Silenced = slices.Clone(run.Findings), slices.Clone(run.Silenced)
	for _, list := range [][]finding.Finding{run.Findings, run.Silenced} {
		for i := range list {
			f := &list[i]
			f.Related = slices.Clone(f.Related)
			mapPos(&f.Pos)
			if f.Repair != nil {
				repair := *f.Repair
				mapPos(&repair.Pos)
				f.Repair = &repair
			}
			for j := range f.Related {
				mapPos(&f.Related[j])
			}
			f.Blocks = slices.Clone(f.Blocks)
			for j := range f.Blocks {
				mapPos(&f.Blocks[j].Pos)
			}
		}
	}
	for i := range run.Objects {
		mapPos(&run.Objects[i].Pos)
		mapPos(&run.Objects[i].BlockedBy.Pos)
	}
}

// repositoryRoot is the directory that the paths of reports begin in: what a CI system
// checked out, or the repository that is worked in, or the working directory.
func (a *app) repositoryRoot() string {
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return ""
	}
	for _, name := range []string{"GITHUB_WORKSPACE", "CI_PROJECT_DIR"} {
		if root, err := filepath.EvalSymlinks(a.env.Getenv(name)); err == nil && isBelow(root, dir) && filepath.IsAbs(root) {
			return root
		}
	}
	for up := dir; ; up = filepath.Dir(up) {
		if _, err := os.Lstat(filepath.Join(up, ".git")); err == nil {
			return up
		}
		if up == filepath.Dir(up) {
			return dir
		}
	}
}

func isBelow(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// fileInRepository is a file as it is called from the root on, with forward slashes; one
// that is elsewhere has its whole path.
func fileInRepository(root, file string) string {
	if file == "" || file == stdinFile {
		return file
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return filepath.ToSlash(file)
	}
	// The directory is looked at as it is, the file as it is called: a link is what was
	// found, not what it leads to.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(absolute)); err == nil {
		absolute = filepath.Join(dir, filepath.Base(absolute))
	}
	if rel, err := filepath.Rel(root, absolute); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(absolute)
}
