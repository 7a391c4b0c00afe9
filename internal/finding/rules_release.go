package finding

const releaseV2 = "helm.toolkit.fluxcd.io/v2"

// release is a HelmRelease with a chart of the repository that is called charts.
func release(name, spec string) string {
	return object(releaseV2, "HelmRelease", name, "interval: 10m\n"+releaseChart("")+spec)
}

func releaseChart(ref string) string {
	return "chart:\n  spec:\n    chart: podinfo\n    version: 6.5.0\n    sourceRef:\n      kind: HelmRepository\n      name: charts\n" + ref
}

// referringRelease is one that takes its chart from an object of its own.
func referringRelease(kind, name string) string {
	return object(releaseV2, "HelmRelease", "podinfo", "interval: 10m\nchartRef:\n  kind: "+kind+"\n  name: "+name+"\n")
}

func configMap(data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: values\ndata:\n" + indented(data)
}

func releaseRules() []Rule {
	repo := repository(httpURL)
	from := "valuesFrom:\n- kind: ConfigMap\n  name: values\n"
	pinned := object(sourceV1, "HelmChart", "default-podinfo", "interval: 10m\nchart: podinfo\nversion: 6.5.0\nsourceRef:\n  kind: HelmRepository\n  name: charts\n")
	long := "podinfo-for-the-customers-of-the-other-side-of-the-river-and-more"
	return []Rule{
		{
			Code: ChartClash, Name: "clash", Group: groupReferences, Severity: Error,
			Summary:     "Two objects make the same HelmChart, artifact or release",
			Explanation: "The HelmChart of a HelmRelease is called NAMESPACE-NAME and is in the namespace of its source; two ArtifactGenerators may name one artifact; two HelmReleases of Flux 1 may have one release name and target namespace. Each overwrites what the other makes, or is refused.",
			Fix:         "Rename one of them, or give it another namespace, releaseName or targetNamespace.",
			Example:     documents(repo, pinned, release("podinfo", "")),
			Better:      documents(repo, release("podinfo", "")),
		},
		{
			Code: MissingValues, Name: "missing-values", Group: groupReferences, Severity: Error,
			Summary:     "Referenced values object or key not found",
			Explanation: "helm-controller installs nothing until the ConfigMap or Secret is there, in the namespace of the HelmRelease, with the key. Without valuesKey the key is values.yaml.",
			Fix:         "Add the file that holds it with -f, or mark the reference as optional.",
			Example:     documents(repo, release("podinfo", from)),
			Better:      documents(repo, release("podinfo", from), configMap("values.yaml: \"replicas: 2\"\n")),
		},
		{
			Code: InvalidValues, Name: "invalid-values", Group: groupSettings, Severity: Error,
			Summary:     "Values cannot be read",
			Explanation: "Without targetPath, values are a YAML map; with it, a value is parsed as by helm --set. helm-controller silently ignores values that are not a map.",
			Fix:         "Write a map, or set literal: true for a text that should not be parsed.",
			Example:     documents(repo, release("podinfo", "values: replicas=2\n")),
			Better:      documents(repo, release("podinfo", "values:\n  replicas: 2\n")),
		},
		{
			Code: ForbiddenReference, Name: "forbidden-reference", Group: groupReferences, Severity: Error,
			Summary:     "A HelmRelease refers to an object that it may not use",
			Explanation: "ExternalArtifacts require a feature gate that is off by default; helmsrc assumes it is on for an artifact that an ArtifactGenerator of the input makes. References to other namespaces are refused with --no-cross-namespace-refs.",
			Fix:         "Use an OCIRepository or HelmChart of the same namespace, or add the ArtifactGenerator with -f.",
			Example:     referringRelease("ExternalArtifact", "podinfo"),
			Better: documents(referringRelease("OCIRepository", "podinfo"),
				object(sourceV1, "OCIRepository", "podinfo", "interval: 10m\nurl: oci://registry.example.org/charts/podinfo\nref:\n  tag: 6.5.0\n")),
		},
		{
			Code: ChartTag, Name: "chart-tag", Group: groupRun, Severity: Error,
			Summary:     "A tag that is a version differs from the version of its chart",
			Explanation: "helm-controller compares them, and treats 1, 1.2 and 20240101 as versions as well. Tags such as latest are not compared.",
			Fix:         "Name the chart's own tag in spec.ref of the OCIRepository, or use spec.ref.semver.",
		},
		{
			Code: MissingDependency, Name: "missing-dependency", Group: groupReferences, Severity: Warning,
			Summary:     "Dependency of a HelmRelease or Kustomization not found",
			Explanation: "helm-controller installs nothing, and kustomize-controller applies nothing, until the dependency is ready. The chart is fetched nevertheless.",
			Fix:         "Add the file that holds it with -f, or correct the reference.",
			Example:     documents(repo, release("podinfo", "dependsOn:\n- name: redis\n")),
			Better:      documents(repo, release("podinfo", "dependsOn:\n- name: redis\n"), release("redis", "")),
		},
		{
			Code: DependencyCycle, Name: "cycle", Group: groupReferences, Severity: Error,
			Summary:     "Objects wait for each other",
			Explanation: "Each waits forever: a HelmRelease or Kustomization for the other to be ready, a GitRepository for what it includes, an ArtifactGenerator for the artifact that is made of its own. The controllers do not detect it.",
			Fix:         "Remove one of the references that form the cycle.",
			Example:     documents(repo, release("podinfo", "dependsOn:\n- name: redis\n"), release("redis", "dependsOn:\n- name: podinfo\n")),
			Better:      documents(repo, release("podinfo", "dependsOn:\n- name: redis\n"), release("redis", "")),
		},
		{
			Code: RefusedChart, Name: "refused-chart", Group: groupReferences, Severity: Error,
			Summary:     "The API server refuses the HelmChart of a HelmRelease",
			Explanation: "The name of the HelmRelease is a label of the HelmChart, and labels have at most 63 characters. helm-controller retries forever, and reports it only in its log.",
			Fix:         "Choose a shorter name, or fix spec.chart.metadata.",
			Example:     documents(repo, release(long, "")),
			Better:      documents(repo, release("podinfo", "")),
		},
		{
			Code: RefusedName, Name: "refused-name", Group: groupReleases, Severity: Error,
			Summary:     "The name of a release or of its namespace is not valid",
			Explanation: "The CustomResourceDefinition only limits the length of releaseName, targetNamespace and storageNamespace: the object is accepted, and each install fails. Helm accepts names of at most 53 characters; the Helm Operator of Flux 1 joins the namespaces and the name of the HelmRelease, and does not shorten the result.",
			Fix:         "Set spec.releaseName: lower case letters, digits and dashes, also dots, at most 53 characters.",
			Example:     documents(repo, release("podinfo", "releaseName: Pod_Info\n")),
			Better:      documents(repo, release("podinfo", "releaseName: pod-info\n")),
		},
	}
}
