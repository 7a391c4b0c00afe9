package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

func newValidateCommand(a *app) *cobra.Command {
	var o inputOptions
	var reports reportOptions
	c := &cobra.Command{
		Use:   "validate -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		Short: "Find mistakes in manifests without a network",
		Long: `Judge the objects as the API server would, look for the sources and Secrets that
they refer to and for the keys that these must have, and warn of what is
deprecated or has no effect. No network is used and nothing is written.

Files may also be given as arguments, as pre-commit passes them. Those that are
no manifests are skipped. What they refer to is looked for beside them, and below
the directories given with --lookup-dir.`,
		Example: `  helmsrc validate -R -f clusters/
  helmsrc validate helmchart.yaml helmrepository.yaml
  helmsrc validate --lookup-dir . apps/podinfo/helmchart.yaml`,
	}
	o.add(c.Flags())
	o.addLookup(c.Flags())
	reports.add(c.Flags())
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := reports.check(false); err != nil {
			return exitUsage, err
		}
		return a.validate(ctx, &o, &reports, args)
	})
	return c
}

func (a *app) validate(ctx context.Context, o *inputOptions, reports *reportOptions, args []string) (int, error) {
	in, err := a.readInput(ctx, o, args, "")
	if err != nil {
		return exitUsage, err
	}
	a.tellSkipped(in)
	// Nothing to judge is fine: a hook runs on whatever files were changed.
	if err := in.check(true); err != nil {
		return exitUsage, err
	}
	valid, invalid, warned := 0, map[*manifest.Object]bool{}, 0
	targets := a.targets(in)
	for obj := range in.told {
		invalid[obj] = true
	}
	for _, adm := range targets {
		warned += len(adm.Warnings)
		for _, f := range in.inventory.Validate(adm) {
			text := fmt.Sprintf("%s: %v", f.Pos, f.Err)
			if f.Warning {
				warned++
				a.console.warn(subjectOf(adm.Object), text)
				continue
			}
			invalid[adm.Object] = true
			a.console.line(levelError, subjectOf(adm.Object), text)
			for _, h := range hints(f.Err) {
				a.console.hint(subjectOf(adm.Object), h)
			}
		}
		if !invalid[adm.Object] {
			valid++
		}
	}
	code := in.code
	if len(invalid) > 0 {
		code = worst(code, exitFailed)
	}
	a.console.info(subject{}, fmt.Sprintf("%d valid, %d invalid, %d warnings", valid, len(invalid), warned))
	if o.exitZero && code != exitUsage {
		code = exitOK
	}
	return a.report(reports, a.newReport(validatedObjects(in, targets, invalid), in.unusable), nil, code), nil
}
