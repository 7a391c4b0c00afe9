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
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// Work holds the parts that both sides of a command share.
type Work struct {
	Worker  *session.Worker
	Shared  *session.Session
	Options *session.Options
	Locked  *session.Lock // the lock for charts, or nil
}

// A Side holds the HelmReleases of the current or the older manifests.
type Side struct {
	Work
	base     *base // the files of the older side, if they are not the record
	recorded bool  // the older side is a record
	Inputs   []*load.Input
	Releases []*Release
	codes    map[plan.ID]int
	failed   int // exit code of all reconciled objects, including sources
	Code     int // exit code of reading and checking the manifests

	replaced map[*load.Input]session.Replaced
	stores   []*store.Store // artifacts directories that are kept
}

// Close closes the stores of the side. It may be called for a nil side.
func (s *Side) Close() {
	if s == nil {
		return
	}
	for _, st := range s.stores {
		if err := st.Close(); err != nil {
			s.Worker.Console.Debug(console.Subject{}, err.Error())
		}
	}
}

// Side returns the side with the HelmReleases of inputs.
func (w Work) Side(inputs []*load.Input) (*Side, error) { return w.side(inputs, nil) }

// Before returns a side without errors for directories that replace no source: the current manifests report them.
func (w Work) Before(inputs []*load.Input) (*Side, error) { return w.side(inputs, &base{}) }

func (w Work) side(inputs []*load.Input, b *base) (*Side, error) {
	s := &Side{Work: w, base: b, codes: map[plan.ID]int{}, Inputs: load.WithoutLoose(slices.Clone(inputs))}
	if b == nil && len(w.Options.Load.Offered) > 0 {
		w.warnLoose(inputs)
	}
	var err error
	if s.replaced, err = w.Worker.Replace(w.Options, s.Inputs, nil); err != nil && b == nil {
		return s, err
	}
	return s, w.Worker.Each(s.Inputs, func(in *load.Input) error {
		for _, obj := range in.Inventory.Objects() {
			if isRelease(obj) && in.Wanted(obj) {
				s.add(in, obj)
			}
		}
		s.Code = exit.Worst(s.Code, in.Code)
		if b == nil {
			w.Worker.ReportNotes(in)
		}
		return nil
	})
}

// isRelease reports whether an object is a HelmRelease, of Flux 2 or Flux 1.
func isRelease(obj *manifest.Object) bool {
	return obj.Kind == helmv2.HelmReleaseKind || inventory.IsOperated(obj)
}

// warnLoose names the releases that are not compared, because no cluster applies the file that was passed.
func (w Work) warnLoose(inputs []*load.Input) {
	for _, in := range inputs {
		for _, obj := range in.Inventory.Objects() {
			if in.Loose && in.Wanted(obj) && isRelease(obj) {
				w.Worker.Console.Warn(console.ObjectSubject(obj).String() + " is not compared: no cluster applies its file")
			}
		}
	}
}

// names returns the clusters of the side.
func (s *Side) names() []string {
	var names []string
	for _, in := range s.Inputs {
		if !slices.Contains(names, in.Cluster) {
			names = append(names, in.Cluster)
		}
	}
	return names
}

// callAs gives the only cluster the name of the other side's cluster with which it shares most HelmReleases.
func (s *Side) callAs(other *Side) {
	common := map[string]int{}
	for _, r := range other.Releases {
		for _, own := range s.Releases {
			if own.Fact.Kind == r.Fact.Kind && own.Fact.Namespace == r.Fact.Namespace && own.Fact.Name == r.Fact.Name && own.Fact.File == r.Fact.File {
				common[r.Fact.Cluster]++
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
	for _, r := range s.Releases {
		r.Fact.Cluster = name
	}
}

// Facts returns the facts of the HelmReleases for a plan.
func (s *Side) Facts() []*plan.Release {
	var list []*plan.Release
	for _, r := range s.Releases {
		list = append(list, r.Fact)
	}
	return list
}

// Of returns the release of a fact, nil for nil.
func (s *Side) Of(fact *plan.Release) *Release {
	if fact == nil {
		return nil
	}
	i := slices.IndexFunc(s.Releases, func(r *Release) bool { return r.Fact == fact })
	return s.Releases[i]
}

// add adds a HelmRelease.
func (s *Side) add(in *load.Input, obj *manifest.Object) {
	r := newRelease(in, obj, s.shown(in.Cluster))
	r.Fact.File = s.shown(obj.Pos.File)
	r.Fact.Target = plan.Target{Name: obj.Name, Namespace: obj.Namespace, StorageNamespace: obj.Namespace}
	s.Releases = append(s.Releases, r)
	adm, err := in.Inventory.Admit(obj)
	if err != nil {
		s.Worker.Reject(in, obj, err)
		r.Fact.Blocked = "the API server would refuse it: " + obj.ConcealError(err.Error())
		return
	}
	s.Worker.ReportWarnings(in, adm)
	if r.Fact.Operated != nil {
		s.addOperated(r, adm)
		return
	}
	r.hr = adm.Typed.(*helmv2.HelmRelease)
	r.describe(adm.Content)
	r.Fact.Kept = keeps(in, obj)
	s.chartOf(r, adm)
	s.valuesOf(r, adm)
}

// shown returns the name of a file or directory on the other side.
func (s *Side) shown(name string) string {
	if s.base == nil {
		return name
	}
	return s.base.original(name)
}

// describe adds the facts in the spec.
func (r *Release) describe(content map[string]any) {
	hr, f := r.hr, r.Fact
	f.Suspended = hr.Spec.Suspend
	f.Target.Name, f.Target.Namespace, f.Target.StorageNamespace = reconcile.ReleaseTarget(hr)
	f.InPlace = hr.GetUpgrade().GetChartNameChangeStrategy() == helmv2.ChartNameChangeStrategyInPlaceUpdate
	if len(hr.Spec.PostRenderers) > 0 {
		f.PostRenderers = digestOf(hr.Spec.PostRenderers)
	}
	if hr.Spec.CommonMetadata != nil {
		f.CommonMetadata = digestOf(hr.Spec.CommonMetadata)
	}
	f.Fields = otherFields(manifest.At[map[string]any](content, "spec"))
	if at := hr.Annotations["reconcile.fluxcd.io/forceAt"]; at != "" && at == hr.Annotations["reconcile.fluxcd.io/requestedAt"] {
		f.Forced = at
	}
	for _, ref := range hr.Spec.DependsOn {
		f.DependsOn = append(f.DependsOn, plan.ID{Cluster: f.Cluster, Namespace: cmp.Or(ref.Namespace, hr.Namespace), Name: ref.Name})
	}
}

// digestOf returns helm-controller's digest of a field: of its JSON, as the encoder of Go writes it.
func digestOf(field any) string {
	hash := godigest.SHA256.Digester()
	if err := json.NewEncoder(hash.Hash()).Encode(field); err != nil {
		return "" // not reached: it was JSON
	}
	return hash.Digest().String()
}

// otherFields returns the fields of a spec that are not compared separately.
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

// keeps reports whether the Kustomization that applies an object does not prune.
func keeps(in *load.Input, obj *manifest.Object) bool {
	for _, k := range in.Rendered.Judged {
		if k.Group() == manifest.KustomizeGroup && k.String() == obj.Built {
			spec, _ := k.Content["spec"].(map[string]any)
			prune, _ := spec["prune"].(bool)
			return spec != nil && !prune
		}
	}
	return false
}

// chartOf adds everything that a chart depends on.
func (s *Side) chartOf(r *Release, adm *admission.Admitted) {
	hr := r.hr
	origin := []any{hr.Spec.ChartRef}
	if t := hr.Spec.Chart; t != nil {
		ref := t.Spec.SourceRef
		origin = append(origin, ref)
		r.Fact.Asked = strings.TrimSpace(t.Spec.Chart + " " + t.Spec.Version)
		r.source = ref.Kind + "/" + t.GetNamespace(hr.Namespace) + "/" + ref.Name
		r.Quick = ref.Kind == "HelmRepository"
	} else if ref := hr.Spec.ChartRef; ref != nil {
		r.Fact.Asked = ref.Kind + " " + ref.Name
		r.source = ref.Kind + "/" + cmp.Or(ref.Namespace, hr.Namespace) + "/" + ref.Name
	}
	s.originOf(r, adm, origin)
}

// originOf adds the sources of the chart, as one text.
func (s *Side) originOf(r *Release, adm *admission.Admitted, origin []any) {
	for _, source := range r.In.SourcesOf(adm, func(*inventory.RejectedError) {}) {
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
		origin = append(origin, obj.Kind, obj.Namespace, obj.Name, spec, s.replaced[r.In][store.NewKey(obj.Kind, obj.Namespace, obj.Name)].Path)
	}
	if entries := s.pinnedTo(r); entries != nil {
		origin = append(origin, entries)
	}
	text, err := json.Marshal(origin)
	if err != nil { // not reached: it was JSON
		text = []byte(err.Error())
	}
	r.Fact.Origin = string(text)
}

// valuesOf composes the values.
func (s *Side) valuesOf(r *Release, adm *admission.Admitted) {
	composed, origins, found := validate.Values(r.In.Inventory, adm)
	var absent []string
	for _, f := range found {
		if f.Severity == finding.Error {
			s.Worker.Console.Report(f)
			r.Fact.Blocked = f.Message
			continue
		}
		absent = append(absent, f.Message)
	}
	if r.Fact.Blocked != "" {
		return
	}
	digest, err := r.digest(composed)
	if err != nil {
		r.Fact.Blocked = err.Error()
		return
	}
	r.composed, r.origins, r.whole = composed, origins, &composition{composed, origins}
	r.Fact.ValuesKey = digest + strings.Join(absent, "\n")
	if len(absent) == 0 {
		r.Fact.Values = digest
	}
	for _, text := range absent {
		r.Fact.Assumed = append(r.Fact.Assumed, text+": its content is assumed to be unchanged")
	}
}

// Resolve resolves the charts of the wanted HelmReleases. It reads the index for charts of Helm repositories. It fetches all other
// charts, and all charts if files is set, into a directory that is removed when the run ends.
func (s *Side) Resolve(ctx context.Context, wanted func(*Release) bool, files bool) error {
	defer s.Worker.Console.In("")
	for _, in := range s.Inputs {
		s.Worker.Console.In(in.Cluster)
		for _, quick := range []bool{true, false} {
			list := slices.DeleteFunc(s.active(in), func(r *Release) bool { return (r.Quick && !files) != quick || !wanted(r) })
			if err := s.run(ctx, in, list, quick); err != nil {
				return err
			}
		}
	}
	return nil
}

// active returns the releases of an input that are neither blocked nor suspended.
func (s *Side) active(in *load.Input) (list []*Release) {
	for _, r := range s.Releases {
		if r.In == in && r.Fact.Blocked == "" && !r.Fact.Suspended {
			list = append(list, r)
		}
	}
	return list
}

// run reconciles HelmReleases with their dependencies, in a directory that is removed when the command ends.
func (s *Side) run(ctx context.Context, in *load.Input, releases []*Release, quick bool) error {
	if len(releases) == 0 {
		return nil
	}
	st, err := s.Shared.Temporary()
	if err != nil {
		return err
	}
	return s.reconcile(ctx, in, releases, st, quick)
}

func (s *Side) reconcile(ctx context.Context, in *load.Input, releases []*Release, st *store.Store, quick bool) error {
	var objects []*manifest.Object
	for _, r := range releases {
		objects = append(objects, r.Object)
	}
	results, err := s.Results(ctx, in, objects, st, quick)
	if err != nil {
		return err
	}
	for _, result := range results {
		s.failed = exit.Worst(s.failed, session.CodeOf(result))
	}
	for _, r := range releases {
		i := slices.IndexFunc(results, func(result *reconcile.Result) bool { return result.Object.Object == r.Object })
		s.take(r, results[i], results, st)
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), exit.ErrInterrupted) {
		return context.Cause(ctx)
	}
	return nil
}

// Results reconciles objects of an input with their sources. With quick, it stops when the versions are chosen.
func (s *Side) Results(ctx context.Context, in *load.Input, objects []*manifest.Object, st *store.Store, quick bool) ([]*reconcile.Result, error) {
	options := s.Shared.Options()
	options.Until = reconcile.Fetch
	if quick {
		options.Until = reconcile.Choose
	}
	options.Directories, options.Locked = s.replaced[in], s.Locked.Of(in)
	targets := func() []*admission.Admitted { return in.WithSources(objects...) }
	results, err := s.Worker.Reconcile(ctx, s.Shared, in, targets, st, options, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot write to the temporary directory: %w", err)
	}
	return results, nil
}

// failedSource returns the nearest failed source of a release, nil without a failure. The controllers continue with the artifact
// of an earlier run; the result for the current source is then unknown.
func failedSource(r *Release, results []*reconcile.Result) *reconcile.Result {
	for _, adm := range slices.Backward(r.In.WithSources(r.Object)) {
		for _, result := range results {
			if result.Object.Object == adm.Object && session.CodeOf(result) != exit.OK {
				return result
			}
		}
	}
	return nil
}

// take records the result of a run for a HelmRelease.
func (s *Side) take(r *Release, result *reconcile.Result, results []*reconcile.Result, st *store.Store) {
	message := result.Message()
	if s.recorded && session.CodeOf(result) == exit.OK {
		if source := failedSource(r, results); source != nil {
			obj := source.Object.Object
			result, message = source, fmt.Sprintf("%s '%s/%s' is not ready: %s", obj.Kind, obj.Namespace, obj.Name, source.Message())
		}
	}
	if code := session.CodeOf(result); code != exit.OK {
		s.codes[r.Fact.ID] = code
		r.Fact.Blocked = message
		return
	}
	r.digests = result.Values
	if result.Resolution != nil {
		r.URL = result.Resolution.URL
	}
	found := reconcile.PlannedChart(result, results)
	if r.operated != nil {
		s.takeOperated(r, result, found)
	}
	if found == nil {
		return
	}
	r.Fact.Chart = s.newChart(r, found, st)
	// The archive in the store may be of an earlier run, and differ from the published archive of the same version.
	stale := s.recorded && r.Quick && r.Fact.Chart.Made == "" && found.Digest != found.Stored
	if found.Artifact != "" && !stale {
		r.Store, r.Artifact = st, found.Artifact
	}
}

// LeaveOperated removes HelmReleases of Flux 1. They are compared separately.
func (s *Side) LeaveOperated() {
	s.Releases = slices.DeleteFunc(s.Releases, func(r *Release) bool { return inventory.IsOperated(r.Object) })
}

// CodeOf returns the exit code of a release that failed.
func (s *Side) CodeOf(id plan.ID) int { return s.codes[id] }

// Chart returns the template of the release's chart, nil for a release with a chartRef, of Flux 1, or not admitted.
func (r *Release) Chart() *helmv2.HelmChartTemplate {
	if r.hr == nil {
		return nil
	}
	return r.hr.Spec.Chart
}
