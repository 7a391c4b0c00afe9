package finding

import "strings"

func referenceRules() []Rule {
	suspended := object(sourceV1, "HelmRepository", "charts", "interval: 10m\nsuspend: true\n"+httpURL)
	return []Rule{
		{
			Code: MissingSource, Name: "missing-source", Group: groupReferences, Severity: Error,
			Summary:     "Referenced source not found",
			Explanation: "It is neither in the input nor in a file beside it. References do not leave their namespace, and name kind and name exactly.",
			Fix:         "Add the file that holds it with -f, or correct the reference.",
			Example:     helmChart(""),
			Better:      documents(repository(httpURL), helmChart("")),
		},
		{
			Code: MissingSecret, Name: "missing-secret", Group: groupReferences, Severity: Warning,
			Summary:     "A Secret or ServiceAccount that is referred to is not in the input",
			Explanation: "It is neither there nor in a file beside it. That is as it should be of one that only the cluster has; for all others, the name may be misspelt. validate says nothing of one that is encrypted with SOPS, or that an ExternalSecret, a SealedSecret or a Certificate of the input makes. While something is fetched each of these is an error, because its values cannot be used: --missing-secrets says what to use in its place.",
			Fix:         "Add the file that holds it with -f; if only the cluster has it, say so in a comment: helmsrc:ignore HS031.",
			Example:     repository(httpURL + "secretRef:\n  name: login\n"),
			Better:      documents(repository(httpURL+"secretRef:\n  name: login\n"), secret("login", "username: user\npassword: secret\n")),
		},
		{
			Code: UnusableSource, Name: "unusable-source", Group: groupReferences, Severity: Error,
			Summary:     "A source that is referred to is in the input, but cannot be used",
			Explanation: "The API server would refuse it, or it is defined more than once. To a controller it does not exist. Where the mistake of the source itself is reported, this is listed with it.",
			Fix:         "Fix the source first.",
			Example:     documents(repository("url: charts.example.org # helmsrc:ignore HS010\n"), helmChart("")),
			Better:      documents(repository(httpURL), helmChart("")),
		},
		{
			Code: SuspendedSource, Name: "suspended-source", Group: groupReferences, Severity: Warning,
			Summary:     "The source of a chart that is live is suspended",
			Explanation: "A suspended source is not fetched again. The chart goes on with what was fetched before, or fails where that is nothing, and sees no new version.",
			Fix:         "Suspend the chart as well, or resume the source.",
			Example:     documents(suspended, helmChart("")),
			Better:      documents(suspended, helmChart("suspend: true\n")),
		},
		{
			Code: IncludeCycle, Name: "include-cycle", Group: groupReferences, Severity: Error,
			Summary:     "A GitRepository includes itself",
			Explanation: "Each waits for the artifact of the other, for ever.",
			Fix:         "Remove one of the includes.",
			Example:     git("include:\n- repository:\n    name: charts\n"),
			Better:      git(""),
		},
		{
			Code: InvalidSecret, Name: "invalid-secret", Group: groupReferences, Severity: Error,
			Summary:     "A Secret that is referred to is one that the API server refuses",
			Explanation: "Values under data are base64, those under stringData are text. Some types require keys of their own.",
			Fix:         "Fix the Secret; plain text belongs under stringData.",
			Example: documents(repository(httpURL+"secretRef:\n  name: login\n"),
				"apiVersion: v1\nkind: Secret\nmetadata:\n  name: login\ndata:\n  username: not base64\n"),
			Better: documents(repository(httpURL+"secretRef:\n  name: login\n"), secret("login", "username: user\npassword: secret\n")),
		},
	}
}

func urlRules() []Rule {
	return []Rule{
		{
			Code: OCIWithoutType, Name: "oci-url-without-type", Group: groupURLs, Severity: Error,
			Remedy:      &Remedy{Keys: []string{"url"}, Insert: [2]string{"type", "oci"}},
			Summary:     "A HelmRepository has an oci:// URL but is not of type oci",
			Explanation: "Without a type it is a repository with an index, which is fetched by HTTP.",
			Fix:         "Add type: oci to the spec.",
			Example:     repository(ociURL),
			Better:      ociRepository(""),
		},
		{
			Code: TypeWithoutOCI, Name: "type-without-oci-url", Group: groupURLs, Severity: Error,
			Summary:     "A HelmRepository is of type oci but has another URL",
			Explanation: "A registry is named by an oci:// URL. A repository with an index.yaml has no type.",
			Fix:         "Write the URL as oci://host/path, or drop the type.",
			Example:     repository("type: oci\n" + httpURL),
			Better:      repository(httpURL),
		},
		{
			Code: InvalidURL, Name: "invalid-url", Group: groupURLs, Severity: Error,
			Summary:     "A URL cannot be read",
			Explanation: "It holds a space, a broken escape, no host or a port that is none.",
			Fix:         "Correct the URL.",
			Example:     repository("url: https://charts.example.org:http\n"),
			Better:      repository(httpURL),
		},
		{
			Code: UnsupportedScheme, Name: "unsupported-scheme", Group: groupURLs, Severity: Error,
			Summary:     "A URL has a scheme that cannot be fetched",
			Explanation: "Helm repositories are at http://, https:// and oci:// URLs.",
			Fix:         "Use a URL with one of these schemes, or replace the source by a directory with --source.",
			Example:     repository("url: ftp://charts.example.org\n"),
			Better:      repository(httpURL),
		},
		{
			Code: ChartInURL, Name: "chart-in-url", Group: groupURLs, Severity: Warning,
			Remedy: &Remedy{Keys: []string{"url"}, Replace: func(url string) string {
				url = strings.TrimRight(url, "/")
				return url[:max(strings.LastIndexByte(url, '/'), 0)]
			}},
			Summary:     "The URL of an OCI repository ends in the name of the chart",
			Explanation: "The name of the chart is appended to the URL of its repository. It is looked for at oci://host/path/podinfo/podinfo, where it rarely is.",
			Fix:         "Take the last part off the URL.",
			Example:     documents(repository("type: oci\nurl: oci://registry.example.org/charts/podinfo\n"), helmChart("")),
			Better:      documents(ociRepository(""), helmChart("")),
		},
		{
			Code: LoginInURL, Name: "login-in-url", Group: groupURLs, Severity: Warning,
			Summary:     "A URL holds a password",
			Explanation: "Anyone who can read the manifest, the object or its status can read the password.",
			Fix:         "Move user name and password into a Secret, and name that in spec.secretRef.",
			Example:     repository("url: https://user:secret@charts.example.org\n"),
			Better:      documents(repository(httpURL+"secretRef:\n  name: login\n"), secret("login", "username: user\npassword: secret\n")),
		},
		{
			Code: IndexInURL, Name: "index-in-url", Group: groupURLs, Severity: Warning,
			Remedy:      &Remedy{Keys: []string{"url"}, Replace: func(url string) string { return strings.TrimSuffix(url, "/index.yaml") }},
			Summary:     "The URL of a Helm repository ends in index.yaml",
			Explanation: "source-controller appends index.yaml to the URL, and would ask for index.yaml/index.yaml. Here the repository is fetched as if the URL named the directory.",
			Fix:         "Take /index.yaml off the URL.",
			Example:     repository("url: https://charts.example.org/index.yaml\n"),
			Better:      repository(httpURL),
		},
	}
}

func chartRules() []Rule {
	chart := func(spec string) string { return documents(repository(httpURL), helmChart(spec)) }
	fromGit := func(spec string) string {
		return documents(git(""), helmChart("chart: ./charts/podinfo\n"+spec+"sourceRef:\n  kind: GitRepository\n  name: charts\n"))
	}
	return []Rule{
		{
			Code: InvalidChartName, Name: "invalid-chart-name", Group: groupCharts, Severity: Error,
			Summary:     "The name of a chart is one that Flux refuses",
			Explanation: "Charts in Helm repositories are named with lower case letters, digits, -, . and /. source-controller refuses other names before it looks for them.",
			Fix:         "Write the name as the repository has it.",
			Example:     chart("chart: Pod_Info\n"),
			Better:      chart(""),
		},
		{
			Code: MalformedVersion, Name: "malformed-version", Group: groupCharts, Severity: Error,
			Summary:     "A version is neither a version nor a range",
			Explanation: "Only a published version of exactly that name could satisfy it, and those are semantic versions.",
			Fix:         "Use a version such as \"1.2.3\" or a range such as \"1.2.x\" or \">=1.2.0 <2.0.0\".",
			Example:     chart("version: latest\n"),
			Better:      chart("version: \"*\"\n"),
		},
		{
			Code: ImpossibleRange, Name: "impossible-range", Group: groupCharts, Severity: Error,
			Summary:     "No version at all can match a range",
			Explanation: "The parts of the range exclude each other. A space or comma between them means and; alternatives are separated by ||.",
			Fix:         "Correct the bounds, or separate alternatives by ||.",
			Example:     chart("version: \">2.0.0 <1.0.0\"\n"),
			Better:      chart("version: \">=1.0.0 <2.0.0\"\n"),
		},
		{
			Code: UnpinnedVersion, Name: "unpinned-version", Group: groupCharts, Severity: Note,
			Summary:     "A chart or source follows every version that is published",
			Explanation: "What is deployed changes when a version is published, major ones included, and differs from one day to the next. It is reported with --strict only, as a warning.",
			Fix:         "Name a version, or a range that stays within one major version.",
			Example:     chart("version: \"*\"\n"),
			Better:      chart("version: \"6.x\"\n"),
		},
		{
			Code: UselessVersion, Name: "useless-version", Group: groupCharts, Severity: Warning,
			Summary:     "The version of a chart from Git or a bucket has no effect",
			Explanation: "spec.version chooses among the versions of a Helm repository. A chart in a Git repository or a bucket is the one that is there.",
			Fix:         "Remove spec.version, and choose a tag in the GitRepository's spec.ref.",
			Example:     fromGit("version: 1.2.3\n"),
			Better:      fromGit(""),
		},
		{
			Code: UselessStrategy, Name: "useless-strategy", Group: groupCharts, Severity: Warning,
			Summary:     "reconcileStrategy Revision has no effect on a chart from a Helm repository",
			Explanation: "The strategy adds the revision of a Git repository or bucket to the chart's version. A published chart has the version that it was published with.",
			Fix:         "Remove spec.reconcileStrategy.",
			Example:     chart("reconcileStrategy: Revision\n"),
			Better:      chart(""),
		},
	}
}

func settingRules() []Rule {
	timed := func(durations string) string {
		return object(sourceV1, "HelmRepository", "charts", durations+httpURL)
	}
	return []Rule{
		{
			Code: PassCredentials, Name: "pass-credentials", Group: groupSettings, Severity: Warning,
			Summary:     "passCredentials sends the credentials to every host that the index names",
			Explanation: "Anyone who can write the index can have the password sent to a host of their own.",
			Fix:         "Leave it out unless the archives are on another host that wants the same credentials.",
			Example:     repository("passCredentials: true\n" + httpURL),
			Better:      repository(httpURL),
		},
		{
			Code: UselessSetting, Name: "useless-setting", Group: groupSettings, Severity: Warning,
			Summary:     "A setting has no effect on this type of source",
			Explanation: "insecure and provider are for repositories of type oci, passCredentials for those that have an index. Elsewhere they are ignored, and what was meant by them does not happen.",
			Fix:         "Remove the setting, or correct the type.",
			Example:     repository("insecure: true\n" + httpURL),
			Better:      repository("type: oci\ninsecure: true\n" + ociURL),
		},
		{
			Code: UnsupportedProvider, Name: "unsupported-provider", Group: groupSettings, Severity: Warning,
			Summary:     "helmsrc does not know this provider's logins yet",
			Explanation: "Nothing is wrong with the manifest, but fetch will fail.",
			Fix:         "Replace the source by a local directory with --source.",
			Example:     git("provider: azure\n"),
			Better:      git(""),
		},
		{
			Code: ShortInterval, Name: "short-interval", Group: groupSettings, Severity: Warning,
			Summary:     "An interval is shorter than a minute",
			Explanation: "The source is fetched again and again, by every cluster. Registries and forges limit the rate of such requests.",
			Fix:         "Use a minute or more; a webhook receiver makes Flux look at once when something is published.",
			Example:     timed("interval: 5s\n"),
			Better:      timed("interval: 1m\n"),
		},
		{
			Code: LongInterval, Name: "long-interval", Group: groupSettings, Severity: Warning,
			Summary:     "An interval is longer than a year",
			Explanation: "What is published is noticed when the controller restarts, and otherwise never. Hours were written where minutes were meant.",
			Fix:         "Use a shorter interval; spec.suspend stops a source for good.",
			Example:     timed("interval: 10000h\n"),
			Better:      timed("interval: 24h\n"),
		},
		{
			Code: OddTimeout, Name: "odd-timeout", Group: groupSettings, Severity: Warning,
			Summary:     "A timeout is shorter than a second, or longer than the interval",
			Explanation: "No server answers within milliseconds. While a fetch that hangs is waited for, the next one is due.",
			Fix:         "Use a timeout between some seconds and the interval.",
			Example:     timed("interval: 1m\ntimeout: 10m\n"),
			Better:      timed("interval: 10m\ntimeout: 1m\n"),
		},
	}
}
