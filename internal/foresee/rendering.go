package foresee

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/plan"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/values"
)

// composition holds values with their origins.
type composition struct {
	values  map[string]any
	origins *values.Origins
}

// addRendered adds the diffs of rendered manifests to releases that would be installed or upgraded. A release that cannot be
// rendered is reported, and its change notes that. An error of addRendered ends the run.
func (f *Foresight) addRendered(ctx context.Context, p *plan.Plan, with *Renderer) error {
	if err := f.fetchUnchanged(ctx, p); err != nil {
		return err
	}
	for i := range p.Changes {
		c, pair := &p.Changes[i], f.matched[i]
		if !renders(c) {
			continue
		}
		if err := f.addManifests(ctx, c, pair, strconv.Itoa(i), with); err != nil {
			return err
		}
	}
	return nil
}

// fetchUnchanged fetches the unchanged charts of releases that change: a plan sends no request for these.
func (f *Foresight) fetchUnchanged(ctx context.Context, p *plan.Plan) error {
	changing := map[*plan.Release]bool{}
	for i := range p.Changes {
		changing[f.matched[i].After] = renders(&p.Changes[i])
	}
	return f.after.Resolve(ctx, func(r *Release) bool { return changing[r.Fact] && r.Artifact == "" }, true)
}

// renders reports whether a change installs or upgrades a release.
func renders(c *plan.Change) bool { return c.Action == plan.Install || c.Action == plan.Upgrade }

func (f *Foresight) addManifests(ctx context.Context, c *plan.Change, pair plan.Pair, name string, with *Renderer) error {
	after := f.after.Of(pair.After)
	now, err := f.objectsAfter(ctx, after, name, with, c.Action == plan.Upgrade)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.NotRendered(err.Error())
		return nil
	}
	var old *renderedRelease
	short := after.shortSecrets()
	if pair.Before != nil {
		before, why := f.renderable(f.before.Of(pair.Before), after)
		if why == "" {
			short = append(short, before.shortSecrets()...)
			old, why = f.objectsBefore(ctx, before, name+"-before", with, c.Action == plan.Upgrade)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if why != "" {
			c.NotRendered("what it was " + why)
			return nil
		}
	}
	was, is := old.all(), now.upgraded(old, after).all()
	c.Manifests = manifestsOf(was, is, f.o.Strip)
	text, err := f.manifestsDiff(after, short, was, is)
	if err != nil {
		return err
	}
	c.AddDiff("manifests", text)
	if pair.Before != nil {
		c.Rendered(c.Manifests.Differ())
	}
	return nil
}

// objectsAfter renders a release of the input, and reports errors.
func (f *Foresight) objectsAfter(ctx context.Context, r *Release, name string, with *Renderer, upgrade bool) (*renderedRelease, error) {
	code := cmp.Or(f.after.codes[r.Fact.ID], exit.Failed)
	if r.Artifact == "" && r.Fact.Blocked != "" { // reported by the fetch
		f.renderCode = exit.Worst(f.renderCode, code)
		return nil, errors.New("cannot be rendered: " + r.Fact.Blocked)
	}
	if r.Artifact == "" {
		_, err := with.fail(r, errNotFetched)
		f.renderCode = exit.Worst(f.renderCode, code)
		return nil, err
	}
	installed, err := with.render(ctx, name, r, upgrade)
	with.warn(r, installed)
	done, err := newRenderedRelease(installed, err)
	if err != nil && ctx.Err() == nil {
		code, err = with.fail(r, err)
		f.renderCode = exit.Worst(f.renderCode, code)
	}
	return done, err
}

// renderedRelease holds the objects of a release by the names of their files in a diff: the directory crds, and the rest.
type renderedRelease struct{ crds, objects map[string]map[string]any }

func newRenderedRelease(done render.Installed, err error) (*renderedRelease, error) {
	if err != nil {
		return nil, err
	}
	r := &renderedRelease{}
	if r.crds, err = RenderedObjects(done.CRDs); err == nil {
		r.objects, err = RenderedObjects(done.Objects)
	}
	return r, err
}

// all returns the objects and the CRDs.
func (r *renderedRelease) all() map[string]map[string]any {
	all := map[string]map[string]any{}
	if r != nil {
		maps.Copy(all, r.crds)
		maps.Copy(all, r.objects)
	}
	return all
}

// upgraded returns the release with the CRDs that exist after an upgrade from an old one: Helm removes no CRD, and
// spec.upgrade.crds decides whether it creates or replaces them.
func (r *renderedRelease) upgraded(old *renderedRelease, after *Release) *renderedRelease {
	if old == nil || after.hr == nil {
		return r
	}
	crds := map[string]map[string]any{}
	switch after.hr.GetUpgrade().CRDs {
	case helmv2.Skip:
		maps.Copy(crds, old.crds)
	case helmv2.CreateReplace:
		maps.Copy(crds, old.crds)
		maps.Copy(crds, r.crds)
	default:
		maps.Copy(crds, r.crds)
		maps.Copy(crds, old.crds)
	}
	return &renderedRelease{crds, r.objects}
}

// renderable returns the older release with its chart and all of its values, or the reason why they are not known.
func (f *Foresight) renderable(before, after *Release) (r *Release, why string) {
	fact, copied := *before.Fact, *before
	r = &copied
	r.Fact = &fact
	switch {
	case fact.Blocked != "" && before.Artifact == "":
		return nil, "is not known: it was blocked"
	case fact.Suspended:
		return nil, "is not known: it was suspended"
	}
	if r.Artifact == "" && !f.after.recorded && fact.Origin == after.Fact.Origin {
		r.Store, r.Artifact, fact.Chart = after.Store, after.Artifact, after.Fact.Chart
	}
	if r.Artifact == "" {
		return nil, "is not known: its chart was not fetched"
	}
	if r.whole == nil {
		digest, err := values.Digest(r.composed)
		switch {
		case fact.ValuesKey == after.Fact.ValuesKey:
			r.whole = after.whole
		case err == nil && digest.String() == fact.Values:
			r.whole = &composition{r.composed, &values.Origins{}}
		default:
			return nil, finding.ValuesNotKnown
		}
	}
	return r, ""
}

// objectsBefore renders a release of the older side. An error there is a usage error of --against.
func (f *Foresight) objectsBefore(ctx context.Context, r *Release, name string, with *Renderer, upgrade bool) (done *renderedRelease, why string) {
	done, err := newRenderedRelease(with.render(ctx, name, r, upgrade))
	if err == nil && r.hr != nil && r.hr.GetInstall().CRDs == helmv2.Skip {
		done.crds = nil
	}
	if err == nil || ctx.Err() != nil {
		return done, ""
	}
	found, _ := notRendered(r, err)
	why = found.Message
	found.Message, found.Pos, found.Line, found.Related = fmt.Sprintf("in %s: %s", f.against, why), manifest.Pos{}, "", nil
	f.Worker.Console.ReportAs(found, console.Presentation{At: console.ObjectSubject(r.Object)})
	f.baseCode = exit.Usage
	return nil, why
}

// manifestsDiff returns the diff of two sets of objects, with one file for each object.
func (f *Foresight) manifestsDiff(r *Release, short []string, before, after map[string]map[string]any) (string, error) {
	files := [2]map[string][]byte{{}, {}}
	for i, side := range []struct {
		name        string
		shown, with map[string]map[string]any
	}{{"before", before, after}, {"after", after, before}} {
		for name, object := range side.shown {
			text, err := yaml.Marshal(hiding{f.Worker.Console, side.name, short}.object(object, side.with[name]))
			if err != nil {
				return "", fmt.Errorf("cannot print the rendered objects of %s: %w", r.Object, err)
			}
			files[i][r.fileName("manifests/"+name+".yaml")] = text
		}
	}
	return plan.Files(files[0], files[1]), nil
}
