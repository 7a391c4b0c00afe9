package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/helm"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
	"github.com/helmsrc/helmsrc/internal/values"
)

// helmOptions say which helm renders, and how.
type helmOptions struct {
	program     string
	time        time.Duration
	memory      byteSize
	kubeVersion string
	apiVersions []string
}

// maxRendered bounds what one release may be rendered to, in bytes. etcd takes no more than 1.5 MiB an object, and Helm no
// release of more than 1 MiB compressed.
const maxRendered = 64 << 20

func (o *helmOptions) add(fs *pflag.FlagSet) {
	o.memory = 1 << 30
	fs.StringVar(&o.program, "helm", "", "helm `program` (default: the one in the PATH)")
	fs.DurationVar(&o.time, "helm-timeout", 30*time.Second, "`limit` of rendering one release")
	fs.Var(&o.memory, "helm-max-memory", "most memory that rendering one release may need, in `bytes` or as a quantity")
	fs.StringVar(&o.kubeVersion, "kube-version", "", "`version` of Kubernetes that charts see (default: that of helm)")
	fs.StringArrayVar(&o.apiVersions, "api-versions", nil, "API `version` or kind that charts see besides those of Kubernetes, as monitoring.coreos.com/v1 (repeatable)")
}

func (o *helmOptions) check() error {
	if o.time <= 0 {
		return exit.Usagef("--helm-timeout must be positive, got %s", o.time)
	}
	return nil
}

// renderer renders releases with the helm that is installed.
type renderer struct {
	o       *helmOptions
	tool    *helm.Tool
	temp    *store.Scratch
	console *console.Console
}

// newRenderer finds the helm to render with. It gets a directory for itself, with nothing in it. In a run that is to keep
// manifests from the network, or stay off it, a helm that has the network is a warning.
func (a *app) newRenderer(ctx context.Context, o *helmOptions, temp *store.Scratch, closed bool) (*renderer, error) {
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
		Name: o.program, Path: a.env.Getenv("PATH"), Home: home, Keep: keep,
		Limits: helm.Limits{Time: o.time, Memory: int64(o.memory), Output: maxRendered},
	})
	var missing *helm.NotFoundError
	var unknown *helm.UnknownError
	switch {
	case errors.As(err, &missing):
		return nil, &exit.UsageError{Err: err, Advice: missing.Hint()}
	case errors.As(err, &unknown):
		return nil, &exit.UsageError{Err: err, Advice: unknown.Hint()}
	case err != nil:
		return nil, err
	}
	a.console.Debug(console.Subject{}, "helm "+tool.Version)
	const networked = "helm runs with the network of this machine: it could not be given a namespace without one"
	switch {
	case tool.Networked() && closed:
		a.console.Warn(networked)
	case tool.Networked():
		a.console.Debug(console.Subject{}, networked)
	}
	return &renderer{o, tool, temp, a.console}, nil
}

// render runs helm, and what helm-controller does to what comes out when it installs or upgrades the release. No other call
// may use the same name.
func (t *renderer) render(ctx context.Context, name string, r *foreseen, upgrade bool) (done render.Installed, err error) {
	dir, err := t.temp.Dir()
	if err != nil {
		return done, err
	}
	archive := filepath.Join(dir, name+".tgz")
	release := r.helmRelease(upgrade)
	crds, err := writeArchive(archive, r, release)
	if err != nil {
		return done, err
	}
	var text bytes.Buffer
	if err := r.whole.origins.Write(&text, r.whole.values, values.WriteOptions{ShowSecrets: true}); err != nil {
		return done, err
	}
	// A chart may write a part of what a Secret holds by itself, in messages too.
	t.console.Secrets().Add(r.whole.origins.Confidential(r.whole.values)...)
	release.Chart, release.Values, release.KubeVersion, release.APIVersions = archive, text.Bytes(), t.o.kubeVersion, t.o.apiVersions
	release.Integers = values.Integers(r.whole.values)
	manifests, err := t.tool.Template(ctx, release)
	if err = errors.Join(err, os.Remove(archive)); err != nil {
		return done, err
	}
	if r.operated != nil { // the operator has no post renderers, and sets no labels
		done.Objects, err = render.InNamespace(ctx, r.obj.String(), manifests, release.Namespace)
		return done, err
	}
	noHooks := r.hr.GetInstall().DisableHooks
	if upgrade {
		noHooks = r.hr.GetUpgrade().DisableHooks
	}
	done, err = render.PostRender(ctx, render.Release{HelmRelease: r.hr, CRDs: crds, Manifests: manifests, NoHooks: noHooks, NoTests: !r.hr.GetTest().Enable})
	if !upgrade && r.hr.GetInstall().CRDs == helmv2.Skip {
		done.CRDs, done.Left = nil, nil
	}
	return done, err
}

// warn says what would not be installed.
func (t *renderer) warn(r *foreseen, done render.Installed) {
	for _, object := range done.Left {
		t.console.Warn(fmt.Sprintf("%s: %s in the directory crds is not a CustomResourceDefinition, and is not applied", r.obj, object))
	}
}

// helmRelease is what the spec says of how the chart is rendered.
func (r *foreseen) helmRelease(upgrade bool) helm.Release {
	release := helm.Release{Name: r.fact.Target.Name, Namespace: r.fact.Target.Namespace, Upgrade: upgrade}
	if hr := r.operated; hr != nil {
		release.CRDs, release.NoTests = !hr.Spec.SkipCRDs, !hr.Spec.Test.Enable
		return release
	}
	release.NoSchema = r.hr.GetInstall().DisableSchemaValidation
	if upgrade {
		release.NoSchema = r.hr.GetUpgrade().DisableSchemaValidation
	}
	return release
}

// writeArchive writes the chart for helm, with the version that helm-controller gives it, and returns its CRDs.
func writeArchive(name string, r *foreseen, release helm.Release) ([][]byte, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	crds, err := reconcile.WriteChart(f, r.st, r.artifact, r.fact.Chart.Version, !release.NoSchema)
	return crds, errors.Join(err, f.Close())
}

// notRendered is what is wrong with a release that cannot be rendered, with the place in the chart.
func notRendered(r *foreseen, err error) (f finding.Finding, code int) {
	var failed *helm.Error
	var limit *helm.LimitError
	var name *helm.NameError
	path, hint := r.chartField(), ""
	message := "cannot be rendered: " + err.Error()
	switch {
	case errors.As(err, &failed) && failed.File != "":
		message = fmt.Sprintf("%s cannot be rendered: %s: %s", r.fact.Chart, pathInChart(failed), failed.Text)
	case errors.As(err, &failed):
		message = fmt.Sprintf("%s cannot be rendered: %s", r.fact.Chart, failed.Text)
	case errors.As(err, &limit):
		hint = limit.Hint()
	case errors.As(err, &name):
		hint = name.Hint()
	}
	code = exit.Failed
	if c := exit.CodeOf(err); c == exit.Interrupted || c == exit.Transient {
		code = c
	}
	what := finding.NotRendered
	if finding.CodeOf(err) == finding.SchemaReference {
		what, hint = finding.SchemaReference, "" // the hint is in the catalogue
	}
	return validate.New(r.obj, what, message, hint, r.obj.Excerpt(path...)), code
}

func pathInChart(e *helm.Error) string {
	if e.Line == 0 {
		return e.File
	}
	return e.File + ":" + strconv.Itoa(e.Line)
}
