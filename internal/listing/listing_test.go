package listing

import (
	"slices"
	"strings"
	"testing"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// result is one of an object, which may be made of another one.
func result(kind, name string, origin *manifest.Object) *reconcile.Result {
	obj := &manifest.Object{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: kind, Namespace: "apps", Name: name, Origin: origin}
	if kind == "HelmRelease" {
		obj.APIVersion = "helm.toolkit.fluxcd.io/v2"
	}
	return &reconcile.Result{Object: &admission.Admitted{Object: obj}}
}

// TestVerifications joins a release with its chart, and shows the failed one of them.
func TestVerifications(t *testing.T) {
	t.Parallel()
	release := result("HelmRelease", "one", nil)
	chart := result("HelmChart", "apps-one", release.Object.Object)
	chart.Resolution = &reconcile.Resolution{Chart: "podinfo", Version: "6.5.0", Digest: "sha256:0"}
	index := int64(7)
	chart.Signature = &verify.Signer{Format: "cosign", Key: "key.pub", Identity: "https://ci.example.org", Issuer: "https://issuer.example.org", LogIndex: &index, Time: time.Unix(0, 0)}
	release.Resolution = chart.Resolution
	unsigned := result("OCIRepository", "image", nil)
	unsigned.Resolution = &reconcile.Resolution{Version: "1.0.0"}
	nothing := result("HelmRepository", "charts", nil)
	all := []*reconcile.Result{chart, release, unsigned, nothing}

	joined := Verifications(all, true)
	if len(joined) != 2 {
		t.Fatalf("%+v", joined)
	}
	if v := joined[0]; v.Kind != "HelmRelease" || v.Name != "one" || v.Result != "verified" || v.SignedBy != "https://ci.example.org" || v.Key != "key.pub" || v.SignedAt != "1970-01-01T00:00:00Z" {
		t.Errorf("joined: %+v", v)
	}
	if v := joined[1]; v.Result != "not verified" || v.Version != "1.0.0" {
		t.Errorf("without a signature: %+v", v)
	}
	apart := Verifications(all, false)
	if len(apart) != 3 || apart[0].Kind != "HelmChart" || apart[1].Kind != "HelmRelease" {
		t.Errorf("apart: %+v", apart)
	}
	chart.Failure = &status.Failure{Message: "no signature matches"}
	if v := Verifications(all, true)[0]; v.Result != "failed" || v.Error != "no signature matches" || v.Kind != "HelmRelease" {
		t.Errorf("failed: %+v", v)
	}
}

// TestPublished marks versions that were removed or are deprecated, each once.
func TestPublished(t *testing.T) {
	t.Parallel()
	r := result("HelmChart", "podinfo", nil)
	r.Published = &reconcile.Published{Chart: "podinfo", Constraint: "6.x", Current: "6.4.0", Wanted: "6.4.0", Versions: []resolve.Candidate{
		{Version: "7.0.0", Created: time.Unix(0, 0)}, {Version: "6.5.0", Removed: true}, {Version: "6.4.0", Deprecated: true},
	}}
	var printed strings.Builder
	record := Lister{console.New(&printed)}.Published(r)
	if !slices.Equal(record.Deprecated, []string{"6.4.0"}) || len(record.Removed) != 0 || record.Released.Latest != "1970-01-01T00:00:00Z" || record.Released.Current != "" {
		t.Errorf("%+v", record)
	}
	row := PublishedColumns().Row(record)
	if want := []string{"apps", "podinfo", "podinfo", "6.4.0 (deprecated)", "6.4.0 (deprecated)", "7.0.0", "1970-01-01", "HelmChart", "6.x"}; !slices.Equal(row, want) {
		t.Errorf("row %q", row)
	}
	if len(record.Versions) != 2 || !Withdrawn(r.Published) {
		t.Errorf("versions %v, withdrawn %v", record.Versions, Withdrawn(r.Published))
	}
	r.Published.Current, r.Published.Wanted = "7.0.0", "7.0.0"
	if Withdrawn(r.Published) {
		t.Error("a version that is neither removed nor deprecated counts as withdrawn")
	}
}

// TestLicense takes a license from annotations, from an identifier, or from the title of a text.
func TestLicense(t *testing.T) {
	t.Parallel()
	file := func(name, text string) []*helmchart.File { return []*helmchart.File{{Name: name, Data: []byte(text)}} }
	for name, test := range map[string]struct {
		annotations map[string]string
		files       []*helmchart.File
		want        string
	}{
		"none":        {nil, nil, ""},
		"annotations": {map[string]string{"licenses": "MIT", "artifacthub.io/license": "Apache-2.0"}, file("LICENSE", "ISC License"), "Apache-2.0"},
		"identifier":  {nil, file("LICENSE.md", "# SPDX-License-Identifier: BSD-2-Clause\r\n"), "BSD-2-Clause"},
		"title":       {nil, file("licence.txt", "\n  Apache License\n   Version 2.0, January 2004\n"), "Apache-2.0"},
		"unknown":     {nil, file("LICENSE", "Do as you like."), ""},
		"other file":  {nil, file("NOTICE", "MIT License"), ""},
	} {
		loaded := &helmchart.Chart{Metadata: &helmchart.Metadata{Annotations: test.annotations}, Files: test.files}
		if got := licenseOf(loaded); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestBill describes resolved objects: subcharts once, images if charts name them. A nil bill describes nothing, and failed objects
// are not described.
func TestBill(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	b := &Bill{Lister: Lister{console.New(&printed)}, Images: true}
	ready, failed := result("HelmChart", "podinfo", nil), result("HelmChart", "other", nil)
	ready.Pin = &reconcile.Pin{Source: reconcile.PinGit, Chart: "charts/podinfo", Version: "6.5.0", URL: "https://git.example.org/repo", Revision: "main@sha1:0"}
	ready.Dependencies = []reconcile.DependencyPin{{Name: "common", Pin: reconcile.Pin{Chart: "common", Version: "1.0.0"}}}
	failed.Pin, failed.Failure = ready.Pin, &status.Failure{Message: "no"}
	results := []*reconcile.Result{ready, failed}
	objects := []report.Object{{Cluster: "east"}, {}}
	var none *Bill
	if none.Describe(results, objects); objects[0].Component != nil {
		t.Error("a bill that nobody wants describes objects")
	}
	b.Describe(results, objects)
	c := objects[0].Component
	if c == nil || objects[1].Component != nil {
		t.Fatalf("components %v, %v", c, objects[1].Component)
	}
	if c.Name != "podinfo" || c.URL != "" || len(c.Parts) != 2 || c.Parts[0].Kind != report.ComponentFiles || c.Parts[1].Name != "common" || !slices.Equal(c.Found, []string{"HelmChart apps/podinfo of east"}) {
		t.Errorf("%+v", c)
	}
	sub := &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "common", Version: "1.0.0", Annotations: map[string]string{"licenses": "MIT"}}}
	loaded := &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "podinfo", Version: "6.5.0", Annotations: map[string]string{ImagesAnnotation: "- name: web\n  image: registry.example.org/web:1.0\n"}}}
	loaded.AddDependency(sub, &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "extra", Version: "2.0.0"}})
	b.add(c, loaded)
	var names []string
	for _, p := range c.Parts {
		names = append(names, string(p.Kind)+" "+p.Name+" "+p.Version)
	}
	if want := []string{"files repo ", "chart common 1.0.0", "image web 1.0", "chart extra 2.0.0"}; !slices.Equal(names, want) || c.Parts[1].License != "MIT" {
		t.Errorf("parts %q, license %q", names, c.Parts[1].License)
	}
}
