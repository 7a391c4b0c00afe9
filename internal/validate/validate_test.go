package validate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// judge validates the first object of a text, which may refer to the other objects.
func judge(t *testing.T, text string) []finding.Finding {
	t.Helper()
	set := manifest.NewSet("default")
	if err := set.Add("x.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	inv := inventory.New(set)
	adm, err := inv.Admit(set.Objects()[0])
	if err != nil {
		t.Fatal(err)
	}
	return validate.Object(inv, adm)
}

func lines(found []finding.Finding) []string {
	var list []string
	for _, f := range found {
		list = append(list, fmt.Sprintf("%s %s line %d: %s", f.Code, f.Severity, f.Pos.Line, f.Message))
	}
	return list
}

func object(kind, spec string) string {
	version := "source.toolkit.fluxcd.io/v1"
	if kind == "HelmRelease" {
		version = "helm.toolkit.fluxcd.io/v2"
	}
	return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: x, namespace: apps}\nspec:\n  " +
		strings.ReplaceAll(spec, "\n", "\n  ") + "\n"
}

func secret(name, data string) string {
	return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: apps}\nstringData: " + data + "\n"
}

// TestObject has a mistake, or a valid counterpart, in each row. The first line of a spec is the fifth of the file.
func TestObject(t *testing.T) {
	repo := "---\n" + strings.Replace(object("HelmRepository", "url: https://charts.test/"), "name: x", "name: charts", 1)
	suspended := repo + "  suspend: true\n"
	ocirepo := "---\n" + strings.Replace(object("HelmRepository", "type: oci\nurl: oci://registry.test/charts"), "name: x", "name: charts", 1)
	git := "---\n" + strings.Replace(object("GitRepository", "url: https://git.test/x\ninterval: 5m"), "name: x", "name: charts", 1)
	oci := "---\n" + object("OCIRepository", "url: oci://registry.test/x\ninterval: 5m\nref: {tag: 1.0.0}")
	for _, tt := range []struct {
		name, kind, spec, others string
		want                     []string
	}{
		{"a good repository", "HelmRepository", "url: https://charts.test/\ninterval: 5m", "", nil},
		{"the index in the URL", "HelmRepository", "url: https://charts.test/index.yaml", "", []string{`HS046 warning line 5: the URL ends in index.yaml, which is appended to it: a cluster would request index.yaml/index.yaml`}},
		{"a password in the URL", "HelmRepository", "url: https://me:s3cret@charts.test/", "", []string{`HS045 warning line 5: the URL contains a password`}},
		{"no host", "HelmRepository", "url: https:///charts", "", []string{`HS042 error line 5: invalid Helm repository URL: parse "https:///charts/": no host in URL`}},
		{"oci without its type", "HelmRepository", "url: oci://registry.test/charts", "", []string{`HS040 error line 5: invalid Helm repository URL: 'oci' URL scheme cannot be used with 'default' HelmRepository type`}},
		{"the type without oci", "HelmRepository", "type: oci\nurl: https://charts.test/", "", []string{`HS041 error line 6: failed to construct Helm client: invalid OCI registry URL: https://charts.test/`}},
		{"a Secret that is missing", "HelmRepository", "url: https://charts.test/\nsecretRef: {name: login}", "", []string{`HS031 warning line 6: failed to get authentication secret 'apps/login': secrets "login" not found`}},
		{"a Secret with a login", "HelmRepository", "url: https://charts.test/\nsecretRef: {name: login}", secret("login", "{username: u, password: p}"), nil},
		{"a Secret without one", "HelmRepository", "url: https://charts.test/\nsecretRef: {name: login}", secret("login", "{token: t}"), []string{`HS083 warning line 6: Secret apps/login has 'token': only 'username' and 'password', or TLS keys, are used, so it has no effect`}},
		{"half a login", "HelmRepository", "url: https://charts.test/\nsecretRef: {name: login}", secret("login", "{username: u}"), []string{`HS080 error line 6: failed to detect authentication methods: secret 'apps/login': malformed basic auth - has 'username' but missing 'password'`}},
		{"less than a minute", "HelmRepository", "url: https://charts.test/\ninterval: 59s", "", []string{`HS063 warning line 6: spec.interval of 59s is shorter than a minute`}},
		{"a minute", "HelmRepository", "url: https://charts.test/\ninterval: 1m", "", nil},
		{"a year and two days", "HelmRepository", "url: https://charts.test/\ninterval: 8808h", "", []string{`HS063 warning line 6: spec.interval of 8808h0m0s is longer than a year`}},
		{"longer than the interval", "HelmRepository", "url: https://charts.test/\ninterval: 1m\ntimeout: 61s", "", []string{`HS063 warning line 7: spec.timeout of 1m1s is longer than spec.interval of 1m0s`}},
		{"as long as the interval", "HelmRepository", "url: https://charts.test/\ninterval: 1m\ntimeout: 60s", "", nil},
		{"half a second", "HelmRepository", "url: https://charts.test/\ntimeout: 500ms", "", []string{`HS063 warning line 6: spec.timeout of 500ms is shorter than a second`}},
		{"no source", "HelmChart", "chart: x\nversion: 1.0.0\ninterval: 5m\nsourceRef: {kind: HelmRepository, name: charts}", "", []string{`HS030 error line 8: helmrepositories.source.toolkit.fluxcd.io "charts" not found`}},
		{"a chart's good source", "HelmChart", "chart: x\nversion: 1.0.0\ninterval: 5m\nsourceRef: {kind: HelmRepository, name: charts}", repo, nil},
		{"every new version", "HelmChart", "chart: x\ninterval: 5m\nsourceRef: {kind: HelmRepository, name: charts}", repo, []string{`HS053 note line 5: chart "x" follows every new version`}},
		{"no version can match", "HelmChart", "chart: x\nversion: '>2 <1'\ninterval: 5m\nsourceRef: {kind: HelmRepository, name: charts}", repo, []string{`HS052 error line 6: no version can match ">2 <1"`}},
		{"no range", "HelmChart", "chart: x\nversion: one\ninterval: 5m\nsourceRef: {kind: HelmRepository, name: charts}", repo, []string{`HS051 error line 6: improper constraint: "one"`}},
		{"an upper case chart", "HelmChart", "chart: X\nversion: 1.0.0\ninterval: 5m\nsourceRef: {kind: HelmRepository, name: charts}", repo, []string{`HS050 error line 5: invalid chart name 'X': a valid name must be lower case letters and numbers and MAY be separated with dashes (-), slashes (/) or periods (.)`}},
		{"a strategy for trees", "HelmChart", "chart: x\nversion: 1.0.0\nreconcileStrategy: Revision\ninterval: 5m\nsourceRef: {kind: HelmRepository, name: charts}", repo, []string{`HS061 warning line 7: spec.reconcileStrategy: Revision has no effect on a chart from a HelmRepository`}},
		{"a suspended source", "HelmChart", "chart: x\nversion: 1.0.0\ninterval: 5m\nsourceRef: {kind: HelmRepository, name: charts}", suspended, []string{`HS033 warning line 8: its source HelmRepository apps/charts is suspended`}},
		{"a signature over HTTP", "HelmChart", "chart: x\nversion: 1.0.0\ninterval: 5m\nverify: {provider: cosign}\nsourceRef: {kind: HelmRepository, name: charts}", repo, []string{
			`HS071 warning line 8: spec.verify without secretRef and matchOIDCIdentity accepts signatures from anyone`,
			`HS070 error line 8: spec.verify works only with charts from OCI registries: the source is an HTTP repository`,
		}},
		{"a version of a tree", "HelmChart", "chart: ./x\nversion: 1.0.0\ninterval: 5m\nsourceRef: {kind: GitRepository, name: charts}", git, []string{`HS061 warning line 6: spec.version has no effect on a chart from a GitRepository`}},
		{"values files that are there anyway", "HelmChart", "chart: ./x\nvaluesFiles: [values.yaml]\ninterval: 5m\nsourceRef: {kind: GitRepository, name: charts}", git, []string{`HS061 warning line 6: spec.valuesFiles with only 'values.yaml' has no effect, and does not refer to the file at the root of the source`}},
		{"notation without a policy", "HelmChart", "chart: x\nversion: 1.0.0\ninterval: 5m\nverify: {provider: notation}\nsourceRef: {kind: HelmRepository, name: charts}", ocirepo, []string{`HS074 error line 8: notation needs spec.verify.secretRef: a Secret with trustpolicy.json and certificates`}},
		{"keys that are missing", "HelmChart", "chart: x\nversion: 1.0.0\ninterval: 5m\nverify: {provider: cosign, secretRef: {name: keys}}\nsourceRef: {kind: HelmRepository, name: charts}", ocirepo, []string{`HS078 error line 8: failed to get verification secret 'apps/keys': secrets "keys" not found`}},
		{"no key among them", "HelmChart", "chart: x\nversion: 1.0.0\ninterval: 5m\nverify: {provider: cosign, secretRef: {name: keys}}\nsourceRef: {kind: HelmRepository, name: charts}", ocirepo + secret("keys", "{README: x}"), []string{`HS074 error line 8: no public keys found in secret 'apps/keys'`}},
		{"no expression", "HelmChart", "chart: x\nversion: 1.0.0\ninterval: 5m\nverify: {provider: cosign, matchOIDCIdentity: [{issuer: '[', subject: x}]}\nsourceRef: {kind: HelmRepository, name: charts}", ocirepo, []string{"HS073 error line 8: error parsing regexp: missing closing ]: `[`"}},
		{"a good GitRepository", "GitRepository", "url: https://git.test/x\ninterval: 5m\nref: {branch: main}", "", nil},
		{"beside a branch", "GitRepository", "url: https://git.test/x\ninterval: 5m\nref: {branch: main, tag: v1}", "", []string{`HS061 warning line 7: spec.ref.branch has no effect beside spec.ref.tag`}},
		{"an ssh Secret without known_hosts", "GitRepository", "url: ssh://git@git.test/x\ninterval: 5m\nsecretRef: {name: key}", secret("key", "{identity: x}"), []string{`HS080 error line 7: failed to configure authentication options: secret 'apps/key': invalid 'ssh' auth option: 'known_hosts' is required`}},
		{"a GitHub App without its data", "GitRepository", "url: https://git.test/x\ninterval: 5m\nprovider: github\nsecretRef: {name: key}", secret("key", "{username: u, password: p}"), []string{`HS080 error line 8: secretRef with github app data must be specified when provider is set to github`}},
		{"an include that is missing", "GitRepository", "url: https://git.test/x\ninterval: 5m\ninclude: [{repository: {name: other}}]", "", []string{`HS030 error line 7: gitrepositories.source.toolkit.fluxcd.io "other" not found`}},
		{"a circle of includes", "GitRepository", "url: https://git.test/x\ninterval: 5m\ninclude: [{repository: {name: x}}]", "", []string{`HS126 error line 7: cycle of GitRepositories that include each other: apps/x → apps/x`}},
		{"a Bucket's half key", "Bucket", "bucketName: b\nendpoint: s3.test\ninterval: 5m\nsecretRef: {name: keys}", secret("keys", "{accesskey: a}"), []string{`HS080 error line 8: invalid 'keys' secret data: required fields 'accesskey' and 'secretkey'`}},
		{"a good Bucket", "Bucket", "bucketName: b\nendpoint: s3.test\ninterval: 5m\nsecretRef: {name: keys}", secret("keys", "{accesskey: a, secretkey: b}"), nil},
		{"a good artifact", "OCIRepository", "url: oci://registry.test/x\ninterval: 5m\nref: {tag: 1.0.0}", "", nil},
		{"the latest artifact", "OCIRepository", "url: oci://registry.test/x\ninterval: 5m\nref: {tag: latest}", "", []string{`HS053 note line 7: the tag latest is whatever was published last`}},
		{"no tag", "OCIRepository", "url: oci://registry.test/x\ninterval: 5m\nref: {tag: a b}", "", []string{`HS100 error line 7: "a b" cannot be a tag`}},
		{"a tag in the URL", "OCIRepository", "url: oci://registry.test/x:1.0.0\ninterval: 5m", "", []string{
			`HS053 note line 4: the tag latest is whatever was published last`,
			`HS042 error line 5: URL validation failed for 'oci://registry.test/x:1.0.0': URL must not contain a tag; remove ':1.0.0'`,
		}},
		{"no digest", "OCIRepository", "url: oci://registry.test/x\ninterval: 5m\nref: {digest: sha256:abc}", "", []string{`HS100 error line 7: wrong number of hex digits for sha256: abc`}},
		{"a layer's media type with a slip", "OCIRepository", "url: oci://registry.test/x\ninterval: 5m\nref: {tag: 1.0.0}\nlayerSelector: {mediaType: application/vnd.cncf.helm.chart.content.v1.tar}", "", []string{`HS101 warning line 8: no layer may have the media type application/vnd.cncf.helm.chart.content.v1.tar: did you mean application/vnd.cncf.helm.chart.content.v1.tar+gzip?`}},
		{"without TLS and with certificates", "OCIRepository", "url: oci://registry.test/x\ninterval: 5m\nref: {tag: 1.0.0}\ninsecure: true\ncertSecretRef: {name: certs}", secret("certs", "{}"), []string{
			`HS061 warning line 8: spec.insecure: true lets the registry be reached without TLS, although spec.certSecretRef names certificates`,
			`HS081 error line 9: secret 'apps/certs' must contain either 'ca.crt' or both 'tls.crt' and 'tls.key'`,
		}},
		{"a release's good reference", "HelmRelease", "interval: 5m\nchartRef: {kind: OCIRepository, name: x}", oci, nil},
		{"a release's missing reference", "HelmRelease", "interval: 5m\nchartRef: {kind: OCIRepository, name: z}", oci, []string{`HS030 error line 6: could not get Source object: ocirepositories.source.toolkit.fluxcd.io "z" not found`}},
		{"values from nowhere", "HelmRelease", "interval: 5m\nchartRef: {kind: OCIRepository, name: x}\nvaluesFrom: [{kind: ConfigMap, name: more}]", oci, []string{`HS121 error line 7: could not resolve ConfigMap chart values reference 'apps/more' with key 'values.yaml': configmaps "more" not found`}},
		{"optional values from nowhere", "HelmRelease", "interval: 5m\nchartRef: {kind: OCIRepository, name: x}\nvaluesFrom: [{kind: ConfigMap, name: more, optional: true}]", oci, nil},
		{"a release that it waits for", "HelmRelease", "interval: 5m\nchartRef: {kind: OCIRepository, name: x}\ndependsOn: [{name: other}]", oci, []string{`HS125 warning line 7: unable to get 'apps/other' dependency: helmreleases.helm.toolkit.fluxcd.io "other" not found`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := lines(judge(t, object(tt.kind, tt.spec)+tt.others)); !slices.Equal(got, tt.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(tt.want, "\n\t"))
			}
		})
	}
}

// TestValues composes the values of a release: errors of references are findings, and the origin of each value is known.
func TestValues(t *testing.T) {
	text := object("HelmRelease", "interval: 5m\nchartRef: {kind: OCIRepository, name: x}\nvalues: {a: {c: 2}}\nvaluesFrom: [{kind: ConfigMap, name: more}, {kind: Secret, name: absent}]") +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: apps}\ndata: {values.yaml: 'a: {b: 1, c: 1}'}\n"
	set := manifest.NewSet("default")
	if err := set.Add("x.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	inv := inventory.New(set)
	adm, err := inv.Admit(set.Objects()[0])
	if err != nil {
		t.Fatal(err)
	}
	composed, _, found := validate.Values(inv, adm)
	if got := fmt.Sprint(composed); got != "map[a:map[b:1 c:2]]" {
		t.Errorf("values %s", got)
	}
	want := []string{`HS031 warning line 8: could not resolve Secret chart values reference 'apps/absent' with key 'values.yaml': secrets "absent" not found`}
	if got := lines(found); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
