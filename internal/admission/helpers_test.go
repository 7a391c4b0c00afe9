package admission

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// objects reads YAML as if it were the file f.yaml.
func objects(t testing.TB, text string) []*manifest.Object {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, errs := manifest.Load(t.Context(), manifest.Options{Files: []string{name}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return set.Objects()
}

func object(t testing.TB, text string) *manifest.Object {
	t.Helper()
	list := objects(t, text)
	if len(list) != 1 {
		t.Fatalf("%d objects in %s", len(list), text)
	}
	return list[0]
}

// of makes a manifest of a kind from the lines of its spec.
func of(kind, spec string) string {
	version := "source.toolkit.fluxcd.io/v1"
	switch {
	case strings.HasPrefix(kind, "Image"):
		version = "image.toolkit.fluxcd.io/v1"
	case kind == "ArtifactGenerator":
		version = "source.extensions.fluxcd.io/v1beta1"
	}
	return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata:\n  name: x\nspec:\n  " +
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

// Specs that are admitted, to which tests add one field.
const (
	chartSpec  = "chart: podinfo\ninterval: 5m\nsourceRef: {kind: HelmRepository, name: podinfo}\n"
	repoSpec   = "url: https://example.com\n"
	gitSpec    = "url: https://example.com/repo\ninterval: 1m\n"
	bucketSpec = "bucketName: b\nendpoint: example.com\ninterval: 1m\n"
	policySpec = "imageRepositoryRef: {name: app}\npolicy: {semver: {range: 1.x}}\n"
	imageSpec  = "image: example.com/org/app\ninterval: 1m\n"
	ociSpec    = "url: oci://example.com/org/app\ninterval: 1m\n"
)

var specs = map[string]string{"HelmChart": chartSpec, "HelmRepository": repoSpec, "GitRepository": gitSpec, "Bucket": bucketSpec,
	"OCIRepository": ociSpec, "ImagePolicy": policySpec, "ImageRepository": imageSpec,
	"ArtifactGenerator": generatorSpec, "ExternalArtifact": "sourceRef: {kind: ArtifactGenerator, name: gen}\n"}

const generatorSpec = `
sources: [{alias: repo, kind: GitRepository, name: flux-system}]
artifacts: [{name: apps, revision: "@repo", copy: [{from: "@repo/apps/**", to: "@artifact/", exclude: ["*.md"], strategy: Merge}]}]
`

// with adds to a spec, replacing fields of the same name.
func with(spec, more string) string {
	for line := range strings.Lines(more) {
		name, _, _ := strings.Cut(line, ":")
		for old := range strings.Lines(spec) {
			if strings.HasPrefix(old, name+":") {
				spec = strings.Replace(spec, old, "", 1)
			}
		}
	}
	return spec + more
}

func refusal(t testing.TB, text string) *InvalidError {
	t.Helper()
	_, err := Admit(object(t, text))
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("error = %v, want an *InvalidError, of\n%s", err, text)
	}
	return invalid
}

func admitted(t testing.TB, text string) *Admitted {
	t.Helper()
	a, err := Admit(object(t, text))
	if err != nil {
		t.Fatalf("%v, of\n%s", err, text)
	}
	return a
}

// position is line:column.
func position(p manifest.Pos) string {
	p.File = ""
	return strings.TrimPrefix(p.String(), ":")
}
