package inventory

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// inventoryOf returns the inventory of YAML, as if it were the file f.yaml.
func inventoryOf(t *testing.T, text string) *Inventory {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile(filepath.Join(".", "f.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, errs := manifest.Load(t.Context(), manifest.Options{Files: []string{"f.yaml"}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return New(set)
}

func release(namespace, name, spec string) string {
	return fmt.Sprintf("---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: %s, namespace: %s}\nspec:\n  interval: 1m\n  chart:\n    %s\n",
		name, namespace, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n    "))
}

const template = `spec:
  chart: chart
  version: 1.0.0
  sourceRef: {kind: HelmRepository, name: test-repository}
  interval: 2m
  valuesFiles: [values.yaml]
`

// TestChartOf compares the HelmChart of a release, field by field, with the methods
// of helm-controller's types.
func TestChartOf(t *testing.T) {
	labels := map[string]string{"helm.toolkit.fluxcd.io/name": "test-release", "helm.toolkit.fluxcd.io/namespace": "default"}
	want := func(change func(*sourcev1.HelmChart)) *sourcev1.HelmChart {
		c := &sourcev1.HelmChart{
			TypeMeta:   metav1.TypeMeta{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "HelmChart"},
			ObjectMeta: metav1.ObjectMeta{Name: "default-test-release", Namespace: "default", Labels: labels},
			Spec: sourcev1.HelmChartSpec{
				Chart: "chart", Version: "1.0.0", Interval: metav1.Duration{Duration: 2 * 60e9}, ReconcileStrategy: "ChartVersion",
				SourceRef:   sourcev1.LocalHelmChartSourceReference{Kind: "HelmRepository", Name: "test-repository"},
				ValuesFiles: []string{"values.yaml"},
			},
		}
		change(c)
		return c
	}
	tests := []struct {
		name, spec string
		want       *sourcev1.HelmChart
	}{
		{"case R1: all fields", template, want(func(*sourcev1.HelmChart) {})},
		{"case R2: the interval is the release's", strings.Replace(template, "  interval: 2m\n", "", 1),
			want(func(c *sourcev1.HelmChart) { c.Spec.Interval.Duration = 60e9 })},
		{"case R3: the namespace is the source's", strings.Replace(template, "name: test-repository", "name: test-repository, namespace: cross, apiVersion: x/v1", 1),
			want(func(c *sourcev1.HelmChart) { c.Namespace = "cross" })},
		{"case R4: metadata", template + "metadata: {labels: {foo: bar, helm.toolkit.fluxcd.io/name: x}, annotations: {bar: baz}}",
			want(func(c *sourcev1.HelmChart) {
				c.Labels = map[string]string{"foo": "bar", "helm.toolkit.fluxcd.io/name": "test-release", "helm.toolkit.fluxcd.io/namespace": "default"}
				c.Annotations = map[string]string{"bar": "baz"}
			})},
		{"case R5: verify", template + "  verify: {secretRef: {name: cosign-key}}", want(func(c *sourcev1.HelmChart) {
			c.Spec.Verify = &sourcev1.HelmChartVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "cosign-key"}}
		})},
		{"case R6: defaults", strings.Replace(template, "  version: 1.0.0\n", "", 1), want(func(c *sourcev1.HelmChart) { c.Spec.Version = "*" })},
		{"strategy and missing values files", template + "  reconcileStrategy: Revision\n  ignoreMissingValuesFiles: true",
			want(func(c *sourcev1.HelmChart) {
				c.Spec.ReconcileStrategy, c.Spec.IgnoreMissingValuesFiles = "Revision", true
			})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inv := inventoryOf(t, release("default", "test-release", tt.spec))
			objects := inv.Objects()
			if len(objects) != 2 {
				t.Fatalf("%d objects", len(objects))
			}
			adm, err := inv.Admit(objects[0])
			if err != nil {
				t.Fatal(err)
			}
			got := adm.Typed.(*sourcev1.HelmChart)
			gotJSON, _ := json.MarshalIndent(got, "", " ")
			wantJSON, _ := json.MarshalIndent(tt.want, "", " ")
			if string(gotJSON) != string(wantJSON) {
				t.Errorf("%s\nwant %s", gotJSON, wantJSON)
			}
			judgeByAPI(t, inv, objects[1], got)
		})
	}
}

// judgeByAPI compares a HelmChart with the methods of helm-controller's types.
func judgeByAPI(t *testing.T, inv *Inventory, release *manifest.Object, got *sourcev1.HelmChart) {
	t.Helper()
	adm, err := inv.Admit(release)
	if err != nil {
		t.Fatal(err)
	}
	hr := adm.Typed.(*helmv2.HelmRelease)
	if got.Name != hr.GetHelmChartName() || got.Namespace != hr.Spec.Chart.GetNamespace(hr.Namespace) || got.Spec.Interval != hr.Spec.Chart.GetInterval(hr.Spec.Interval) {
		t.Errorf("%s/%s every %s", got.Namespace, got.Name, got.Spec.Interval.Duration)
	}
	hr.Status.HelmChart = got.Namespace + "/" + got.Name
	if namespace, name := hr.Status.GetHelmChart(); namespace != got.Namespace || name != got.Name {
		t.Errorf("status.helmChart names %s/%s", namespace, name)
	}
	if len(got.OwnerReferences) > 0 || len(got.Finalizers) > 0 || got.Spec.Suspend {
		t.Errorf("helm-controller sets none of these: %+v", got)
	}
}

func TestDerivedPlaces(t *testing.T) {
	inv := inventoryOf(t, release("default", "test-release", template+"metadata: {labels: {foo: bar}}"))
	chart := inv.Objects()[0]
	if chart.Origin != inv.Objects()[1] || OriginText(chart) != "HelmRelease default/test-release at f.yaml:2:1" {
		t.Errorf("origin %s", OriginText(chart))
	}
	tests := []struct {
		path []any
		want string
	}{
		{nil, "f.yaml:7:3"},
		{[]any{"spec"}, "f.yaml:8:5"},
		{[]any{"spec", "version"}, "f.yaml:10:7"},
		{[]any{"spec", "valuesFiles", 0}, "f.yaml:13:21"},
		{[]any{"spec", "sourceRef", "name"}, "f.yaml:11:41"},
		{[]any{"spec", "verify"}, "f.yaml:8:5"},
		{[]any{"metadata"}, "f.yaml:7:3"},
		{[]any{"metadata", "name"}, "f.yaml:4:12"},
		{[]any{"metadata", "labels", "foo"}, "f.yaml:14:25"},
		{[]any{"metadata", "labels", "helm.toolkit.fluxcd.io/name"}, "f.yaml:4:12"},
		{[]any{"metadata", "namespace"}, "f.yaml:11:7"},
	}
	for _, tt := range tests {
		if got := chart.Position(tt.path...).String(); got != tt.want {
			t.Errorf("%v is at %s, want %s", tt.path, got, tt.want)
		}
	}
}

func TestDerivedClashes(t *testing.T) {
	far := strings.Replace(template, "name: test-repository", "name: test-repository, namespace: flux-system", 1)
	hand := "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata: {name: a-b-c, namespace: flux-system%s}\nspec: {chart: x, interval: 1m, sourceRef: {kind: HelmRepository, name: y}}\n"
	long := strings.Repeat("a", 64)
	tests := []struct {
		name, text string
		objects    []string
		want       []string // errors by release
	}{
		{"case R10", release("a-b", "c", far) + release("a", "b-c", far), []string{"HelmRelease a-b/c", "HelmRelease a/b-c"},
			[]string{"HelmChart flux-system/a-b-c is defined by HelmRelease a-b/c and HelmRelease a/b-c: only one can own it",
				"HelmChart flux-system/a-b-c is defined by HelmRelease a-b/c and HelmRelease a/b-c: only one can own it"}},
		{"not in other namespaces", release("a-b", "c", template) + release("a", "b-c", template),
			[]string{"HelmChart a-b/a-b-c", "HelmRelease a-b/c", "HelmChart a/a-b-c", "HelmRelease a/b-c"}, []string{"", ""}},
		{"written by hand", release("a", "b-c", far) + fmt.Sprintf(hand, ""), []string{"HelmRelease a/b-c", "HelmChart flux-system/a-b-c"},
			[]string{"HelmChart flux-system/a-b-c is defined by HelmChart flux-system/a-b-c and HelmRelease a/b-c: only one can own it"}},
		{"read from a cluster", release("a", "b-c", far) +
			fmt.Sprintf(hand, ", labels: {helm.toolkit.fluxcd.io/name: b-c, helm.toolkit.fluxcd.io/namespace: a}"),
			[]string{"HelmChart flux-system/a-b-c", "HelmRelease a/b-c"}, []string{""}},
		{"case R11", release("a", long, far), []string{"HelmRelease a/" + long},
			[]string{`failed to run server-side apply: HelmChart.source.toolkit.fluxcd.io "a-` + long + `" is invalid: metadata.labels: Invalid value: "` + long + `": must be no more than 63 bytes`}},
		{"case R26: suspended", strings.Replace(release("a", "b", far), "interval: 1m", "interval: 1m\n  suspend: true", 1), []string{"HelmRelease a/b"}, []string{""}},
		{"rejected", strings.Replace(release("a", "b", far), "interval: 1m", "interval: 1", 1), []string{"HelmRelease a/b"}, []string{""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inv := inventoryOf(t, tt.text)
			var objects, errs []string
			for _, obj := range inv.Objects() {
				objects = append(objects, obj.String())
				if !IsRelease(obj) {
					continue
				}
				text := ""
				if d := inv.Derivations().Of[obj]; d != nil && d.Err != nil {
					text = d.Err.Error()
				}
				errs = append(errs, text)
			}
			if fmt.Sprint(objects) != fmt.Sprint(tt.objects) {
				t.Errorf("objects %v, want %v", objects, tt.objects)
			}
			if fmt.Sprintf("%q", errs) != fmt.Sprintf("%q", tt.want) {
				t.Errorf("errors %q\nwant   %q", errs, tt.want)
			}
		})
	}
}

func TestDerivedFound(t *testing.T) {
	inv := inventoryOf(t, release("a", "b", template))
	adm, err := inv.Find("HelmChart", "a", "a-b")
	if err != nil || adm.Object.Origin == nil || inv.Derivations().Of[adm.Object.Origin].Chart != adm.Object {
		t.Errorf("%v, %v", adm, err)
	}
	key, ok := DerivedKey(adm.Object.Origin)
	if !ok || key != KeyOf(adm.Object) {
		t.Errorf("key %v, want %v", key, KeyOf(adm.Object))
	}
	if _, ok := DerivedKey(adm.Object); ok {
		t.Error("a HelmChart makes no HelmChart")
	}
}
