//go:build bench

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// objectsPerFile is the number of objects in a file of the repository, without its Secret.
const objectsPerFile = 10

// validated validates a repository of manifests: one namespace a file, with a source, a Secret and charts. Some charts have an
// old version or ask for a signature, so that rules are run and reported.
func validated() []contender {
	args := func(j *job) ([]string, error) {
		for i := range j.scale.Objects / objectsPerFile {
			file := filepath.Join(j.work, fmt.Sprintf("namespace-%03d.yaml", i))
			if err := os.WriteFile(file, []byte(namespaceOf(i)), 0o600); err != nil {
				return nil, err
			}
		}
		return []string{"validate", "-f", ".", "--flux-version", "2.7"}, nil
	}
	return []contender{
		{name: "helmsrc validate", tool: "helmsrc", args: args},
		{name: "helmsrc validate (before)", tool: "before", args: args},
	}
}

func namespaceOf(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata:
  name: charts
  namespace: namespace-%03[1]d
spec:
  interval: 10m
  type: oci
  url: oci://registry-%03[1]d.example.org/charts
  secretRef:
    name: login
---
apiVersion: v1
kind: Secret
metadata:
  name: login
  namespace: namespace-%03[1]d
stringData:
  username: user
  password: password
`, i)
	for j := range objectsPerFile - 1 {
		version, verify := "v1", ""
		if j%3 == 0 {
			version = "v1beta2"
		}
		if j%4 == 0 {
			verify = "\n  verify:\n    provider: cosign\n    matchOIDCIdentity:\n    - {issuer: ^https://token, subject: ^https://github}"
		}
		fmt.Fprintf(&b, `---
apiVersion: source.toolkit.fluxcd.io/%[1]s
kind: HelmChart
metadata:
  name: chart-%[2]d
  namespace: namespace-%03[3]d
spec:
  interval: 10m
  chart: chart-%[2]d
  version: ">=1.%[2]d.0 <2.0.0"
  sourceRef:
    kind: HelmRepository
    name: charts
  valuesFiles: [values.yaml, values-%[2]d.yaml]%[4]s
`, version, j, i, verify)
	}
	return b.String()
}
