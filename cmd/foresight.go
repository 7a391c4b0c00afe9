package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/plan"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/values"

	"github.com/helmsrc/helmsrc/internal/session"
)

// foresight is what plan works on: two sides, of which the older may be what was recorded.
type foresight struct {
	app           *app
	o             *planOptions
	against       string
	before, after *planSide
	matched       []plan.Pair
	base          *base
	baseCode      int
	renderCode    int // of what could not be rendered
}

func (f *foresight) close() {
	if f == nil {
		return
	}
	for _, s := range []*planSide{f.before, f.after} {
		if s != nil {
			s.close()
		}
	}
	if f.base != nil {
		f.base.close()
	}
}

// foresee reads both sides, and finds out about the charts that may differ.
func (a *app) foresee(ctx context.Context, o *planOptions, args []string) (*foresight, error) {
	f := &foresight{app: a, o: o}
	given, err := splitArguments(args, len(o.run.input.files) == 0)
	if err != nil {
		return f, err
	}
	o.run.input.render.sources = o.run.fetch.sources
	inputs, err := a.readClusters(ctx, &o.run.input, args, o.run.store.dir)
	if err != nil {
		return f, usageOr(err)
	}
	a.reportFlux1(inputs...)
	if err := a.readLock(ctx, o); err != nil {
		return f, err
	}
	if f.after, err = a.newSide(o, inputs, nil); err != nil {
		return f, err
	}
	switch {
	case o.against == "":
		err = f.recorded(ctx)
	case isLock(o.against):
		err = f.comparedToLock(ctx)
	default:
		err = f.compared(ctx, given)
	}
	return f, err
}

// usageOr makes wrong usage of an error that says no code.
func usageOr(err error) error {
	if exit.CodeOf(err) == exit.Failed {
		return &exit.UsageError{Err: err}
	}
	return err
}

// compared compares the input with earlier manifests.
func (f *foresight) compared(ctx context.Context, given arguments) error {
	a, o := f.app, f.o
	b, err := a.openBase(ctx, o, given)
	if err != nil {
		return err
	}
	f.base, f.against = b, o.against
	options, args, err := b.options(o, given)
	if err != nil {
		return err
	}
	var inputs []*load.Input
	quiet := a.apart(b, false)
	if options != nil {
		options.render.sources = b.sources(o.run.fetch.sources)
		artifacts, _ := b.locate(o.run.store.dir)
		if inputs, err = quiet.readClusters(ctx, options, args, artifacts); err != nil {
			return usageOr(fmt.Errorf("--against %s: %s", o.against, b.rename(err.Error())))
		}
	}
	old := *o
	old.run.fetch.sources = b.sources(o.run.fetch.sources)
	if err := a.takeOldLock(ctx, &old, b); err != nil {
		return err
	}
	if f.before, err = quiet.newSide(&old, inputs, b); err != nil {
		return err
	}
	a.adopt(b, quiet)
	if f.before.code != exit.OK {
		f.baseCode = exit.Usage
	}
	f.before.app = a.apart(b, true)
	f.alignClusters()
	if err := f.checkSelected(ctx); err != nil {
		return err
	}
	return f.match(ctx)
}

// match finds out about the charts that may differ.
func (f *foresight) match(ctx context.Context) error {
	f.matched = plan.Match(f.before.facts(), f.after.facts())
	differs := map[plan.ID]bool{}
	for _, p := range f.matched {
		if p.Differs() || p.Before != nil && p.After != nil && deferred(f.before.of(p.Before), f.after.of(p.After)) {
			differs[p.After.ID] = true
		}
	}
	if err := f.after.resolve(ctx, differs, f.o.files()); err != nil {
		return err
	}
	if err := f.before.resolve(ctx, differs, f.o.files()); err != nil {
		return err
	}
	return f.resolveDigests(ctx)
}

// checkSelected wants each argument to fit an object of one of the sides, and a HelmRelease in one.
func (f *foresight) checkSelected(ctx context.Context) error {
	in := f.after.inputs
	if f.before != nil {
		in = slices.Concat(in, f.before.inputs)
	}
	o := &f.o.run.input
	if err := o.checkSelectors(ctx, f.after.inputs[0].Selectors, in...); err != nil {
		return err
	}
	if o.allowEmpty || len(f.after.releases) > 0 || f.before != nil && len(f.before.releases) > 0 {
		return nil
	}
	if len(f.after.inputs[0].Selectors) > 0 {
		return &exit.UsageError{Err: fmt.Errorf("no HelmRelease is selected: %s", f.after.inputs[0].Kinds())}
	}
	for _, in := range f.after.inputs {
		if slices.ContainsFunc(in.Inventory.Objects(), in.Wanted) {
			return &exit.UsageError{Err: errors.New("there is no HelmRelease: " + in.Kinds()), Advice: "--allow-empty accepts an input without any"}
		}
	}
	return o.nothingSelected(ctx, f.after.inputs[0])
}

// pairs are the releases of both sides, with the values that differ.
func (f *foresight) pairs() []plan.Pair {
	for i := range f.matched {
		p := &f.matched[i]
		if p.Before == nil || p.After == nil || p.Before.ValuesKey == p.After.ValuesKey {
			continue
		}
		before, after := f.before.of(p.Before), f.after.of(p.After)
		old, now := before.composed, after.composed
		if f.after.recorded {
			p.Unrecorded, p.Partial = unrecorded(before, after)
		}
		if f.after.recorded && !p.Partial {
			old, now = before.digested(), after.digested()
		}
		p.Values, p.Omitted = differentValues(before, after, old, now)
	}
	return f.matched
}

// differentValues are the paths at which values of two sides differ.
func differentValues(before, after *foreseen, old, now map[string]any) (fields []plan.Field, omitted int) {
	return plan.Values(old, now, func(old bool, path []plan.Step) bool {
		if old {
			return before.secret(path)
		}
		return after.secret(path)
	})
}

// code is the exit code of what was found on the way, and of what is blocked.
func (f *foresight) code(p *plan.Plan) int {
	code := exit.Worst(exit.Worst(f.after.code, f.baseCode), f.renderCode)
	for i := range p.Changes {
		if p.Changes[i].Action == plan.Blocked {
			code = exit.Worst(code, cmp.Or(f.after.codes[f.matched[i].After.ID], exit.Failed))
		}
	}
	return code
}

// objects are the HelmReleases of the input, for reports.
func (f *foresight) objects(p *plan.Plan) []report.Object {
	var objects []report.Object
	for i := range p.Changes {
		if f.matched[i].After == nil {
			continue
		}
		c, r := &p.Changes[i], f.after.of(f.matched[i].After)
		o := session.NewReportObject(r.obj)
		o.Message = strings.Join(c.Texts(), "; ")
		switch {
		case c.Action == plan.Blocked:
			o.State = report.StateFailed
		case f.matched[i].After.Suspended:
			o.State = report.StateSuspended
		}
		if c.After != nil {
			o.Version, o.Digest = c.After.Version, c.After.Digest
		}
		objects = append(objects, o)
	}
	return objects
}

// alignClusters gives a cluster that is the only one of its side the name that it has on the other.
func (f *foresight) alignClusters() {
	if len(f.before.names()) == 1 && len(f.after.names()) > 1 {
		f.before.callAs(f.after)
	} else if len(f.after.names()) == 1 && len(f.before.names()) > 1 {
		f.after.callAs(f.before)
	}
}

// secret reports whether the value at a path may come from a Secret.
func (r *foreseen) secret(path []plan.Step) bool {
	return r.origins != nil && r.origins.OfSecret(valueAt(r.composed, path), path...)
}

func valueAt(v any, path []plan.Step) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// foreseen is a HelmRelease of one side.
type foreseen struct {
	in       *load.Input
	obj      *manifest.Object
	fact     *plan.Release
	source   string         // KIND/NAMESPACE/NAME of what the chart comes from in the end
	made     map[string]any // the spec of its HelmChart
	quick    bool           // its chart is known without fetching it
	composed map[string]any
	digests  map[string]any // of values of ConfigMaps, where the older side is what was recorded
	origins  *values.Origins
	whole    *composition        // all values, also where only a part is compared; nil if they are not known
	hr       *helmv2.HelmRelease // nil if it was rejected, and for those of Flux 1

	operated *operator.HelmRelease // of Flux 1, nil if it was rejected
	unread   bool                  // values of it stand in no manifest
	tree     string                // in the store: what its chart of Git is a part of

	url      string       // of the archive
	st       *store.Store // of the artifact
	artifact string
}

// newForeseen is a HelmRelease of which nothing is known but where it is.
func newForeseen(in *load.Input, obj *manifest.Object, cluster string) *foreseen {
	fact := &plan.Release{ID: plan.ID{Cluster: cluster, Kind: kindOf(obj), Namespace: obj.Namespace, Name: obj.Name}}
	if fact.Kind != "" {
		fact.Operated = &plan.Operated{}
	}
	return &foreseen{in: in, obj: obj, fact: fact}
}

// target is a file of a diff.
func (r *foreseen) fileName(name string) string {
	if r.fact.Kind != "" {
		return operatedName(r.fact.ID) + "/" + name
	}
	namespace, called := r.obj.StoredAs()
	return filepath.ToSlash(filepath.Join(namespace, called, name))
}
