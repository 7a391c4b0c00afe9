package migrate

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// inputOf is the input of one file, whose documents are applied as they stand there.
func inputOf(t *testing.T, text string) Input {
	t.Helper()
	in := Input{
		Files: []File{{"all.yaml", []byte(text)}},
		All:   true,
		Current: func(apiVersion, _ string) string {
			return map[string]string{
				"source.toolkit.fluxcd.io/v1beta2": "source.toolkit.fluxcd.io/v1", "helm.toolkit.fluxcd.io/v2beta1": "helm.toolkit.fluxcd.io/v2",
				"kustomize.toolkit.fluxcd.io/v1beta2": "kustomize.toolkit.fluxcd.io/v1",
				"image.toolkit.fluxcd.io/v1beta2":     "image.toolkit.fluxcd.io/v1", "new.toolkit.fluxcd.io/v1": "new.toolkit.fluxcd.io/v2",
			}[apiVersion]
		},
		Served:     func(string, string) bool { return true },
		SecretType: func(string, string) string { return "" },
	}
	line := 1
	for _, document := range strings.SplitAfter(text, "---\n") {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(strings.TrimSuffix(document, "---\n")), &content); err != nil {
			t.Fatal(err)
		}
		o := &Object{
			ID:         ID{str(content, "kind"), str(content, "metadata", "namespace"), str(content, "metadata", "name")},
			APIVersion: str(content, "apiVersion"), Content: content, File: "all.yaml", Shown: "all.yaml", Line: line,
		}
		in.Objects = append(in.Objects, o)
		line += strings.Count(document, "\n")
	}
	return in
}

// texts are notes as NAME: TEXT (HINT).
func texts(notes []Note) string {
	var list []string
	for _, n := range notes {
		text := n.Name + ": " + n.Text
		if n.Hint != "" {
			text += " (" + n.Hint + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, "\n")
}

// wantRefusal expects a refusal, without any change or loss.
func wantRefusal(t *testing.T, result *Result, want string) {
	t.Helper()
	if got := texts(result.Refused); !strings.Contains(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
	if len(result.Files) > 0 || len(result.Changes) > 0 || len(result.Lost) > 0 {
		t.Errorf("%d files, changes %q, lost %q", len(result.Files), texts(result.Changes), texts(result.Lost))
	}
}

// TestVersionsRefused has objects that the current version cannot express: they stay, byte by byte.
func TestVersionsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{
			"strategic merge patches of a post renderer",
			"apiVersion: helm.toolkit.fluxcd.io/v2beta1\nkind: HelmRelease\nmetadata: {name: a}\nspec:\n  postRenderers:\n  - kustomize: {patchesStrategicMerge: []}\n",
			"a: HelmRelease helm.toolkit.fluxcd.io/v2beta1 is not migrated: spec.postRenderers[].kustomize.patchesStrategicMerge has to be written as patches",
		},
		{
			"validation of a Kustomization",
			"apiVersion: kustomize.toolkit.fluxcd.io/v1beta2\nkind: Kustomization\nmetadata: {name: a}\nspec: {validation: client}\n",
			"v1 has no spec.validation",
		},
		{
			"an update automation with another template",
			"apiVersion: image.toolkit.fluxcd.io/v1beta2\nkind: ImageUpdateAutomation\nmetadata: {name: a}\nspec: {git: {commit: {messageTemplate: '{{ .Updated }}'}}}\n",
			"neither .Updated nor .ImageResult",
		},
		{"an unknown kind", "apiVersion: new.toolkit.fluxcd.io/v1\nkind: New\nmetadata: {name: a}\nspec: {}\n", "the changes between the versions are not known"},
		{
			"values files that are no list of texts",
			"apiVersion: source.toolkit.fluxcd.io/v1beta2\nkind: HelmChart\nmetadata: {name: a}\nspec: {valuesFile: a.yaml, valuesFiles: [{}]}\n",
			"valuesFiles is not a list of strings",
		},
		{
			"a values file that is no text",
			"apiVersion: source.toolkit.fluxcd.io/v1beta2\nkind: HelmChart\nmetadata: {name: a}\nspec: {valuesFile: {}}\n",
			"valuesFile is not a string",
		},
		{
			"what SOPS has sealed",
			"apiVersion: source.toolkit.fluxcd.io/v1beta2\nkind: HelmRepository\nmetadata: {name: a}\nspec: {url: x}\nsops: {mac: 'ENC[x]', lastmodified: '2024-01-01', version: 3.8.1}\n",
			sealedText,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantRefusal(t, Plan(inputOf(t, test.text)), test.want)
		})
	}
}

// TestVersions also has texts that must not change: current versions, variables, the values of a release, objects that are not
// selected or left out.
func TestVersions(t *testing.T) {
	t.Parallel()
	const before = `apiVersion: source.toolkit.fluxcd.io/v1beta2 # old
kind: HelmChart
metadata: {name: a}
spec:
  accessFrom: {namespaceSelectors: []}
  valuesFile: first.yaml
  valuesFiles: [second.yaml]
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: current}
spec:
  driftDetection: {ignore: [{paths: [/spec], target: {group: source.toolkit.fluxcd.io, version: v1beta2, kind: HelmChart}}]}
  values: {apiVersion: source.toolkit.fluxcd.io/v1beta2, kind: HelmRepository}
---
apiVersion: ${version}
kind: HelmRepository
metadata: {name: variable}
---
apiVersion: source.toolkit.fluxcd.io/v1beta2
kind: HelmRepository
metadata: {name: repo}
spec: {type: OCI, url: oci://x}
`
	in := inputOf(t, before)
	result := Plan(in)
	if len(result.Files) != 1 || len(result.Refused) > 0 {
		t.Fatalf("%d files, refused %q", len(result.Files), texts(result.Refused))
	}
	got := string(result.Files[0].Text)
	for _, want := range []string{
		"apiVersion: source.toolkit.fluxcd.io/v1 # old\n", "type: oci,", "first.yaml", "group: source.toolkit.fluxcd.io, version: v1,", "values: {apiVersion: source.toolkit.fluxcd.io/v1beta2,",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "accessFrom") || strings.Contains(got, "valuesFile:") || strings.Index(got, "first.yaml") > strings.Index(got, "second.yaml") {
		t.Errorf("got\n%s", got)
	}
	if lost := texts(result.Lost); lost != "a: spec.accessFrom is left out: Flux ignores it, and the current API does not have it" {
		t.Errorf("lost %q", lost)
	}
	for old, want := range map[string]string{"OCI": "oci", "Default": "default", "oci": "oci"} {
		result := Plan(inputOf(t, "apiVersion: source.toolkit.fluxcd.io/v1beta2\nkind: HelmRepository\nmetadata: {name: repo}\nspec: {type: "+old+", url: x}\n"))
		if len(result.Files) != 1 || !strings.Contains(string(result.Files[0].Text), "{type: "+want+",") {
			t.Errorf("%s: %+v", old, result.Files)
		}
	}
	again := inputOf(t, got)
	if second := Plan(again); len(second.Files) > 0 {
		t.Errorf("a second time changes it again:\n%s", second.Files[0].Text)
	}

	in = inputOf(t, before)
	in.All = false
	in.Objects[3].Asked = true
	if result := Plan(in); texts(result.Changes) != "repo: source.toolkit.fluxcd.io/v1beta2 -> source.toolkit.fluxcd.io/v1" {
		t.Errorf("asked for one: %q", texts(result.Changes))
	}
	in = inputOf(t, before)
	in.Left = map[ID]bool{in.Objects[0].ID: true, in.Objects[1].ID: true, in.Objects[3].ID: true}
	if result := Plan(in); len(result.Files)+len(result.Changes) > 0 {
		t.Errorf("left: %q", texts(result.Changes))
	}
}

const fromRegistry = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: repo, namespace: apps}
spec:
  type: oci
  interval: 1h
  url: oci://registry.test/charts
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app, namespace: apps}
spec:
  interval: 5m
  chart:
    spec:
      chart: podinfo
      version: 6.5.0+build # pinned
      sourceRef: {kind: HelmRepository, name: repo}
`

// TestSourcesRefused has releases that have to keep their HelmRepository, and expects the reasons.
func TestSourcesRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, old, new string
		change         func(*Input)
		want           string
	}{
		{
			name: "an older Flux", change: func(in *Input) { in.Served = func(string, string) bool { return false } },
			want: "app: its chart stays in HelmRepository apps/repo: the Flux of the input has no spec.chartRef for OCIRepositories (upgrade Flux to 2.3 or later first)",
		},
		{name: "values files", old: "chart: podinfo", new: "chart: podinfo\n      valuesFiles: [a.yaml]", want: "with spec.chartRef, values files of the chart cannot be used"},
		{name: "a template that an alias may repeat", old: "chart:\n", new: "chart: &chart\n", want: "its chart stays in HelmRepository apps/repo: chart has an anchor that aliases may refer to"},
		{name: "a repository that an alias may repeat", old: "type: oci", new: "type: &type oci", want: "its chart stays in HelmRepository apps/repo: all.yaml:1: type has an anchor that aliases may refer to"},
		{name: "a suspended repository", old: "type: oci", new: "type: oci\n  suspend: true", want: "the repository is suspended"},
		{name: "a variable", old: "6.5.0+build", new: "${version}", want: "it depends on a variable"},
		{
			name: "a Secret of another type", old: "type: oci", new: "type: oci\n  secretRef: {name: login}",
			change: func(in *Input) { in.SecretType = func(string, string) string { return "Opaque" } },
			want:   "Secret apps/login is of type Opaque",
		},
		{
			name: "a repository in a file that is not edited",
			change: func(in *Input) {
				in.Objects[0].File, in.Objects[0].Shown, in.Objects[0].Unfit = "", "https://other.test/repo.yaml", "which is not edited"
			},
			want: "the repository is in https://other.test/repo.yaml, which is not edited",
		},
		{
			name:   "a release that a patch changes",
			change: func(in *Input) { in.Objects[1].Content["spec"].(map[string]any)["interval"] = "7m" },
			want:   "the applied object differs in spec.interval: a kustomization, a variable or an alias changes it, edit it there",
		},
		{
			name: "a release in a list", change: func(in *Input) {
				in.Files[0].Data = []byte(strings.Replace(fromRegistry, "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease", "apiVersion: v1\nkind: List", 1))
			},
			want: "it is an item of a List: write it as a document of its own",
		},
		{
			name: "a release that SOPS has sealed", old: "      sourceRef: {kind: HelmRepository, name: repo}\n",
			new: "      sourceRef: {kind: HelmRepository, name: repo}\nsops: {mac: 'ENC[x]', lastmodified: '2024-01-01', version: 3.8.1}\n", want: sealedText,
		},
		{
			name:   "a repository that a patch changes",
			change: func(in *Input) { in.Objects[0].Content["spec"].(map[string]any)["interval"] = "7m" },
			want:   "all.yaml:1: the applied object differs in spec",
		},
		{
			name: "a release of another source elsewhere", change: func(in *Input) {
				other := *in.Objects[1]
				other.Cluster = "two"
				in.Objects = append(in.Objects, &other)
			},
			want: "in another cluster it has another source",
		},
		{
			name: "a release with another name",
			change: func(in *Input) {
				in.Objects[1].Name, in.Objects[1].By = "prefix-app", "apps/kustomization.yaml"
			},
			want: `the document names it "app": apps/kustomization.yaml creates it, edit it there`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := inputOf(t, strings.Replace(fromRegistry, test.old, test.new, 1))
			if test.change != nil {
				test.change(&in)
			}
			wantRefusal(t, Plan(in), test.want)
		})
	}
}

// TestSources moves a chart to an OCIRepository, which keeps the fields of the repository, and the comment of the version.
func TestSources(t *testing.T) {
	t.Parallel()
	result := Plan(inputOf(t, fromRegistry))
	if len(result.Files) != 1 || len(result.Refused) > 0 {
		t.Fatalf("%d files, refused %q", len(result.Files), texts(result.Refused))
	}
	got := string(result.Files[0].Text)
	for _, want := range []string{
		"kind: OCIRepository", "name: repo", "url: oci://registry.test/charts/podinfo", "tag: 6.5.0_build # pinned",
		"mediaType: " + chartMediaType, "operation: copy", "interval: 5m", "chartRef:",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "kind: HelmRepository") || strings.Contains(got, "type: oci") {
		t.Errorf("got\n%s", got)
	}
	if changes := texts(result.Changes); !strings.Contains(changes, "repo: nothing refers to it any more: removed") {
		t.Errorf("changes %q", changes)
	}

	// Objects that are not releases of Flux 2, that are not selected, or that are left out stay.
	for _, other := range []string{"all", "left", "kind: Other", "helm.example.org/v2"} {
		in := inputOf(t, fromRegistry)
		switch other {
		case "all":
			in.All = false
		case "left":
			in.Left = map[ID]bool{in.Objects[1].ID: true}
		case "kind: Other":
			in = inputOf(t, strings.Replace(fromRegistry, "kind: HelmRelease", other, 1))
		default:
			in = inputOf(t, strings.Replace(fromRegistry, "helm.toolkit.fluxcd.io/v2", other, 1))
		}
		if result := Plan(in); len(result.Files)+len(result.Refused) > 0 {
			t.Errorf("%s: %+v, refused %q", other, result.Files, texts(result.Refused))
		}
	}

	// Two releases with different versions.
	_, release, _ := strings.Cut(fromRegistry, "---\n")
	result = Plan(inputOf(t, fromRegistry+"---\n"+strings.NewReplacer("name: app", "name: two", "6.5.0+build", "6.5.1").Replace(release)))
	if changes := texts(result.Changes); strings.Count(changes, "removed") != 1 {
		t.Errorf("changes %q", changes)
	}

	// Something else still needs the repository, and another object has its name.
	more := fromRegistry + `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: other, namespace: apps}
spec: {chart: x, interval: 1h, sourceRef: {kind: HelmRepository, name: repo}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: podinfo, namespace: apps}
spec: {interval: 1h, url: oci://x/y}
`
	result = Plan(inputOf(t, more))
	if len(result.Files) != 1 {
		t.Fatalf("refused %q", texts(result.Refused))
	}
	got = string(result.Files[0].Text)
	if !strings.Contains(got, "kind: HelmRepository\nmetadata: {name: repo") || strings.Count(got, "name: podinfo,") != 1 || !strings.Contains(got, "name: app\n") {
		t.Errorf("got\n%s", got)
	}
}

// TestSourcesMentioned: a repository stays as long as something names it, however deep that is, and goes if only its like is named.
func TestSourcesMentioned(t *testing.T) {
	t.Parallel()
	const alert = "---\napiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Alert\nmetadata: {name: alert, namespace: apps}\nspec: {eventSources: [{kind: KIND, name: NAME}]}\n"
	for _, test := range []struct {
		kind, name string
		stays      bool
	}{{"HelmRepository", "repo", true}, {"HelmRepository", "other", false}, {"GitRepository", "repo", false}} {
		result := Plan(inputOf(t, fromRegistry+strings.NewReplacer("KIND", test.kind, "NAME", test.name).Replace(alert)))
		if len(result.Files) != 1 || strings.Contains(string(result.Files[0].Text), "kind: HelmRepository\n") != test.stays {
			t.Errorf("%+v: %+v, refused %q", test, result.Files, texts(result.Refused))
		}
	}
}

// TestSourcesIndexed gets a chart from the registry of an index: fields for the server of the index are left out.
func TestSourcesIndexed(t *testing.T) {
	t.Parallel()
	indexed := strings.NewReplacer(
		"  type: oci\n", "  timeout: 10s\n  provider: generic\n  certSecretRef: {name: ca}\n  secretRef: {name: login}\n  accessFrom: {}\nPASSstatus: {}\n",
		"  interval: 1h\n", "", "  url: oci://registry.test/charts\n", "",
		"  chart:\n    spec:\n", "  chart:\n    metadata: {labels: {a: b}}\n    spec:\n      verify: {secretRef: {name: keys}}\n", "6.5.0+build", "6.x",
	).Replace(fromRegistry)
	indexed = strings.Replace(indexed, "spec:\n", "spec:\n  url: https://charts.test/\n", 1)
	for pass, kept := range map[string]bool{"": false, "  passCredentials: true\n": true, "  passCredentials: false\n": false} {
		in := inputOf(t, strings.Replace(indexed, "PASS", pass, 1))
		in.Registry = func(id ID) string {
			return "oci://registry.test/charts/" + map[string]string{"app": "podinfo"}[id.Name]
		}
		in.SecretType = func(string, string) string {
			return map[bool]string{true: "kubernetes.io/dockerconfigjson", false: "Opaque"}[kept]
		}
		in.Served = func(apiVersion, kind string) bool { return kind != ociKind }
		result := Plan(in)
		if len(result.Files) != 1 {
			t.Fatalf("refused %q", texts(result.Refused))
		}
		got := string(result.Files[0].Text)
		for _, want := range []string{
			"apiVersion: source.toolkit.fluxcd.io/v1beta2\nkind: OCIRepository", "url: oci://registry.test/charts/podinfo", "interval: 5m\n", "semver: 6.x # pinned",
			"  verify:\n    provider: cosign\n    secretRef:\n      name: keys\n",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
		for _, gone := range []string{"timeout", "provider: generic", "certSecretRef", "accessFrom", "passCredentials", "status", "kind: HelmRepository"} {
			if strings.Contains(got, gone) {
				t.Errorf("%q is in\n%s", gone, got)
			}
		}
		lost := texts(result.Lost)
		for want, there := range map[string]bool{"spec.chart.metadata": true, "spec.accessFrom": true, "spec.certSecretRef": true, "spec.secretRef": !kept} {
			if strings.Contains(lost, want+" is left out") != there {
				t.Errorf("%q: %s is left out: %v", pass, want, !there)
			}
		}
		if strings.Contains(got, "secretRef: {name: login}") != kept {
			t.Errorf("%q: got\n%s", pass, got)
		}
	}
	in := inputOf(t, strings.Replace(indexed, "PASS", "  passCredentials: true\n", 1))
	in.Registry = func(ID) string { return "oci://registry.test/charts/podinfo" }
	in.SecretType = func(string, string) string { return "Opaque" }
	wantRefusal(t, Plan(in), "Secret apps/login is of type Opaque, but an OCIRepository accepts only kubernetes.io/dockerconfigjson (create it again")
	in.Registry = func(ID) string { return "" }
	if result := Plan(in); len(result.Files)+len(result.Refused) > 0 {
		t.Errorf("no registry: %+v, refused %q", result.Files, texts(result.Refused))
	}
}

// operated is a HelmRelease of Flux 1 with a chart and more of a spec.
func operatedRelease(chart, more string) string {
	return "apiVersion: helm.fluxcd.io/v1\nkind: HelmRelease\nmetadata: {name: app, namespace: apps}\nspec:\n  chart: " + chart + "\n" + more
}

const published = "{repository: 'https://charts.test/', name: podinfo, version: 6.5.0}"

// TestOperatedRefused has releases of Flux 1 that v2 cannot express: they stay, and their other findings are
// dropped.
func TestOperatedRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"no chart", operatedRelease("{}", ""), "spec.chart has neither git and path, nor repository, name and version"},
		{"no spec", "apiVersion: helm.fluxcd.io/v1\nkind: HelmRelease\nmetadata: {name: app, namespace: apps}\n", "its spec is not a mapping"},
		{"values that are no mapping", operatedRelease(published, "  values: [a]\n"), "spec.values is not a mapping"},
		{"a variable", operatedRelease("{repository: 'https://${host}', name: podinfo, version: 6.5.0}", ""), "spec.chart depends on a variable"},
		{
			"a file of the chart",
			operatedRelease(published, "  valuesFrom:\n  - chartFileRef: {path: a.yaml}\n"),
			"spec.valuesFrom[0].chartFileRef has another precedence in v2 (name the file in spec.chart.spec.valuesFiles",
		},
		{
			"values from a URL", operatedRelease(published, "  valuesFrom:\n  - externalSourceRef: {url: 'https://x'}\n"),
			"helm-controller reads no values from a URL (put the file into a ConfigMap)",
		},
		{"values from nothing", operatedRelease(published, "  valuesFrom:\n  - {}\n"), "spec.valuesFrom[0] names no source"},
		{
			"values of another namespace", operatedRelease(published, "  valuesFrom:\n  - secretKeyRef: {name: s, namespace: other}\n"),
			"spec.valuesFrom[0] is in the namespace other, but helm-controller reads only the namespace of the release (copy it into the namespace of the release)",
		},
		{
			"a commit that is cut off, after something that would be lost",
			operatedRelease("{git: 'ssh://git@git.test/x', path: charts/app, ref: 0123abc}", ""),
			"spec.chart.ref is an abbreviated commit",
		},
		{"a Git server of its own protocol", operatedRelease("{git: 'git://git.test/x', path: a}", ""), "a GitRepository has no URL like git://git.test/x"},
		{
			"a login of another namespace",
			operatedRelease("{git: 'https://git.test/x', path: a, secretRef: {name: s, namespace: other}}", ""),
			"a GitRepository uses only Secrets of its own namespace (copy the Secret into the namespace of the release)",
		},
		{"an annotation", strings.Replace(operatedRelease(published, ""), "namespace: apps}", "namespace: apps, annotations: {fluxcd.io/ignore: 'true'}}", 1), "an annotation excludes it from being applied"},
		{"no namespace", strings.Replace(operatedRelease(published, ""), ", namespace: apps", "", 1), "it has no namespace"},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantRefusal(t, Plan(inputOf(t, test.text)), test.want)
		})
	}
}

// TestOperated: the release keeps the name that the operator gave it, and its values in their order. Defaults of the operator
// are written out.
func TestOperated(t *testing.T) {
	t.Parallel()
	more := "  helmVersion: v3\n  timeout: 90\n  valueFileSecrets: [{name: first}]\n" +
		"  valuesFrom:\n  - configMapKeyRef: {name: second, key: a.yaml, optional: true}\n  values: {a: 1}\n"
	result := Plan(inputOf(t, operatedRelease(published, more)))
	if len(result.Files) != 1 || len(result.Operated) != 1 {
		t.Fatalf("refused %q", texts(result.Refused))
	}
	got := string(result.Files[0].Text)
	for _, want := range []string{
		"apiVersion: helm.toolkit.fluxcd.io/v2", "releaseName: apps-app", "timeout: 90s", "maxHistory: 10", "disableWait: true",
		"url: https://charts.test", "valuesKey: a.yaml", "optional: true", "values: {a: 1}", "version: 6.5.0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Index(got, "name: first") > strings.Index(got, "name: second") || strings.Contains(got, "helmVersion") {
		t.Errorf("got\n%s", got)
	}

	for chart, want := range map[string]string{
		"{git: 'git@git.test:team/x.git', path: /charts/app/}":                                "url: ssh://git@git.test/team/x.git",
		"{git: 'https://git.test/x', path: a, ref: v1.2.0}":                                   "tag: v1.2.0",
		"{git: 'https://git.test/x', path: a, ref: refs/heads/main}":                          "name: refs/heads/main",
		"{git: 'https://git.test/x', path: a}":                                                "branch: master",
		"{git: 'https://git.test/x', path: ../a}":                                             "chart: ./a",
		"{git: 'https://git.test/x', path: a, secretRef: {name: login}}":                      "name: login",
		"{git: 'https://git.test/x', path: a, ref: 0123456789abcdef0123456789abcdef01234567}": "commit: 0123456789abcdef0123456789abcdef01234567",
	} {
		result := Plan(inputOf(t, operatedRelease(chart, "")))
		if len(result.Files) != 1 || !strings.Contains(string(result.Files[0].Text), want) || !strings.Contains(string(result.Files[0].Text), "reconcileStrategy: Revision\n") {
			t.Errorf("%s: no %q in %+v, refused %q", chart, want, result.Files, texts(result.Refused))
		}
	}
}

// TestOperatedActions writes the actions of v2 for the operator's handling of a release, and reports the fields that are left out.
func TestOperatedActions(t *testing.T) {
	t.Parallel()
	const retried = "  install:\n    remediation:\n      retries: -1\n"
	rolled := func(retries, rest string) string {
		return retried + "  upgrade:\n    remediation:\n      strategy: rollback\n      retries: " + retries + "\n      remediateLastFailure: true\n  rollback:\n" + rest
	}
	for more, want := range map[string]string{
		"wait: true": retried,
		"wait: true\n  skipCRDs: true\n  disableOpenAPIValidation: true": "  install:\n    crds: Skip\n    disableOpenAPIValidation: true\n    remediation:\n      retries: -1\n",
		"wait: false\n  forceUpgrade: true\n  resetValues: false":        "    disableWait: true\n    remediation:\n      retries: -1\n  upgrade:\n    disableWait: true\n    force: true\n    preserveValues: true\n",
		"wait: true\n  resetValues: true":                                retried,
		"rollback: {enable: true}":                                       rolled("0", "    disableWait: true\n"),
		"rollback: {enable: true, retry: true, wait: true, force: true, recreate: true, disableHooks: true, timeout: 7}": rolled("5",
			"    recreate: true\n    disableHooks: true\n    force: true\n    timeout: 7s\n"),
		"rollback: {enable: true, retry: true, maxRetries: 0}":         rolled("-1", "    disableWait: true\n"),
		"rollback: {enable: true, retry: true, maxRetries: 3}":         rolled("3", "    disableWait: true\n"),
		"test: {enable: true, ignoreFailures: true, timeout: 9}":       retried + "  test:\n    enable: true\n    ignoreFailures: true\n    timeout: 9s\n",
		"test: {enable: true}":                                         retried + "  test:\n    enable: true\n",
		"wait: true\n  targetNamespace: other":                         "  releaseName: apps-other-app\n  storageNamespace: other\n",
		"wait: true\n  targetNamespace: apps":                          "  releaseName: apps-app\n  storageNamespace: apps\n",
		"wait: true\n  releaseName: called\n  maxHistory: 3":           "  maxHistory: 3\n" + retried,
		"wait: true\n  test: {enable: true}\n  rollback: {wait: true}": retried + "  test:\n    enable: true\n",
	} {
		result := Plan(inputOf(t, operatedRelease(published, "  "+more+"\n")))
		if len(result.Files) != 1 || !strings.Contains(string(result.Files[0].Text), want) || len(result.Lost) > 0 {
			t.Errorf("%s: no\n%s in\n%+v\nrefused %q, lost %q", more, want, result.Files, texts(result.Refused), texts(result.Lost))
		} else if text := string(result.Files[0].Text); want == retried && strings.Contains(text, "upgrade:") || strings.Contains(more, "releaseName") && strings.Count(text, "releaseName") != 1 {
			t.Errorf("%s: got\n%s", more, text)
		}
	}

	older := strings.Replace(operatedRelease(published, "  wait: true\n  targetNamespace: other\n"), "helm.fluxcd.io/v1", "flux.weave.works/v1beta1", 1)
	result := Plan(inputOf(t, older))
	if got := string(result.Files[0].Text); !strings.Contains(got, "preserveValues: true") || !strings.Contains(got, "releaseName: apps-app\n") {
		t.Errorf("got\n%s", got)
	}

	annotated := strings.Replace(operatedRelease("{repository: 'https://charts.test/', name: podinfo, version: 6.5.0, chartPullSecret: {name: s}}",
		"  helmVersion: v2\n  test: {enable: true, cleanup: true}\n"), "namespace: apps}", "namespace: apps, annotations: {fluxcd.io/automated: 'true', a: b, filter.fluxcd.io/x: y}}", 1)
	result = Plan(inputOf(t, annotated+"status: {phase: x}\n"))
	if got := string(result.Files[0].Text); strings.Contains(got, "status:") || strings.Contains(got, "helmVersion") {
		t.Errorf("got\n%s", got)
	}
	for _, want := range []string{
		"Flux 2 does not read fluxcd.io/automated, filter.fluxcd.io/x: an ImagePolicy", "spec.chart.chartPullSecret is left out",
		"spec.helmVersion v2 is left out", "spec.test.cleanup is left out",
	} {
		if got := texts(result.Lost); !strings.Contains(got, want) || strings.Count(got, "\n") != 3 {
			t.Errorf("no %q in %q", want, got)
		}
	}
	result = Plan(inputOf(t, operatedRelease("{git: 'https://git.test/x', path: a, skipDepUpdate: true}", "")))
	if got := texts(result.Lost); !strings.Contains(got, "spec.chart.skipDepUpdate is left out") {
		t.Errorf("lost %q", got)
	}

	// Releases of one repository share its source, even an existing one.
	two := operatedRelease(published, "") + "---\n" + strings.Replace(operatedRelease(published, ""), "name: app,", "name: two,", 1)
	there := "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: there, namespace: NAMESPACE}\nspec: {interval: 5m, url: 'https://charts.test/'}\n"
	for namespace, want := range map[string]int{"apps": 1, "other": 2} {
		result := Plan(inputOf(t, two+strings.Replace(there, "NAMESPACE", namespace, 1)))
		if len(result.Files) != 1 || strings.Count(string(result.Files[0].Text), "kind: HelmRepository\nmeta") != want || want == 2 && strings.Count(string(result.Files[0].Text), "metadata:\n  name: charts-test\n  namespace: apps\n") != 1 {
			t.Errorf("%s: got\n%s, refused %q", namespace, result.Files[0].Text, texts(result.Refused))
		}
	}
}

// TestManyValues limits the allocations for repeated keys: the YAML library makes a text for each pair of equal keys.
func TestManyValues(t *testing.T) {
	work := func(keys int) float64 {
		in := inputOf(t, operatedText+"    key: value\n")
		in.Files[0].Data = []byte(operatedText + strings.Repeat("    key: value\n", keys))
		if result := Plan(in); len(result.Operated) != 1 {
			t.Error(texts(result.Refused))
		}
		return testing.AllocsPerRun(1, func() { Plan(in) })
	}
	if few, many := work(500), work(2000); many > 6*few {
		t.Errorf("with four times the keys a plan allocates %v times, not %v", many, few)
	}
}

const operatedText = `apiVersion: helm.fluxcd.io/v1
kind: HelmRelease
metadata: {name: app, namespace: apps}
spec:
  chart: {repository: "https://charts.test", name: app, version: 1.2.3}
  values:
`

// TestAsRead has values that YAML 1.1 and YAML 1.2 read in different ways: a cluster reads the former, and kustomize the latter.
func TestAsRead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		by      string
		applied any
		want    bool
	}{{"", true, true}, {"", "yes", false}, {"a kustomization", "yes", true}, {"a kustomization", "no", false}} {
		in := inputOf(t, operatedText+"    enabled: yes\n")
		in.Objects[0].By = test.by
		in.Objects[0].Content["spec"].(map[string]any)["values"] = map[string]any{"enabled": test.applied}
		if result := Plan(in); (len(result.Operated) == 1) != test.want {
			t.Errorf("%q %v: migrated %v, refused %q", test.by, test.applied, result.Operated, texts(result.Refused))
		}
	}
}
