package admission

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

const helmChart = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata:
  name: podinfo
spec:
  chart: podinfo
  interval: 5m
  sourceRef:
    kind: HelmRepository
    name: podinfo
`

func replace(old, new string) string { return strings.Replace(helmChart, old, new, 1) }

func TestRefusals(t *testing.T) {
	invalid := `HelmChart.source.toolkit.fluxcd.io "podinfo" is invalid: `
	strict := `HelmChart in version "v1" cannot be handled as a HelmChart: strict decoding error: `
	unreadable := `HelmChart in version "v1" cannot be handled as a HelmChart: `
	tests := []struct{ name, text, position, message, hint string }{
		{"a required field", replace("  interval: 5m\n", ""), "5:1", invalid + "spec.interval: Required value", ""},
		{"several", replace("  interval: 5m\n", "  interval: 5\n  reconcileStrategy: x\n"), "7:3",
			invalid + `[spec.interval: Invalid value: "integer": spec.interval in body must be of type string: "integer", spec.reconcileStrategy: Unsupported value: "x": supported values: "ChartVersion", "Revision"]`,
			"a duration has a unit, as in 90s or 10m"},
		{"days", replace("interval: 5m", "interval: 7d"), "7:3", invalid + `spec.interval: Invalid value: "7d": spec.interval in body should match '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'`, "a duration has no days: write 168h"},
		{"a word", replace("interval: 5m", "interval: 10 Minutes"), "7:3", invalid + `spec.interval: Invalid value: "10 Minutes": spec.interval in body should match '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'`, "write 10m"},
		{"a misspelt kind", replace("kind: HelmRepository", "kind: HelmRepositry"), "9:5", invalid + `spec.sourceRef.kind: Unsupported value: "HelmRepositry": supported values: "HelmRepository", "GitRepository", "Bucket"`, "did you mean HelmRepository?"},
		{"two that are missing", replace("  chart: podinfo\n  interval: 5m\n", ""), "5:1", invalid + "[spec.chart: Required value, spec.interval: Required value]", ""},

		{"unknown field", replace("chart: podinfo", "chrat: podinfo"), "6:3", strict + `unknown field "spec.chrat"`, "did you mean spec.chart?"},
		{"unknown fields", replace("    name: podinfo", "    nmae: podinfo\nspce: {}"), "10:5", strict + `unknown field "spec.sourceRef.nmae", unknown field "spce"`, "did you mean spec.sourceRef.name?; did you mean spec?"},
		{"unknown field of the metadata", replace("  name: podinfo", "  name: podinfo\n  lables: {a: b}"), "5:3", strict + `unknown field "metadata.lables"`, "did you mean metadata.labels?"},
		{"unknown field in a list", helmChart + "  verify:\n    matchOIDCIdentity:\n    - {issuer: a, subject: b, foo: c}\n", "13:31", strict + `unknown field "spec.verify.matchOIDCIdentity[0].foo"`, ""},
		{"unknown field with dots", helmChart + "  a.b: c\n", "11:3", strict + `unknown field "spec.a.b"`, ""},
		{"another case", replace("chart: podinfo", "Chart: podinfo"), "6:3", strict + `unknown field "spec.Chart"`, "did you mean spec.chart?"},
		{"a field of the spec outside", replace("spec:", "interval: 5m\nspec:"), "5:1", strict + `unknown field "interval"`, "interval belongs in spec"},
		{"a field of the old versions", helmChart + "  valuesFile: a.yaml\n", "11:3", strict + `unknown field "spec.valuesFile"`, "v1 has no spec.valuesFile: put the file first in spec.valuesFiles"},
		{"accessFrom", helmChart + "  accessFrom: {namespaceSelectors: []}\n", "11:3", strict + `unknown field "spec.accessFrom"`, "v1 has no spec.accessFrom: leave it out"},
		{"a field of the wrong kind", helmChart + "  url: https://x\n", "11:3", strict + `unknown field "spec.url"`, ""},

		{"no name", replace("  name: podinfo\n", "  labels: {a: b}\n"), "3:1", `HelmChart.source.toolkit.fluxcd.io "" is invalid: metadata.name: Required value: name or generateName is required`, ""},
		{"no metadata", replace("metadata:\n  name: podinfo\n", ""), "1:1", `HelmChart.source.toolkit.fluxcd.io "" is invalid: metadata.name: Required value: name or generateName is required`, ""},
		{"generateName", replace("  name: podinfo\n", "  generateName: a-\n"), "3:1", `HelmChart.source.toolkit.fluxcd.io "" is invalid: metadata.name: Required value: cannot use generate name with apply`, ""},
		{"name", replace("name: podinfo", "name: Pod_info"), "4:3",
			`HelmChart.source.toolkit.fluxcd.io "Pod_info" is invalid: metadata.name: Invalid value: "Pod_info": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, ""},
		{"name that climbs", replace("name: podinfo", "name: ../a"), "4:3",
			`HelmChart.source.toolkit.fluxcd.io "../a" is invalid: metadata.name: Invalid value: "../a": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, ""},
		{"namespace", replace("name: podinfo", "name: podinfo\n  namespace: a.b"), "5:3", invalid + `metadata.namespace: Invalid value: "a.b": must not contain dots`, ""},
		{"namespace with capitals", replace("name: podinfo", "name: podinfo\n  namespace: Apps"), "5:3",
			invalid + `metadata.namespace: Invalid value: "Apps": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`, ""},
		{"label", replace("name: podinfo", "name: podinfo\n  labels: {a: b c}"), "5:3",
			invalid + `metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`, ""},
		{"annotation", replace("name: podinfo", "name: podinfo\n  annotations: {a/b/c: d}"), "5:3",
			invalid + `metadata.annotations: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`, ""},
		{"generation", replace("name: podinfo", "name: podinfo\n  generation: -1"), "5:3", invalid + `metadata.generation: Invalid value: -1: must be greater than or equal to 0`, ""},

		{"name is a boolean", replace("name: podinfo", "name: yes"), "4:3", unreadable + "json: cannot unmarshal bool into Go struct field ObjectMeta.name of type string", quoteHint},
		{"name is a number", replace("name: podinfo", "name: 5"), "4:3", unreadable + "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string", quoteHint},
		{"label is a number", replace("name: podinfo", "name: podinfo\n  labels: {a: 1}"), "5:3", unreadable + "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string", ""},
		{"metadata is a list", replace("metadata:\n  name: podinfo\n", "metadata: []\n"), "3:1", unreadable + "json: cannot unmarshal array into Go value of type v1.ObjectMeta", ""},
		{"spec is text", strings.Split(helmChart, "spec:")[0] + "spec: podinfo\n", "5:1", invalid + `spec: Invalid value: "string": spec in body must be of type object: "string"`, ""},

		{"version that never was", replace("/v1", "/v2"), "1:1", `no matches for kind "HelmChart" in version "source.toolkit.fluxcd.io/v2"`, "the version is source.toolkit.fluxcd.io/v1"},
		{"no version", replace("/v1", ""), "1:1", `no matches for kind "HelmChart" in version "source.toolkit.fluxcd.io"`, "the version is source.toolkit.fluxcd.io/v1"},

		{"unresolved variable", replace("interval: 5m", "interval: ${INTERVAL}"), "7:3",
			invalid + `spec.interval: Invalid value: "${INTERVAL}": spec.interval in body should match ` + intervalPattern, "${INTERVAL} was not substituted: give it a value with --substitute, or read the directory of its Kustomization with -R -f"},
		{"number for text", replace("interval: 5m", "interval: 5m\n  version: 1"), "8:3", invalid + `spec.version: Invalid value: "integer": spec.version in body must be of type string: "integer"`, quoteHint},
		{"URL without a scheme", of("HelmRepository", "url: example.com/charts"), "6:3",
			`HelmRepository.source.toolkit.fluxcd.io "x" is invalid: spec.url: Invalid value: "example.com/charts": spec.url in body should match '^(http|https|oci)://.*$'`, "a URL begins with a scheme, as in https://"},
		{"hours", of("HelmRepository", repoSpec+"timeout: 1h"), "7:3", `HelmRepository.source.toolkit.fluxcd.io "x" is invalid: spec.timeout: Invalid value: "1h": spec.timeout in body should match ` + timeoutPattern, "a timeout has no hours: write 60m for 1h"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := refusal(t, tt.text)
			if err.Message != tt.message {
				t.Errorf("message %s\n   want %s", err.Message, tt.message)
			}
			if got := position(err.Causes[0].Pos); got != tt.position {
				t.Errorf("it is at %s, want %s", got, tt.position)
			}
			if got := err.Hint(); got != tt.hint {
				t.Errorf("hint %q, want %q", got, tt.hint)
			}
			if want := err.Causes[0].Pos.String() + ": " + tt.message; err.Error() != want {
				t.Errorf("error %s, want %s", err, want)
			}
		})
	}
}

// The validator walks maps, whose order changes; the message does not.
func TestRefusalIsTheSameEveryTime(t *testing.T) {
	text := of("HelmChart", "interval: x\nversion: 1\nreconcileStrategy: x\nvaluesFiles: [1, 2, 3]\nsuspend: 1\nsourceRef: {kind: x}")
	first := refusal(t, text)
	for range 20 {
		if again := refusal(t, text); again.Message != first.Message {
			t.Fatalf("%s\n%s", first.Message, again.Message)
		}
	}
	if len(first.Causes) != 10 {
		t.Errorf("%d causes: %v", len(first.Causes), first.Causes)
	}
}

// Decision A4: such a repository stalls later, as the API document shows, and is not refused here.
func TestForeignSchemes(t *testing.T) {
	for _, url := range []string{"ftp://x", "file:///charts", "s3://b", "git+https://x"} {
		a := admitted(t, of("HelmRepository", "url: "+url))
		if got := a.Typed.(*sourcev1.HelmRepository).Spec.URL; got != url {
			t.Errorf("URL %s, want %s", got, url)
		}
	}
	for _, url := range []string{"ftp:/x", "//x", "HTTP://x", "''", "1://x", "x"} {
		refusal(t, of("HelmRepository", "url: "+url))
	}
	err := refusal(t, of("HelmRepository", "url: ftp://x\ninterval: x"))
	if len(err.Causes) != 1 || err.Causes[0].Field != "spec.interval" {
		t.Errorf("causes %v", err.Causes)
	}
	refusal(t, of("GitRepository", "url: ftp://x\ninterval: 1m"))
}

func TestStatusIsNotJudged(t *testing.T) {
	a := admitted(t, helmChart+"status:\n  foo: bar\n  conditions: 5\n")
	if a.Content["status"] != nil || a.Object.Content["status"] == nil {
		t.Errorf("status %v, was %v", a.Content["status"], a.Object.Content["status"])
	}
}

// The output of `kubectl get -o yaml` is admitted.
func TestObjectFromACluster(t *testing.T) {
	text := replace("  name: podinfo\n", `  name: podinfo
  namespace: apps
  uid: 4a4dd8b5-7a9d-4b1e-a1a7-1d8d5ef0f8f5
  resourceVersion: "1234"
  generation: 3
  creationTimestamp: "2024-01-02T03:04:05Z"
  deletionTimestamp: null
  finalizers: [finalizers.fluxcd.io]
  labels:
  annotations: {reconcile.fluxcd.io/requestedAt: now, empty: null}
  managedFields:
  - {manager: flux, operation: Apply, apiVersion: source.toolkit.fluxcd.io/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {}}, time: "2024-01-02T03:04:05Z"}
`)
	a := admitted(t, text)
	o := a.Typed.(*sourcev1.HelmChart)
	if o.Generation != 3 || o.Namespace != "apps" || o.Annotations["reconcile.fluxcd.io/requestedAt"] != "now" || o.CreationTimestamp.Year() != 2024 {
		t.Errorf("metadata %v", o.ObjectMeta)
	}
	if len(a.Warnings) != 0 {
		t.Errorf("warnings %v", a.Warnings)
	}
	if got := fmt.Sprint(slices.Sorted(maps.Keys(a.Content["metadata"].(map[string]any)))); got != "[annotations creationTimestamp finalizers generation managedFields name namespace resourceVersion uid]" {
		t.Errorf("metadata has %s", got)
	}
	if v, ok := o.Annotations["empty"]; !ok || v != "" {
		t.Errorf("a null annotation is an empty one, got %v", o.Annotations)
	}
}

func TestTyped(t *testing.T) {
	a := admitted(t, of("HelmRepository", "url: https://x\ninterval: 1h\ntimeout: 1.5m\nsecretRef: {name: a}\npassCredentials: true"))
	o := a.Typed.(*sourcev1.HelmRepository)
	if o.Spec.Interval.Duration != time.Hour || o.Spec.Timeout.Duration != 90*time.Second || o.Spec.SecretRef.Name != "a" || !o.Spec.PassCredentials ||
		o.Spec.Provider != "generic" || o.Name != "x" || o.Namespace != "default" || o.Kind != "HelmRepository" || o.APIVersion != "source.toolkit.fluxcd.io/v1" {
		t.Errorf("%+v", o)
	}
	if o := admitted(t, of("GitRepository", gitSpec)).Typed.(*sourcev1.GitRepository); o.Spec.Timeout.Duration != time.Minute {
		t.Errorf("%+v", o)
	}
	if o := admitted(t, of("Bucket", bucketSpec)).Typed.(*sourcev1.Bucket); o.Spec.BucketName != "b" {
		t.Errorf("%+v", o)
	}
}

// Admission works on a copy.
func TestInputIsNotChanged(t *testing.T) {
	obj := object(t, strings.Replace(helmChart, "/v1", "/v1beta2", 1)+"  valuesFile: a\n  valuesFiles: [b]\n  verify: {}\n")
	before := fmt.Sprint(obj.Content)
	if _, err := Admit(obj); err != nil {
		t.Fatal(err)
	}
	if after := fmt.Sprint(obj.Content); after != before {
		t.Errorf("%s\nwas %s", after, before)
	}
}

// TestContentIsShared checks that unchanged content is not in memory twice.
func TestContentIsShared(t *testing.T) {
	obj := object(t, "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a, namespace: b}\n"+
		"spec:\n  interval: 1h\n  chart:\n    spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}\n  values: {d: [{e: f}]}\n")
	adm, err := Admit(obj)
	if err != nil {
		t.Fatal(err)
	}
	of := func(content map[string]any, path ...any) uintptr {
		return reflect.ValueOf(manifest.ValueAt(content, path)).Pointer()
	}
	for path, shared := range map[string]bool{"values": true, "chart": false} {
		if got := of(adm.Content, "spec", path) == of(obj.Content, "spec", path); got != shared {
			t.Errorf("spec.%s is shared: %v, want %v", path, got, shared)
		}
	}
}

func TestConversion(t *testing.T) {
	tests := []struct {
		name, version, kind, spec string
		want                      string // the spec, or an error
		warnings                  []string
	}{
		{"valuesFile goes first", "v1beta2", "HelmChart", chartSpec + "valuesFile: a\nvaluesFiles: [b, c]\n",
			"valuesFiles:[a b c]", []string{"1:1: v1beta2 HelmChart is deprecated, upgrade to v1", "9:3: spec.valuesFile was removed in v1: it is used as the first of spec.valuesFiles"}},
		{"valuesFile alone", "v1beta1", "HelmChart", chartSpec + "valuesFile: a\n",
			"valuesFiles:[a]", []string{"1:1: v1beta1 HelmChart is deprecated, upgrade to v1", "9:3: spec.valuesFile was removed in v1: it is used as the first of spec.valuesFiles"}},
		{"no valuesFile", "v1beta2", "HelmChart", chartSpec + "valuesFile:\nvaluesFiles: [b]\n", "valuesFiles:[b]", []string{"1:1: v1beta2 HelmChart is deprecated, upgrade to v1"}},
		{"valuesFile of a wrong type", "v1beta2", "HelmChart", chartSpec + "valuesFile: [a]\n",
			`f.yaml:9:3: HelmChart.source.toolkit.fluxcd.io "x" is invalid: spec.valuesFile: Invalid value: "array": spec.valuesFile in body must be of type string: "array"`, nil},
		{"errors name the indexes of the file", "v1beta2", "HelmChart", chartSpec + "valuesFile: a\nvaluesFiles: [b, 1]\n",
			`f.yaml:10:20: HelmChart.source.toolkit.fluxcd.io "x" is invalid: spec.valuesFiles[1]: Invalid value: "integer": spec.valuesFiles[1] in body must be of type string: "integer"`, nil},
		{"capitals of RFC-0002", "v1beta1", "HelmRepository", "url: oci://x\ntype: OCI\n", "type:oci", []string{"1:1: v1beta1 HelmRepository is deprecated, upgrade to v1", "7:3: spec.type: OCI is written oci in v1"}},
		{"Default", "v1beta2", "HelmRepository", repoSpec + "type: Default\n", "type:default", []string{"1:1: v1beta2 HelmRepository is deprecated, upgrade to v1", "7:3: spec.type: Default is written default in v1"}},
		{"no other capitals", "v1beta2", "HelmRepository", repoSpec + "type: Oci\n",
			`f.yaml:7:3: HelmRepository.source.toolkit.fluxcd.io "x" is invalid: spec.type: Unsupported value: "Oci": supported values: "default", "oci"`, nil},
		{"fields that are gone", "v1beta2", "GitRepository", gitSpec + "gitImplementation: go-git\naccessFrom: {namespaceSelectors: []}\n", "timeout:60s",
			[]string{"1:1: v1beta2 GitRepository is deprecated, upgrade to v1", "8:3: spec.gitImplementation was removed in v1 and is ignored", "9:3: spec.accessFrom was removed in v1 and is ignored"}},
		{"of a Bucket", "v1beta1", "Bucket", bucketSpec + "accessFrom: {}\n", "timeout:60s", []string{"1:1: v1beta1 Bucket is deprecated, upgrade to v1", "9:3: spec.accessFrom was removed in v1 and is ignored"}},
		{"accessFrom of a HelmRepository is still there", "v1beta2", "HelmRepository", repoSpec + "accessFrom: {namespaceSelectors: []}\n", "accessFrom:map[namespaceSelectors:[]]", []string{"1:1: v1beta2 HelmRepository is deprecated, upgrade to v1"}},
		{"OCIRepository", "v1beta2", "OCIRepository", ociSpec + "ref: {semver: 1.x, semverFilter: a}\n", "ref:map[semver:1.x semverFilter:a]", []string{"1:1: v1beta2 OCIRepository is deprecated, upgrade to v1"}},
		{"OCIRepositories are younger than v1beta1", "v1beta1", "OCIRepository", ociSpec,
			`f.yaml:1:1: no matches for kind "OCIRepository" in version "source.toolkit.fluxcd.io/v1beta1"`, nil},
		{"unknown in the old versions too", "v1beta2", "HelmChart", chartSpec + "valueFile: a\n",
			`f.yaml:9:3: HelmChart in version "v1beta2" cannot be handled as a HelmChart: strict decoding error: unknown field "spec.valueFile"`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			obj := object(t, strings.Replace(of(tt.kind, tt.spec), "/v1", "/"+tt.version, 1))
			a, err := Admit(obj)
			if err != nil {
				if !strings.HasSuffix(err.Error(), tt.want) {
					t.Errorf("error %v\n want %s", err, tt.want)
				}
				return
			}
			if got := fmt.Sprint(a.Content["spec"]); !strings.Contains(got, tt.want) || strings.Contains(got, "valuesFile:") || a.Content["apiVersion"] != sourcev1.GroupVersion.String() {
				t.Errorf("spec %s, want %s", got, tt.want)
			}
			checkWarnings(t, a, tt.warnings)
			if chart, ok := a.Typed.(*sourcev1.HelmChart); ok && fmt.Sprintf("valuesFiles:%v", chart.Spec.ValuesFiles) != tt.want {
				t.Errorf("valuesFiles %v", chart.Spec.ValuesFiles)
			}
		})
	}
}

func checkWarnings(t *testing.T, a *Admitted, want []string) {
	t.Helper()
	var got []string
	for _, w := range a.Warnings {
		got = append(got, position(w.Pos)+": "+w.Message)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("warnings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct {
		kind, line string
		want       []string
	}{
		{"HelmRepository", "", nil},
		{"HelmRepository", "passCredentials: true", []string{"7:3: spec.passCredentials: true sends the credentials to every host that the index names"}},
		{"HelmRepository", "url: oci://x\ntype: oci\npassCredentials: true", []string{"8:3: spec.passCredentials: true has no effect on a repository of type oci"}},
		{"HelmRepository", "passCredentials: false", nil},
		{"HelmRepository", "insecure: true\nprovider: aws", []string{"7:3: spec.insecure: true has no effect on a repository that is not of type oci", "8:3: spec.provider: aws has no effect on a repository that is not of type oci"}},
		{"HelmRepository", "type: default\nprovider: azure", []string{"8:3: spec.provider: azure has no effect on a repository that is not of type oci"}},
		{"HelmRepository", "provider: generic\ninsecure: false", nil},
		{"HelmRepository", "url: oci://x\ntype: oci\nprovider: aws\ninsecure: true", nil},
		{"HelmChart", "verify: {secretRef: {name: a}}", nil},
		{"HelmChart", "verify: {matchOIDCIdentity: [{issuer: a, subject: b}]}", nil},
		{"HelmChart", "verify: {}", []string{"9:3: spec.verify without secretRef and matchOIDCIdentity accepts signatures from anyone"}},
		{"HelmChart", "verify: {matchOIDCIdentity: []}", []string{"9:3: spec.verify without secretRef and matchOIDCIdentity accepts signatures from anyone"}},
		{"HelmChart", "verify: {provider: notation, secretRef: {name: a}, matchOIDCIdentity: [{issuer: a, subject: b}]}", []string{"9:54: spec.verify.matchOIDCIdentity has no effect with provider notation"}},
		{"HelmChart", "verify: {provider: notation, secretRef: {name: a}}", nil},
		{"OCIRepository", "ref: {tag: a, digest: b}", nil},
		{"OCIRepository", "ref: {semver: a, digest: b}", []string{"8:9: spec.ref.semver has no effect beside spec.ref.digest"}},
		{"OCIRepository", "ref: {semver: a, tag: b}", []string{"8:20: spec.ref.tag has no effect beside spec.ref.semver"}},
		{"OCIRepository", "ref: {semverFilter: a}", []string{"8:9: spec.ref.semverFilter has no effect without spec.ref.semver"}},
		{"OCIRepository", "ignore: a\nlayerSelector: {operation: copy}", []string{"8:3: spec.ignore has no effect with spec.layerSelector.operation: copy"}},
		{"OCIRepository", "ignore: a\nlayerSelector: {operation: extract}", nil},
		{"OCIRepository", "provider: aws\nsecretRef: {name: a}", []string{"8:3: spec.provider: aws has no effect beside spec.secretRef"}},
		{"OCIRepository", "provider: aws", nil},
		{"OCIRepository", "verify: {}", []string{"8:3: spec.verify without secretRef and matchOIDCIdentity accepts signatures from anyone"}},
		{"OCIRepository", "verify: {trustedRootSecretRef: {name: a}}", nil},
		{"OCIRepository", "verify: {secretRef: {name: a}, trustedRootSecretRef: {name: a}}", []string{"8:34: spec.verify.trustedRootSecretRef has no effect beside spec.verify.secretRef, but its Secret must exist"}},
		{"OCIRepository", "verify: {provider: notation, secretRef: {name: a}, trustedRootSecretRef: {name: a}}", []string{"8:54: spec.verify.trustedRootSecretRef has no effect with provider notation"}},
	}
	for _, tt := range tests {
		t.Run(tt.kind+"/"+tt.line, func(t *testing.T) {
			checkWarnings(t, admitted(t, of(tt.kind, with(specs[tt.kind], tt.line))), tt.want)
		})
	}
}

// A list element has its own position.
func TestPositionInAList(t *testing.T) {
	text := "kind: List\napiVersion: v1\nitems:\n- " + strings.ReplaceAll(replace("5m", "5"), "\n", "\n  ") + "\n"
	if got := position(refusal(t, text).Causes[0].Pos); got != "10:5" {
		t.Errorf("it is at %s", got)
	}
}

func TestUnknownKind(t *testing.T) {
	_, err := Admit(&manifest.Object{APIVersion: sourcev1.GroupVersion.String(), Kind: "HelmRegistry", Content: map[string]any{}})
	if err == nil || errors.As(err, new(*InvalidError)) {
		t.Errorf("error %v", err)
	}
}

// The schemas are generated from the version that the program is built with. The tools module tests that
// they are the output of the generator.
func TestSchemasAreOfThisVersion(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for kind := range schemas {
		if strings.Contains(kind, ".") {
			continue // they are written by hand
		}
		module := "github.com/fluxcd/source-controller/api "
		switch kind {
		case "HelmRelease":
			module = "github.com/fluxcd/helm-controller/api "
		case "ImagePolicy", "ImageRepository":
			module = "github.com/fluxcd/image-reflector-controller/api "
		case "Kustomization":
			module = "github.com/fluxcd/kustomize-controller/api "
		case "ArtifactGenerator":
			module = "github.com/fluxcd/source-watcher/api/v2 "
		}
		_, rest, _ := strings.Cut(string(mod), module)
		version := strings.Fields(rest)[0]
		data, err := crds.ReadFile("crds/" + kind + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), module+version+",") {
			t.Errorf("the schema of %s is not of %s: run go generate ./internal/admission", kind, version)
		}
	}
}
