package foresee

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/plan"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/values"
)

// Options select the older side of a comparison and the details of the plan.
type Options struct {
	Against string // a directory, a lock file or a revision; "" for the record of the last fetch
	Diff    bool   // of values and of the files of charts
	// Renderer renders the releases that would be installed or upgraded, nil for no diff of manifests.
	Renderer *Renderer
	Strip    bool // removes from these diffs the changes of every new version of a chart
}

// files reports whether all differing charts must be fetched.
func (o *Options) files() bool { return o.Diff || o.Renderer != nil }

// Foresight holds the two sides of a plan. The older one may be a record.
type Foresight struct {
	Work
	o             Options
	against       string
	before, after *Side
	matched       []plan.Pair
	base          *base
	baseCode      int
	renderCode    int // of releases that could not be rendered
}

// Close closes both sides.
func (f *Foresight) Close() {
	f.before.Close()
	f.after.Close()
	if f.base != nil {
		f.base.close()
	}
}

// Foresee reads both sides and resolves the charts that may differ. The caller closes the foresight.
func Foresee(ctx context.Context, w Work, o Options) (*Foresight, error) {
	f := &Foresight{Work: w, o: o}
	if err := f.read(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Foresight) read(ctx context.Context) error {
	w, against := f.Work, f.o.Against
	if against != "" && !file.Exists(against) { // a revision
		w.Options.Load.SeekClusters()
	}
	inputs, err := w.Worker.Inputs(ctx, w.Options.Load)
	if err != nil {
		return usageOr(err)
	}
	w.Worker.ReportFlux1(inputs...)
	if f.Locked, err = w.Shared.Lock(ctx); err != nil {
		return err
	}
	if f.after, err = f.Side(inputs); err != nil {
		return err
	}
	switch {
	case against == "":
		return f.recorded(ctx)
	case isLock(against):
		return f.comparedToLock(ctx)
	default:
		return f.compared(ctx)
	}
}

// Inputs returns the clusters of the current manifests.
func (f *Foresight) Inputs() []*load.Input { return f.after.Inputs }

// Plan decides the action for each release.
func (f *Foresight) Plan(ctx context.Context) (*plan.Plan, error) {
	f.compareSources(ctx)
	f.reportAssumed()
	p := &plan.Plan{Against: f.against, Changes: plan.Decide(f.veiledPairs(), f.against)}
	if f.o.Diff {
		if err := f.addDiffs(p); err != nil {
			return nil, err
		}
	}
	if f.o.Renderer != nil {
		if err := f.addRendered(ctx, p, f.o.Renderer); err != nil {
			return nil, usageOr(err)
		}
	}
	f.Worker.Console.Unite()
	concealPlan(f.Worker.Console, p, f.base)
	return p, nil
}

// usageOr turns an error without an exit code into a usage error.
func usageOr(err error) error {
	if exit.CodeOf(err) == exit.Failed {
		return &exit.UsageError{Err: err}
	}
	return err
}

// compared compares the input with earlier manifests.
func (f *Foresight) compared(ctx context.Context) error {
	b, err := f.openBase(ctx)
	if err != nil {
		return err
	}
	f.base, f.against = b, f.o.Against
	options, err := b.options(f.Options, f.o.Against)
	if err != nil {
		return err
	}
	old, o := f.Work, *f.Options
	old.Options, o.Load = &o, options
	old.Worker = apart(f.Worker, b, false)
	var inputs []*load.Input
	if options != nil {
		if inputs, err = old.Worker.Inputs(ctx, options); err != nil {
			return usageOr(&exit.UsageError{Option: "against", Value: f.o.Against, Err: errors.New(b.rename(err.Error()))})
		}
	} else {
		o.Load = &load.Options{}
	}
	if old.Locked, err = oldLock(f.Locked, b); err != nil {
		return err
	}
	if f.before, err = old.side(inputs, b); err != nil {
		return err
	}
	adopt(f.Worker, b, old.Worker)
	if f.before.Code != exit.OK {
		f.baseCode = exit.Usage
	}
	f.before.Worker = apart(f.Worker, b, true)
	f.alignClusters()
	if err := f.checkSelected(); err != nil {
		return err
	}
	return f.match(ctx)
}

// match pairs the releases of both sides and resolves the charts that may differ.
func (f *Foresight) match(ctx context.Context) error {
	f.matched = plan.Match(f.before.Facts(), f.after.Facts())
	differs := map[plan.ID]bool{}
	for _, p := range f.matched {
		if p.Differs() || p.Before != nil && p.After != nil && deferred(f.before.Of(p.Before), f.after.Of(p.After)) {
			differs[p.After.ID] = true
		}
	}
	wanted := func(r *Release) bool { return differs[r.Fact.ID] }
	if err := f.after.Resolve(ctx, wanted, f.o.files()); err != nil {
		return err
	}
	if err := f.before.Resolve(ctx, wanted, f.o.files()); err != nil {
		return err
	}
	return f.resolveDigests(ctx)
}

// checkSelected returns an error unless each argument matches an object and there is a HelmRelease, on either side.
func (f *Foresight) checkSelected() error {
	in := f.after.Inputs
	if f.before != nil {
		in = slices.Concat(in, f.before.Inputs)
	}
	if err := load.CheckSelectors(in); err != nil {
		return err
	}
	if f.Options.Load.AllowEmpty || len(f.after.Releases) > 0 || f.before != nil && len(f.before.Releases) > 0 {
		return nil
	}
	if len(f.after.Inputs[0].Selectors) > 0 {
		return &exit.UsageError{Err: fmt.Errorf("no HelmRelease is selected: %s", f.after.Inputs[0].Kinds())}
	}
	for _, in := range f.after.Inputs {
		if slices.ContainsFunc(in.Inventory.Objects(), in.Wanted) {
			return &exit.UsageError{Err: errors.New("there is no HelmRelease: " + in.Kinds()), Advice: finding.AllowEmpty}
		}
	}
	return f.after.Inputs[0].NothingSelected()
}

// pairs returns the matched releases, with the values that differ.
func (f *Foresight) pairs() []plan.Pair {
	for i := range f.matched {
		p := &f.matched[i]
		if p.Before == nil || p.After == nil || p.Before.ValuesKey == p.After.ValuesKey {
			continue
		}
		before, after := f.before.Of(p.Before), f.after.Of(p.After)
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

// DifferentValues returns the paths at which the values of two releases differ.
func DifferentValues(before, after *Release) (fields []plan.Field, omitted int) {
	return differentValues(before, after, before.composed, after.composed)
}

// differentValues returns the paths at which the values of two sides differ.
func differentValues(before, after *Release, old, now map[string]any) (fields []plan.Field, omitted int) {
	return plan.Values(old, now, func(old bool, path []plan.Step) bool {
		if old {
			return before.secret(path)
		}
		return after.secret(path)
	})
}

// Code returns the worst exit code of both sides, the rendering and blocked releases.
func (f *Foresight) Code(p *plan.Plan) int {
	code := exit.Worst(exit.Worst(f.after.Code, f.baseCode), f.renderCode)
	for i := range p.Changes {
		if p.Changes[i].Action == plan.Blocked {
			code = exit.Worst(code, cmp.Or(f.after.codes[f.matched[i].After.ID], exit.Failed))
		}
	}
	return code
}

// Objects returns the HelmReleases of the input for reports.
func (f *Foresight) Objects(p *plan.Plan) []report.Object {
	var objects []report.Object
	for i := range p.Changes {
		if f.matched[i].After == nil {
			continue
		}
		c, r := &p.Changes[i], f.after.Of(f.matched[i].After)
		o := session.NewReportObject(r.Object)
		o.Cluster, o.Message = c.ID.Cluster, strings.Join(c.Texts(), "; ")
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

// alignClusters gives the only cluster of one side the name that it has on the other side: a side names its only cluster if its files
// have others.
func (f *Foresight) alignClusters() {
	before, after := f.before.names(), f.after.names()
	if len(before) == 1 && (len(after) > 1 || before[0] == "") {
		f.before.callAs(f.after)
	} else if len(after) == 1 && (len(before) > 1 || after[0] == "") {
		f.after.callAs(f.before)
	}
}

// secret reports whether the value at a path may come from a Secret.
func (r *Release) secret(path []plan.Step) bool {
	return r.origins != nil && r.origins.OfSecret(manifest.ValueAt(r.composed, path), path...)
}

// A Release is a HelmRelease of one side.
type Release struct {
	In       *load.Input
	Object   *manifest.Object
	Fact     *plan.Release
	source   string         // KIND/NAMESPACE/NAME of the chart's source
	made     map[string]any // the spec of its HelmChart
	Quick    bool           // its chart is known without fetching it
	composed map[string]any
	digests  map[string]any // of values in ConfigMaps, if the older side is a record
	origins  *values.Origins
	whole    *composition        // all values, even if only a part is compared; nil if they are not known
	hr       *helmv2.HelmRelease // nil for a rejected one and for Flux 1

	operated *operator.HelmRelease // of Flux 1, nil for a rejected one
	unread   bool                  // some of its values are not in manifests
	tree     string                // the directory in the store that contains its chart from Git

	URL      string       // of the archive
	Store    *store.Store // of the artifact
	Artifact string
}

// newRelease returns a HelmRelease without facts except its identity.
func newRelease(in *load.Input, obj *manifest.Object, cluster string) *Release {
	fact := &plan.Release{ID: plan.ID{Cluster: cluster, Kind: kindOf(obj), Namespace: obj.Namespace, Name: obj.Name}}
	if fact.Kind != "" {
		fact.Operated = &plan.Operated{}
	}
	return &Release{In: in, Object: obj, Fact: fact}
}

// fileName returns the name of a file of the release in a diff, below its cluster if there are several.
func (r *Release) fileName(name string) string {
	if r.Fact.Kind != "" {
		return path.Join(r.Fact.Cluster, operatedName(r.Fact.ID), name)
	}
	namespace, called := r.Object.StoredAs()
	return path.Join(r.Fact.Cluster, namespace, called, name)
}
