package foresee

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/plan"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/values"
)

// recorded compares the input with the record of the last fetch in the artifacts directory. The record contains the digest of the
// values, and spec.values.
func (f *Foresight) recorded(ctx context.Context) error {
	w, o := f.Worker, f.Options
	f.against = plan.TheLastFetch
	if err := f.checkSelected(); err != nil {
		return err
	}
	root, err := w.Artifacts(&o.Store)
	if err != nil {
		return err
	}
	f.before = &Side{Work: f.Work, recorded: true, codes: map[plan.ID]int{}, stores: []*store.Store{root}}
	f.after.recorded = true
	known, stores := false, map[*load.Input]*store.Store{}
	if err := w.Each(f.after.Inputs, func(in *load.Input) error {
		st, err := w.ArtifactsOf(in.Cluster, &o.Store, root)
		if err != nil {
			return err
		}
		if st != root {
			f.before.stores = append(f.before.stores, st)
		}
		load.RenameStored(in.Inventory, st)
		results, failures := reconcile.Remembered(st, "", w.Edges.Now)
		for _, err := range failures {
			w.ReportStorage(finding.OddStorage, err)
		}
		if other := session.OtherCluster(in, results); other != "" {
			w.Console.Warn(fmt.Sprintf("%s contains artifacts of %s, but the input is %s: the plan compares two clusters", o.Store.Dir, other, in.Called))
		}
		known, stores[in] = known || len(results) > 0, st
		f.before.remember(in, st, results)
		return nil
	}); err != nil {
		return err
	}
	if !known && !f.after.onlyOperated() {
		return &exit.UsageError{
			Err:    fmt.Errorf("nothing is recorded in %s", o.Store.Dir),
			Advice: finding.RecordOrCompare,
		}
	}
	f.rememberStatuses()
	if err := w.Each(f.after.Inputs, func(in *load.Input) error { return f.resolveRecorded(ctx, in, stores[in]) }); err != nil {
		return err
	}
	f.matched = plan.Match(f.before.Facts(), f.after.Facts())
	return nil
}

// remember adds the recorded HelmReleases.
func (s *Side) remember(in *load.Input, st *store.Store, results []*reconcile.Result) {
	objects := map[load.RecordID]*manifest.Object{}
	for _, obj := range in.Inventory.Objects() {
		objects[load.RecordOf(obj)] = obj
	}
	for _, result := range results {
		obj := result.Object.Object
		// Files may be a part of the fetched input, directories are all of it: only with directories an object can be gone.
		own, there := objects[load.Recorded(obj)]
		r := newRelease(in, obj, in.Cluster)
		if there { // the record may have another name
			r.Fact.Namespace, r.Fact.Name = own.Namespace, own.Name
		}
		if !isRelease(obj) || !in.Wanted(obj) || !there && len(in.Dirs) == 0 {
			continue
		}
		if !r.remember(result, results) {
			continue
		}
		if result.State == reconcile.Failed {
			r.Fact.Blocked = result.Message()
		}
		if found := reconcile.RecordedChart(result, results); found != nil {
			r.Fact.Chart = s.newChart(r, found, st)
			r.Store, r.Artifact = st, found.Artifact
			if r.Fact.Operated != nil {
				r.Fact.Operated.Revision, r.tree = found.Revision, found.Tree
			}
		}
		s.Releases = append(s.Releases, r)
	}
}

// remember adds the recorded facts of a HelmRelease, except its chart. It returns false for any other object.
func (r *Release) remember(result *reconcile.Result, results []*reconcile.Result) bool {
	content := result.Object.Content
	if !r.redescribe(content) {
		return false
	}
	sum, _ := result.Status["lastAttemptedConfigDigest"].(string)
	if r.hr == nil {
		sum, _ = manifest.At[map[string]any](content, "metadata", "annotations")[status.ValuesChecksumAnnotation].(string)
		r.Quick = !r.Fact.Operated.Git
	} else {
		r.made = recordedSpec(results, r.hr)
		r.Quick = r.hr.Spec.Chart != nil && r.hr.Spec.Chart.Spec.SourceRef.Kind == "HelmRepository"
	}
	r.Fact.Values, r.Fact.ValuesKey, r.digests = sum, sum, result.Values
	return true
}

// onlyOperated reports whether all releases are of Flux 1: their operator does not read a missing record as a missing release.
func (s *Side) onlyOperated() bool {
	return len(s.Releases) > 0 && !slices.ContainsFunc(s.Releases, func(r *Release) bool { return r.Fact.Operated == nil })
}

// redescribe adds the facts in an object that may be shown, and its values. It returns false for an invalid HelmRelease.
func (r *Release) redescribe(content map[string]any) bool {
	text, err := json.Marshal(content)
	if err != nil {
		return false
	}
	if r.Fact.Operated != nil {
		r.operated = &operator.HelmRelease{}
		if json.Unmarshal(text, r.operated) != nil {
			return false
		}
		r.operated.Namespace, r.operated.Name = r.Object.Namespace, r.Object.Name
		r.describeOperated(content)
	} else {
		r.hr = &helmv2.HelmRelease{}
		if json.Unmarshal(text, r.hr) != nil {
			return false
		}
		r.hr.Namespace, r.hr.Name = r.Object.Namespace, r.Object.Name
		r.describe(content)
	}
	r.composed, r.origins = manifest.At[map[string]any](content, "spec", "values"), nil
	return true
}

// recordedSpec returns the spec of the HelmChart that was recorded with a HelmRelease.
func recordedSpec(results []*reconcile.Result, hr *helmv2.HelmRelease) map[string]any {
	namespace, name := "", ""
	switch {
	case hr.Spec.Chart != nil:
		namespace, name = hr.Spec.Chart.GetNamespace(hr.Namespace), hr.GetHelmChartName()
	case hr.Spec.ChartRef != nil && hr.Spec.ChartRef.Kind == "HelmChart":
		namespace, name = cmp.Or(hr.Spec.ChartRef.Namespace, hr.Namespace), hr.Spec.ChartRef.Name
	default:
		return nil
	}
	for _, r := range results {
		if obj := r.Object.Object; obj.Kind == "HelmChart" && obj.Namespace == namespace && obj.Name == name {
			spec, _ := r.Object.Content["spec"].(map[string]any)
			return spec
		}
	}
	return nil
}

// resolveRecorded resolves the releases of the input. If a version alone is not enough, it fetches charts that are not stored into
// a directory that is removed when the run ends.
func (f *Foresight) resolveRecorded(ctx context.Context, in *load.Input, st *store.Store) error {
	s := f.after
	if err := st.Load(); err != nil {
		return &exit.UsageError{Err: err}
	}
	releases := s.active(in)
	if err := s.reconcile(ctx, in, releases, st, true); err != nil {
		return err
	}
	whole := slices.DeleteFunc(releases, func(r *Release) bool {
		return r.Fact.Blocked != "" || !f.operatedMoved(r) && (r.Artifact != "" || r.Quick && !f.o.files())
	})
	if err := s.run(ctx, in, whole, false); err != nil {
		return err
	}
	for _, r := range s.Releases {
		if r.In != in || r.hr == nil && r.operated == nil {
			continue
		}
		adm, err := in.Inventory.Admit(r.Object)
		if err != nil {
			return errors.New("a HelmRelease was admitted and then refused") // the result is cached
		}
		blocked, key := r.Fact.Blocked, r.Fact.Values
		document, err := (&reconcile.Result{Object: adm}).Document()
		if err != nil {
			return err
		}
		r.redescribe(document)
		r.Fact.Blocked, r.Fact.ValuesKey = blocked, key
	}
	return nil
}

// digested returns the digests of the inline values and of the recorded values of ConfigMaps.
func (r *Release) digested() map[string]any {
	inline := values.Digests(r.composed, func(any, ...any) bool { return true })
	return overlaid(inline, r.digests).(map[string]any)
}

// overlaid merges values over other ones; in a list, a null keeps the item below.
func overlaid(below, above any) any {
	switch above := above.(type) {
	case nil:
		return below
	case map[string]any:
		under, _ := below.(map[string]any)
		merged := maps.Clone(under)
		if merged == nil {
			merged = map[string]any{}
		}
		for key, value := range above {
			merged[key] = overlaid(under[key], value)
		}
		return merged
	case []any:
		under, _ := below.([]any)
		merged := make([]any, max(len(under), len(above)))
		copy(merged, under)
		for i, value := range above {
			merged[i] = overlaid(merged[i], value)
		}
		return merged
	}
	return above
}

// unrecorded names the references to values whose digests are not recorded. partial is true if even those of ConfigMaps are missing.
func unrecorded(before, after *Release) (names []string, partial bool) {
	for _, r := range []*Release{before, after} {
		for _, ref := range r.valuesFrom() {
			public := ref.Kind == "ConfigMap" && after.In.Inventory.Public(ref.Namespace, ref.Name)
			partial = partial || public && r.digests == nil
			if name := strings.TrimSpace(ref.Kind + " " + ref.Name); !public && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, partial
}
