package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/values"
)

func newValuesCommand(a *app) *cobra.Command {
	var o runOptions
	var w values.WriteOptions
	c := &cobra.Command{
		Use:     "values -f FILE... [HelmRelease/][NAMESPACE/]NAME",
		GroupID: groupCharts,
		Short:   "Print the values that helm-controller would pass to Helm",
		Long: `Compose the values of one HelmRelease as helm-controller does: spec.valuesFrom in order,
then spec.values. The output is a values file for helm. Nothing is written. The network is
used only for HelmReleases of Flux 1 that take values from their chart (chartFileRef) or
from a URL (externalSourceRef); these are composed as by the Helm Operator.

Values from Secrets are printed as **REDACTED**. A Secret that is not in the input is a
warning, and its values are left out.

The default values of the chart and the files in spec.chart.spec.valuesFiles are not
included: they are part of the chart that fetch stores.

Exit codes: 0 the values are printed, 1 they cannot be composed, 2 wrong usage, no
such HelmRelease or unreadable input, 3 a digest or signature check failed, 5 only
failures that may pass on a retry.`,
		Example: `  helmsrc values -R -f clusters/production app
  helmsrc values -f helmrelease.yaml --origins podinfo`,
	}
	o.input.add(c.Flags())
	o.input.addLookup(c.Flags())
	o.addFetch(c.Flags())
	o.addTrust(c.Flags())
	c.Flags().BoolVar(&w.Origins, "origins", false, "add the origin of each value as a comment")
	c.Flags().BoolVar(&w.ShowSecrets, "show-secrets", false, "print the values of Secrets")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := o.begin(a, args); err != nil {
			return exit.Usage, err
		}
		ctx, cancel := o.deadline(ctx)
		defer cancel()
		o.Reconcile.MissingSecrets = credential.MissingAnonymous // a warning, as with all other values
		return foresee.Work{Worker: &a.worker, Options: &o.Options}.Values(ctx, a.env.Stdout, w)
	})
	return c
}
