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
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/migration"
	"github.com/helmsrc/helmsrc/internal/records"
)

// migrateOptions are the flags of migrate.
type migrateOptions struct {
	migration.Options
	run    runOptions
	format formatFlag
}

func newMigrateCommand(a *app) *cobra.Command {
	o := &migrateOptions{format: recordFormat()}
	c := &cobra.Command{
		Use:     "migrate -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupManifests,
		Short:   "Convert manifests to current APIs, in place",
		Long: `Edit the given YAML files in place:

(1) Deprecated and removed API versions of Flux are replaced by current ones, fields are
renamed where needed, and references to these versions are updated, for example in health
checks and patches.

(2) A HelmRelease whose spec.chart.spec takes its chart from a registry (through a
HelmRepository of type oci, or through an index with oci:// URLs) is changed to use an
OCIRepository with spec.chartRef. Login, TLS, verification, interval and version range are
kept; a marker after the version moves with it. The OCIRepository is written where the
HelmRepository is, which is removed if nothing else refers to it.

(3) HelmReleases of Flux 1 (helm.fluxcd.io and flux.weave.works) become HelmReleases of
Flux 2, with a HelmRepository or GitRepository. The name of the Helm release is kept, and
so is the operator's behaviour where helm-controller has other defaults.

Comments and all other bytes are kept. A value that cannot be edited safely is an error
that names the place to edit by hand: a value set through an alias, a variable or a
kustomization, in a file encrypted with SOPS, or in a values file of a chart. Settings that
an OCIRepository does not have cause a warning. A second run changes nothing.

With --prove, the manifests are built and resolved before and after. An edit that would
give a HelmRelease another chart or other values, or change a field of an applied object,
is not made. A server that cannot be reached causes a warning; with --prove on the command
line, the object is not edited either. helm-controller includes the digest of an
OCIRepository in the chart's version, so a release that was moved is upgraded once, to the
same manifests.

Changes are printed to stdout; with --dry-run as a unified diff.

Exit codes: 0 everything is current, 1 something could not be migrated, 2 wrong usage or
unreadable input, 4 with --exit-code or --check, something changed or would change,
5 only failures that may pass on a retry, 130 interrupted.`,
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
	o.format.add(a, c)
	fs.BoolVar(&o.Prove, "prove", true, "resolve before and after, and make no edit that changes a chart or values")
	fs.BoolVar(&o.DryRun, "dry-run", false, "print a unified diff, write nothing")
	fs.BoolVar(&o.Check, "check", false, "write nothing, exit 4 if something would change")
	addExitCode(fs, &o.ExitCode, "something changed, or would change with --dry-run")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		o.Must = o.Prove && fs.Changed("prove")
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
	// A Secret that exists only in the cluster is the same on both sides.
	if o.run.Reconcile.MissingSecrets == credential.MissingFail {
		o.run.Reconcile.MissingSecrets = credential.MissingAnonymous
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

// print prints the changes, or the diffs of a dry run.
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

// sumEdits prints the number of changes and files.
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
