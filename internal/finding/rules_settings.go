package finding

import "strings"

func referenceRules() []Rule {
	suspended := object(sourceV1, "HelmRepository", "charts", "interval: 10m\nsuspend: true\n"+httpURL)
	return []Rule{
		{
			Code: MissingSource, Name: "missing-source", Group: groupReferences, Severity: Error,
			Summary:     "Referenced source not found",
			Explanation: "It is neither in the input nor in a file beside it. A reference is to an object of the same namespace, and its kind and name must match exactly.",
			Fix:         "Add the file that holds it with -f, or correct the reference.",
			Example:     helmChart(""),
			Better:      documents(repository(httpURL), helmChart("")),
		},
		{
			Code: MissingSecret, Name: "missing-secret", Group: groupReferences, Severity: Warning,
			Summary:     "Referenced Secret or ServiceAccount not found",
			Explanation: "It is neither in the input nor in a file beside it. That is normal if it exists only in the cluster; otherwise the name may be misspelled. validate does not report one that is encrypted with SOPS, or that an ExternalSecret, a SealedSecret or a Certificate of the input makes. Commands that fetch need its values, and fail; --missing-secrets sets what to use instead.",
			Fix:         "Add the file that holds it with -f; if only the cluster has it, say so in a comment: helmsrc:ignore HS031.",
			Example:     repository(httpURL + "secretRef:\n  name: login\n"),
			Better:      documents(repository(httpURL+"secretRef:\n  name: login\n"), secret("login", "username: user\npassword: secret\n")),
		},
		{
			Code: UnusableSource, Name: "unusable-source", Group: groupReferences, Severity: Error,
			Summary:     "Referenced source cannot be used",
			Explanation: "The API server would refuse it, or it is defined more than once, so for a controller it does not exist. If the mistake in the source is reported, this finding is listed with it.",
			Fix:         "Fix the source first.",
			Example:     documents(repository("url: charts.example.org # helmsrc:ignore HS010\n"), helmChart("")),
			Better:      documents(repository(httpURL), helmChart("")),
		},
		{
			Code: SuspendedSource, Name: "suspended-source", Group: groupReferences, Severity: Warning,
			Summary:     "The source of an active chart is suspended",
			Explanation: "A suspended source is not fetched. The chart uses what was fetched before, or fails if there is nothing, and gets no new versions.",
			Fix:         "Suspend the chart as well, or resume the source.",
			Example:     documents(suspended, helmChart("")),
			Better:      documents(suspended, helmChart("suspend: true\n")),
		},
		{
			Code: InvalidSecret, Name: "invalid-secret", Group: groupReferences, Severity: Error,
			Summary:     "The API server refuses a referenced Secret",
			Explanation: "Values under data must be base64, those under stringData are text. Some types of Secret require certain keys.",
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
			Explanation: "Without a type, it is a repository with an index that is fetched over HTTP.",
			Fix:         "Add type: oci to the spec.",
			Example:     repository(ociURL),
			Better:      ociRepository(""),
		},
		{
			Code: TypeWithoutOCI, Name: "type-without-oci-url", Group: groupURLs, Severity: Error,
			Summary:     "A HelmRepository is of type oci but has another URL",
			Explanation: "Registries have oci:// URLs. A repository with an index.yaml has the default type.",
			Fix:         "Write the URL as oci://host/path, or remove the type.",
			Example:     repository("type: oci\n" + httpURL),
			Better:      repository(httpURL),
		},
		{
			Code: InvalidURL, Name: "invalid-url", Group: groupURLs, Severity: Error,
			Summary:     "A URL is not valid",
			Explanation: "It has a space, an invalid escape sequence, no host or an invalid port.",
			Fix:         "Correct the URL.",
			Example:     repository("url: https://charts.example.org:http\n"),
			Better:      repository(httpURL),
		},
		{
			Code: UnsupportedScheme, Name: "unsupported-scheme", Group: groupURLs, Severity: Error,
			Summary:     "A URL has an unsupported scheme",
			Explanation: "Helm repositories have http://, https:// or oci:// URLs.",
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
			Explanation: "The name of the chart is appended to the URL of its repository, so the chart is looked up at oci://host/path/podinfo/podinfo, where it rarely is.",
			Fix:         "Remove the last part of the URL.",
			Example:     documents(repository("type: oci\nurl: oci://registry.example.org/charts/podinfo\n"), helmChart("")),
			Better:      documents(ociRepository(""), helmChart("")),
		},
		{
			Code: LoginInURL, Name: "login-in-url", Group: groupURLs, Severity: Warning,
			Summary:     "A URL contains a password",
			Explanation: "Anyone who can read the manifest, the object or its status can read the password.",
			Fix:         "Move user name and password into a Secret, and name that in spec.secretRef.",
			Example:     repository("url: https://user:secret@charts.example.org\n"),
			Better:      documents(repository(httpURL+"secretRef:\n  name: login\n"), secret("login", "username: user\npassword: secret\n")),
		},
		{
			Code: IndexInURL, Name: "index-in-url", Group: groupURLs, Severity: Warning,
			Remedy:      &Remedy{Keys: []string{"url"}, Replace: func(url string) string { return strings.TrimSuffix(url, "/index.yaml") }},
			Summary:     "The URL of a Helm repository ends in index.yaml",
			Explanation: "source-controller appends index.yaml to the URL, and would request index.yaml/index.yaml. helmsrc fetches the repository as if the URL were that of the directory.",
			Fix:         "Remove /index.yaml from the URL.",
			Example:     repository("url: https://charts.example.org/index.yaml\n"),
			Better:      repository(httpURL),
		},
	}
}

func chartRules() []Rule {
	chart := func(spec string) string { return documents(repository(httpURL), helmChart(spec)) }
	return []Rule{
		{
			Code: InvalidChartName, Name: "invalid-chart-name", Group: groupCharts, Severity: Error,
			Summary:     "The name of a chart is not valid",
			Explanation: "Charts in Helm repositories are named with lower case letters, digits, -, . and /. source-controller refuses other names.",
			Fix:         "Write the name as in the repository.",
			Example:     chart("chart: Pod_Info\n"),
			Better:      chart(""),
		},
		{
			Code: MalformedVersion, Name: "malformed-version", Group: groupCharts, Severity: Error,
			Summary:     "A version is neither a version nor a range",
			Explanation: "Only a published version of exactly that name could match it, and published versions are semantic versions.",
			Fix:         "Use a version such as \"1.2.3\" or a range such as \"1.2.x\" or \">=1.2.0 <2.0.0\".",
			Example:     chart("version: latest\n"),
			Better:      chart("version: \"*\"\n"),
		},
		{
			Code: ImpossibleRange, Name: "impossible-range", Group: groupCharts, Severity: Error,
			Summary:     "No version can match a range",
			Explanation: "The parts of the range exclude each other. A space or comma between them means and; alternatives are separated by ||.",
			Fix:         "Correct the bounds, or separate alternatives by ||.",
			Example:     chart("version: \">2.0.0 <1.0.0\"\n"),
			Better:      chart("version: \">=1.0.0 <2.0.0\"\n"),
		},
		{
			Code: UnpinnedVersion, Name: "unpinned-version", Group: groupCharts, Severity: Note,
			Summary:     "A chart or source follows every version that is published",
			Explanation: "Each published version is deployed, including major ones, so deployments change from one day to the next. With --strict, it is a warning. It is always a warning if the version is not in quotes and begins with > or !: YAML reads >6 and !=6.1 as empty values.",
			Fix:         "Name a version, or a range that stays within one major version.",
			Example:     chart("version: \"*\"\n"),
			Better:      chart("version: \"6.x\"\n"),
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
			Fix:         "Remove it unless the archives are on another host that requires the same credentials.",
			Example:     repository("passCredentials: true\n" + httpURL),
			Better:      repository(httpURL),
		},
		{
			Code: UselessSetting, Name: "useless-setting", Group: groupSettings, Severity: Warning,
			Summary:     "A setting has no effect here",
			Explanation: "insecure and provider apply to repositories of type oci, passCredentials to those with an index. spec.version selects a version from a Helm repository, reconcileStrategy Revision adds the revision of a Git repository or a bucket. matchOIDCIdentity restricts keyless verification only.",
			Fix:         "Remove the setting, or correct the type of the source.",
			Example:     repository("insecure: true\n" + httpURL),
			Better:      repository("type: oci\ninsecure: true\n" + ociURL),
		},
		{
			Code: UnsupportedProvider, Name: "unsupported-provider", Group: groupSettings, Severity: Warning,
			Summary:     "helmsrc does not support the logins of this provider yet",
			Explanation: "Nothing is wrong with the manifest, but fetch will fail.",
			Fix:         "Replace the source by a local directory with --source.",
			Example:     git("provider: azure\n"),
			Better:      git(""),
		},
		{
			Code: ShortInterval, Name: "odd-interval", Group: groupSettings, Severity: Warning,
			Summary:     "An interval or a timeout is very short or very long",
			Explanation: "With an interval below a minute, the source is fetched again and again by every cluster, and registries and forges limit the rate of such requests. With one of more than a year, new versions are noticed only when the controller restarts. No server answers within milliseconds; and while a fetch hangs longer than the interval, the next one is already due.",
			Fix:         "Use an interval between a minute and a day, and a timeout between a few seconds and the interval.",
			Example:     timed("interval: 5s\n"),
			Better:      timed("interval: 1m\n"),
		},
	}
}
