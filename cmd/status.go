package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/recorded"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/session"
)

func newStatusCommand(a *app) *cobra.Command {
	var in inputOptions
	out := objectFormat()
	var reports reportOptions
	storage := storeOptions{}
	c := &cobra.Command{
		Use:     "status [-f FILE...] [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupArtifacts,
		Short:   "Print the recorded status, and check each artifact on disk",
		Long: `Print what earlier runs stored in the artifacts directory: for all objects, or for
those in the manifests given with -f. Nothing is fetched and nothing is written.

Exit code 1 means that an object is not ready or was never fetched, 3 that a stored
artifact was altered.`,
		Example: `  helmsrc artifacts status
  helmsrc artifacts status -f helmchart.yaml -o table`,
	}
	in.add(c.Flags())
	in.render.addSources(c.Flags())
	out.add(a, c)
	reports.add(c.Flags())
	storage.addDir(c.Flags())
	storage.addAddress(c.Flags())
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := cmp.Or(reports.check(true), storage.check(a)); err != nil {
			return exit.Usage, err
		}
		return a.status(ctx, &in, out.format, &storage, &reports, args)
	})
	return c
}

func (a *app) status(ctx context.Context, o *inputOptions, format string, storage *storeOptions, reports *reportOptions, args []string) (int, error) {
	dir, found, err := a.openRecorded(ctx, o, storage, args)
	if err != nil {
		return exit.Usage, err
	}
	defer dir.Close()
	code := found.Code
	var failures []finding.Finding
	for _, r := range found.Results {
		if f, ok := r.FailureFinding(); ok && r.State == reconcile.Failed {
			failures = append(failures, f)
		}
		code = exit.Worst(code, session.CodeOf(r))
	}
	a.console.ReportByCause(finding.Fold(failures), console.Presentation{})
	a.console.Unite()
	printed := a.printDocuments(format, false)(found.Results)
	if printed != nil {
		printed = fmt.Errorf("stdout: %w", printed)
	}
	var objects []report.Object
	if a.publisher.Wanted(&reports.Reports) {
		objects, err = found.Objects()
	}
	return a.report(ctx, reports, a.worker.Report(objects), nil, o.forgiven(code)), errors.Join(printed, err)
}

// openRecorded opens the artifacts directory and selects the named records. The caller must close the directory.
func (a *app) openRecorded(ctx context.Context, o *inputOptions, storage *storeOptions, args []string) (*recorded.Directory, *recorded.Selection, error) {
	dir, err := recorded.Open(&a.worker, &storage.StoreOptions)
	if err != nil {
		return nil, nil, err
	}
	found, err := a.selectRecorded(ctx, o, dir, storage, args)
	if err != nil {
		dir.Close()
		return nil, nil, err
	}
	for _, r := range found.Results {
		a.console.ConcealNames([]*manifest.Object{r.Object.Object})
	}
	return dir, found, nil
}

// selectRecorded returns the named records, or the records of the selected objects if manifests are given.
func (a *app) selectRecorded(ctx context.Context, o *inputOptions, dir *recorded.Directory, storage *storeOptions, args []string) (*recorded.Selection, error) {
	given, err := splitArguments(args, false) // without -f an argument names a record
	if err != nil {
		return nil, err
	}
	if len(o.files)+len(given.files)+len(given.dirs) == 0 {
		return dir.Select(&o.Options, given.selectors)
	}
	inputs, err := a.readSelected(ctx, o, args, storage.Dir)
	if err != nil {
		return nil, err
	}
	return dir.OfInputs(inputs)
}
