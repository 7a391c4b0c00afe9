package finding

// operated is a HelmRelease of Flux 1.
func operated(spec string) string {
	return object("helm.fluxcd.io/v1", "HelmRelease", "podinfo", spec)
}

const operatorChart = "chart:\n  repository: https://charts.example.org\n  name: podinfo\n  version: 6.5.0\n"

func operatorRules() []Rule {
	return []Rule{
		{
			Code: EndOfLife, Name: "end-of-life", Group: groupReleases, Severity: Note, Lasting: true,
			Summary:     "The input has HelmReleases of Flux 1",
			Explanation: "Flux 1 and its Helm Operator have not been maintained since 2022. helmsrc treats their HelmReleases as the operator's last version did. The note is printed once, without -v as well, and does not count with --strict.",
			Fix:         "Convert them to Flux 2: 'helmsrc migrate' does it.",
			Example:     operated(operatorChart),
			Better:      documents(repository(httpURL), release("podinfo", "")),
		},
		{
			Code: NoChartSource, Name: "no-chart-source", Group: groupReleases, Severity: Error,
			Summary:     "A HelmRelease of Flux 1 does not say where its chart is",
			Explanation: "The Helm Operator needs git and path, or repository, name and version. Its CustomResourceDefinition requires none of them, so the mistake shows only when the chart is fetched.",
			Fix:         "Complete spec.chart.",
			Example:     operated("chart:\n  repository: https://charts.example.org\n  name: podinfo\n"),
			Better:      operated(operatorChart),
		},
		{
			Code: OperatorSetting, Name: "operator-setting", Group: groupReleases, Severity: Warning,
			Summary:     "A setting of a HelmRelease of Flux 1 does not have the expected effect",
			Explanation: "The Helm Operator reads some fields only in part or not at all, or they have no counterpart in Flux 2: chartPullSecret, a secretRef beside an ssh URL, a version that is a range, values from a URL, resetValues: false. The same is true of files of a chart that Flux 2 leaves out because of .sourceignore or its defaults.",
			Fix:         "Remove the field, or replace it by a supported one.",
			Example:     operated(operatorChart + "  chartPullSecret:\n    name: login\n"),
			Better:      operated(operatorChart),
		},
		{
			Code: SharedRelease, Name: "shared-release", Group: groupReleases, Severity: Warning,
			Summary:     "HelmReleases of different API groups are the same Helm release",
			Explanation: "Both have the same release name, namespace and storage: one of Flux 1 and one of Flux 2, or two of the two groups of Flux 1. While both controllers run, each overwrites the upgrades of the other.",
			Fix:         "Delete the older one without its release, or set its annotation fluxcd.io/ignore to true.",
			Example:     documents(repository(httpURL), release("podinfo", "releaseName: podinfo\n"), operated(operatorChart+"releaseName: podinfo\n")),
			Better:      documents(repository(httpURL), release("podinfo", "releaseName: podinfo\n"), operated(operatorChart+"releaseName: podinfo-1\n")),
		},
	}
}
