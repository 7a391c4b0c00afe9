package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/migration"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/records"
)

// migrateOptions are the flags of migrate.
type migrateOptions struct {
	migration.Options
	run    runOptions
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
unreadable input, 4 something changed or would
change, with --exit-code or --check, 5 only failures that a retry
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
	o.run.addFetch(fs)
	o.run.addTrust(fs)
	o.format.add(fs)
	fs.BoolVar(&o.Prove, "prove", true, "resolve before and after, and edit nothing that changes a chart or values")
	fs.BoolVar(&o.DryRun, "dry-run", false, "print a unified diff, write nothing")
	fs.BoolVar(&o.Check, "check", false, "write nothing, exit 4 if something would change")
	addExitCode(fs, &o.ExitCode, "something changed, or would change with --dry-run")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		o.Must = o.Prove && fs.Changed("prove")
		if err := errors.Join(o.format.check(a.env)); err != nil {
			return exit.Usage, err
		}
		if slices.Contains(splitNames(o.run.input.files), "-") {
			return exit.Usage, &exit.UsageError{Err: errors.New("stdin cannot be edited"), Advice: "name the files with -f"}
		}
		if err := o.run.begin(a, args); err != nil {
			return exit.Usage, err
		}
		return a.migrate(ctx, o)
	})
	return c
}

func (a *app) migrate(ctx context.Context, o *migrateOptions) (int, error) {
	// A Secret that only the cluster has is the same on both sides.
	if o.run.Reconcile.MissingSecrets == reconcile.MissingSecretsFail {
		o.run.Reconcile.MissingSecrets = reconcile.MissingSecretsAnonymous
	}
	ctx, cancel := o.run.deadline(ctx)
	defer cancel()
	m, err := migration.Run(ctx, foresee.Work{Worker: &a.worker, Options: &o.run.Options}, o.Options)
	if err != nil {
		return m.Code, err
	}
	printed := o.print(a, m)
	code, err := a.conclude(ctx, &o.run, a.worker.Report(nil), nil, m.Code, nil)
	return code, cmp.Or(printed, err)
}

// print prints what became of the files.
func (o *migrateOptions) print(a *app, m *migration.Migration) error {
	sumEdits(a.console, m, o.DryRun || o.Check)
	if o.DryRun {
		_, err := a.env.Stdout.Write(m.Diffs)
		return err
	}
	hide := a.console.Secrets().Text
	list := []migrated{}
	for _, c := range m.Changes {
		object := strings.TrimSuffix(c.Kind+"/"+c.Name, "/")
		list = append(list, migrated{c.File, c.Line, hide(object), hide(c.Namespace), hide(c.Text)})
	}
	return migratedColumns().Print(a.env.Stdout, o.format.format, a.paper, list)
}

// sumEdits prints how much was edited, or would be.
func sumEdits(to *console.Console, m *migration.Migration, dry bool) {
	verb := "edited"
	if dry {
		verb = "to be edited"
	}
	to.Info(console.Subject{}, fmt.Sprintf("%d %s, %d %s %s", len(m.Changes), plural(len(m.Changes), "change", "changes"), m.Files, plural(m.Files, "file", "files"), verb))
}

// migrated is a record of migrate's output. Its fields are part of the contract.
type migrated struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	Change    string `json:"change"`
}

func migratedColumns() *records.Columns[migrated] {
	return &records.Columns[migrated]{
		Header: []string{"FILE", "LINE", "OBJECT", "CHANGE"},
		Wide:   []string{"NAMESPACE"},
		Row: func(r migrated) []string {
			return []string{r.File, fmt.Sprint(r.Line), r.Object, r.Change, cmp.Or(r.Namespace, "-")}
		},
	}
}
