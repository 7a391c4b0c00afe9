package cmd

import (
	"context"

	"github.com/spf13/cobra"
)

func newFetchCommand(a *app) *cobra.Command {
	o := &runOptions{output: objectFormat()}
	c := &cobra.Command{
		Use:     "fetch -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupCharts,
		Short:   "Fetch charts, and print the objects with their status",
		Long: `Reconcile the selected objects once, sources before charts: resolve versions,
fetch, check and store the charts, and print every object with the status that
Flux's source-controller would give it.

Without NAME, every supported object is selected. Selecting a chart also selects its
source. A source or Secret that is not in the input is looked up beside the files
given with -f, then below the directories given with --lookup-dir. If a kustomization
below these directories builds a file given with -f, the result of that build is used.

Directories are read as Flux would read them: kustomization files and Kustomizations
are built, variables substituted, and SOPS files decrypted with the keys that are
available.

Exit codes: 0 all ready, 1 an object is not ready or was rejected, 2 wrong usage
or unreadable input, 3 a digest or signature check failed, 4 with --locked, the lock
file is out of date, 5 only failures that may pass on a retry, 130 interrupted.`,
		Example: `  helmsrc fetch -f helmchart.yaml
  helmsrc fetch -R -f clusters/ -o table
  helmsrc fetch -f . HelmChart/apps/podinfo
  helmsrc fetch -f apps/podinfo/helmchart.yaml --lookup-dir .
  helmsrc fetch -f . --source HelmRepository/podinfo=./charts
  helmsrc fetch -f . --flat charts
  helmsrc fetch -R -f clusters/ --locked`,
	}
	o.input.add(c.Flags())
	o.input.addShard(c.Flags())
	o.input.addLookup(c.Flags())
	o.input.addSince(c.Flags())
	o.report.addBilled(c.Flags(), annotatedImages)
	o.output.add(a, c)
	c.Flags().BoolVar(&o.events, "events", false, "print the Events of each object below the object")
	o.store.addDir(c.Flags())
	o.store.addAddress(c.Flags())
	o.store.addWriting(c.Flags())
	o.addFetch(c.Flags())
	addLocked(&o.Lock, c.Flags())
	addFrom(&o.Lock, c.Flags())
	o.addTrust(c.Flags())
	o.addDependencies(c.Flags())
	o.addRefresh(c.Flags())
	o.addFollow(c.Flags())
	o.addFlat(c.Flags())
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		return a.runReconciliation(ctx, o, args, a.printDocuments(o.output.format, o.events))
	})
	return c
}
