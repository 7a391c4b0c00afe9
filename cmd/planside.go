package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/plan"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"

	"github.com/helmsrc/helmsrc/internal/session"
)

// planSide is the HelmReleases of one side: as the manifests are, or as they were.
type planSide struct {
	app      *app
	o        *planOptions
	old      bool
	base     *base // of the old side
	recorded bool  // the old side is what was recorded
	inputs   []*load.Input
	releases []*foreseen
	codes    map[plan.ID]int
	failed   int // exit code of what was reconciled, sources too
	code     int // of what went wrong while reading and judging

	replaced map[*load.Input]replaced
	stores   []*store.Store // artifacts directories that stay
}

func (s *planSide) close() {
	for _, st := range s.stores {
		if err := st.Close(); err != nil {
			s.app.console.Debug(console.Subject{}, err.Error())
		}
	}
}

func newPlanSide(a *app, o *planOptions, b *base) *planSide {
	return &planSide{app: a, o: o, old: b != nil, base: b, codes: map[plan.ID]int{}}
}

// newSide finds the HelmReleases of one side.
func (a *app) newSide(o *planOptions, inputs []*load.Input, b *base) (*planSide, error) {
	s := newPlanSide(a, o, b)
	for _, in := range inputs {
		if !in.Loose {
			s.inputs = append(s.inputs, in)
		}
	}
	var err error
	if s.replaced, err = a.replaceSources(&o.run, s.inputs, nil); err != nil && !s.old {
		return s, err
	}
	defer a.console.In("")
	for _, in := range s.inputs {
		a.console.In(in.Cluster)
		for _, obj := range in.Inventory.Objects() {
			if (obj.Kind == helmv2.HelmReleaseKind || inventory.IsOperated(obj)) && in.Wanted(obj) {
				s.add(in, obj)
			}
		}
		s.code = exit.Worst(s.code, in.Code)
		if !s.old {
			a.worker.ReportNotes(in)
		}
	}
	return s, nil
}

// names are the clusters of the side.
func (s *planSide) names() []string {
	var names []string
	for _, in := range s.inputs {
		if !slices.Contains(names, in.Cluster) {
			names = append(names, in.Cluster)
		}
	}
	return names
}

// callAs gives the only cluster the name of the one that it has most HelmReleases in common with.
func (s *planSide) callAs(other *planSide) {
	common := map[string]int{}
	for _, r := range other.releases {
		for _, own := range s.releases {
			if own.fact.Kind == r.fact.Kind && own.fact.Namespace == r.fact.Namespace && own.fact.Name == r.fact.Name && own.fact.File == r.fact.File {
				common[r.fact.Cluster]++
			}
		}
	}
	name, most := "", 0
	for _, cluster := range other.names() {
		if common[cluster] > most {
			name, most = cluster, common[cluster]
		}
	}
	if most == 0 {
		return
	}
	for _, r := range s.releases {
		r.fact.Cluster = name
	}
}

func (s *planSide) facts() []*plan.Release {
	var list []*plan.Release
	for _, r := range s.releases {
		list = append(list, r.fact)
	}
	return list
}

func (s *planSide) of(fact *plan.Release) *foreseen {
	i := slices.IndexFunc(s.releases, func(r *foreseen) bool { return r.fact == fact })
	return s.releases[i]
}

// add takes up a HelmRelease.
func (s *planSide) add(in *load.Input, obj *manifest.Object) {
	r := newForeseen(in, obj, s.shown(in.Cluster))
	r.fact.File = s.shown(obj.Pos.File)
	r.fact.Target = plan.Target{Name: obj.Name, Namespace: obj.Namespace, StorageNamespace: obj.Namespace}
	s.releases = append(s.releases, r)
	adm, err := in.Inventory.Admit(obj)
	if err != nil {
		s.app.worker.Reject(in, obj, err)
		r.fact.Blocked = "the API server would refuse it: " + obj.ConcealError(err.Error())
		return
	}
	s.app.worker.ReportWarnings(in, adm)
	if r.fact.Operated != nil {
		s.addOperated(r, adm)
		return
	}
	r.hr = adm.Typed.(*helmv2.HelmRelease)
	r.describe(adm)
	r.fact.Kept = keeps(in, obj)
	s.chartOf(r, adm)
	s.valuesOf(r, adm)
}

// shown is a file or directory as the other side calls it.
func (s *planSide) shown(name string) string {
	if s.base == nil {
		return name
	}
	return s.base.original(name)
}

// describe takes up what the spec says by itself.
func (r *foreseen) describe(adm *admission.Admitted) {
	hr, f := r.hr, r.fact
	f.Suspended = hr.Spec.Suspend
	f.Target.Name, f.Target.Namespace, f.Target.StorageNamespace = reconcile.ReleaseTarget(hr)
	f.InPlace = hr.GetUpgrade().GetChartNameChangeStrategy() == helmv2.ChartNameChangeStrategyInPlaceUpdate
	if len(hr.Spec.PostRenderers) > 0 {
		f.PostRenderers = digestOf(hr.Spec.PostRenderers)
	}
	if hr.Spec.CommonMetadata != nil {
		f.CommonMetadata = digestOf(hr.Spec.CommonMetadata)
	}
	spec, _ := adm.Content["spec"].(map[string]any)
	f.Fields = otherFields(spec)
	if at := hr.Annotations["reconcile.fluxcd.io/forceAt"]; at != "" && at == hr.Annotations["reconcile.fluxcd.io/requestedAt"] {
		f.Forced = at
	}
	for _, ref := range hr.Spec.DependsOn {
		namespace := ref.Namespace
		if namespace == "" {
			namespace = hr.Namespace
		}
		f.DependsOn = append(f.DependsOn, plan.ID{Cluster: f.Cluster, Namespace: namespace, Name: ref.Name})
	}
}

// digestOf is helm-controller's digest of a field: of its JSON, as the encoder of Go writes it.
func digestOf(field any) string {
	hash := godigest.SHA256.Digester()
	if err := json.NewEncoder(hash.Hash()).Encode(field); err != nil {
		return "" // of what was JSON
	}
	return hash.Digest().String()
}

// otherFields are the fields of a spec that are not looked at by themselves.
func otherFields(spec map[string]any) map[string]string {
	fields := map[string]string{}
	for name, value := range spec {
		switch name {
		case "chart", "chartRef", "values", "valuesFrom", "postRenderers", "commonMetadata", "releaseName", "targetNamespace", "storageNamespace", "suspend":
			continue
		}
		if text, err := json.Marshal(value); err == nil {
			fields[name] = string(text)
		}
	}
	return fields
}

// keeps reports whether the Kustomization that applies an object leaves in the cluster what goes from it.
func keeps(in *load.Input, obj *manifest.Object) bool {
	name, ok := strings.CutPrefix(obj.Built, "Kustomization ")
	if !ok {
		return false
	}
	for _, k := range in.Rendered.Judged {
		if k.Namespace+"/"+k.Name == name {
			spec, _ := k.Content["spec"].(map[string]any)
			prune, _ := spec["prune"].(bool)
			return k.Kind == "Kustomization" && spec != nil && !prune
		}
	}
	return false
}

// chartOf takes up everything that a chart depends on.
func (s *planSide) chartOf(r *foreseen, adm *admission.Admitted) {
	hr := r.hr
	var origin []any
	origin = append(origin, hr.Spec.ChartRef)
	if hr.Spec.Chart != nil {
		origin = append(origin, hr.Spec.Chart.Spec.SourceRef)
		r.fact.Asked = strings.TrimSpace(hr.Spec.Chart.Spec.Chart + " " + hr.Spec.Chart.Spec.Version)
		r.source = hr.Spec.Chart.Spec.SourceRef.Kind + "/" + hr.Spec.Chart.GetNamespace(hr.Namespace) + "/" + hr.Spec.Chart.Spec.SourceRef.Name
		r.quick = hr.Spec.Chart.Spec.SourceRef.Kind == "HelmRepository"
	} else if ref := hr.Spec.ChartRef; ref != nil {
		r.fact.Asked = ref.Kind + " " + ref.Name
		namespace := ref.Namespace
		if namespace == "" {
			namespace = hr.Namespace
		}
		r.source = ref.Kind + "/" + namespace + "/" + ref.Name
	}
	s.originOf(r, adm, origin)
}

// originOf takes up what the chart comes from in the end.
func (s *planSide) originOf(r *foreseen, adm *admission.Admitted, origin []any) {
	for _, source := range r.in.SourcesOf(adm, func(*inventory.RejectedError) {}) {
		obj := source.Object
		spec, _ := source.Content["spec"].(map[string]any)
		if obj.Kind == "HelmChart" {
			r.made = spec
		}
		spec = maps.Clone(spec)
		if reconcile.MadeOf(spec) == "" {
			delete(spec, "interval")
		}
		if obj.Kind != "HelmChart" {
			delete(spec, "timeout")
		}
		origin = append(origin, obj.Kind, obj.Namespace, obj.Name, spec, s.replaced[r.in].directories[store.NewKey(obj.Kind, obj.Namespace, obj.Name)])
	}
	if entries := s.pinnedTo(r); entries != nil {
		origin = append(origin, entries)
	}
	text, err := json.Marshal(origin)
	if err != nil { // of what was JSON
		text = []byte(err.Error())
	}
	r.fact.Origin = string(text)
}

// valuesOf composes the values.
func (s *planSide) valuesOf(r *foreseen, adm *admission.Admitted) {
	composed, origins, found := validate.Values(r.in.Inventory, adm)
	var absent []string
	for _, f := range found {
		if f.Severity == finding.Error {
			s.app.console.Report(f)
			r.fact.Blocked = f.Message
			continue
		}
		absent = append(absent, f.Message)
	}
	if r.fact.Blocked != "" {
		return
	}
	digest, err := r.digest(composed)
	if err != nil {
		r.fact.Blocked = err.Error()
		return
	}
	r.composed, r.origins, r.whole = composed, origins, &composition{composed, origins}
	r.fact.ValuesKey = digest + strings.Join(absent, "\n")
	if len(absent) == 0 {
		r.fact.Values = digest
	}
	for _, text := range absent {
		r.fact.Assumed = append(r.fact.Assumed, text+": what it holds is taken as unchanged")
	}
}

// resolve finds out about the charts of the HelmReleases that may differ: those of Helm repositories by their index, all
// others, and with files all of them, by fetching them into a directory that goes when the run ends.
func (s *planSide) resolve(ctx context.Context, wanted map[plan.ID]bool, files bool) error {
	defer s.app.console.In("")
	for _, in := range s.inputs {
		s.app.console.In(in.Cluster)
		var quick, whole []*foreseen
		for _, r := range s.releases {
			switch {
			case r.in != in || !wanted[r.fact.ID] || r.fact.Blocked != "" || r.fact.Suspended:
			case r.quick && !files:
				quick = append(quick, r)
			default:
				whole = append(whole, r)
			}
		}
		if err := s.run(ctx, in, quick, true); err != nil {
			return err
		}
		if err := s.run(ctx, in, whole, false); err != nil {
			return err
		}
	}
	return nil
}

// run reconciles HelmReleases with all that they need, in a directory that goes when the command ends.
func (s *planSide) run(ctx context.Context, in *load.Input, releases []*foreseen, quick bool) error {
	if len(releases) == 0 {
		return nil
	}
	st, err := s.o.shared.Temporary()
	if err != nil {
		return err
	}
	return s.reconcile(ctx, in, releases, st, quick)
}

func (s *planSide) reconcile(ctx context.Context, in *load.Input, releases []*foreseen, st *store.Store, quick bool) error {
	results, err := s.results(ctx, in, func() []*admission.Admitted { return targetsOf(in, releases) }, st, quick)
	if err != nil {
		return err
	}
	for _, result := range results {
		s.failed = exit.Worst(s.failed, session.CodeOf(result))
	}
	for _, r := range releases {
		i := slices.IndexFunc(results, func(result *reconcile.Result) bool { return result.Object.Object == r.obj })
		s.take(r, results[i], results, st)
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), exit.ErrInterrupted) {
		return context.Cause(ctx)
	}
	return nil
}

// results reconciles objects of an input, as the flags say.
func (s *planSide) results(ctx context.Context, in *load.Input, targets func() []*admission.Admitted, st *store.Store, quick bool) ([]*reconcile.Result, error) {
	options := s.o.shared.Options()
	options.Until = reconcile.Fetch
	if quick {
		options.Until = reconcile.Choose
	}
	options.Directories, options.Archives, options.Locked = s.replaced[in].directories, s.replaced[in].archives, s.lockedBy(in)
	results, err := s.app.worker.Reconcile(ctx, s.o.shared, in, targets, st, options, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot write to the temporary directory: %w", err)
	}
	return results, nil
}

// targetsOf are HelmReleases with what they come from, each once.
func targetsOf(in *load.Input, releases []*foreseen) []*admission.Admitted {
	var targets []*admission.Admitted
	chosen := map[*manifest.Object]bool{}
	add := func(adm *admission.Admitted) {
		if !chosen[adm.Object] {
			chosen[adm.Object] = true
			targets = append(targets, adm)
		}
	}
	for _, r := range releases {
		adm, err := in.Inventory.Admit(r.obj)
		if err != nil {
			continue // it is blocked
		}
		for _, source := range in.SourcesOf(adm, func(*inventory.RejectedError) {}) {
			add(source)
		}
		add(adm)
	}
	return targets
}

// failedSource is the nearest source of a release that failed, nil if none did. The controllers go on with the artifact of an
// earlier run; what the release would get from the source as it is now is not known then.
func failedSource(r *foreseen, results []*reconcile.Result) *reconcile.Result {
	targets := targetsOf(r.in, []*foreseen{r})
	for _, adm := range slices.Backward(targets) {
		for _, result := range results {
			if result.Object.Object == adm.Object && session.CodeOf(result) != exit.OK {
				return result
			}
		}
	}
	return nil
}

// take takes up what a run found out about a HelmRelease.
func (s *planSide) take(r *foreseen, result *reconcile.Result, results []*reconcile.Result, st *store.Store) {
	message := result.Message()
	if s.recorded && session.CodeOf(result) == exit.OK {
		if source := failedSource(r, results); source != nil {
			obj := source.Object.Object
			result, message = source, fmt.Sprintf("%s '%s/%s' is not ready: %s", obj.Kind, obj.Namespace, obj.Name, source.Message())
		}
	}
	if code := session.CodeOf(result); code != exit.OK {
		s.codes[r.fact.ID] = code
		r.fact.Blocked = message
		return
	}
	r.digests = result.Values
	if result.Resolution != nil {
		r.url = result.Resolution.URL
	}
	found := reconcile.PlannedChart(result, results)
	if r.operated != nil {
		s.takeOperated(r, result, found)
	}
	if found == nil {
		return
	}
	r.fact.Chart = s.newChart(r, found, st)
	// What an earlier run stored may be another archive of the same version than the one that is published now.
	stale := s.recorded && r.quick && r.fact.Chart.Made == "" && found.Digest != found.Stored
	if found.Artifact != "" && !stale {
		r.st, r.artifact = st, found.Artifact
	}
}
