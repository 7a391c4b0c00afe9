package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/store"
)

// operatorPrefix begins the names of objects derived from HelmReleases of Flux 1, so that they differ from objects of Flux 2.
const operatorPrefix = "helm-operator-"

// olderPrefix begins the names of charts of the older API group, whose HelmReleases may have the same names as those of the newer
// group. A namespace has no dot, so no other name begins with it.
const olderPrefix = operatorPrefix + "v1beta1."

func operatedChartName(group, namespace, name string) string {
	if group == operator.OlderGroup {
		return olderPrefix + namespace + "-" + name
	}
	return operatorPrefix + namespace + "-" + name
}

// operatorInterval replaces the flags of the operator: a derived object needs an interval.
const operatorInterval = 10 * time.Minute

// IsOperated reports whether an object is a HelmRelease of Flux 1.
func IsOperated(obj *manifest.Object) bool {
	return manifest.IsFlux1(obj.Group()) && manifest.BareKind(obj.Kind) == operator.Kind
}

type operated struct {
	source, chart *manifest.Object
	err           error // why there is no chart
}

// Operated returns the typed HelmRelease of Flux 1 that an object is or was derived from, nil for other objects.
func (inv *Inventory) Operated(obj *manifest.Object) *operator.HelmRelease {
	for ; obj != nil; obj = obj.Origin {
		if !IsOperated(obj) {
			continue
		}
		if adm, err := inv.Admit(obj); err == nil {
			return adm.Typed.(*operator.HelmRelease)
		}
		return nil
	}
	return nil
}

// OperatedChart returns the HelmChart that is derived from a HelmRelease of Flux 1.
func (inv *Inventory) OperatedChart(obj *manifest.Object) (*admission.Admitted, error) {
	o := inv.Derivations().operated[obj]
	if o == nil {
		return nil, &finding.Problem{
			Code: finding.NoChartSource, Text: "could not find valid chart source configuration for release",
			Advice: "spec.chart needs git and path, or repository, name and version",
		}
	}
	if o.err != nil {
		return nil, o.err
	}
	return inv.Admit(o.chart)
}

// OperatedSource returns the source object that is derived from a HelmRelease of Flux 1, possibly shared with others, or nil.
func (inv *Inventory) OperatedSource(obj *manifest.Object) *manifest.Object {
	if o := inv.Derivations().operated[obj]; o != nil {
		return o.source
	}
	return nil
}

// OperatedReference returns the kind, namespace and name of the HelmChart that is derived from a HelmRelease of Flux 1.
func OperatedReference(hr *operator.HelmRelease) (kind, namespace, name string) {
	if hr.Spec.Chart.Source() == operator.NoSource {
		return "", "", ""
	}
	return sourcev1.HelmChartKind, hr.Namespace, operatedChartName(hr.GroupVersionKind().Group, hr.Namespace, hr.Name)
}

// deriveOperated creates the sources and HelmCharts of the HelmReleases of Flux 1. Equal sources of a namespace are shared.
func (inv *Inventory) deriveOperated(all *derivations) {
	all.operated, all.present = map[*manifest.Object]*operated{}, map[store.Key]*manifest.Object{}
	if slices.ContainsFunc(all.objects, IsOperated) {
		inv.indexReleases(all)
		all.dropPrinted()
	}
	for _, obj := range all.objects {
		if !IsOperated(obj) {
			continue
		}
		adm, err := inv.Admit(obj)
		if err != nil {
			continue
		}
		hr := adm.Typed.(*operator.HelmRelease)
		if hr.Ignored() || hr.Spec.Chart.Source() == operator.NoSource {
			continue
		}
		all.operated[obj] = inv.operate(all, obj, hr)
	}
}

func (inv *Inventory) operate(all *derivations, obj *manifest.Object, hr *operator.HelmRelease) *operated {
	if name := hr.GetReleaseName(); len(name) > maxReleaseName {
		return &operated{err: longName(name, hr.Spec.ReleaseName != "")}
	}
	source, chart := operatedSource(hr), operatedChart(hr)
	key := store.NewKey(source.GetObjectKind().GroupVersionKind().Kind, source.GetNamespace(), source.GetName())
	o := &operated{source: all.byKey[key]}
	if o.source == nil {
		o.source, o.err = deriveFrom(obj, source, pathInOperatedSource)
	}
	if o.err == nil {
		_, o.err = inv.Admit(o.source)
	}
	if other := all.present[store.NewKey(sourcev1.HelmChartKind, chart.GetNamespace(), chart.GetName())]; other != nil && o.err == nil {
		o.err = &finding.Problem{
			Code: finding.ChartClash, Field: []any{"metadata", "name"},
			Text:   fmt.Sprintf("%s is in the input as well: only one of them can have the name", other),
			Advice: fmt.Sprintf("the HelmChart of a HelmRelease of Flux 1 is called %sNAMESPACE-NAME: rename the one at %s", operatorPrefix, other.Pos),
		}
	}
	if o.err == nil {
		o.chart, o.err = deriveFrom(obj, chart, pathInOperatedChart(hr))
	}
	if o.err == nil {
		_, o.err = inv.Admit(o.chart)
	}
	if o.err != nil {
		return &operated{err: o.err}
	}
	all.byKey[key] = o.source
	all.byKey[KeyOf(o.chart)] = o.chart
	return o
}

// maxReleaseName is the longest name that Helm accepts, in bytes.
const maxReleaseName = 53

// longName returns the error of a release name that is too long for Helm. The operator fails only at the installation.
func longName(name string, given bool) error {
	field := []any{"metadata", "name"}
	if given {
		field = []any{"spec", "releaseName"}
	}
	return &finding.Problem{
		Code: finding.RefusedName, Field: field, Advice: "set spec.releaseName",
		Text: fmt.Sprintf("the release name '%s' has %d characters, Helm accepts %d", name, len(name), maxReleaseName),
	}
}

// dropPrinted removes objects that an earlier run derived from HelmReleases of Flux 1 and printed: they are derived again. It
// indexes other objects whose names have the prefix.
func (all *derivations) dropPrinted() {
	all.objects = slices.DeleteFunc(slices.Clone(all.objects), func(obj *manifest.Object) bool {
		if obj.Group() != manifest.SourceGroup || !strings.HasPrefix(obj.Name, operatorPrefix) {
			return false
		}
		annotations := manifest.At[map[string]any](obj.Content, "metadata", "annotations")
		if _, printed := annotations[OriginAnnotation]; printed {
			return true
		}
		all.present[KeyOf(obj)] = obj
		return false
	})
}

// object is an object of source-controller's API.
type object interface {
	runtime.Object
	metav1.Object
}

func deriveFrom(release *manifest.Object, made object, fieldOf func([]any) []any) (*manifest.Object, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(made)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", made.GetName(), release, err)
	}
	delete(content, "status")
	delete(manifest.At[map[string]any](content, "metadata"), "creationTimestamp")
	kind := made.GetObjectKind().GroupVersionKind()
	return release.Derive(manifest.Object{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: made.GetNamespace(), Name: made.GetName(),
		Content: runtime.DeepCopyJSON(content), // a copy: the converter's maps have capacity for every possible field
	}, fieldOf), nil
}

func operatedSource(hr *operator.HelmRelease) object {
	chart := &hr.Spec.Chart
	interval := metav1.Duration{Duration: operatorInterval}
	if chart.Source() == operator.RepositorySource {
		return &sourcev1.HelmRepository{
			TypeMeta:   metav1.TypeMeta{APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.HelmRepositoryKind},
			ObjectMeta: metav1.ObjectMeta{Namespace: hr.Namespace, Name: sourceName(sourcev1.HelmRepositoryKind, chart)},
			Spec:       sourcev1.HelmRepositorySpec{URL: chart.Repository, Interval: interval},
		}
	}
	repo := &sourcev1.GitRepository{
		TypeMeta:   metav1.TypeMeta{APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.GitRepositoryKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: hr.Namespace, Name: sourceName(sourcev1.GitRepositoryKind, chart)},
		Spec: sourcev1.GitRepositorySpec{
			URL: chart.GitURL(), Interval: interval, Reference: &sourcev1.GitRepositoryRef{Name: chart.RefOr(operator.DefaultRef)},
		},
	}
	if ref := chart.SecretRef; ref != nil && chart.ReadsSecret() && (ref.Namespace == "" || ref.Namespace == hr.Namespace) {
		repo.Spec.SecretRef = &meta.LocalObjectReference{Name: ref.Name}
	}
	return repo
}

func operatedChart(hr *operator.HelmRelease) object {
	chart := &hr.Spec.Chart
	_, namespace, name := OperatedReference(hr)
	made := &sourcev1.HelmChart{
		TypeMeta:   metav1.TypeMeta{APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.HelmChartKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: sourcev1.HelmChartSpec{
			Chart: chart.Name, Version: chart.Version, Interval: metav1.Duration{Duration: operatorInterval},
			ReconcileStrategy: sourcev1.ReconcileStrategyChartVersion,
			SourceRef:         sourcev1.LocalHelmChartSourceReference{Kind: sourcev1.HelmRepositoryKind, Name: sourceName(sourcev1.HelmRepositoryKind, chart)},
		},
	}
	if chart.Source() == operator.GitSource {
		made.Spec.Chart, made.Spec.Version = strings.TrimLeft(chart.Path, "/"), ""
		made.Spec.SourceRef = sourcev1.LocalHelmChartSourceReference{Kind: sourcev1.GitRepositoryKind, Name: sourceName(sourcev1.GitRepositoryKind, chart)}
	}
	return made
}

func sourceName(kind string, chart *operator.Chart) string {
	parts := []string{kind}
	if kind == sourcev1.HelmRepositoryKind {
		address, query, _ := strings.Cut(chart.Repository, "?")
		parts = append(parts, strings.TrimRight(address, "/")+"/", query)
	} else {
		parts = append(parts, chart.GitURL(), chart.RefOr(operator.DefaultRef))
		if ref := chart.SecretRef; ref != nil {
			parts = append(parts, ref.Namespace, ref.Name)
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return operatorPrefix + hex.EncodeToString(sum[:])[:10]
}

// pathInOperatedSource returns the field of the release from which a field of the source is copied.
func pathInOperatedSource(path []any) []any {
	at := []any{"spec", "chart"}
	if len(path) < 2 || path[0] != "spec" {
		return at
	}
	switch path[1] {
	case "url":
		return append(at, "repository")
	case "ref":
		return append(at, "ref")
	case "secretRef":
		return append(at, slices.Clone(path[1:])...)
	}
	return at
}

func pathInOperatedChart(hr *operator.HelmRelease) func(path []any) []any {
	git := hr.Spec.Chart.Source() == operator.GitSource
	return func(path []any) []any {
		at := []any{"spec", "chart"}
		switch {
		case len(path) >= 2 && path[0] == "metadata" && path[1] == "name":
			return []any{"metadata", "name"}
		case len(path) < 2 || path[0] != "spec":
			return at
		case path[1] == "chart" && git:
			return append(at, "path")
		case path[1] == "chart":
			return append(at, "name")
		case path[1] == "version" && !git:
			return append(at, "version")
		case git:
			return append(at, "git")
		}
		return append(at, "repository")
	}
}
