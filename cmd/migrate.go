package cmd

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// migrateOptions are the flags of migrate.
type migrateOptions struct {
	run    runOptions
	prove  bool
	must   bool // --prove was given
	dryRun bool
	check  bool
	format recordOptions
}

func newMigrateCommand(a *app) *cobra.Command {
	o := &migrateOptions{}
	c := &cobra.Command{
		Use:     "migrate -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupManifests,
		Short:   "Write manifests for current APIs, in place",
		Long: `Edit the YAML files that are named, in place:

(1) API versions of Flux that are deprecated or removed become current ones, with the
fields that have another name there, also where health checks, patches and the like
refer to them.

(2) A HelmRelease with spec.chart.spec that takes its chart from a registry, by a
HelmRepository of type oci or by an index that leads to oci:// URLs, gets it from an
OCIRepository with spec.chartRef. Login, TLS, verification, interval and range stay;
a marker behind the version moves with it. The OCIRepository stands where the
HelmRepository does, which goes if nothing else refers to it.

(3) HelmReleases of Flux 1, of helm.fluxcd.io and flux.weave.works, become those of
Flux 2, with a HelmRepository or GitRepository behind them. The name of the Helm
release stays, and so does what the operator does where helm-controller's defaults
are others.

Comments and all other bytes stay. What cannot be done safely is an error that names
the place to edit, and stays as it is: values that an alias, a variable or a
kustomization puts in, documents that SOPS encrypted, values files of charts. What an
OCIRepository cannot say is a warning. A second run changes nothing.

With --prove, the manifests are built and resolved before and after: what would give a
HelmRelease another chart or other values, or change a field of what is applied, is
not edited. Where a server cannot be reached,
that is a warning; with --prove on the command line it is not edited either.
helm-controller writes the digest of an OCIRepository into the version of the chart,
so that a release that moved there is upgraded once, to the same manifests.

Stdout gets the changes; with --dry-run a unified diff.

Exit codes: 0 all current, 1 something could not be migrated, 2 wrong usage or
unreadable input, 4 something would change, with --check, 5 only failures that a retry
may help, 130 interrupted.`,
		Example: `  helmsrc migrate -R -f clusters/ --dry-run
  helmsrc migrate -R -f clusters/
  helmsrc migrate -f helmrelease.yaml -f helmrepository.yaml --prove=false`,
	}
	fs := c.Flags()
	o.run.input.add(fs)
	o.run.input.addLookup(fs)
	o.run.report.add(fs)
	o.run.store.addDir(fs)
	o.run.store.algorithm = "sha256"
	o.run.fetch.add(fs)
	o.run.trust.add(fs)
	o.format.add(fs)
	fs.BoolVar(&o.prove, "prove", true, "resolve before and after, and edit nothing that changes a chart or values")
	fs.BoolVar(&o.dryRun, "dry-run", false, "print a unified diff, write nothing")
	fs.BoolVar(&o.check, "check", false, "write nothing, exit 4 if something would change")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		o.must = o.prove && fs.Changed("prove")
		if err := errors.Join(o.format.check(a.env), o.run.fetch.check(), o.run.report.check(true), o.run.checkUntrusted()); err != nil {
			return exit.Usage, err
		}
		if slices.Contains(splitNames(o.run.input.files), "-") {
			return exit.Usage, &exit.UsageError{Err: errors.New("stdin cannot be edited"), Advice: "name the files with -f"}
		}
		return a.migrate(ctx, o, args)
	})
	return c
}

func (a *app) migrate(ctx context.Context, o *migrateOptions, args []string) (int, error) {
	// A Secret that only the cluster has is the same on both sides.
	if o.run.fetch.missingSecrets == reconcile.MissingSecretsFail {
		o.run.fetch.missingSecrets = reconcile.MissingSecretsAnonymous
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.run.fetch.timeout, reconcile.Timeout("--timeout", o.run.fetch.timeout))
	defer cancel()
	o.run.input.render.sources = o.run.fetch.sources
	inputs, err := a.readClusters(ctx, &o.run.input, args, o.run.store.dir)
	if err != nil {
		return exit.Usage, err
	}
	if err := o.run.input.checkSelectors(ctx, inputs[0].Selectors, inputs...); err != nil {
		return exit.Usage, err
	}
	m := &migration{app: a, o: o, args: args, inputs: inputs}
	if m.shared, err = a.openSession(ctx, &o.run); err != nil {
		return exit.Usage, err
	}
	defer m.shared.Close()
	for _, in := range inputs {
		m.fail(in.Code)
		a.worker.ReportNotes(in)
	}
	a.console.Unite()
	m.find(ctx)
	if err := m.plan(ctx); err != nil {
		return exit.Failed, err
	}
	m.reportPlan()
	printed := m.finish(ctx)
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), exit.ErrInterrupted) {
		m.fail(exit.Interrupted)
	}
	code := m.code
	if o.check && len(m.result.Files) > 0 {
		code = exit.Worst(code, exit.Drift)
	}
	if o.run.input.exitZero && code != exit.Interrupted && code != exit.Usage {
		code = exit.OK
	}
	code = a.report(ctx, &o.run.report, a.newReport(nil), nil, code)
	return code, printed
}
