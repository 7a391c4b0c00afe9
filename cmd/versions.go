package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/listing"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

func newVersionsCommand(a *app) *cobra.Command {
	o := asking()
	format := recordFormat()
	c := &cobra.Command{
		GroupID: groupCharts,
		Use:     "versions -f FILE... [KIND/][NAMESPACE/]NAME",
		Short:   "List the published versions of a chart",
		Long: `List the published versions of the chart of one HelmRelease or HelmChart, or of one
OCIRepository, newest first.

APP VERSION and CREATED are taken from the index; a registry's list of tags has neither.
IN RANGE shows whether the version range in the manifest allows the version; the version
that the manifest selects now is marked "chosen". Deprecated and removed versions are marked.

Only the index or the list of tags is downloaded, and nothing is written.

Exit codes: 0 the versions are printed, 1 they cannot be fetched, 2 wrong usage, no such
object or unreadable input, 5 a retry may help, 130 interrupted.`,
		Example: `  helmsrc versions -f helmrepository.yaml -f helmchart.yaml podinfo -o table
  helmsrc versions -R -f clusters/ HelmChart/podinfo -o json`,
	}
	o.addListing(c)
	format.add(a, c)
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		var usage error
		code, err := a.runReconciliation(ctx, o, args, func(results []*reconcile.Result) error {
			var list []listing.Version
			found := false
			for _, of := range byCluster(results) {
				r, err := onlyPublished(of)
				if r == nil {
					usage = cmp.Or(usage, err)
					continue
				}
				list, found = append(list, listing.Versions(r)...), true
			}
			var several *severalError
			if !found || errors.As(usage, &several) {
				return nil
			}
			usage = nil
			return listing.VersionColumns().Print(a.env.Stdout, format.format, a.paper, list)
		})
		if err == nil && usage != nil {
			return exit.Usage, usage
		}
		return code, err
	})
	return c
}

// onlyPublished returns the only result with a list of versions. It returns nil without an error after a failure, which was
// reported.
func onlyPublished(results []*reconcile.Result) (*reconcile.Result, error) {
	var found []*reconcile.Result
	var names []string
	failed := false
	for _, r := range results {
		failed = failed || r.Failure != nil
		if r.Published != nil {
			found = append(found, r)
			obj := r.Object.Object
			if obj.Origin != nil {
				obj = obj.Origin
			}
			_, namespace, name := obj.Called()
			names = append(names, obj.Kind+" "+namespace+"/"+name)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, &exit.UsageError{Err: &severalError{fmt.Sprintf("%d charts are selected: %s", len(found), console.Few(names))}, Advice: "name one of them: helmsrc versions -f FILE KIND/NAMESPACE/NAME"}
	case failed:
		return nil, nil
	}
	return nil, &exit.UsageError{
		Err:    fmt.Errorf("no chart with a list of versions is selected"),
		Advice: "name a HelmRelease, a HelmChart or an OCIRepository whose chart comes from a Helm repository or a registry",
	}
}

// severalError reports that more than one object of a cluster is selected.
type severalError struct{ text string }

func (e *severalError) Error() string { return e.text }

// byCluster groups results by cluster, in their order.
func byCluster(results []*reconcile.Result) [][]*reconcile.Result {
	var all [][]*reconcile.Result
	for i, r := range results {
		if i == 0 || results[i-1].Cluster != r.Cluster {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], r)
	}
	return all
}
