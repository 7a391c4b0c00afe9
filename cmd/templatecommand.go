package cmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/store"

	"github.com/helmsrc/helmsrc/internal/session"
)

// templateOptions are the flags of template.
type templateOptions struct {
	run         runOptions
	helm        helmOptions
	showSecrets bool
	strict      bool
}

func newTemplateCommand(a *app) *cobra.Command {
	o := &templateOptions{}
	c := &cobra.Command{
		GroupID: groupCharts,
		Use:     "template -f FILE... [[HelmRelease/][NAMESPACE/]NAME...]",
		Short:   "Render HelmReleases as helm-controller would install them",
		Long: `Fetch the charts of the selected HelmReleases, compose their values, and render them
with the helm that is installed (3 or 4): with the name and namespace that the release
would have, CRDs as spec.install.crds says, and hooks. Then come post renderers, common
metadata and labels, as helm-controller applies them. What stdout gets is ready for
kubeconform, kubectl diff or a policy checker. HelmReleases of Flux 1 are rendered as their
Helm Operator would have Helm install them.

helm runs with limits of time and memory, with an empty home, and without a cluster.
Values of Secrets and the data of rendered Secrets are hidden. A release with values of a
Secret that is not in the input fails; --missing-secrets=anonymous leaves them out, with
a warning.

Exit codes: those of fetch; 1 also if a chart cannot be rendered, 2 also if there is
no helm.`,
		Example: `  helmsrc template -f helmrelease.yaml > rendered.yaml
  helmsrc template -R -f clusters/production app --kube-version 1.33`,
	}
	fs := c.Flags()
	o.helm.add(fs)
	fs.BoolVar(&o.showSecrets, "show-secrets", false, "print the values of Secrets")
	fs.BoolVar(&o.strict, "strict", false, "fail where values of a Secret were left out")
	o.run.input.add(fs)
	o.run.input.addShard(fs)
	o.run.input.addLookup(fs)
	o.run.report.addBilled(fs)
	o.run.store.addDir(fs)
	o.run.store.addWriting(fs)
	o.run.fetch.add(fs)
	o.run.lock.add(fs)
	o.run.trust.add(fs)
	o.run.addImages(fs, "rendered manifests name, and charts in the annotation "+imagesAnnotation)
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := o.run.fetch.check(); err != nil {
			return exit.Usage, err
		}
		if err := o.helm.check(); err != nil {
			return exit.Usage, err
		}
		if err := o.run.report.check(true); err != nil {
			return exit.Usage, err
		}
		if err := o.run.checkImages(); err != nil {
			return exit.Usage, err
		}
		if err := errors.Join(o.run.checkUntrusted(), o.run.checkLocked()); err != nil {
			return exit.Usage, err
		}
		if err := o.run.input.checkShard(a); err != nil {
			return exit.Usage, err
		}
		return a.template(ctx, o, args)
	})
	return c
}

func (a *app) template(ctx context.Context, o *templateOptions, args []string) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.run.fetch.timeout, reconcile.Timeout("--timeout", o.run.fetch.timeout))
	defer cancel()
	var temp store.Scratch
	defer a.closeScratch(&temp)
	with, err := a.newRenderer(ctx, &o.helm, &temp, o.run.input.Untrusted || o.run.fetch.cache.offline)
	if err != nil {
		return usageCode(err), err
	}
	o.run.input.render.sources = o.run.fetch.sources
	inputs, err := a.readClusters(ctx, &o.run.input, args, o.run.store.dir)
	if err != nil {
		return exit.Usage, err
	}
	inputs = withoutLoose(inputs)
	if err := o.run.input.checkSelectors(ctx, inputs[0].Selectors, inputs...); err != nil {
		return exit.Usage, err
	}
	a.reportFlux1(inputs...)
	shared, err := a.openSession(ctx, &o.run)
	if err != nil {
		return exit.Usage, err
	}
	defer shared.Close()
	planned := &planOptions{run: o.run, shared: shared}
	if err := a.readLock(ctx, planned); err != nil {
		return exit.Usage, err
	}
	side, err := a.newSide(planned, inputs, nil)
	defer side.close()
	if err != nil {
		return exit.Usage, err
	}
	if len(side.releases) == 0 && !o.run.input.allowEmpty && o.run.input.Shard.Count < 2 {
		return exit.Usage, &exit.UsageError{Err: fmt.Errorf("no HelmRelease is selected: %s", inputs[0].Kinds())}
	}
	root, err := a.openStore(&o.run.store)
	if err != nil {
		return exit.Usage, err
	}
	side.stores = append(side.stores, root)
	t := &templating{app: a, o: o, renderer: with, side: side, code: side.code}
	if err := a.each(inputs, func(in *load.Input) error { return t.fetch(ctx, in, root) }); err != nil {
		return usageCode(err), err
	}
	printed := t.renderAll(ctx)
	elapsed := a.env.Now().Sub(a.started).Round(100 * time.Millisecond)
	a.console.Info(console.Subject{}, fmt.Sprintf("%d rendered, %d failed, %d skipped in %.1fs", t.rendered, t.failed, t.skipped, elapsed.Seconds()))
	code := t.code
	if o.run.input.exitZero && code != exit.Interrupted && code != exit.Usage {
		code = exit.OK
	}
	code = a.report(ctx, &o.run.report, a.newReport(t.objects), nil, code)
	if printed != nil {
		return code, fmt.Errorf("stdout: %w", printed)
	}
	return code, nil
}

func (a *app) closeScratch(temp *store.Scratch) {
	if err := temp.Close(); err != nil {
		a.console.Debug(console.Subject{}, err.Error())
	}
}

// usageCode is the exit code of an error that ends a run before it begins.
func usageCode(err error) int {
	if code := exit.CodeOf(err); code != exit.Failed {
		return code
	}
	return exit.Usage
}

// templating renders the releases of one input.
type templating struct {
	*renderer
	app  *app
	o    *templateOptions
	side *planSide

	objects                   []report.Object
	rendered, failed, skipped int
	code                      int
}

// fetch fetches the charts of a cluster into the artifacts directory.
func (t *templating) fetch(ctx context.Context, in *load.Input, root *store.Store) error {
	st, err := t.app.storeOf(in.Cluster, &t.o.run.store, root)
	if err != nil {
		return err
	}
	if st != root {
		t.side.stores = append(t.side.stores, st)
	}
	if err := t.o.run.writable(st); err != nil {
		return err
	}
	if err := st.Load(); err != nil {
		return &exit.UsageError{Err: err}
	}
	var releases []*foreseen
	for _, r := range t.side.releases {
		if r.in == in && r.fact.Blocked == "" && !r.fact.Suspended {
			releases = append(releases, r)
		}
	}
	if len(releases) == 0 && in.Cluster != "" {
		return nil
	}
	err = t.side.reconcile(ctx, in, releases, st, false)
	t.code = exit.Worst(t.code, t.side.failed) // a chart that fails may have an artifact of an earlier run
	return err
}

// renderAll renders the releases in the order of the input. The error is that of stdout.
func (t *templating) renderAll(ctx context.Context) error {
	defer t.app.console.Unite()
	defer t.app.console.In("")
	for i, r := range t.side.releases {
		t.app.console.In(r.in.Cluster)
		o := session.NewReportObject(r.obj)
		o.Cluster = r.in.Cluster
		o.State = report.StateResolved
		text, err := t.one(ctx, i, r)
		switch {
		case r.fact.Suspended:
			t.skipped++
			o.State = report.StateSuspended
			t.app.console.Info(console.ObjectSubject(r.obj), "suspended, left as it is")
		case err != nil:
			t.failed++
			o.State, o.Message = report.StateFailed, err.Error()
		default:
			t.rendered++
			if o.Component, err = t.component(r, text); err != nil {
				t.app.console.Fail(fmt.Errorf("%s: %w", r.obj, err))
				t.code = exit.Worst(t.code, exit.Failed)
			}
			if r.in.Cluster != "" {
				text = fmt.Appendf(nil, "# Cluster: %s\n%s", r.in.Cluster, text)
			}
			if _, err := t.app.env.Stdout.Write(text); err != nil {
				return err
			}
		}
		if r.fact.Chart != nil {
			o.Version, o.Digest = r.fact.Chart.Version, r.fact.Chart.Digest
		}
		t.objects = append(t.objects, o)
	}
	return nil
}

// one renders a release. What is wrong with it is reported.
func (t *templating) one(ctx context.Context, i int, r *foreseen) ([]byte, error) {
	id := r.fact.ID
	switch {
	case r.fact.Suspended:
		return nil, nil
	case r.fact.Blocked != "":
		code := t.side.codes[id]
		if code == exit.OK {
			code = exit.Failed
		}
		t.code = exit.Worst(t.code, code)
		return nil, errors.New(r.fact.Blocked)
	case r.artifact == "":
		return nil, t.fail(r, errors.New("its chart was not fetched"))
	}
	if t.o.strict && len(r.fact.Assumed) > 0 { // which is a warning of the fetch
		t.code = exit.Worst(t.code, exit.Failed)
	}
	done, err := t.render(ctx, strconv.Itoa(i), r, false)
	if err != nil {
		return nil, t.fail(r, err)
	}
	t.warn(r, done)
	text := append(done.CRDs, done.Objects...)
	if !t.o.showSecrets {
		text = t.app.hideSecrets(text, r.shortSecrets())
	}
	return text, nil
}

// fail reports a release that cannot be rendered.
func (t *templating) fail(r *foreseen, err error) error {
	f, code := notRendered(r, err)
	t.code = exit.Worst(t.code, code)
	t.app.console.ReportAs(f, console.Presentation{At: console.ObjectSubject(r.obj)})
	return errors.New(f.Message)
}
