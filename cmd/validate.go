package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/judging"
	"github.com/helmsrc/helmsrc/internal/publish"
)

func newValidateCommand(a *app) *cobra.Command {
	var o inputOptions
	var reports reportOptions
	var judged judging.Options
	var unreached, fix bool
	format := otherFormat("text", "json", "jsonl")
	c := &cobra.Command{
		Annotations: map[string]string{findingsAnnotation: "true"},

		Use:     "validate -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupManifests,
		Short:   "Find mistakes in manifests without a network",
		Long: `Check the objects as the API server would, check that the sources and Secrets they
refer to exist and have the required keys, and warn about fields that are deprecated
or have no effect. No network is used and, without --fix, nothing is written.

Directories are read as Flux would read them: kustomization files and Kustomizations
are built, variables substituted, and SOPS Secrets decrypted. Each cluster in them is
checked on its own. A Secret that is not in the input may exist in the cluster, so it
is a warning, unless a signature check depends on it.

Files may also be given as arguments, as pre-commit passes them. Files that are not
manifests are skipped. References are looked up beside the files and below the
directories given with --lookup-dir. If a kustomization below these directories builds
a file, the result of that build is checked instead of the file itself.

Every finding has a code; 'helmsrc explain CODE' describes it. A comment silences a
code on its line, or on the next line if the comment stands alone. On the first line
of an object, or at its name, it covers the whole object:

  interval: 30s # helmsrc:ignore HS063 a test cluster

--fix edits the files where a mistake has exactly one remedy, and reports the rest. It
can replace deprecated API versions of kinds whose fields have not changed, correct the
spelling of a type, add a missing type: oci, remove a chart's name or index.yaml from a
URL, and put versions in quotes. Every other byte is kept. SARIF reports contain the
same edits as fixes.

Exit codes: 0 at most warnings, 1 an object has a mistake or, with --strict, a
warning, 2 wrong usage, nothing to check or unreadable input, 130 interrupted. Files
given as arguments need not contain Flux objects.`,
		Example: `  helmsrc validate -R -f clusters/
  helmsrc validate helmchart.yaml helmrepository.yaml
  helmsrc validate --lookup-dir . apps/podinfo/helmchart.yaml
  helmsrc validate -R -f clusters/ -o json
  helmsrc validate -R -f clusters/ --fix`,
	}
	o.add(c.Flags())
	o.addLookup(c.Flags())
	o.addSince(c.Flags())
	o.render.addSources(c.Flags())
	reports.add(c.Flags())
	format.add(a, c)
	format.addJSON(c, "json")
	c.Flags().BoolVar(&unreached, "unreached", false, "only list the files that are not applied, one per line")
	c.Flags().BoolVar(&fix, "fix", false, "edit the files, in place, where a mistake has exactly one remedy")
	c.Flags().BoolVar(&judged.Strict, "strict", false, "fail on warnings; also warn about charts that follow every version, and comments that silence nothing")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		a.worker.Purpose.Judges = true
		if err := reports.check(format.format != "text"); err != nil {
			return exit.Usage, err
		}
		if unreached {
			return a.listUnreached(ctx, &o, args)
		}
		reports.Findings = format.format
		return a.validate(ctx, &o, &reports, judged, fix, args)
	})
	return c
}

func (a *app) validate(ctx context.Context, o *inputOptions, reports *reportOptions, judged judging.Options, fix bool, args []string) (int, error) {
	o.Validating = true
	options, err := a.loadOptions(o, args, "")
	if err != nil {
		return exit.Usage, err
	}
	if some, err := a.worker.Since(ctx, options, o.since); err != nil {
		return exit.CodeOf(err), err
	} else if !some {
		return exit.OK, nil
	}
	if fix {
		if err := judging.Fix(ctx, &a.worker, options); err != nil {
			return exit.Usage, err
		}
	}
	inputs, err := a.worker.Inputs(ctx, options)
	if err != nil {
		return exit.Usage, err
	}
	a.worker.ReportLeftOut(inputs[0])
	a.worker.ReportFlux1(inputs[0])
	reportUnreached(a.console, inputs[0].Unreached, len(options.Names) == 0 && len(options.Offered) > 0)
	judged.Remedies = reports.machine()
	v, err := judging.Judge(ctx, &a.worker, inputs, judged)
	if err != nil {
		return exit.Usage, err
	}
	a.console.Info(console.Subject{}, v.Summary)
	return a.report(ctx, reports, a.outlined(reports, a.worker.Report(v.Objects), inputs, nil), nil, o.forgiven(v.Code)), nil
}

// machine reports whether a report is written in a format that holds fixes.
func (o *reportOptions) machine() bool {
	return slices.ContainsFunc(o.Targets, func(t publish.Target) bool { return t.Format == "sarif" })
}

// listUnreached prints the files that nothing applies.
func (a *app) listUnreached(ctx context.Context, o *inputOptions, args []string) (int, error) {
	o.Validating = true
	inputs, err := a.readClusters(ctx, o, args, "")
	if err != nil {
		return exit.Usage, err
	}
	for _, name := range inputs[0].Unreached {
		if _, err := io.WriteString(a.env.Stdout, name+"\n"); err != nil {
			return exit.Usage, fmt.Errorf("cannot print the list: %w", err)
		}
	}
	return inputs[0].Code, nil
}

// reportUnreached reports the number of files that nothing applies, or their names if they were passed as arguments: each of
// them is checked on its own.
func reportUnreached(to *console.Console, unreached []string, passed bool) {
	switch {
	case len(unreached) == 0:
	case passed:
		for _, name := range unreached {
			to.Info(console.Subject{}, name+" is not applied: it is checked on its own")
		}
	case len(unreached) == 1:
		to.Info(console.Subject{}, "1 file is not applied: helmsrc validate --unreached lists it")
	default:
		to.Info(console.Subject{}, fmt.Sprintf("%d files are not applied: helmsrc validate --unreached lists them", len(unreached)))
	}
}
