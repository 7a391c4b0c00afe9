package report

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/santhosh-tekuri/jsonschema/v6"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
	"google.golang.org/protobuf/encoding/protojson"
)

var (
	archive   = "sha256:" + strings.Repeat("a", 64)
	manifests = "sha256:" + strings.Repeat("b", 64)
)

// billed returns a run whose objects were resolved to all kinds of components. Two of them are the same chart.
func billed() *Run {
	podinfo := func(user string) *Component {
		return &Component{
			Kind: ComponentChart, Name: "podinfo", Version: "6.5.0+a b", URL: "https://charts.test/podinfo-6.5.0.tgz", Digest: archive, License: "Apache-2.0 OR MIT",
			Signers: []string{"helm provenance somebody"}, Found: []string{user},
			Parts: []Component{
				{Kind: ComponentChart, Name: "common", Version: "1.0.0", License: "as we like"},
				{Kind: ComponentImage, Name: "podinfo", Version: "6.5.0", URL: "ghcr.io/x/podinfo:6.5.0", Found: []string{"deployment.apps/podinfo spec.template.spec.containers[0].image"}},
				{Kind: ComponentImage, Name: "redis", URL: "redis@" + manifests, Manifest: manifests},
			},
		}
	}
	return &Run{Command: "fetch", Version: "1.2.3", Started: time.Unix(1000, 0), Duration: time.Second, Count: map[string]int{StateFailed: 1}, Objects: []Object{
		{Kind: "HelmChart", Name: "a", Component: podinfo("HelmChart apps/a")},
		{Kind: "HelmChart", Name: "b", Component: podinfo("HelmChart apps/b")},
		{Kind: "HelmRelease", Name: "none"},
		{Kind: "OCIRepository", Name: "c", Component: &Component{Kind: ComponentArtifact, Name: "files", URL: "oci://registry.test:5000/x/files:v1", Manifest: manifests}},
		{Kind: "HelmChart", Name: "d", Component: &Component{Kind: ComponentChart, Name: "web", Version: "0.1.0", Digest: archive, Parts: []Component{
			{Kind: ComponentFiles, Name: "charts.git", URL: "https://git.test/charts.git", Revision: "main@sha1:0123"},
		}}},
		{Kind: "Bucket", Name: "e", Component: &Component{Kind: ComponentFiles, Name: "charts", URL: "bucket.test/charts", Revision: archive}},
		{Kind: "HelmChart", Name: "hostile", Component: &Component{Kind: ComponentChart, Name: hostile, Version: hostile, URL: hostile, License: hostile, Signers: []string{hostile}}},
	}}
}

// schemaOf compiles the last of the schemas, which may refer to the rest.
func schemaOf(t *testing.T, files ...string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	id := ""
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		id, _ = document.(map[string]any)["$id"].(string)
		if err := c.AddResource(id, document); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile(id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

// TestCycloneDX validates a bill with the schema of the library, and reads it with the library.
func TestCycloneDX(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(strings.TrimSpace(string(dir)), "schema", name) }
	s := schemaOf(t, at("spdx.schema.json"), at("jsf-0.82.schemax.json"), at("bom-1.6.schema.json"))
	text := written(t, "cyclonedx", billed())
	if err := validate(t, s, text); err != nil {
		t.Error(err)
	}
	if err := validate(t, s, strings.Replace(text, `"SHA-256"`, `"SHA-257"`, 1)); err == nil {
		t.Error("the schema accepts a mistake")
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(strings.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if n := len(*bom.Components); n != 9 {
		t.Errorf("%d components, want each once", n)
	}
	if !strings.HasPrefix(bom.SerialNumber, "urn:uuid:") || bom.SerialNumber != strings.ToLower(bom.SerialNumber) {
		t.Errorf("serial number %q", bom.SerialNumber)
	}
	if n := len(*bom.Dependencies); n != 9 {
		t.Errorf("the dependencies of %d components", n)
	}
	if bom.Compositions == nil {
		t.Error("a run with failures is not called incomplete")
	}
	found, sources := 0, 0
	for _, c := range *bom.Components {
		if c.ExternalReferences != nil {
			sources++
		}
		if c.Name == "podinfo" && c.Type == cyclonedx.ComponentTypeApplication {
			found = len(*c.Properties)
			if (*c.Licenses)[0].Expression != "Apache-2.0 OR MIT" || (*c.Hashes)[0].Value != strings.Repeat("a", 64) {
				t.Errorf("%+v", c)
			}
		}
	}
	if sources != 3 { // an archive, an artifact and a repository have URLs
		t.Errorf("%d components with a source", sources)
	}
	if found != 5 { // kind, source, two objects, a signer
		t.Errorf("%d properties", found)
	}
	if text != written(t, "cyclonedx", billed()) {
		t.Error("two bills of the same differ")
	}
}

// TestSPDX validates a document with the schema of SPDX, and reads and validates it with the library.
func TestSPDX(t *testing.T) {
	s := schemaOf(t, filepath.Join("testdata", "spdx-schema-2.3.json"))
	text := written(t, "spdx", billed())
	if err := validate(t, s, text); err != nil {
		t.Error(err)
	}
	if err := validate(t, s, strings.Replace(text, `"SHA256"`, `"SHA257"`, 1)); err == nil {
		t.Error("the schema accepts a mistake")
	}
	d, err := spdxjson.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(d); err != nil {
		t.Error(err)
	}
	described, err := spdxlib.GetDescribedPackageIDs(d)
	if err != nil || len(described) != 5 || len(d.Packages) != 9 || d.DocumentComment == "" {
		t.Errorf("%v described of %d, %v", described, len(d.Packages), err)
	}
	for c, want := range map[*Component]string{
		{Kind: ComponentChart, URL: "https://charts.test/a.tgz"}:                    "https://charts.test/a.tgz",
		{Kind: ComponentFiles, URL: "https://a.test/b", Revision: "main@sha1:0123"}: "git+https://a.test/b@0123",
		{Kind: ComponentFiles, URL: "https://a.test/b", Revision: archive}:          noAssertion,
		{Kind: ComponentFiles, URL: "a.test/b", Revision: "main@sha1:0123"}:         noAssertion,
		{Kind: ComponentImage, URL: "redis:7"}:                                      noAssertion,
		{Kind: ComponentArtifact, URL: "oci://a.test/b:1"}:                          noAssertion,
	} {
		if got := (&material{Component: *c}).location(); got != want {
			t.Errorf("%s: location %s, want %s", c.URL, got, want)
		}
	}
}

// TestInToto reads a statement with the library of in-toto attestations, which validates it and its predicate.
func TestInToto(t *testing.T) {
	text := written(t, "intoto", billed())
	s := &intoto.Statement{}
	if err := protojson.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	p := &provenance.Provenance{}
	predicate, err := json.Marshal(s.GetPredicate())
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(predicate, p); err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	if len(s.GetSubject()) != 3 || len(p.GetBuildDefinition().GetResolvedDependencies()) != 9 {
		t.Errorf("%d subjects, %d dependencies", len(s.GetSubject()), len(p.GetBuildDefinition().GetResolvedDependencies()))
	}
	for range 20 {
		if text != written(t, "intoto", billed()) {
			t.Fatal("two statements of the same differ")
		}
	}
	if err := Write(&bytes.Buffer{}, "intoto", &Run{}); err == nil {
		t.Error("a statement about nothing")
	}
}

// TestBillsComplete: the bill of a run without failures is complete.
func TestBillsComplete(t *testing.T) {
	run := billed()
	run.Count[StateFailed] = 0
	for format, marks := range map[string]string{"cyclonedx": `"compositions"`, "spdx": "objects are not listed"} {
		if complete, part := written(t, format, run), written(t, format, billed()); strings.Contains(complete, marks) || !strings.Contains(part, marks) {
			t.Errorf("%s: %q is in the bill of a run that is complete, or in no other", format, marks)
		}
	}
}

func TestPackageURL(t *testing.T) {
	tree := Component{Kind: ComponentFiles, Name: "charts.git", URL: "https://git.test/charts.git", Revision: "main@sha1:0123"}
	for want, c := range map[string]Component{
		"pkg:oci/files@" + manifests + "?repository_url=registry.test:5000/x/files&tag=v1": {URL: "oci://registry.test:5000/x/files:v1", Manifest: manifests},
		"pkg:oci/files?repository_url=registry.test:5000/x/files&tag=1.0.0":                {Kind: ComponentArtifact, URL: "oci://registry.test:5000/x/files", Version: "1.0.0"},
		"pkg:oci/redis@" + manifests + "?repository_url=redis":                             {Kind: ComponentImage, URL: "redis@" + manifests, Manifest: manifests},
		"pkg:generic/charts.git@main%40sha1:0123?vcs_url=https://git.test/charts.git":      tree,
		"pkg:helm/web@1%2B2?vcs_url=https://git.test/charts.git%40main%40sha1:0123":        {Name: "web", Version: "1+2", Parts: []Component{tree}},
		"pkg:helm/a/b%20c?download_url=https://x.test/a.tgz%3Fb%23c":                       {Name: "a/b c", URL: "https://x.test/a.tgz?b#c"},
	} {
		if got := c.packageURL(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// FuzzBills: text of a chart, a registry or a signer stays text in each bill. It adds no component, digest, line or license
// expression, and the libraries read the bill.
func FuzzBills(f *testing.F) {
	for _, text := range []string{
		"a", hostile, "x\nsigned-by: cosign somebody", "\"},{\"name\":\"x", "((MIT", "MIT) OR (", "MIT OR Apache-2.0", "pkg:helm/x@1?a=b#c", "../../x", "sha256:x", "\u2028\u202e", "https://a b/\x7f", "NOASSERTION", "%2e%2e/%", "\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		run := &Run{Command: "fetch", Version: "1", Objects: []Object{{Kind: "HelmChart", Name: "a", Component: &Component{
			Kind: ComponentChart, Name: text, Version: text, URL: text, License: text, Digest: archive, Signers: []string{text}, Found: []string{text},
		}}}}
		want := clean(text)
		var bom cyclonedx.BOM
		if err := cyclonedx.NewBOMDecoder(strings.NewReader(written(t, "cyclonedx", run)), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil || len(*bom.Components) != 1 {
			t.Fatalf("%q in CycloneDX: %v", text, err)
		}
		c := (*bom.Components)[0]
		if c.Name != want || len(*c.Hashes) != 1 || want != "" && (*c.Licenses)[0].Expression != "" && strings.Count(want, "(") != strings.Count(want, ")") {
			t.Errorf("%q in CycloneDX: %+v", text, c)
		}
		d, err := spdxjson.Read(strings.NewReader(written(t, "spdx", run)))
		if err != nil || len(d.Packages) != 1 {
			t.Fatalf("%q in SPDX: %v", text, err)
		}
		p := d.Packages[0]
		if p.PackageName != want || len(p.PackageChecksums) != 1 || strings.Count(p.PackageComment, "\nsigned-by: ") > 1 {
			t.Errorf("%q in SPDX: %+v", text, p)
		}
		s := &intoto.Statement{}
		if err := protojson.Unmarshal([]byte(written(t, "intoto", run)), s); err != nil || len(s.GetSubject()) != 1 || len(s.GetSubject()[0].GetDigest()) != 1 {
			t.Errorf("%q in a statement: %v, %v", text, s, err)
		}
	})
}
