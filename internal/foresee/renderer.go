package foresee

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

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/helm"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
	"github.com/helmsrc/helmsrc/internal/values"
)

// HelmOptions select the helm program and its options.
type HelmOptions struct {
	Program     string // "" for the one in the PATH
	Time        time.Duration
	Memory      int64 // in bytes
	KubeVersion string
	APIVersions []string
	Closed      bool // warn if helm can use the network of this machine
}

// maxRendered is the limit, in bytes, of a rendered release. etcd takes at most 1.5 MiB for an object, and Helm at most 1 MiB,
// compressed, for a release.
const maxRendered = 64 << 20

// A Renderer renders releases with the installed helm.
type Renderer struct {
	o       *HelmOptions
	tool    *helm.Tool
	temp    store.Scratch
	console *console.Console
}

// NewRenderer finds the helm program. helm runs with an empty home directory, which Close removes.
func NewRenderer(ctx context.Context, w *session.Worker, o *HelmOptions) (*Renderer, error) {
	t := &Renderer{o: o, console: w.Console}
	err := t.find(ctx, w.Edges.Getenv)
	if err != nil {
		t.Close()
	}
	return t, err
}

// Close removes the directory of helm.
func (t *Renderer) Close() {
	if err := t.temp.Close(); err != nil {
		t.console.Debug(console.Subject{}, err.Error())
	}
}

func (t *Renderer) find(ctx context.Context, getenv func(string) string) error {
	dir, err := t.temp.Dir()
	if err != nil {
		return err
	}
	home := filepath.Join(dir, "helm")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	var keep []string
	for _, name := range []string{"SystemRoot", "SYSTEMROOT"} { // Windows programs need it to start
		if value := getenv(name); value != "" {
			keep = append(keep, name+"="+value)
		}
	}
	t.tool, err = helm.Find(ctx, helm.Options{
		Name: t.o.Program, Path: getenv("PATH"), Home: home, Keep: keep,
		Limits: helm.Limits{Time: t.o.Time, Memory: t.o.Memory, Output: maxRendered},
	})
	var unusable *helm.UnusableError
	if errors.As(err, &unusable) {
		return &exit.UsageError{Err: err, Advice: unusable.Advice}
	}
	if err != nil {
		return err
	}
	t.console.Debug(console.Subject{}, "helm "+t.tool.Version)
	const networked = "helm can use the network of this machine: no namespace without network could be created"
	switch {
	case t.tool.Networked() && t.o.Closed:
		t.console.Warn(networked)
	case t.tool.Networked():
		t.console.Debug(console.Subject{}, networked)
	}
	return nil
}

// render runs helm and changes the output as helm-controller does when it installs or upgrades the release. Each call needs
// its own name.
func (t *Renderer) render(ctx context.Context, name string, r *Release, upgrade bool) (done render.Installed, err error) {
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
	// A chart may print a part of a Secret's value, in messages too.
	t.console.Secrets().Add(r.whole.origins.Confidential(r.whole.values)...)
	release.Chart, release.Values, release.KubeVersion, release.APIVersions = archive, text.Bytes(), t.o.KubeVersion, t.o.APIVersions
	release.Integers = values.Integers(r.whole.values)
	manifests, err := t.tool.Template(ctx, release)
	if err = errors.Join(err, os.Remove(archive)); err != nil {
		return done, err
	}
	if r.operated != nil { // the operator has no post renderers, and sets no labels
		done.Objects, err = render.InNamespace(manifests, release.Namespace)
		return done, err
	}
	noHooks := r.hr.GetInstall().DisableHooks
	if upgrade {
		noHooks = r.hr.GetUpgrade().DisableHooks
	}
	done, err = render.PostRender(ctx, render.Release{HelmRelease: r.hr, CRDs: crds, Manifests: manifests, Trimmed: t.tool.Trims, NoHooks: noHooks, NoTests: !r.hr.GetTest().Enable})
	if !upgrade && r.hr.GetInstall().CRDs == helmv2.Skip {
		done.CRDs, done.Left = nil, nil
	}
	return done, err
}

// warn reports objects that would not be installed.
func (t *Renderer) warn(r *Release, done render.Installed) {
	for _, object := range done.Left {
		t.console.Warn(fmt.Sprintf("%s: %s in the directory crds is not a CustomResourceDefinition, and is not applied", r.Object, object))
	}
}

// helmRelease returns the options in the spec for rendering the chart.
func (r *Release) helmRelease(upgrade bool) helm.Release {
	release := helm.Release{Name: r.Fact.Target.Name, Namespace: r.Fact.Target.Namespace, Upgrade: upgrade}
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
func writeArchive(name string, r *Release, release helm.Release) ([][]byte, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	crds, err := reconcile.WriteChart(f, r.Store, r.Artifact, r.Fact.Chart.Version, !release.NoSchema)
	return crds, errors.Join(err, f.Close())
}

// notRendered returns the finding for a release that cannot be rendered, with the place in the chart.
func notRendered(r *Release, err error) (f finding.Finding, code int) {
	var failed *helm.Error
	var limit *helm.LimitError
	var name *helm.NameError
	path, hint := r.chartField(), ""
	message := "cannot be rendered: " + err.Error()
	switch {
	case errors.As(err, &failed) && failed.File != "":
		message = fmt.Sprintf("%s cannot be rendered: %s: %s", r.Fact.Chart, pathInChart(failed), failed.Text)
	case errors.As(err, &failed):
		message = fmt.Sprintf("%s cannot be rendered: %s", r.Fact.Chart, failed.Text)
	case errors.As(err, &limit):
		hint = limit.Advice
	case errors.As(err, &name):
		hint = name.Advice
	}
	code = exit.Failed
	if c := exit.CodeOf(err); c == exit.Interrupted || c == exit.Transient {
		code = c
	}
	what := finding.NotRendered
	if finding.CodeOf(err) == finding.SchemaReference {
		what, hint = finding.SchemaReference, "" // the hint is in the catalogue
	}
	return validate.New(r.Object, what, message, hint, r.Object.Excerpt(path...)), code
}

// fail reports a release that cannot be rendered. It returns the error with its exit code.
func (t *Renderer) fail(r *Release, err error) (code int, failed error) {
	f, code := notRendered(r, err)
	t.console.ReportAs(f, console.Presentation{At: console.ObjectSubject(r.Object)})
	return code, errors.New(f.Message)
}

var errNotFetched = errors.New("its chart was not fetched")

func pathInChart(e *helm.Error) string {
	if e.Line == 0 {
		return e.File
	}
	return e.File + ":" + strconv.Itoa(e.Line)
}
