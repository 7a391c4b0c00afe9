package admission

import (
	"errors"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

const kustomizationSpec = "interval: 10m\nprune: true\nsourceRef: {kind: GitRepository, name: flux-system}\n"

// kustomization is a Kustomization of Flux, which only the renderer admits.
func kustomization(t testing.TB, spec string) *manifest.Object {
	t.Helper()
	text := strings.Replace(of("Kustomization", spec), "source.toolkit", "kustomize.toolkit", 1)
	f, err := manifest.ParseFile("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f.Kustomizations()[0]
}

func TestKustomization(t *testing.T) {
	for _, test := range []struct {
		more, want string
		code       finding.Code
	}{
		{"", "", ""},
		{"path: ./apps\npostBuild: {substitute: {A: b}, substituteFrom: [{kind: Secret, name: x}]}\nkubeConfig: {secretRef: {name: x}}\n", "", ""},
		{"interval: 10\n", `spec.interval in body must be of type string`, finding.WrongType},
		{"interval: 10d\n", `spec.interval in body should match`, finding.InvalidDuration},
		{"retryInterval: 99999999999999999h\n", `spec.retryInterval: Invalid value`, finding.InvalidDuration},
		{"timeout: 1h\n", "", ""},
		{"deletionPolicy: Keep\n", `spec.deletionPolicy: Unsupported value: "Keep"`, finding.UnsupportedValue},
		{"decryption: {provider: vault}\n", `spec.decryption.provider: Unsupported value: "vault"`, finding.UnsupportedValue},
		{"sourceRef: {kind: HelmRepository, name: x}\n", `spec.sourceRef.kind: Unsupported value: "HelmRepository"`, finding.UnsupportedValue},
		{"dependsOn: [{namespace: x}]\n", "spec.dependsOn[0].name: Required value", finding.MissingField},
		{"postbuild: {}\n", `unknown field "spec.postbuild"`, finding.UnknownField},
		{"kubeConfig: {}\n", "exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef", finding.BrokenRule},
		{"targetNamespace: \"\"\n", "spec.targetNamespace", finding.InvalidValue},
	} {
		_, err := Admit(kustomization(t, with(kustomizationSpec, test.more)))
		if test.want == "" {
			if err != nil {
				t.Errorf("%q: %v", test.more, err)
			}
			continue
		}
		var invalid *InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), test.want) || invalid.Causes[0].Code != test.code {
			t.Errorf("%q: %v\nwant %s [%s]", test.more, err, test.want, test.code)
		}
	}
}
