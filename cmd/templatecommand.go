package cmd

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/listing"
	"github.com/helmsrc/helmsrc/internal/session"
)

// templateOptions are the flags of template.
type templateOptions struct {
	foresee.TemplateOptions
	run  runOptions
	helm helmOptions
}

func newTemplateCommand(a *app) *cobra.Command {
	o := &templateOptions{}
	c := &cobra.Command{
		GroupID: groupCharts,
		Use:     "template -f FILE... [[HelmRelease/][NAMESPACE/]NAME...]",
		Short:   "Render HelmReleases as helm-controller would install them",
		Long: `Fetch the charts of the selected HelmReleases, compose their values, and render them
with the installed helm (version 3 or 4), using the name and namespace of the release,
CRDs according to spec.install.crds, and hooks. Post renderers, common metadata and labels
are then applied as in helm-controller. The output can be passed to kubeconform, kubectl
diff or a policy checker. HelmReleases of Flux 1 are rendered as by the Helm Operator.

helm runs with limits on time and memory, with an empty home directory, and without a
cluster. Values from Secrets and the data of rendered Secrets are hidden. A release that
uses a value from a Secret that is not in the input fails; with
--missing-secrets=anonymous such values are left out, with a warning.

Exit codes: as for fetch; also 1 if a chart cannot be rendered, and 2 if helm is not
installed.`,
		Example: `  helmsrc template -f helmrelease.yaml > rendered.yaml
  helmsrc template -R -f clusters/production app --kube-version 1.33`,
	}
	fs := c.Flags()
	o.helm.add(fs)
	fs.BoolVar(&o.ShowSecrets, "show-secrets", false, "print the values of Secrets")
	fs.BoolVar(&o.Strict, "strict", false, "fail if values from a Secret were left out")
	o.run.input.add(fs)
	o.run.input.addShard(fs)
	o.run.input.addLookup(fs)
	o.run.report.addBilled(fs, "rendered manifests name, and charts in the annotation "+listing.ImagesAnnotation)
	o.run.store.addDir(fs)
	o.run.store.addWriting(fs)
	o.run.addFetch(fs)
	addLocked(&o.run.Lock, fs)
	o.run.addTrust(fs)
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := cmp.Or(o.helm.check(), o.run.begin(a, args)); err != nil {
			return exit.Usage, err
		}
		return a.template(ctx, o)
	})
	return c
}

func (a *app) template(ctx context.Context, o *templateOptions) (int, error) {
	ctx, cancel := o.run.deadline(ctx)
	defer cancel()
	o.helm.Closed = o.run.input.Untrusted || o.run.Reconcile.Offline
	with, err := foresee.NewRenderer(ctx, &a.worker, &o.helm.HelmOptions)
	if err != nil {
		return session.UsageCode(err), err
	}
	defer with.Close()
	o.Describe = o.run.bill(a, nil).Rendered
	t, err := foresee.NewTemplate(ctx, foresee.Work{Worker: &a.worker, Options: &o.run.Options}, with, o.TemplateOptions)
	if err != nil {
		return session.UsageCode(err), err
	}
	defer t.Close()
	printed := t.Write(ctx, a.env.Stdout)
	a.sum(fmt.Sprintf("%d rendered, %d failed, %d skipped", t.Rendered, t.Failed, t.Skipped))
	return a.conclude(ctx, &o.run, a.worker.Report(t.Objects), nil, t.Code, printed)
}
