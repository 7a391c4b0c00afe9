package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/listing"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

func newResolveCommand(a *app) *cobra.Command {
	o := choosing()
	o.output = objectFormat()
	c := &cobra.Command{
		Use:     "resolve -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupCharts,
		Short:   "Report the versions that charts resolve to, without fetching them",
		Long: `Select versions as fetch does, but download no archive. Nothing is written.

-o wide, json and jsonl print one record for each chart; -o yaml prints the objects
with the status that a controller would show at that moment.`,
		Example: `  helmsrc resolve -f helmchart.yaml -o table
  helmsrc resolve -R -f clusters/ -o json`,
	}
	o.input.add(c.Flags())
	o.input.addShard(c.Flags())
	o.input.addLookup(c.Flags())
	o.input.addSince(c.Flags())
	o.report.addBilled(c.Flags(), "")
	o.output.add(a, c)
	o.store.addDir(c.Flags())
	o.store.addAddress(c.Flags())
	o.addFetch(c.Flags())
	addLocked(&o.Lock, c.Flags())
	addFrom(&o.Lock, c.Flags())
	o.addFollow(c.Flags())
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		return a.runReconciliation(ctx, o, args, a.printResolutions(o.output.format))
	})
	return c
}

func (a *app) printResolutions(format string) func([]*reconcile.Result) error {
	switch format {
	case "yaml", "name", "table":
		return a.printDocuments(format, false)
	}
	return func(results []*reconcile.Result) error {
		var list []listing.Resolution
		for _, r := range results {
			if r.Resolution != nil {
				list = append(list, a.lister.Resolution(r))
			}
		}
		return listing.ResolutionColumns().Print(a.env.Stdout, format, a.paper, list)
	}
}
