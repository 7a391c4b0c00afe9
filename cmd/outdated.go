package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/listing"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

func newOutdatedCommand(a *app) *cobra.Command {
	o := asking()
	var format recordOptions
	var all, fail bool
	c := &cobra.Command{
		GroupID: groupCharts,
		Use:     "outdated -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		Short:   "List charts with newer versions",
		Long: `Compare the charts of HelmReleases and HelmCharts, and OCIRepositories, with what
their repositories publish. Each index and each list of tags is fetched once.

CURRENT is the version in use: the one that the manifest names, or, of a range, the
one in the lock file, else in the artifacts directory; - if there is none. WANTED is
what the manifest chooses now, LATEST the newest version that was not removed; a
pre-release only counts where one is in use. Versions that are deprecated or removed
are marked.

Charts from Git and buckets have no list of versions, and are left out. Nothing is
downloaded but indexes and lists of tags, and nothing is written.

Exit codes: 0 also if something is outdated, 1 an object cannot be compared, 2 wrong
usage or unreadable input, 4 something is outdated, with --exit-code, 5 only failures that
a retry may help, 130 interrupted.`,
		Example: `  helmsrc outdated -R -f clusters/ -o table
  helmsrc outdated -f helmchart.yaml -o markdown
  helmsrc outdated -R -f clusters/ --exit-code`,
	}
	o.addListing(c)
	addLockFile(&o.Lock, c.Flags())
	o.Lock.Current = true
	format.add(c.Flags())
	c.Flags().BoolVar(&all, "all", false, "list what is up to date, too")
	addExitCode(c.Flags(), &fail, "something is outdated", "fail")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := format.check(a.env); err != nil {
			return exit.Usage, err
		}
		outdated := false
		code, err := a.runReconciliation(ctx, o, args, func(results []*reconcile.Result) error {
			list := []listing.Published{}
			for _, r := range results {
				if r.Published == nil {
					continue
				}
				outdated = outdated || r.Published.Outdated()
				if all || r.Published.Outdated() || listing.Withdrawn(r.Published) {
					list = append(list, a.lister.Published(r))
				}
			}
			return listing.PublishedColumns().Print(a.env.Stdout, format.format, a.paper, list)
		})
		if outdated && fail && !o.input.exitZero {
			code = exit.Worst(code, exit.Drift)
		}
		return code, err
	})
	return c
}

// choosing are the flags of a command that stops once versions are known.
func choosing() *runOptions {
	o := &runOptions{}
	o.Reconcile.Until = reconcile.Choose
	return o
}

// asking are those of a command that asks what is published.
func asking() *runOptions {
	o := choosing()
	o.Reconcile.List = true
	return o
}

// addListing declares the flags of the commands that ask what is published.
func (o *runOptions) addListing(c *cobra.Command) {
	o.input.add(c.Flags())
	o.input.addLookup(c.Flags())
	o.report.add(c.Flags())
	o.store.addDir(c.Flags())
	o.addFetch(c.Flags())
}
