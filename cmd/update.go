package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/update"
)

// updateOptions are the flags of update.
type updateOptions struct {
	level    string
	dryRun   bool
	check    bool // dryRun and exitCode, with a list of changes instead of a diff
	exitCode bool
	group    bool
	format   formatFlag
}

func newUpdateCommand(a *app) *cobra.Command {
	o := asking()
	o.edits = true
	u := &updateOptions{format: recordFormat()}
	c := &cobra.Command{
		Use:     "update -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupManifests,
		Short:   "Set newer versions in manifests, in place",
		Long: `Edit YAML files in place: the files given, and those that their clusters read.

(1) Every scalar with a marker, # {"$imagepolicy": "NAMESPACE:NAME"}, is set to the image
that the ImagePolicy selects, as image-automation-controller would set it; with :tag, :name
or :digest after NAME, to that part of the image. The ImagePolicy and its ImageRepository
are looked up in the input, beside it, and below --lookup-dir.

(2) With --level, exact versions without a marker are set to the newest version that
changes no higher part: spec.version of HelmCharts, spec.chart.spec.version of
HelmReleases, and spec.ref.tag of OCIRepositories, together with spec.ref.digest. Only a
pre-release is replaced by a pre-release. If a patch sets the version, the patch is edited.

Every other byte is kept. Each file is replaced in one step and keeps its mode; links
are followed inside the repository. A field that cannot be set is an error with file, line
and policy; the other fields are set. NAME is the name of a policy or of an object that
contains such fields.

Changes are printed to stdout; with --dry-run as a unified diff, with --group as one
commit message for each chart, separated by lines of three dashes.

Exit codes: 0 all set, 1 a field could not be set, 2 wrong usage or unreadable input,
4 with --exit-code or --check, something changed or would change, 5 only failures that
may pass on a retry, 130 interrupted.`,
		Example: `  helmsrc update -R -f clusters/
  helmsrc update -R -f clusters/ --level minor --dry-run
  helmsrc update -f helmchart.yaml -f helmrepository.yaml --level major --group`,
	}
	o.addListing(c)
	u.format.add(a, c)
	c.Flags().StringVar(&u.level, "level", "", "also update exact versions: the highest `part` that may change, patch, minor or major")
	config.SetChoices(c.Flags(), "level", string(resolve.Patch), string(resolve.Minor), string(resolve.Major))
	c.Flags().BoolVar(&u.dryRun, "dry-run", false, "print a unified diff, write nothing")
	c.Flags().BoolVar(&u.check, "check", false, "write nothing, exit 4 if something would change")
	addExitCode(c.Flags(), &u.exitCode, "something changed, or would change with --dry-run")
	c.Flags().BoolVar(&u.group, "group", false, "print a commit message for each chart")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		return a.update(ctx, o, u, args)
	})
	return c
}

func (a *app) update(ctx context.Context, o *runOptions, u *updateOptions, args []string) (int, error) {
	if slices.Contains(splitNames(o.input.files), "-") {
		return exit.Usage, &exit.UsageError{Err: errors.New("stdin cannot be edited"), Advice: "name the files with -f"}
	}
	o.Reconcile.Level, o.Idle = resolve.Level(u.level), u.level == ""
	run := update.New(&a.worker, update.Options{Moves: u.level != "", DryRun: u.dryRun, Check: u.check})
	o.Then = run.Follow
	idle := func() bool { return run.Idle() && !o.input.AllowEmpty }
	code, err := a.runReconciliation(ctx, o, args, func(results []*reconcile.Result) error {
		if ctx.Err() != nil || idle() {
			return nil
		}
		run.Finish(ctx, results)
		return u.print(a, run)
	})
	if err == nil && code == exit.OK && idle() {
		return exit.Usage, &exit.UsageError{Err: errors.New("no file has a marker for an ImagePolicy"), Advice: "--level updates exact versions without markers: patch, minor or major"}
	}
	if o.input.exitZero && code != exit.Interrupted && code != exit.Usage {
		return code, err
	}
	code = exit.Worst(code, run.Code)
	if len(run.Changes) > 0 && (u.check || u.exitCode) {
		code = exit.Worst(code, exit.Drift)
	}
	return code, err
}

// print prints the changes, or the diffs of a dry run.
func (o *updateOptions) print(a *app, u *update.Update) error {
	verb := "set"
	if o.dryRun || o.check {
		verb = "to be set"
	}
	a.console.Unite() // what is held comes before the last line
	a.console.Info(console.Subject{}, fmt.Sprintf("%d %s %s in %d %s", len(u.Changes), plural(len(u.Changes), "field", "fields"), verb, u.Files, plural(u.Files, "file", "files")))
	list := []update.Change{}
	for _, c := range u.Changes {
		c.Map(a.console.Secrets().Text)
		list = append(list, c)
	}
	switch {
	case o.dryRun:
		_, err := a.env.Stdout.Write(u.Diffs)
		return err
	case o.group:
		_, err := a.env.Stdout.Write([]byte(messages(list)))
		return err
	}
	return changeColumns().Print(a.env.Stdout, o.format.format, a.paper, list)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func changeColumns() *records.Columns[update.Change] {
	return &records.Columns[update.Change]{
		Header: []string{"FILE", "LINE", "FROM", "TO", "BY"},
		Wide:   []string{"CHART", "OBJECT"},
		Row: func(c update.Change) []string {
			return []string{c.File, fmt.Sprint(c.Line), cmp.Or(c.From, "-"), c.To, c.By, cmp.Or(c.Chart, "-"), cmp.Or(c.Object, "-")}
		},
	}
}

// messages returns a commit message for each chart, in the order of the changes.
func messages(changes []update.Change) string {
	var charts []string
	by := map[string][]update.Change{}
	for _, c := range changes {
		if by[c.Chart] == nil {
			charts = append(charts, c.Chart)
		}
		by[c.Chart] = append(by[c.Chart], c)
	}
	var parts []string
	for _, chart := range charts {
		parts = append(parts, message(chart, by[chart]))
	}
	return strings.Join(parts, "---\n")
}

func message(chart string, changes []update.Change) string {
	var from, to, lines []string
	for _, c := range changes {
		if c.Was != "" && c.Was != c.Now && !slices.Contains(from, c.Was) {
			from = append(from, c.Was)
		}
		if !slices.Contains(to, c.Now) {
			to = append(to, c.Now)
		}
		lines = append(lines, fmt.Sprintf("- %s:%d: %s -> %s (%s)\n", console.OneLine(c.File), c.Line, console.OneLine(c.From), console.OneLine(c.To), c.By))
	}
	subject := console.OneLine(chart) + ": "
	if len(from) == 1 {
		subject += "update from " + console.OneLine(from[0]) + " to "
	} else {
		subject += "update to "
	}
	return subject + console.OneLine(strings.Join(to, ", ")) + "\n\n" + strings.Join(lines, "")
}
