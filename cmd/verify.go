package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/listing"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

func newVerifyCommand(a *app) *cobra.Command {
	o := choosing()
	o.Reconcile.Verify = true
	o.output = objectFormat()
	o.output.format = tableFormat
	c := &cobra.Command{
		Use:     "verify -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupCharts,
		Short:   "Check the signatures of charts, and the stored artifacts",
		Long: `Resolve the selected charts, check the signatures that their spec.verify requires,
and report who signed them. The commits and tags of GitRepositories with spec.verify
are checked too. Artifacts that are already in the artifacts directory are compared
with the digests recorded when they were stored. Nothing is added to it.

With --keyring, charts without spec.verify are checked against their provenance
files, as 'helm verify' does. With --verify-dependencies, so are the dependencies of
charts from Git repositories and buckets.

Exit code 3 means that a signature was rejected or is missing, or that a stored
artifact was altered.`,
		Example: `  helmsrc verify -f helmchart.yaml
  helmsrc verify -R -f clusters/ -o json`,
	}
	o.input.add(c.Flags())
	o.input.addShard(c.Flags())
	o.input.addLookup(c.Flags())
	o.report.addBilled(c.Flags(), "")
	o.output.add(a, c)
	o.store.addDir(c.Flags())
	o.store.addAddress(c.Flags())
	o.addFetch(c.Flags())
	addLocked(&o.Lock, c.Flags())
	addFrom(&o.Lock, c.Flags())
	o.addTrust(c.Flags())
	o.addDependencies(c.Flags())
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		return a.runReconciliation(ctx, o, args, a.printVerifications(o.output.format))
	})
	return c
}

func (a *app) printVerifications(format string) func([]*reconcile.Result) error {
	switch format {
	case "yaml", "name":
		return a.printDocuments(format, false)
	}
	return func(results []*reconcile.Result) error {
		return listing.VerificationColumns().Print(a.env.Stdout, format, a.paper, listing.Verifications(results, format == tableFormat))
	}
}
