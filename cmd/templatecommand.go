package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/helm"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
	"github.com/helmsrc/helmsrc/internal/values"
)

// templateOptions are the flags of template.
type templateOptions struct {
	pass        passOptions
	helm        string
	time        time.Duration
	memory      byteSize
	kubeVersion string
	apiVersions []string
	showSecrets bool
	strict      bool
}

// maxRendered bounds what one release may be rendered to, in bytes. etcd takes no more than 1.5 MiB an object, and Helm no
// release of more than 1 MiB compressed.
const maxRendered = 64 << 20

func newTemplateCommand(a *app) *cobra.Command {
	o := &templateOptions{memory: 1 << 30}
	c := &cobra.Command{
		GroupID: groupCharts,
		Use:     "template -f FILE... [[HelmRelease/][NAMESPACE/]NAME...]",
		Short:   "Render HelmReleases as helm-controller would install them",
		Long: `Fetch the charts of the selected HelmReleases, compose their values, and render them
with the helm that is installed (3 or 4): with the name and namespace that the release
would have, CRDs as spec.install.crds says, and hooks. Then come post renderers, common
metadata and labels, as helm-controller applies them. What stdout gets is ready for
kubeconform, kubectl diff or a policy checker.

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
	fs.StringVar(&o.helm, "helm", "", "helm `program` (default: the one in the PATH)")
	fs.DurationVar(&o.time, "helm-timeout", 30*time.Second, "`limit` of rendering one release")
	fs.Var(&o.memory, "helm-max-memory", "most memory that rendering one release may need, in `bytes` or as a quantity")
	fs.StringVar(&o.kubeVersion, "kube-version", "", "`version` of Kubernetes that charts see (default: that of helm)")
	fs.StringArrayVar(&o.apiVersions, "api-versions", nil, "API `version` or kind that charts see besides those of Kubernetes, as monitoring.coreos.com/v1 (repeatable)")
	fs.BoolVar(&o.showSecrets, "show-secrets", false, "print the values of Secrets")
	fs.BoolVar(&o.strict, "strict", false, "fail where values of a Secret were left out")
	o.pass.input.add(fs)
	o.pass.input.addLookup(fs)
	o.pass.report.add(fs)
	o.pass.store.addDir(fs)
	o.pass.store.addWriting(fs)
	o.pass.fetch.add(fs)
	o.pass.trust.add(fs)
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := o.pass.fetch.check(); err != nil {
			return exitUsage, err
		}
		if o.time <= 0 {
			return exitUsage, usagef("--helm-timeout must be positive, got %s", o.time)
		}
		if err := o.pass.report.check(true); err != nil {
			return exitUsage, err
		}
		if err := o.pass.checkUntrusted(); err != nil {
			return exitUsage, err
		}
		return a.template(ctx, o, args)
	})
	return c
}

func (a *app) template(ctx context.Context, o *templateOptions, args []string) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.pass.fetch.timeout, reconcile.Timeout("--timeout", o.pass.fetch.timeout))
	defer cancel()
	var temp store.Scratch
	defer func() {
		if err := temp.Close(); err != nil {
			a.console.Debug(console.Subject{}, err.Error())
		}
	}()
	tool, err := a.findHelm(ctx, o, &temp)
	if err != nil {
		return usageCode(err), err
	}
	a.console.Debug(console.Subject{}, "helm "+tool.Version)
	o.pass.input.render.sources = o.pass.fetch.sources
	in, err := a.readInput(ctx, &o.pass.input, args, o.pass.store.dir)
	if err != nil {
		return exitUsage, err
	}
	if err := o.pass.input.checkSelectors(ctx, in.selectors, in); err != nil {
		return exitUsage, err
	}
	side, err := a.newSide(&planOptions{pass: o.pass}, []*input{in}, nil)
	defer side.close()
	if err != nil {
		return exitUsage, err
	}
	if len(side.releases) == 0 && !o.pass.input.allowEmpty {
		return exitUsage, &usageError{err: fmt.Errorf("no HelmRelease is selected: %s", in.kinds())}
	}
	t := &templating{app: a, o: o, tool: tool, side: side, code: side.code, temp: &temp}
	if err := t.fetch(ctx, in); err != nil {
		return usageCode(err), err
	}
	printed := t.renderAll(ctx)
	elapsed := a.env.Now().Sub(a.started).Round(100 * time.Millisecond)
	a.console.Info(console.Subject{}, fmt.Sprintf("%d rendered, %d failed, %d skipped in %.1fs", t.rendered, t.failed, t.skipped, elapsed.Seconds()))
	code := t.code
	if o.pass.input.exitZero && code != exitInterrupted && code != exitUsage {
		code = exitOK
	}
	code = a.report(ctx, &o.pass.report, a.newReport(t.objects), nil, code)
	if printed != nil {
		return code, fmt.Errorf("stdout: %w", printed)
	}
	return code, nil
}

// usageCode is the exit code of an error that ends a run before it begins.
func usageCode(err error) int {
	if code := codeOfFailure(err); code != exitFailed {
		return code
	}
	return exitUsage
}

// findHelm finds the helm to render with. It gets a directory for itself, with nothing in it.
func (a *app) findHelm(ctx context.Context, o *templateOptions, temp *store.Scratch) (*helm.Tool, error) {
	dir, err := temp.Dir()
	if err != nil {
		return nil, err
	}
	home := filepath.Join(dir, "helm")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	var keep []string
	for _, name := range []string{"SystemRoot", "SYSTEMROOT"} { // Windows programs do not start without
		if value := a.env.Getenv(name); value != "" {
			keep = append(keep, name+"="+value)
		}
	}
	tool, err := helm.Find(ctx, helm.Options{
		Name: o.helm, Path: a.env.Getenv("PATH"), Home: home, Keep: keep,
		Limits: helm.Limits{Time: o.time, Memory: int64(o.memory), Output: maxRendered},
	})
	var missing *helm.NotFoundError
	var unknown *helm.UnknownError
	switch {
	case errors.As(err, &missing):
		return nil, &usageError{err: err, hint: missing.Hint()}
	case errors.As(err, &unknown):
		return nil, &usageError{err: err, hint: unknown.Hint()}
	}
	return tool, err
}

// templating renders the releases of one input.
type templating struct {
	app  *app
	o    *templateOptions
	tool *helm.Tool
	side *planSide
	temp *store.Scratch

	objects                   []report.Object
	rendered, failed, skipped int
	code                      int
}

// fetch fetches the charts into the artifacts directory.
func (t *templating) fetch(ctx context.Context, in *input) error {
	st, err := t.app.openStore(&t.o.pass.store)
	if err != nil {
		return err
	}
	t.side.stores = append(t.side.stores, st)
	if err := t.o.pass.writable(st); err != nil {
		return err
	}
	if err := st.Load(); err != nil {
		return &usageError{err: err}
	}
	var releases []*foreseen
	for _, r := range t.side.releases {
		if r.fact.Blocked == "" && !r.fact.Suspended {
			releases = append(releases, r)
		}
	}
	return t.side.reconcile(ctx, in, releases, st, false)
}

// renderAll renders the releases in the order of the input. The error is that of stdout.
func (t *templating) renderAll(ctx context.Context) error {
	for i, r := range t.side.releases {
		o := newReportObject(r.obj)
		o.State = report.StateResolved
		text, err := t.one(ctx, i, r)
		switch {
		case r.fact.Suspended:
			t.skipped++
			o.State = report.StateSuspended
			t.app.console.Info(subjectOf(r.obj), "suspended, left as it is")
		case err != nil:
			t.failed++
			o.State, o.Message = report.StateFailed, err.Error()
		default:
			t.rendered++
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
		if code == exitOK {
			code = exitFailed
		}
		t.code = worst(t.code, code)
		return nil, errors.New(r.fact.Blocked)
	case r.artifact == "":
		return nil, t.fail(r, errors.New("its chart was not fetched"))
	}
	if t.o.strict && len(r.fact.Assumed) > 0 { // which is a warning of the fetch
		t.code = worst(t.code, exitFailed)
	}
	text, err := t.render(ctx, strconv.Itoa(i), r)
	if err != nil {
		return nil, t.fail(r, err)
	}
	if !t.o.showSecrets {
		text = t.app.hideSecrets(text)
	}
	return text, nil
}

// fail reports a release that cannot be rendered, with the place in the chart.
func (t *templating) fail(r *foreseen, err error) error {
	var failed *helm.Error
	var limit *helm.LimitError
	path, hint := []any{"spec"}, ""
	if r.hr.Spec.Chart != nil {
		path = []any{"spec", "chart", "spec", "chart"}
	}
	message := "cannot be rendered: " + err.Error()
	switch {
	case errors.As(err, &failed) && failed.File != "":
		message = fmt.Sprintf("%s cannot be rendered: %s: %s", r.fact.Chart, placeInChart(failed), failed.Text)
	case errors.As(err, &failed):
		message = fmt.Sprintf("%s cannot be rendered: %s", r.fact.Chart, failed.Text)
	case errors.As(err, &limit):
		hint = limit.Hint()
	}
	code := exitFailed
	if c := codeOfFailure(err); c == exitInterrupted || c == exitTransient {
		code = c
	}
	t.code = worst(t.code, code)
	f := validate.New(r.obj, finding.NotRendered, message, hint, r.obj.Excerpt(path...))
	t.app.console.ReportAs(f, console.Presentation{At: subjectOf(r.obj)})
	return errors.New(message)
}

func placeInChart(e *helm.Error) string {
	if e.Line == 0 {
		return e.File
	}
	return e.File + ":" + strconv.Itoa(e.Line)
}

// render runs helm, and what helm-controller does to what comes out.
func (t *templating) render(ctx context.Context, name string, r *foreseen) ([]byte, error) {
	dir, err := t.temp.Dir()
	if err != nil {
		return nil, err
	}
	archive := filepath.Join(dir, name+".tgz")
	if err := writeArchive(archive, r); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	origins := r.origins
	if err := origins.Write(&text, r.composed, values.WriteOptions{ShowSecrets: true}); err != nil {
		return nil, err
	}
	file, err := t.tool.WriteValues(name+".yaml", text.Bytes())
	if err != nil {
		return nil, err
	}
	hr := r.hr
	manifests, err := t.tool.Template(ctx, helm.Release{
		Name: r.fact.Target.Name, Namespace: r.fact.Target.Namespace, Chart: archive, Values: file,
		CRDs:    !hr.GetInstall().SkipCRDs && hr.GetInstall().CRDs != helmv2.Skip,
		NoHooks: hr.GetInstall().DisableHooks, NoTests: !hr.GetTest().Enable, NoSchema: hr.GetInstall().DisableSchemaValidation,
		KubeVersion: t.o.kubeVersion, APIVersions: t.o.apiVersions,
	})
	err = errors.Join(err, os.Remove(file), os.Remove(archive))
	if err != nil {
		return nil, err
	}
	return render.PostRender(ctx, hr, manifests)
}

// writeArchive writes the chart for helm, with the version that helm-controller gives it.
func writeArchive(name string, r *foreseen) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(reconcile.WriteChart(f, r.st, r.artifact, r.fact.Chart.Version), f.Close())
}

// hideSecrets hides what Secrets hold, those of the input and those that were rendered.
func (a *app) hideSecrets(manifests []byte) []byte {
	documents := strings.Split(string(manifests), "\n---\n")
	for i, document := range documents {
		if !strings.Contains("\n"+document, "\nkind: Secret\n") {
			continue
		}
		var object map[string]any
		if err := yaml.Unmarshal([]byte(strings.TrimPrefix(document, "---\n")), &object); err != nil {
			documents[i] = "# a Secret that cannot be shown"
			continue
		}
		for _, field := range []string{"data", "stringData"} {
			data, _ := object[field].(map[string]any)
			for key := range data {
				data[key] = hiddenData
			}
		}
		text, err := yaml.Marshal(object)
		if err != nil {
			text = []byte("# a Secret that cannot be shown\n")
		}
		documents[i] = strings.TrimSuffix(string(text), "\n")
		if i == 0 {
			documents[i] = "---\n" + documents[i]
		}
	}
	joined := strings.Join(documents, "\n---\n")
	if !strings.HasSuffix(joined, "\n") {
		joined += "\n"
	}
	return []byte(a.console.Secrets().Text(joined))
}

// hiddenData stands for the data of a Secret. It is valid base64, so that checkers take it.
const hiddenData = "UkVEQUNURUQ="
