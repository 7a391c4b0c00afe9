package admission

import (
	"errors"
	"os"
	"testing"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

func TestExamplesOfTheDocuments(t *testing.T) {
	text, err := os.ReadFile("testdata/examples.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list := objects(t, string(text))
	if len(list) != 10 {
		t.Errorf("%d objects", len(list))
	}
	for _, obj := range list {
		a, err := Admit(obj)
		if err != nil {
			t.Error(err)
			continue
		}
		if a.Object.APIVersion == manifest.SourceGroup+"/v1" && len(a.Warnings) > 0 {
			t.Errorf("%s: %v", obj, a.Warnings)
		}
	}
}

// FuzzAdmit checks that admission never panics, and that a refusal has causes with positions and is the same each time.
func FuzzAdmit(f *testing.F) {
	for _, seed := range []string{
		helmChart, replace("/v1", "/v1beta2") + "  valuesFile: a\n  accessFrom: 1\n", of("HelmRepository", repoSpec+"type: OCI\nurl: ${X}"),
		of("GitRepository", gitSpec+"verify: {}\ninclude: [{}, 1, null]\nserviceAccountName: a"), of("Bucket", bucketSpec+"sts: {a.b: c, provider: aws}\nserviceAccountName: null"),
		replace("metadata:\n  name: podinfo\n", "metadata: {labels: {a: 1}, foo: {bar: [1]}, ownerReferences: [{}], managedFields: [{fieldsV1: 1}]}\n"),
		of("HelmRepository", "accessFrom: {namespaceSelectors: [{matchLabels: {a.b: 1, c: null}}]}"), replace("spec:\n", "spec: [a]\nx:\n"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		name := t.TempDir() + "/f.yaml"
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		set, _ := manifest.Load(t.Context(), manifest.Options{Files: []string{name}})
		for _, obj := range set.Objects() {
			a, err := Admit(obj)
			if err == nil && a.Typed == nil {
				t.Error("admitted as nothing")
			}
			if err != nil {
				judge(t, obj, err)
			}
		}
	})
}

func judge(t *testing.T, obj *manifest.Object, err error) {
	var invalid *InvalidError
	if !errors.As(err, &invalid) || len(invalid.Causes) == 0 {
		t.Fatalf("error %v", err)
	}
	for _, c := range invalid.Causes {
		if c.Pos.Line < 1 || c.Message == "" {
			t.Errorf("cause %+v", c)
		}
	}
	if _, again := Admit(obj); again == nil || again.Error() != err.Error() {
		t.Errorf("%v\n%v", err, again)
	}
}
