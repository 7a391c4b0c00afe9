package cmd

import (
	"context"
	"fmt"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/validate"
	"github.com/helmsrc/helmsrc/internal/values"
)

func newValuesCommand(a *app) *cobra.Command {
	var o runOptions
	var w values.WriteOptions
	c := &cobra.Command{
		Use:     "values -f FILE... [HelmRelease/][NAMESPACE/]NAME",
		GroupID: groupCharts,
		Short:   "Print the values that helm-controller would hand to Helm",
		Long: `Compose the values of one HelmRelease as helm-controller does: those of spec.valuesFrom
in their order, and those of spec.values over them. What stdout gets is a values file
for helm. Nothing is written, and no network is used but for one thing: the values of a
HelmRelease of Flux 1 that are in its chart (chartFileRef) or behind a URL
(externalSourceRef). It is composed as its Helm Operator does.

Values that come from Secrets are printed as ` + values.Hidden + `. A Secret that is not in
the input is a warning, and what it holds is left out.

The default values of the chart are not among them, and neither are those of
spec.chart.spec.valuesFiles: these are part of the chart that fetch stores.

Exit codes: 0 the values are printed, 1 they cannot be composed, 2 wrong usage, no
such HelmRelease or unreadable input, 3 a digest or signature check failed, 5 only
failures that a retry may help.`,
		Example: `  helmsrc values -R -f clusters/production app
  helmsrc values -f helmrelease.yaml --origins podinfo`,
	}
	o.input.add(c.Flags())
	o.input.addLookup(c.Flags())
	o.fetch.add(c.Flags())
	o.trust.add(c.Flags())
	c.Flags().BoolVar(&w.Origins, "origins", false, "add a comment to each value that says where it comes from")
	c.Flags().BoolVar(&w.ShowSecrets, "show-secrets", false, "print the values of Secrets")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := o.fetch.check(); err != nil {
			return exit.Usage, err
		}
		if err := o.checkUntrusted(); err != nil {
			return exit.Usage, err
		}
		return a.values(ctx, &o, w, args)
	})
	return c
}

func (a *app) values(ctx context.Context, o *runOptions, w values.WriteOptions, args []string) (int, error) {
	o.input.render.sources = o.fetch.sources
	inputs, err := a.readClusters(ctx, &o.input, args, "")
	if err != nil {
		return exit.Usage, err
	}
	inputs = withoutLoose(inputs)
	a.reportFlux1(inputs...)
	if err := o.input.checkSelectors(ctx, inputs[0].Selectors, inputs...); err != nil {
		return exit.CodeOf(err), err
	}
	code, found := exit.OK, false
	err = a.each(inputs, func(in *load.Input) error {
		release, err := a.oneRelease(in)
		code = exit.Worst(code, in.Code)
		if release == nil || err != nil {
			found = found || err == nil && len(releasesOf(in)) > 0
			return err
		}
		if in.Cluster != "" {
			between := ""
			if found {
				between = "---\n"
			}
			if _, err := fmt.Fprintf(a.env.Stdout, "%s# Cluster: %s\n", between, in.Cluster); err != nil {
				return err
			}
		}
		found = true
		printed, err := a.releaseValues(ctx, o, w, in, release)
		code = exit.Worst(code, printed)
		return err
	})
	a.console.Unite()
	if err == nil && !found {
		err = &exit.UsageError{Err: fmt.Errorf("no HelmRelease is selected: %s", inputs[0].Kinds())}
	}
	if err != nil {
		code = exit.Worst(code, exit.CodeOf(err))
	}
	return code, err
}

// releaseValues prints the values of one release, and returns the exit code of that.
func (a *app) releaseValues(ctx context.Context, o *runOptions, w values.WriteOptions, in *load.Input, release *admission.Admitted) (int, error) {
	if hr, ok := release.Typed.(*operator.HelmRelease); ok && validate.Unread(hr) {
		return a.fetchedValues(ctx, o, w, in, release)
	}
	composed, origins, found := validate.Values(in.Inventory, release)
	code := in.Code
	for _, f := range found {
		a.console.Report(f)
		if f.Severity == finding.Error {
			code = exit.Worst(code, exit.Failed)
		}
	}
	a.worker.ReportNotes(in)
	if code == exit.Failed {
		return code, nil
	}
	w.Inline = inlineShown(release.Object)
	if err := origins.Write(a.env.Stdout, composed, w); err != nil {
		return exit.Failed, fmt.Errorf("cannot print the values of %s: %w", release.Object, err)
	}
	return code, nil
}

// fetchedValues prints values that stand in no manifest.
func (a *app) fetchedValues(ctx context.Context, o *runOptions, w values.WriteOptions, in *load.Input, release *admission.Admitted) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.fetch.timeout, reconcile.Timeout("--timeout", o.fetch.timeout))
	defer cancel()
	o.fetch.missingSecrets = reconcile.MissingSecretsAnonymous // a warning, as with all other values
	o.store.algorithm = "sha256"
	shared, err := a.openSession(ctx, o)
	if err != nil {
		return exit.Usage, err
	}
	defer shared.Close()
	side := newPlanSide(a, &planOptions{run: *o, shared: shared}, nil)
	side.inputs = []*load.Input{in}
	defer side.close()
	if side.replaced, err = a.replaceSources(o, side.inputs, nil); err != nil {
		return exit.Usage, err
	}
	r := newForeseen(in, release.Object, "")
	r.operated, r.unread = release.Typed.(*operator.HelmRelease), true
	if err := side.run(ctx, in, []*foreseen{r}, true); err != nil {
		return usageCode(err), err
	}
	a.worker.ReportNotes(in)
	if r.fact.Blocked != "" {
		return exit.Worst(in.Code, side.codes[r.fact.ID]), nil
	}
	w.Inline = inlineShown(release.Object)
	if err := r.origins.Write(a.env.Stdout, r.composed, w); err != nil {
		return exit.Failed, fmt.Errorf("cannot print the values of %s: %w", release.Object, err)
	}
	return in.Code, nil
}

// releasesOf are the HelmReleases that are selected.
func releasesOf(in *load.Input) []*manifest.Object {
	return slices.DeleteFunc(slices.Clone(in.Inventory.Objects()), func(obj *manifest.Object) bool {
		return manifest.BareKind(obj.Kind) != helmv2.HelmReleaseKind || !in.Wanted(obj)
	})
}

// oneRelease is the HelmRelease of a cluster that the arguments select, nil if there is none, or if it was rejected.
func (a *app) oneRelease(in *load.Input) (*admission.Admitted, error) {
	releases := releasesOf(in)
	switch len(releases) {
	case 0:
		return nil, nil
	case 1:
	default:
		var names []string
		for _, obj := range releases {
			_, namespace, name := obj.Called()
			names = append(names, namespace+"/"+name)
		}
		return nil, &exit.UsageError{
			Err:    fmt.Errorf("%d HelmReleases are selected: %s", len(releases), console.Few(names)),
			Advice: "name one of them: helmsrc values -f FILE NAMESPACE/NAME",
		}
	}
	adm, err := in.Inventory.Admit(releases[0])
	if err != nil {
		a.worker.Reject(in, releases[0], err)
		return nil, nil
	}
	a.worker.ReportWarnings(in, adm)
	return adm, nil
}

// inlineShown are the inline values of a release without what came from Secrets.
func inlineShown(obj *manifest.Object) map[string]any {
	spec, _ := obj.Content["spec"].(map[string]any)
	document := map[string]any{"spec": map[string]any{"values": spec["values"]}}
	shown, _ := obj.Conceal(document).(map[string]any)
	spec, _ = shown["spec"].(map[string]any)
	inline, _ := spec["values"].(map[string]any)
	return inline
}
