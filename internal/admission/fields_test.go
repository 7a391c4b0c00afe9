package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const (
	intervalPattern = `'^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'`
	timeoutPattern  = `'^([0-9]+(\.[0-9]+)?(ms|s|m))+$'`
)

// This is added if a rule does not hold as far as can be seen. The API server adds it for all kinds with rules.
const (
	note       = " and a note"
	notChecked = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
)

func mismatch(field, value, pattern string) string {
	return fmt.Sprintf("%s: Invalid value: %q: %s in body should match %s", field, value, field, pattern)
}

// TestManyMistakes reports as many errors of an object as an API server does, the same ones each time.
func TestManyMistakes(t *testing.T) {
	var unknown, wrong strings.Builder
	for i := range 3 * maxCauses {
		fmt.Fprintf(&unknown, "\nfield%d: a", i)
		fmt.Fprintf(&wrong, "\n- %d", i)
	}
	for _, spec := range []string{
		"interval: 5m\nurl: http://x" + unknown.String(),
		"interval: 5m\nchart: a\nsourceRef: {kind: HelmRepository, name: a}\nvaluesFiles:" + wrong.String(),
	} {
		kind := "HelmRepository"
		if strings.Contains(spec, "chart") {
			kind = "HelmChart"
		}
		causes := func() string {
			_, err := Admit(object(t, of(kind, spec)))
			var invalid *InvalidError
			if !errors.As(err, &invalid) || len(invalid.Causes) != maxCauses {
				t.Fatalf("%s: %.500v", kind, err)
			}
			texts := ""
			for _, c := range invalid.Causes {
				texts += c.Message + "\n"
			}
			return texts
		}
		if first, second := causes(), causes(); first != second {
			t.Errorf("%s: other mistakes are reported the second time", kind)
		}
	}
}

// Each case adds one line to a spec that is admitted. An empty want is an admission.
func TestFields(t *testing.T) {
	type test struct{ line, want string }
	tests := map[string][]test{
		"HelmRepository": {
			{"url: http://x", ""}, {"url: oci://x/y", ""}, {"url: https://", ""},
			{"url: example.com", mismatch("spec.url", "example.com", `'^(http|https|oci)://.*$'`)},
			{"url: HTTPS://x", mismatch("spec.url", "HTTPS://x", `'^(http|https|oci)://.*$'`)},
			{"url: 'https://\n\n  x'", mismatch("spec.url", "https://\nx", `'^(http|https|oci)://.*$'`)},
			{"url: 5", `spec.url: Invalid value: "integer": spec.url in body must be of type string: "integer"`},
			{"url:", "spec.url: Required value"},
			{"secretRef: {name: a}", ""}, {"secretRef: {}", "spec.secretRef.name: Required value"},
			{"certSecretRef: {name: a}", ""}, {"certSecretRef: {}", "spec.certSecretRef.name: Required value"},
			{"passCredentials: yes", ""}, {"passCredentials: 'true'", `spec.passCredentials: Invalid value: "string": spec.passCredentials in body must be of type boolean: "string"`},
			{"interval: 1h30m", ""}, {"interval: 0.5ms", ""}, {"interval: 1s1s", ""},
			{"interval: 1d", mismatch("spec.interval", "1d", intervalPattern)},
			{"interval: ''", mismatch("spec.interval", "", intervalPattern)},
			{"interval: -1m", mismatch("spec.interval", "-1m", intervalPattern)},
			{"interval: 1us", mismatch("spec.interval", "1us", intervalPattern)},
			{"interval: 99999999999h", `spec.interval: Invalid value: "99999999999h": time: invalid duration "99999999999h"`},
			{"timeout: 60s", ""}, {"timeout: 1.5m", ""},
			{"timeout: 1h", mismatch("spec.timeout", "1h", timeoutPattern)},
			{"insecure: true", ""}, {"suspend: true", ""}, {"suspend:", ""},
			{"accessFrom: {namespaceSelectors: [{matchLabels: {a: b}}]}", ""},
			{"accessFrom: {}", "spec.accessFrom.namespaceSelectors: Required value"},
			{"type: oci", ""}, {"type: default", ""},
			{"type: OCI", `spec.type: Unsupported value: "OCI": supported values: "default", "oci"`},
			{"type: ''", `spec.type: Unsupported value: "": supported values: "default", "oci"`},
			{"provider: aws", ""}, {"provider: azure", ""}, {"provider: gcp", ""}, {"provider: generic", ""},
			{"provider: github", `spec.provider: Unsupported value: "github": supported values: "generic", "aws", "azure", "gcp"`},
		},
		"HelmChart": {
			{"chart:", "spec.chart: Required value"}, {"chart: ''", ""}, {"chart: ./charts/a", ""},
			{"version: '>1'", ""}, {"version: 1.5", `spec.version: Invalid value: "number": spec.version in body must be of type string: "number"`},
			// JSON turns 1.0 into 1, for kubectl too.
			{"version: 1.0", `spec.version: Invalid value: "integer": spec.version in body must be of type string: "integer"`},
			{"version: ''", ""},
			{"sourceRef: {kind: GitRepository, name: a}", ""}, {"sourceRef: {kind: Bucket, name: a, apiVersion: whatever}", ""},
			{"sourceRef: {kind: OCIRepository, name: a}", `spec.sourceRef.kind: Unsupported value: "OCIRepository": supported values: "HelmRepository", "GitRepository", "Bucket"`},
			{"sourceRef: {kind: HelmRepository}", "spec.sourceRef.name: Required value"},
			{"sourceRef:", "spec.sourceRef: Required value"},
			{"sourceRef: a", `spec.sourceRef: Invalid value: "string": spec.sourceRef in body must be of type object: "string"`},
			{"interval:", "spec.interval: Required value"}, {"interval: 1", `spec.interval: Invalid value: "integer": spec.interval in body must be of type string: "integer"`},
			{"interval: 10 m", mismatch("spec.interval", "10 m", intervalPattern)},
			{"reconcileStrategy: Revision", ""}, {"reconcileStrategy: ChartVersion", ""},
			{"reconcileStrategy: revision", `spec.reconcileStrategy: Unsupported value: "revision": supported values: "ChartVersion", "Revision"`},
			{"valuesFiles: [a.yaml, b.yaml]", ""},
			{"valuesFiles: a.yaml", `spec.valuesFiles: Invalid value: "string": spec.valuesFiles in body must be of type array: "string"`},
			{"valuesFiles: [a.yaml, 5]", `spec.valuesFiles[1]: Invalid value: "integer": spec.valuesFiles[1] in body must be of type string: "integer"`},
			{"ignoreMissingValuesFiles: true", ""}, {"suspend: true", ""},
			{"verify: {provider: cosign}", ""}, {"verify: {provider: notation, secretRef: {name: a}}", ""}, {"verify: {}", ""},
			{"verify: {provider: gpg}", `spec.verify.provider: Unsupported value: "gpg": supported values: "cosign", "notation"`},
			{"verify: {secretRef: {}}", "spec.verify.secretRef.name: Required value"},
			{"verify: {matchOIDCIdentity: [{issuer: '(', subject: '['}]}", ""},
			{"verify: {matchOIDCIdentity: [{issuer: a}]}", "spec.verify.matchOIDCIdentity[0].subject: Required value"},
			{"verify: {matchOIDCIdentity: [{subject: a}]}", "spec.verify.matchOIDCIdentity[0].issuer: Required value"},
			{"verify: {}\nsourceRef: {kind: GitRepository, name: a}", `spec: Invalid value: spec.verify is only supported when spec.sourceRef.kind is 'HelmRepository'`},
		},
		"GitRepository": {
			{"url: ssh://git@x/y", ""}, {"url: http://x", ""}, {"url: git@x:y", mismatch("spec.url", "git@x:y", `'^(http|https|ssh)://.*$'`)},
			{"url: ftp://x", mismatch("spec.url", "ftp://x", `'^(http|https|ssh)://.*$'`)},
			{"url:", "spec.url: Required value"}, {"interval:", "spec.interval: Required value"},
			{"interval: 1d", mismatch("spec.interval", "1d", intervalPattern)},
			{"timeout: 20s", ""}, {"timeout: 1h", mismatch("spec.timeout", "1h", timeoutPattern)},
			{"secretRef: {name: a}", ""}, {"secretRef: {}", "spec.secretRef.name: Required value"},
			{"proxySecretRef: {name: a}", ""}, {"proxySecretRef: {}", "spec.proxySecretRef.name: Required value"},
			{"provider: generic", ""}, {"provider: aws", ""}, {"provider: azure", ""}, {"provider: github", ""},
			{"provider: gcp", `spec.provider: Unsupported value: "gcp": supported values: "generic", "aws", "azure", "github"`},
			{"serviceAccountName: a\nprovider: azure", ""}, {"serviceAccountName: a\nprovider: aws", ""},
			{"serviceAccountName: a", `spec: Invalid value: serviceAccountName can only be set when provider is 'azure' or 'aws'`},
			{"serviceAccountName: a\nprovider: github", `spec: Invalid value: serviceAccountName can only be set when provider is 'azure' or 'aws'`},
			{"ref: {branch: a, tag: b, semver: c, name: d, commit: e}", ""}, {"ref: {branch: 1}", `spec.ref.branch: Invalid value: "integer": spec.ref.branch in body must be of type string: "integer"`},
			{"verify: {secretRef: {name: a}}", ""}, {"verify: {}", "spec.verify.secretRef: Required value"},
			{"verify: {mode: head, secretRef: {name: a}}", ""}, {"verify: {mode: HEAD, secretRef: {name: a}}", ""},
			{"verify: {mode: Tag, secretRef: {name: a}}", ""}, {"verify: {mode: TagAndHEAD, secretRef: {name: a}}", ""},
			{"verify: {mode: tag, secretRef: {name: a}}", `spec.verify.mode: Unsupported value: "tag": supported values: "head", "HEAD", "Tag", "TagAndHEAD"`},
			{"ignore: a", ""}, {"suspend: true", ""}, {"recurseSubmodules: true", ""},
			{"include: [{repository: {name: a}, fromPath: b, toPath: c}]", ""},
			{"include: [{fromPath: b}]", "spec.include[0].repository: Required value"},
			{"include: [{repository: {}}]", "spec.include[0].repository.name: Required value"},
			{"sparseCheckout: [a, ./b]", ""}, {"sparseCheckout: [1]", `spec.sparseCheckout[0]: Invalid value: "integer": spec.sparseCheckout[0] in body must be of type string: "integer"`},
		},
		"Bucket": {
			{"bucketName:", "spec.bucketName: Required value"}, {"endpoint:", "spec.endpoint: Required value"},
			{"interval:", "spec.interval: Required value"}, {"timeout: 1h", mismatch("spec.timeout", "1h", timeoutPattern)},
			{"provider: generic", ""}, {"provider: aws", ""}, {"provider: gcp", ""}, {"provider: azure", ""},
			{"provider: github", `spec.provider: Unsupported value: "github": supported values: "generic", "aws", "gcp", "azure"`},
			{"region: a\nprefix: b\ninsecure: true\nignore: c\nsuspend: false", ""},
			{"secretRef: {}", "spec.secretRef.name: Required value"}, {"certSecretRef: {}", "spec.certSecretRef.name: Required value"},
			{"proxySecretRef: {}", "spec.proxySecretRef.name: Required value"},
			{"sts: {provider: ldap, endpoint: https://x}", ""},
			{"sts: {endpoint: https://x}", "spec.sts.provider: Required value" + note}, {"sts: {provider: ldap}", "spec.sts.endpoint: Required value"},
			{"sts: {provider: ldap, endpoint: x}", mismatch("spec.sts.endpoint", "x", `'^(http|https)://.*$'`)},
			{"sts: {provider: gcp, endpoint: https://x}", `spec.sts.provider: Unsupported value: "gcp": supported values: "aws", "ldap"` + note},
			{"sts: {provider: ldap, endpoint: https://x}\nprovider: gcp", `spec: Invalid value: STS configuration is only supported for the 'aws' and 'generic' Bucket providers`},
			{"sts: {provider: ldap, endpoint: https://x}\nprovider: aws", `spec: Invalid value: 'aws' is the only supported STS provider for the 'aws' Bucket provider`},
			{"sts: {provider: aws, endpoint: https://x}", `spec: Invalid value: 'ldap' is the only supported STS provider for the 'generic' Bucket provider`},
			{"sts: {provider: aws, endpoint: https://x}\nprovider: aws", ""},
			{"sts: {provider: aws, endpoint: https://x, secretRef: {name: a}}\nprovider: aws", `spec: Invalid value: spec.sts.secretRef is not required for the 'aws' STS provider`},
			{"sts: {provider: aws, endpoint: https://x, certSecretRef: {name: a}}\nprovider: aws", `spec: Invalid value: spec.sts.certSecretRef is not required for the 'aws' STS provider`},
			{"serviceAccountName: a", `spec: Invalid value: ServiceAccountName is not supported for the 'generic' Bucket provider`},
			{"serviceAccountName: a\nprovider: aws", ""},
			{"serviceAccountName: a\nprovider: aws\nsecretRef: {name: b}", `spec: Invalid value: cannot set both .spec.secretRef and .spec.serviceAccountName`},
		},
		"OCIRepository": {
			{"url: oci://x", ""}, {"url: 'oci://'", ""}, {"url:", "spec.url: Required value"}, {"interval:", "spec.interval: Required value"},
			{"url: https://x/y", mismatch("spec.url", "https://x/y", `'^oci://.*$'`)},
			{"interval: 1d", mismatch("spec.interval", "1d", intervalPattern)}, {"timeout: 1h", mismatch("spec.timeout", "1h", timeoutPattern)},
			{"ref: {}", ""}, {"ref: {digest: x, semver: '(', semverFilter: '(', tag: '!'}", ""},
			{"ref: {tag: 1.0}", `spec.ref.tag: Invalid value: "integer": spec.ref.tag in body must be of type string: "integer"`},
			{"layerSelector: {}", ""}, {"layerSelector: {mediaType: a, operation: copy}", ""}, {"layerSelector: {operation: extract}", ""},
			{"layerSelector: {operation: unpack}", `spec.layerSelector.operation: Unsupported value: "unpack": supported values: "extract", "copy"`},
			{"provider: generic", ""}, {"provider: aws", ""}, {"provider: azure", ""}, {"provider: gcp", ""},
			{"provider: github", `spec.provider: Unsupported value: "github": supported values: "generic", "aws", "azure", "gcp"`},
			{"secretRef: {}", "spec.secretRef.name: Required value"}, {"certSecretRef: {}", "spec.certSecretRef.name: Required value"},
			{"proxySecretRef: {}", "spec.proxySecretRef.name: Required value"}, {"serviceAccountName: a", ""},
			{"verify: {}", ""}, {"verify: {provider: notation}", ""}, {"verify: {trustedRootSecretRef: {name: a}}", ""},
			{"verify: {provider: gpg}", `spec.verify.provider: Unsupported value: "gpg": supported values: "cosign", "notation"`},
			{"verify: {trustedRootSecretRef: {}}", "spec.verify.trustedRootSecretRef.name: Required value"},
			{"insecure: true\ncertSecretRef: {name: a}", ""}, {"ignore: ''", ""}, {"ignore: [a]", `spec.ignore: Invalid value: "array": spec.ignore in body must be of type string: "array"`},
			{"suspend: true", ""},
		},
	}
	for kind, list := range tests {
		for _, tt := range list {
			t.Run(kind+"/"+tt.line, func(t *testing.T) {
				text := of(kind, with(specs[kind], tt.line))
				if tt.want == "" {
					admitted(t, text)
					return
				}
				err := refusal(t, text)
				causes := 1
				if cause, ok := strings.CutSuffix(tt.want, note); ok {
					tt.want, causes = "["+cause+", "+notChecked+"]", 2
				}
				want := fmt.Sprintf("%s.source.toolkit.fluxcd.io \"x\" is invalid: %s", kind, tt.want)
				if err.Message != want {
					t.Errorf("message %s\n   want %s", err.Message, want)
				}
				if len(err.Causes) != causes {
					t.Errorf("causes %v", err.Causes)
				}
			})
		}
	}
}

func TestDefaults(t *testing.T) {
	tests := []struct{ kind, line, want string }{
		{"HelmRepository", "", "map[provider:generic url:https://example.com]"},
		{"HelmRepository", "provider:", "map[provider:generic url:https://example.com]"},
		{"HelmChart", "", "map[chart:podinfo interval:5m reconcileStrategy:ChartVersion sourceRef:map[kind:HelmRepository name:podinfo] version:*]"},
		{"HelmChart", "verify: {secretRef: {name: a}}", "map[chart:podinfo interval:5m reconcileStrategy:ChartVersion sourceRef:map[kind:HelmRepository name:podinfo] verify:map[provider:cosign secretRef:map[name:a]] version:*]"},
		{"HelmChart", "version: ''", "map[chart:podinfo interval:5m reconcileStrategy:ChartVersion sourceRef:map[kind:HelmRepository name:podinfo] version:]"},
		{"GitRepository", "", "map[interval:1m timeout:60s url:https://example.com/repo]"},
		{"GitRepository", "verify: {secretRef: {name: a}}", "map[interval:1m timeout:60s url:https://example.com/repo verify:map[mode:HEAD secretRef:map[name:a]]]"},
		{"OCIRepository", "", "map[interval:1m provider:generic timeout:60s url:oci://example.com/org/app]"},
		{"OCIRepository", "verify: {}\nlayerSelector: {}", "map[interval:1m layerSelector:map[] provider:generic timeout:60s url:oci://example.com/org/app verify:map[provider:cosign]]"},
		{"Bucket", "", "map[bucketName:b endpoint:example.com interval:1m provider:generic timeout:60s]"},
	}
	for _, tt := range tests {
		a := admitted(t, of(tt.kind, with(specs[tt.kind], tt.line)))
		if got := fmt.Sprint(a.Content["spec"]); got != tt.want {
			t.Errorf("%s\n got  %s\n want %s", tt.kind, got, tt.want)
		}
		if a.Content["status"] != nil || fmt.Sprint(a.Content["metadata"]) != "map[name:x namespace:default]" {
			t.Errorf("%s: %v", tt.kind, a.Content)
		}
	}
}

// The API server accepts an object without a spec: no schema requires it.
func TestNoSpec(t *testing.T) {
	for kind := range specs {
		a := admitted(t, strings.Split(of(kind, "x"), "spec:")[0])
		if a.Content["spec"] != nil {
			t.Errorf("%s: %v", kind, a.Content)
		}
	}
}
