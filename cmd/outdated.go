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
	format := recordFormat()
	var all, fail bool
	c := &cobra.Command{
		GroupID: groupCharts,
		Use:     "outdated -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		Short:   "List charts with newer versions",
		Long: `Compare the charts of HelmReleases and HelmCharts, and OCIRepositories, with the versions
that their repositories publish. Each index and each list of tags is fetched once.

CURRENT is the version in use: an exact version from the manifest; for a range, the
version in the lock file or in the artifacts directory; - if unknown. WANTED is the version
that the manifest selects now. LATEST is the newest version that has not been removed;
pre-releases are considered only if a pre-release is in use. Deprecated and removed
versions are marked.

Charts from Git repositories and buckets have no list of versions and are skipped. Only
indexes and lists of tags are downloaded, and nothing is written.

Exit codes: 0 compared, even if something is outdated, 1 an object cannot be compared,
2 wrong usage or unreadable input, 4 with --exit-code, something is outdated, 5 only
failures that may pass on a retry, 130 interrupted.`,
		Example: `  helmsrc outdated -R -f clusters/ -o table
  helmsrc outdated -f helmchart.yaml -o markdown
  helmsrc outdated -R -f clusters/ --exit-code`,
	}
	o.addListing(c)
	addLockFile(&o.Lock, c.Flags())
	o.Lock.Current = true
	format.add(a, c)
	c.Flags().BoolVar(&all, "all", false, "also list objects that are up to date")
	addExitCode(c.Flags(), &fail, "something is outdated", "fail")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
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

// choosing returns the options of a command that stops once versions are chosen.
func choosing() *runOptions {
	o := &runOptions{}
	o.Reconcile.Until = reconcile.Choose
	return o
}

// asking returns the options of a command that lists published versions.
func asking() *runOptions {
	o := choosing()
	o.Reconcile.List = true
	return o
}

// addListing declares the flags of the commands that list published versions.
func (o *runOptions) addListing(c *cobra.Command) {
	o.input.add(c.Flags())
	o.input.addLookup(c.Flags())
	o.report.add(c.Flags())
	o.store.addDir(c.Flags())
	o.addFetch(c.Flags())
}
