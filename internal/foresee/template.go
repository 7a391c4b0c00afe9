package foresee

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
)

// TemplateOptions select the output of rendered releases.
type TemplateOptions struct {
	ShowSecrets bool
	Strict      bool // a release whose Secrets for values are missing is a failure
	// Describe returns the component for a rendered release in reports, nil for no component.
	Describe func(r *Release, manifests []byte) (*report.Component, error)
}

// A Template renders the releases of manifests.
type Template struct {
	*Renderer
	o      TemplateOptions
	shared *session.Session
	side   *Side

	Objects                   []report.Object
	Rendered, Failed, Skipped int
	Code                      int
}

// NewTemplate reads the manifests and fetches the charts of their HelmReleases into the artifacts directory. The caller closes
// the template.
func NewTemplate(ctx context.Context, w Work, with *Renderer, o TemplateOptions) (*Template, error) {
	t := &Template{Renderer: with, o: o}
	if err := t.read(ctx, w); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Template) read(ctx context.Context, w Work) error {
	inputs, err := w.Worker.Inputs(ctx, w.Options.Load)
	if err != nil {
		return err
	}
	inputs = load.WithoutLoose(inputs)
	if err := load.CheckSelectors(inputs); err != nil {
		return err
	}
	w.Worker.ReportFlux1(inputs...)
	if w.Shared, err = w.Worker.Open(ctx, w.Options); err != nil {
		return err
	}
	t.shared = w.Shared
	if w.Locked, err = w.Shared.Lock(ctx); err != nil {
		return err
	}
	if t.side, err = w.Side(inputs); err != nil {
		return err
	}
	if len(t.side.Releases) == 0 && !w.Options.Load.AllowEmpty && w.Options.Load.Shard.Count < 2 {
		return &exit.UsageError{Err: fmt.Errorf("no HelmRelease is selected: %s", inputs[0].Kinds())}
	}
	root, err := w.Worker.Artifacts(&w.Options.Store)
	if err != nil {
		return err
	}
	t.side.stores, t.Code = append(t.side.stores, root), t.side.Code
	return w.Worker.Each(inputs, func(in *load.Input) error { return t.fetch(ctx, in, root) })
}

// Close closes the side and the session.
func (t *Template) Close() {
	t.side.Close()
	if t.shared != nil {
		t.shared.Close()
	}
}

// fetch fetches the charts of a cluster into the artifacts directory.
func (t *Template) fetch(ctx context.Context, in *load.Input, root *store.Store) error {
	st, err := t.side.Worker.ArtifactsOf(in.Cluster, &t.side.Options.Store, root)
	if err != nil {
		return err
	}
	if st != root {
		t.side.stores = append(t.side.stores, st)
	}
	if err := session.Writable(st); err != nil {
		return err
	}
	if err := st.Load(); err != nil {
		return &exit.UsageError{Err: err}
	}
	releases := t.side.active(in)
	if len(releases) == 0 && in.Cluster != "" {
		return nil
	}
	err = t.side.reconcile(ctx, in, releases, st, false)
	t.Code = exit.Worst(t.Code, t.side.failed) // a failed chart may have an artifact of an earlier run
	return err
}

// Write writes the rendered releases in the order of the input. The error is that of the writer.
func (t *Template) Write(ctx context.Context, to io.Writer) error {
	defer t.console.Unite()
	defer t.console.In("")
	cluster := "" // that the printed text is about
	for i, r := range t.side.Releases {
		t.console.In(r.In.Cluster)
		o := session.NewReportObject(r.Object)
		o.Cluster = r.In.Cluster
		o.State = report.StateResolved
		text, err := t.one(ctx, i, r)
		switch {
		case r.Fact.Suspended:
			t.Skipped++
			o.State = report.StateSuspended
			t.console.Info(console.ObjectSubject(r.Object), "suspended, left as it is")
		case err != nil:
			t.Failed++
			o.State, o.Message = report.StateFailed, err.Error()
		default:
			t.Rendered++
			if o.Component, err = t.o.Describe(r, text); err != nil {
				t.console.Fail(fmt.Errorf("%s: %w", r.Object, err))
				t.Code = exit.Worst(t.Code, exit.Failed)
			}
			if r.In.Cluster != cluster && len(text) > 0 {
				cluster = r.In.Cluster
				text = fmt.Appendf(nil, "# Cluster: %s\n%s", cluster, text)
			}
			if _, err := to.Write(text); err != nil {
				return err
			}
		}
		if r.Fact.Chart != nil {
			o.Version, o.Digest = r.Fact.Chart.Version, r.Fact.Chart.Digest
		}
		t.Objects = append(t.Objects, o)
	}
	return nil
}

// one renders a release, and reports errors.
func (t *Template) one(ctx context.Context, i int, r *Release) ([]byte, error) {
	switch {
	case r.Fact.Suspended:
		return nil, nil
	case r.Fact.Blocked != "":
		t.Code = exit.Worst(t.Code, cmp.Or(t.side.codes[r.Fact.ID], exit.Failed))
		return nil, errors.New(r.Fact.Blocked)
	case r.Artifact == "":
		return nil, t.fail(r, errNotFetched)
	}
	if t.o.Strict && len(r.Fact.Assumed) > 0 { // the fetch warned of it
		t.Code = exit.Worst(t.Code, exit.Failed)
	}
	done, err := t.render(ctx, strconv.Itoa(i), r, false)
	if err != nil {
		return nil, t.fail(r, err)
	}
	t.warn(r, done)
	text := append(done.CRDs, done.Objects...)
	if !t.o.ShowSecrets {
		text = t.hideSecrets(text, r.shortSecrets())
	}
	return text, nil
}

// fail reports a release that cannot be rendered.
func (t *Template) fail(r *Release, err error) error {
	code, err := t.Renderer.fail(r, err)
	t.Code = exit.Worst(t.Code, code)
	return err
}
