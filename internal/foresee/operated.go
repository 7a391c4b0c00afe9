package foresee

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/plan"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/validate"
	"github.com/helmsrc/helmsrc/internal/values"
)

// addOperated adds a HelmRelease of Flux 1.
func (s *Side) addOperated(r *Release, adm *admission.Admitted) {
	r.operated = adm.Typed.(*operator.HelmRelease)
	r.describeOperated(adm.Content)
	r.Fact.Kept = keeps(r.In, r.Object)
	if r.Fact.Suspended {
		return
	}
	if _, err := r.In.Inventory.OperatedChart(r.Object); err != nil {
		r.Fact.Blocked = r.Object.ConcealError(err.Error())
	}
	chart := &r.operated.Spec.Chart
	r.Quick = chart.Source() == operator.RepositorySource
	if source := r.In.Inventory.OperatedSource(r.Object); source != nil {
		r.source = source.Kind + "/" + source.Namespace + "/" + source.Name
	}
	s.originOf(r, adm, []any{chart})
	s.operatedValues(r, adm)
}

// describeOperated adds the facts in the spec.
func (r *Release) describeOperated(content map[string]any) {
	hr, f := r.operated, r.Fact
	f.Suspended = hr.Ignored()
	f.Target = plan.Target{Name: hr.GetReleaseName(), Namespace: hr.GetTargetNamespace(), StorageNamespace: hr.GetTargetNamespace()}
	chart := &hr.Spec.Chart
	switch chart.Source() {
	case operator.GitSource:
		f.Operated.Git = true
		f.Asked = chart.Path + " " + chart.RefOr(operator.DefaultRef)
	case operator.RepositorySource:
		f.Asked = chart.Name + " " + chart.Version
	}
	f.Operated.Spec, _ = content["spec"].(map[string]any)
}

// operatedValues composes the values, unless a run must fetch them first: from the chart, or from a URL.
func (s *Side) operatedValues(r *Release, adm *admission.Admitted) {
	if r.Fact.Blocked != "" {
		s.reportInvalid(r, adm)
		return
	}
	if r.unread = validate.Unread(r.operated); !r.unread {
		s.valuesOf(r, adm)
	}
}

// reportInvalid reports the errors of a release that makes no chart.
func (s *Side) reportInvalid(r *Release, adm *admission.Admitted) {
	for _, f := range validate.Object(r.In.Inventory, adm) {
		if f.Severity == finding.Error {
			s.Worker.Console.Report(f)
		}
	}
}

// takeOperated adds the result of a run for a HelmRelease of Flux 1.
func (s *Side) takeOperated(r *Release, result *reconcile.Result, found *reconcile.Planned) {
	if found != nil {
		r.Fact.Operated.Revision, r.tree = found.Revision, found.Tree
	}
	known := result.Composed()
	if !r.unread || known == nil {
		return
	}
	r.composed, r.origins, r.whole = known.Values, known.Origins, &composition{known.Values, known.Origins}
	sum, err := values.Checksum(known.Values)
	if err != nil {
		r.Fact.Blocked = err.Error()
		return
	}
	r.Fact.Values, r.Fact.ValuesKey = sum, sum
}

// rememberStatuses uses the status of a HelmRelease of Flux 1 from a cluster as its record, if it has no record.
func (f *Foresight) rememberStatuses() {
	recorded := map[plan.ID]bool{}
	for _, r := range f.before.Releases {
		recorded[r.Fact.ID] = true
	}
	for _, r := range f.after.Releases {
		if r.operated == nil || recorded[r.Fact.ID] {
			continue
		}
		before := observed(r)
		if before == nil {
			continue
		}
		f.before.Releases = append(f.before.Releases, before)
		r.Fact.Assumed = append(r.Fact.Assumed, "compared with its status: its values are assumed to be those of the release")
	}
}

// observed returns a release as its status describes it, nil if the status is missing.
func observed(after *Release) *Release {
	var given operator.HelmRelease // valid without a status
	text, err := json.Marshal(map[string]any{"metadata": after.Object.Content["metadata"], "status": after.Object.Content["status"]})
	if err != nil || json.Unmarshal(text, &given) != nil || given.Status.ObservedGeneration == 0 {
		return nil
	}
	r := newRelease(after.In, after.Object, after.Fact.Cluster)
	r.operated = after.operated
	r.describeOperated(map[string]any{"spec": after.Fact.Operated.Spec})
	was, o := given.Status, r.Fact.Operated
	given.Spec = after.operated.Spec
	o.FromStatus, o.Revision = true, was.LastAttemptedRevision
	o.Unobserved = given.Generation > was.ObservedGeneration
	o.Retried = given.Retries()
	if was.LastAttemptedRevision != "" && !o.Git {
		r.Fact.Chart = &plan.Chart{Name: after.operated.Spec.Chart.Name, Version: was.LastAttemptedRevision}
	}
	return r
}

// valuesFrom returns the references to values outside of the release.
func (r *Release) valuesFrom() []values.Reference {
	var refs []values.Reference
	switch {
	case r.operated != nil:
		parts, err := r.In.Inventory.OperatedParts(r.operated, inventory.OperatedReaders{})
		if err != nil {
			return nil // the error that blocks it
		}
		for _, p := range parts {
			refs = append(refs, values.Reference{Namespace: p.Namespace, ValuesReference: meta.ValuesReference{Kind: p.Kind, Name: p.Name}})
		}
	case r.hr != nil:
		for _, ref := range r.hr.Spec.ValuesFrom {
			refs = append(refs, values.Reference{Namespace: r.Fact.Namespace, ValuesReference: ref})
		}
	}
	return refs
}

// deferred reports whether values of one of the two are not in manifests and may differ.
func deferred(before, after *Release) bool {
	if !before.unread && !after.unread {
		return false
	}
	return !plan.Same(before.Fact.Operated.Spec, after.Fact.Operated.Spec)
}

// operatedMoved reports that a chart of Flux 1 has its former version but another digest, or comes from another commit: the
// operator compares files.
func (f *Foresight) operatedMoved(r *Release) bool {
	if r.operated == nil || r.Fact.Chart == nil {
		return false
	}
	i := slices.IndexFunc(f.before.Releases, func(before *Release) bool { return before.Fact.ID == r.Fact.ID })
	if i < 0 || f.before.Releases[i].Fact.Chart == nil {
		return false
	}
	old, chart := f.before.Releases[i].Fact, r.Fact.Chart
	if r.Fact.Operated.Git {
		return old.Operated.Revision != r.Fact.Operated.Revision
	}
	return old.Chart.Version == chart.Version && old.Chart.Digest != "" && old.Chart.Digest != chart.Digest
}

// resolveDigests fetches the charts of Flux 1 with equal versions and different digests on both sides.
func (f *Foresight) resolveDigests(ctx context.Context) error {
	differs := map[plan.ID]bool{}
	for _, r := range f.after.Releases {
		if r.Artifact == "" && f.operatedMoved(r) {
			differs[r.Fact.ID] = true
		}
	}
	wanted := func(r *Release) bool { return differs[r.Fact.ID] && r.Artifact == "" }
	if err := f.after.Resolve(ctx, wanted, true); err != nil {
		return err
	}
	return f.before.Resolve(ctx, wanted, true)
}

// compareSources adds to charts of Flux 1 the contents that the operator compares: the files of commits, and the files of charts
// for a dry run.
func (f *Foresight) compareSources(ctx context.Context) {
	for i := range f.matched {
		p := &f.matched[i]
		if p.Before == nil || p.After == nil || p.Before.Operated == nil || p.After.Operated == nil {
			continue
		}
		before, after := f.before.Of(p.Before), f.after.Of(p.After)
		if p.Before.Operated.Revision != p.After.Operated.Revision {
			before.listFiles(ctx)
			after.listFiles(ctx)
		}
		if c, d := p.Before.Chart, p.After.Chart; c == nil || d == nil || c.Digest == "" || c.Digest != d.Digest {
			before.readSources()
			after.readSources()
		}
	}
}

// listFiles adds the files below the path of a chart from Git. Files that cannot be read stay unknown.
func (r *Release) listFiles(ctx context.Context) {
	o := r.Fact.Operated
	if r.tree == "" || !o.Git {
		return
	}
	files, err := reconcile.TreeFiles(ctx, r.Store, r.tree, r.operated.Spec.Chart.Path)
	if err == nil {
		o.Files = files
	}
}

func (r *Release) readSources() {
	if r.Artifact == "" {
		return
	}
	files, err := reconcile.ChartFiles(r.Store, r.Artifact)
	if err == nil {
		r.Fact.Operated.Sources = plan.NewSources(files)
	}
}

// reportAssumed prints, once, the assumption about releases of Flux 1.
func (f *Foresight) reportAssumed() {
	if slices.ContainsFunc(f.matched, func(p plan.Pair) bool { return p.After != nil && p.After.Operated != nil }) {
		f.Worker.Console.Info(console.Subject{}, "releases of Flux 1 are assumed to be deployed and not rolled back")
	}
}

// operatedName returns the name of a release of Flux 1 in a diff: a release of Flux 2 may have the same name.
func operatedName(id plan.ID) string {
	return path.Join(strings.ToLower(id.Kind), id.Namespace, id.Name)
}

// chartField returns the field of a HelmRelease that names its chart.
func (r *Release) chartField() []any {
	switch {
	case r.operated != nil && r.operated.Spec.Chart.Source() == operator.GitSource:
		return []any{"spec", "chart", "path"}
	case r.operated != nil:
		return []any{"spec", "chart", "name"}
	case r.hr.Spec.Chart != nil:
		return []any{"spec", "chart", "spec", "chart"}
	}
	return []any{"spec"}
}

// kindOf returns the kind of a HelmRelease in a plan: "" for Flux 2.
func kindOf(obj *manifest.Object) string {
	if inventory.IsOperated(obj) {
		return obj.Kind
	}
	return ""
}
