package foresee

import (
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/plan"
)

// veiledPairs returns the pairs as a plan may show them: names, targets, charts and versions from values of Secrets are replaced,
// on both sides alike, so that sentences need not be searched for them.
func (f *Foresight) veiledPairs() []plan.Pair {
	names, targets := map[plan.ID]plan.ID{}, map[string]string{}
	for _, r := range slices.Concat(f.before.Releases, f.after.Releases) {
		if !r.Object.Tainted() {
			continue
		}
		id := r.Fact.ID
		id.Namespace, id.Name = r.Object.StoredAs()
		names[r.Fact.ID] = id
		for _, text := range []string{r.Fact.Target.Name, r.Fact.Target.Namespace, r.Fact.Target.StorageNamespace} {
			if shown := r.Object.VeilOf(text, targetFields()...); shown != text {
				targets[text] = shown
			}
		}
	}
	pairs := slices.Clone(f.pairs())
	for i, p := range pairs {
		sides := []*Release{f.before.Of(p.Before), f.after.Of(p.After)}
		chart := func(text string) string {
			for _, r := range sides {
				if r == nil {
					continue
				}
				if shown := r.Object.VeilOf(text, chartFields()...); shown != text {
					return shown
				}
			}
			return text
		}
		pairs[i].Before, pairs[i].After = veiled(p.Before, names, targets, chart), veiled(p.After, names, targets, chart)
	}
	return pairs
}

// targetFields returns the fields that determine the name and namespaces of a Helm release.
func targetFields() [][]any {
	return [][]any{
		{"spec", "releaseName"}, {"spec", "targetNamespace"}, {"spec", "storageNamespace"}, {"metadata", "name"}, {"metadata", "namespace"},
	}
}

// chartFields returns the fields of a HelmRelease that name its chart.
func chartFields() [][]any { return [][]any{{"spec", "chart"}, {"spec", "chartRef"}} }

// veiled copies a release and replaces the names that must not be shown.
func veiled(r *plan.Release, names map[plan.ID]plan.ID, targets map[string]string, chart func(string) string) *plan.Release {
	if r == nil {
		return nil
	}
	shown := *r
	id := func(id *plan.ID) {
		if other, ok := names[*id]; ok {
			*id = other
		}
	}
	id(&shown.ID)
	shown.DependsOn = slices.Clone(r.DependsOn)
	for i := range shown.DependsOn {
		id(&shown.DependsOn[i])
	}
	for _, text := range []*string{&shown.Target.Name, &shown.Target.Namespace, &shown.Target.StorageNamespace} {
		if other, ok := targets[*text]; ok {
			*text = other
		}
	}
	parts := strings.Split(r.Asked, " ")
	for i := range parts {
		parts[i] = chart(parts[i])
	}
	shown.Asked = strings.Join(parts, " ")
	if r.Chart != nil {
		c := *r.Chart
		c.Name, c.Version = chart(c.Name), chart(c.Version)
		shown.Chart = &c
	}
	if r.Operated != nil {
		o := *r.Operated
		o.Revision = chart(o.Revision)
		shown.Operated = &o
	}
	return &shown
}

// concealPlan removes values of Secrets from a plan, and shows files of a revision by its name.
func concealPlan(out *console.Console, p *plan.Plan, b *base) {
	text := func(s *string) { *s = out.Secrets().Text(auth.RedactText(b.rename(*s))) }
	for i := range p.Changes {
		c := &p.Changes[i]
		for _, s := range []*string{&c.Namespace, &c.Name, &c.Chart} {
			text(s)
		}
		for _, t := range []*plan.Target{c.Release, c.Replaces} {
			if t != nil {
				text(&t.Name)
				text(&t.Namespace)
				text(&t.StorageNamespace)
			}
		}
		for _, chart := range []*plan.Chart{c.Before, c.After} { // copies, see veiled
			if chart != nil {
				concealSource(out, &chart.Source)
				text(&chart.Name)
				text(&chart.Version)
				text(&chart.Digest)
				text(&chart.Source)
			}
		}
		for j := range c.Reasons {
			r := &c.Reasons[j]
			if r.Code == plan.ReasonSource {
				concealSource(out, &r.Before)
				concealSource(out, &r.After)
			}
			text(&r.Text)
			text(&r.Note)
			text(&r.Before)
			text(&r.After)
			for k := range r.Fields {
				text(&r.Fields[k].Path)
			}
		}
		for j := range c.Diffs {
			text(&c.Diffs[j].Text)
		}
		concealManifests(c.Manifests, text)
	}
}

func concealManifests(m *plan.Manifests, text func(*string)) {
	if m == nil {
		return
	}
	for _, names := range [][]string{m.DeletesData, m.Added, m.Changed, m.Removed, m.CRDs} {
		for i := range names {
			text(&names[i])
		}
	}
	for i := range m.Images {
		text(&m.Images[i].Before)
		text(&m.Images[i].After)
	}
}

// concealSource replaces the name of a source, KIND/NAMESPACE/NAME, by the name that other messages show.
func concealSource(out *console.Console, source *string) {
	if parts := strings.Split(*source, "/"); len(parts) == 3 {
		shown := out.Called(console.Subject{Kind: parts[0], Namespace: parts[1], Name: parts[2]})
		*source = strings.Join([]string{shown.Kind, shown.Namespace, shown.Name}, "/")
	}
}
