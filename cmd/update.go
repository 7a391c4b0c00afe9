package cmd

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// updateOptions are the flags of update.
type updateOptions struct {
	level  string
	dryRun bool
	check  bool
	group  bool
	format recordOptions
}

func newUpdateCommand(a *app) *cobra.Command {
	o := listing()
	o.edits = true
	u := &updateOptions{}
	c := &cobra.Command{
		Use:     "update -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupManifests,
		Short:   "Set newer versions in manifests, in place",
		Long: `Edit the YAML files that are named, in place:

(1) Every scalar with a marker, # {"$imagepolicy": "NAMESPACE:NAME"}, gets what the
ImagePolicy chooses, as image-automation-controller would set it; with :tag, :name or
:digest behind NAME, a part of it. The ImagePolicy and its ImageRepository are those of
the input, or beside it, or below --lookup-dir.

(2) With --level, exact versions without a marker move to the newest version that
differs in no higher part: spec.version of HelmCharts, spec.chart.spec.version of
HelmReleases, and spec.ref.tag of OCIRepositories, with spec.ref.digest beside it.
A pre-release only follows a pre-release.

Every byte but those scalars stays. A file is replaced in one step, and keeps its mode;
links are followed inside of the repository. What cannot be decided is an error that
names file, line and policy: that field stays, the others are set. NAMEs are those of
policies and of the objects that hold the fields.

Stdout gets the changes; with --dry-run a unified diff, with --group the message of a
commit for each chart, divided by lines of three dashes.

Exit codes: 0 all set, 1 a field could not be set, 2 wrong usage or unreadable input,
4 something would change, with --check, 5 only failures that a retry may help, 130
interrupted.`,
		Example: `  helmsrc update -R -f clusters/
  helmsrc update -R -f clusters/ --level minor --dry-run
  helmsrc update -f helmchart.yaml -f helmrepository.yaml --level major --group`,
	}
	o.addListing(c)
	u.format.add(c.Flags())
	c.Flags().StringVar(&u.level, "level", "", "move exact versions as well: the highest `part` that may change, patch, minor or major")
	choices(c.Flags(), "level", string(resolve.Patch), string(resolve.Minor), string(resolve.Major))
	c.Flags().BoolVar(&u.dryRun, "dry-run", false, "print a unified diff, write nothing")
	c.Flags().BoolVar(&u.check, "check", false, "write nothing, exit 4 if something would change")
	c.Flags().BoolVar(&u.group, "group", false, "print the message of a commit for each chart")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := u.format.check(a.env); err != nil {
			return exit.Usage, err
		}
		if u.level != "" {
			if err := oneOf("level", u.level, string(resolve.Patch), string(resolve.Minor), string(resolve.Major)); err != nil {
				return exit.Usage, err
			}
		}
		return a.update(ctx, o, u, args)
	})
	return c
}

func (a *app) update(ctx context.Context, o *runOptions, u *updateOptions, args []string) (int, error) {
	if slices.Contains(splitNames(o.input.files), "-") {
		return exit.Usage, &exit.UsageError{Err: errors.New("stdin cannot be edited"), Advice: "name the files with -f"}
	}
	o.Reconcile.Level, o.idle = resolve.Level(u.level), u.level == ""
	run := &updateRun{a: a, o: u}
	o.images = run.follow
	code, err := a.runReconciliation(ctx, o, args, func(results []*reconcile.Result) error {
		if ctx.Err() != nil || run.idle() && !o.input.AllowEmpty {
			return nil
		}
		run.resolve()
		run.advance(results)
		return run.finish(ctx)
	})
	if err == nil && code == exit.OK && run.idle() && !o.input.AllowEmpty {
		return exit.Usage, &exit.UsageError{Err: errors.New("nothing follows an ImagePolicy: no file has a marker"), Advice: "--level moves exact versions without markers: patch, minor or major"}
	}
	if o.input.exitZero && code != exit.Interrupted && code != exit.Usage {
		return code, err
	}
	code = exit.Worst(code, run.code)
	if run.changed && u.check {
		code = exit.Worst(code, exit.Drift)
	}
	return code, err
}
