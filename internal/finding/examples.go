package finding

import "strings"

// The examples of the rules are whole manifests: a test gives each to validate.

func documents(docs ...string) string { return strings.Join(docs, "---\n") }

func object(apiVersion, kind, name, spec string) string {
	return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata:\n  name: " + name + "\nspec:\n" + indented(spec)
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}

const (
	sourceV1 = "source.toolkit.fluxcd.io/v1"

	httpURL = "url: https://charts.example.org\n"
	ociURL  = "url: oci://registry.example.org/charts\n"
)

func repository(spec string) string {
	return object(sourceV1, "HelmRepository", "charts", "interval: 10m\n"+spec)
}

func ociRepository(spec string) string { return repository("type: oci\n" + ociURL + spec) }

func git(spec string) string {
	return object(sourceV1, "GitRepository", "charts", "interval: 10m\nurl: https://git.example.org/charts\n"+spec)
}

// helmChart is a chart of the repository that is called charts.
func helmChart(spec string) string {
	if !strings.Contains(spec, "sourceRef:") {
		spec += "sourceRef:\n  kind: HelmRepository\n  name: charts\n"
	}
	if !strings.Contains(spec, "interval:") {
		spec = "interval: 10m\n" + spec
	}
	if !strings.Contains(spec, "chart:") {
		spec = "chart: podinfo\n" + spec
	}
	return object(sourceV1, "HelmChart", "podinfo", spec)
}

func secret(name, data string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata:\n  name: " + name + "\nstringData:\n" + indented(data)
}

// exampleKey is a public key whose private one is gone.
const exampleKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEyFSwEXKU3toHTx884bno5k0xxrJb
YanwvVHmPRWtIyf1gMmcmU+yCqOtP51ml8Ng16b85NnPUxSPvD8ssVQWzQ==
-----END PUBLIC KEY-----
`

// exampleCA is a certificate that is not in use.
const exampleCA = `-----BEGIN CERTIFICATE-----
MIIBejCCASGgAwIBAgIUXooVVwNS0cRmfLRURM+vSLrXFPswCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHZXhhbXBsZTAgFw0yNjExMjEwNTU2NTVaGA8yMTI2MTAyODA1
NTY1NVowEjEQMA4GA1UEAwwHZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABCrPgT4HEG+jyiv0uCQv+zTjvahlIAosmcuTEiQK15dSRC1KM+Vqdthhwn+J
QWcikg9esrEuCSPLFx5eQBtJRUujUzBRMB0GA1UdDgQWBBTGzBgJ4meOGXPu8RJZ
am5tGrJzADAfBgNVHSMEGDAWgBTGzBgJ4meOGXPu8RJZam5tGrJzADAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCID5P+Uwg709u6/D9anjh2NUrGhwI
vFy/SQ8dZtSbTBowAiAeLNiU8vkn0VEsRNogdgXR4iikfI5ul4Vh5UBcxvMF3A==
-----END CERTIFICATE-----
`

// block is an entry with a text of several lines.
func block(key, text string) string { return key + ": |\n" + indented(text) }
