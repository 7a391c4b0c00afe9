package inventory

import (
	"errors"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/work"
)

// Labels of a HelmChart that name the HelmRelease for which it was created.
const (
	ownerNameLabel      = manifest.ReleaseGroup + "/name"
	ownerNamespaceLabel = manifest.ReleaseGroup + "/namespace"
)

// chartOf returns the HelmChart that helm-controller creates for a release with a
// chart template.
func chartOf(hr *helmv2.HelmRelease) *sourcev1.HelmChart {
	template := hr.Spec.Chart
	chart := &sourcev1.HelmChart{
		TypeMeta: metav1.TypeMeta{APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.HelmChartKind},
		ObjectMeta: metav1.ObjectMeta{
			Name:      hr.GetHelmChartName(),
			Namespace: template.GetNamespace(hr.Namespace),
			Labels:    map[string]string{},
		},
		Spec: sourcev1.HelmChartSpec{
			Chart:   template.Spec.Chart,
			Version: template.Spec.Version,
			SourceRef: sourcev1.LocalHelmChartSourceReference{
				Kind: template.Spec.SourceRef.Kind,
				Name: template.Spec.SourceRef.Name,
			},
			Interval:                 template.GetInterval(hr.Spec.Interval),
			ReconcileStrategy:        template.Spec.ReconcileStrategy,
			ValuesFiles:              template.Spec.ValuesFiles,
			IgnoreMissingValuesFiles: template.Spec.IgnoreMissingValuesFiles,
		},
	}
	if verify := template.Spec.Verify; verify != nil {
		chart.Spec.Verify = &sourcev1.HelmChartVerification{Provider: verify.Provider, SecretRef: verify.SecretRef}
	}
	if template.ObjectMeta != nil {
		maps.Copy(chart.Labels, template.ObjectMeta.Labels)
		chart.Annotations = template.ObjectMeta.Annotations
	}
	chart.Labels[ownerNameLabel], chart.Labels[ownerNamespaceLabel] = hr.Name, hr.Namespace
	return chart
}

// PathInTemplate returns the field of a HelmRelease from which a field of its
// HelmChart is copied.
func PathInTemplate(path []any) []any {
	switch {
	case len(path) == 0:
		return []any{"spec", "chart"}
	case path[0] == "spec":
		return append([]any{"spec", "chart"}, path...)
	case path[0] != "metadata" || len(path) == 1:
		return []any{"spec", "chart"}
	case path[1] == "namespace":
		return []any{"spec", "chart", "spec", "sourceRef", "namespace"}
	case path[1] == "annotations":
		return append([]any{"spec", "chart"}, path...)
	case path[1] == "labels" && len(path) > 2 && path[2] != ownerNameLabel && path[2] != ownerNamespaceLabel:
		return append([]any{"spec", "chart"}, path...)
	}
	return []any{"metadata", "name"}
}

// OriginAnnotation is the annotation that names the origin of a printed object that is in no file.
const OriginAnnotation = "helmsrc.dev/origin"

// OriginText returns the origin of a derived object as text.
func OriginText(obj *manifest.Object) string {
	kind, namespace, name := obj.Origin.Called()
	return fmt.Sprintf("%s %s/%s at %s", kind, namespace, name, obj.Pos)
}

// derivation is the HelmChart of a release, or the reason why it is not created.
type derivation struct {
	key   store.Key // of the HelmChart
	Chart *manifest.Object
	Err   error // why it is not created

	refused error // by the API server
}

type derivations struct {
	objects []*manifest.Object // of the input, with the derived objects
	Of      map[*manifest.Object]*derivation
	byKey   map[store.Key]*manifest.Object
	made    map[*manifest.Object][]*manifest.Object // ExternalArtifacts, by their generators
	unmade  map[store.Key]*RejectedError            // ExternalArtifacts of generators that are rejected
	twice   map[store.Key][]*manifest.Object        // generators that make the same artifact
	knots   map[*manifest.Object][]*manifest.Object // generators that wait for each other, or for themselves

	operated map[*manifest.Object]*operated  // charts and sources of HelmReleases of Flux 1
	present  map[store.Key]*manifest.Object  // objects of the input whose names have the operator's prefix
	released map[helmName][]*manifest.Object // by Helm release; nil without HelmReleases of Flux 1
}

// Chart returns the HelmChart that is derived from a release, or nil.
func (d *derivations) Chart(release *manifest.Object) *manifest.Object {
	if made := d.Of[release]; made != nil && made.Err == nil {
		return made.Chart
	}
	return nil
}

// Objects returns the objects of the input, with derived HelmCharts and sources before their HelmRelease and ExternalArtifacts
// after their generator.
func (inv *Inventory) Objects() []*manifest.Object { return inv.Derivations().objects }

// Derivations returns the derived objects, which it creates on first use.
func (inv *Inventory) Derivations() *derivations {
	inv.deriveOnce.Do(func() { inv.derivations = inv.deriveAll() })
	return inv.derivations
}

func (inv *Inventory) deriveAll() *derivations {
	all := &derivations{objects: inv.set.Objects(), Of: map[*manifest.Object]*derivation{}, byKey: map[store.Key]*manifest.Object{}}
	var releases []*manifest.Object
	makers := map[store.Key][]*manifest.Object{}
	for _, obj := range all.objects {
		switch {
		case IsRelease(obj):
			releases = append(releases, obj)
		case obj.Group() == manifest.SourceGroup && obj.Kind == sourcev1.HelmChartKind:
			makers[KeyOf(obj)] = append(makers[KeyOf(obj)], obj)
		}
	}
	inv.deriveArtifacts(all)
	inv.findKnots(all)
	inv.deriveOperated(all)
	made := make([]*derivation, len(releases))
	work.Ordered(len(releases), goruntime.GOMAXPROCS(0), func(i int) {
		made[i] = inv.derive(releases[i])
		inv.forget(releases[i])
	})
	for i, obj := range releases {
		d := made[i]
		if d == nil {
			continue
		}
		all.Of[obj] = d
		if d.Err == nil {
			makers[d.key] = append(slices.DeleteFunc(makers[d.key], func(other *manifest.Object) bool { return madeFor(other, obj) }), obj)
		}
	}
	for _, d := range all.Of {
		d.complete(makers[d.key])
	}
	all.insert()
	return all
}

// derive returns the HelmChart of a release or its error, or nil if the release is rejected or suspended, or has no chart
// template.
func (inv *Inventory) derive(obj *manifest.Object) *derivation {
	adm, err := inv.Admit(obj)
	if err != nil {
		return nil
	}
	hr := adm.Typed.(*helmv2.HelmRelease)
	if hr.Spec.Suspend || hr.Spec.Chart == nil {
		return nil
	}
	chart := chartOf(hr)
	d := &derivation{key: store.NewKey(chart.Kind, chart.Namespace, chart.Name)}
	d.Err = inv.Access(obj.Namespace, chart.Kind, chart.Namespace, chart.Name, "spec", "chart", "spec", "sourceRef", "namespace")
	if d.Err == nil {
		d.Chart, d.Err = deriveFrom(obj, chart, PathInTemplate)
	}
	if d.Err == nil {
		var made *admission.Admitted
		if made, d.refused = inv.Admit(d.Chart); made != nil {
			d.Chart.Content = made.Content
		}
		inv.forget(d.Chart)
	}
	return d
}

// complete sets the error of a HelmChart that another object also defines, or
// that the API server would reject.
func (d *derivation) complete(makers []*manifest.Object) {
	if d.Err == nil && len(makers) > 1 {
		d.Err = d.clash(makers)
	}
	if d.Err == nil {
		var invalid *admission.InvalidError
		if d.Err = d.refused; errors.As(d.refused, &invalid) {
			d.Err = Unapplied(invalid)
		}
	}
	if d.Err != nil {
		d.Chart = nil
	}
}

// insert adds the derived objects to the list of objects. They replace a HelmChart or an ExternalArtifact that was read from a
// cluster, because its controller would update it.
func (all *derivations) insert() {
	for _, d := range all.Of {
		if d.Chart != nil {
			all.byKey[d.key] = d.Chart
		}
	}
	var placed []*manifest.Object
	for _, obj := range all.objects {
		if o := all.operated[obj]; o != nil && o.chart != nil {
			if o.source.Origin == obj {
				placed = append(placed, o.source)
			}
			placed = append(placed, o.chart)
		}
		if d := all.Of[obj]; d != nil && d.Chart != nil {
			placed = append(placed, d.Chart)
		}
		if made := all.byKey[KeyOf(obj)]; made == nil || !madeFor(obj, made.Origin) {
			placed = append(placed, obj)
		}
		for _, made := range all.made[obj] {
			if all.byKey[KeyOf(made)] == made {
				placed = append(placed, made)
			}
		}
	}
	all.objects = placed
}

// madeFor reports whether a HelmChart has the labels that helm-controller sets for this release, or whether an ExternalArtifact
// can be that of this generator.
func madeFor(obj, release *manifest.Object) bool {
	labels := manifest.At[map[string]any](obj.Content, "metadata", "labels")
	if isGenerator(release) {
		return obj.Kind == sourcev1.ExternalArtifactKind
	}
	return obj.Kind == sourcev1.HelmChartKind && labels[ownerNameLabel] == release.Name && labels[ownerNamespaceLabel] == release.Namespace
}

func IsRelease(obj *manifest.Object) bool {
	return obj.Group() == manifest.ReleaseGroup && obj.Kind == helmv2.HelmReleaseKind
}

func KeyOf(obj *manifest.Object) store.Key {
	return store.NewKey(obj.Kind, obj.Namespace, obj.Name)
}

// DerivedKey returns the key of the HelmChart for a release, also if the release
// is suspended or rejected.
func DerivedKey(release *manifest.Object) (store.Key, bool) {
	if IsOperated(release) {
		return store.NewKey(sourcev1.HelmChartKind, release.Namespace, operatedChartName(release.Group(), release.Namespace, release.Name)), true
	}
	if !IsRelease(release) {
		return store.Key{}, false
	}
	spec, _ := release.Content["spec"].(map[string]any)
	chart, ok := spec["chart"].(map[string]any)
	if !ok {
		return store.Key{}, false
	}
	namespace := release.Namespace
	if other := manifest.At[string](chart, "spec", "sourceRef", "namespace"); other != "" {
		namespace = other
	}
	return store.NewKey(sourcev1.HelmChartKind, namespace, release.Namespace+"-"+release.Name), true
}

// clash returns the error of a HelmChart that several objects of the input define.
func (d *derivation) clash(makers []*manifest.Object) error {
	names, places := make([]string, len(makers)), make([]string, len(makers))
	for i, m := range makers {
		names[i], places[i] = m.String(), fmt.Sprintf("%s at %s", m, m.Pos)
	}
	slices.Sort(names)
	slices.Sort(places)
	return &finding.Problem{
		Code: finding.ChartClash, Field: []any{"metadata", "name"},
		Text:   fmt.Sprintf("HelmChart %s/%s is defined by %s: only one can own it", d.key.Namespace, d.key.Name, strings.Join(names, " and ")),
		Advice: "the HelmChart of a HelmRelease is called NAMESPACE-NAME and is in the namespace of its source: rename one of " + strings.Join(places, " and "),
	}
}

// Unapplied returns the error of a HelmChart that the API server would reject when helm-controller applies it.
func Unapplied(err *admission.InvalidError) error {
	return &finding.Problem{
		Code: finding.RefusedChart, Field: PathInTemplate(err.Causes[0].Path), Text: "failed to run server-side apply: " + err.Message, Err: err,
	}
}

// namespacedURL is the URL of a repository in a namespace.
type namespacedURL struct{ namespace, url string }

// Repository returns the HelmRepository with a URL in a namespace, the first by
// name if there are several, or nil.
func (inv *Inventory) Repository(namespace, normal string) *admission.Admitted {
	inv.placesOnce.Do(func() { inv.places = inv.repositories() })
	return inv.places[namespacedURL{namespace, normal}]
}

func (inv *Inventory) repositories() map[namespacedURL]*admission.Admitted {
	places := map[namespacedURL]*admission.Admitted{}
	for _, obj := range inv.set.Objects() {
		if obj.Kind != sourcev1.HelmRepositoryKind {
			continue
		}
		adm, err := inv.Admit(obj)
		if err != nil {
			continue // for a controller it does not exist
		}
		repo := adm.Typed.(*sourcev1.HelmRepository)
		normal, err := fetch.NormalizeURL(repo.Spec.URL)
		if err != nil || IsRegistryURL(normal) != (repo.Spec.Type == sourcev1.HelmRepositoryTypeOCI) {
			continue
		}
		at := namespacedURL{obj.Namespace, normal}
		if first := places[at]; first == nil || obj.Name < first.Object.Name {
			places[at] = adm
		}
	}
	return places
}

func IsRegistryURL(url string) bool {
	return strings.HasPrefix(url, sourcev1.HelmRepositoryTypeOCI+"://")
}
