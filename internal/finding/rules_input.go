package finding

import "strings"

func inputRules() []Rule {
	return []Rule{
		{
			Code: Unreadable, Name: "unreadable-input", Group: groupInput, Severity: Error, Lasting: true,
			Summary:     "A file or directory cannot be read",
			Explanation: "A path given with -f does not exist, or this user may not read it. Its objects take no part in the run, so references to them cannot be resolved.",
			Fix:         "Name a file, directory or glob that exists, or - for standard input.",
		},
		{
			Code: Syntax, Name: "syntax", Group: groupInput, Severity: Error, Lasting: true,
			Summary:     "A file is not valid YAML or JSON, or holds no manifests",
			Explanation: "Nothing of the file is used. The templates of a chart are not manifests either: render them first.",
			Fix:         "Fix the file at the line that is named.",
			Example:     "apiVersion: " + sourceV1 + "\nkind: HelmRepository\n  metadata: {name: charts}\n",
			Better:      repository(httpURL),
		},
		{
			Code: UnknownKind, Name: "unknown-kind", Group: groupInput, Severity: Error, Lasting: true,
			Summary:     "The kind does not exist in its API group, or the API group does not exist",
			Explanation: "The API server would reject the object because it does not know its kind. It is nearly always a typing error.",
			Fix:         "Write the name of the kind as Flux does, capitals included.",
			Example:     object(sourceV1, "HelmRepo", "charts", "interval: 10m\n"+httpURL),
			Better:      repository(httpURL),
		},
		{
			Code: DuplicateObject, Name: "duplicate-object", Group: groupInput, Severity: Error, Lasting: true,
			Summary:     "An object is defined more than once",
			Explanation: "In a cluster, the definition that is applied last wins. helmsrc cannot know which one that is, so it uses none of them.",
			Fix:         "Remove all definitions but one, or give them names or namespaces of their own.",
			Example:     documents(repository(httpURL), repository(httpURL)),
			Better:      repository(httpURL),
		},
		{
			Code: NotBuilt, Name: "not-built", Group: groupInput, Severity: Error, Lasting: true,
			Summary:     "A kustomization cannot be built",
			Explanation: "kustomize refuses a kustomization file, or a setting of a Kustomization of Flux. In a cluster, none of its objects would be applied; here, none of them takes part in the run.",
			Fix:         "Fix the kustomization file, or the file that the message names.",
		},
		{
			Code: NotReady, Name: "not-ready-for-admission", Group: groupInput, Severity: Error, Lasting: true,
			Summary:     "An object cannot be sent to the API server",
			Explanation: "It comes from a kustomization and has no namespace, or it is encrypted and no available key decrypts it, or its Kustomization has a setting that Flux refuses. It takes no part in the run.",
			Fix:         "Correct the object or its Kustomization where the marked line is, or give helmsrc the key that decrypts it.",
		},
		{
			Code: NoRun, Name: "no-run", Group: groupInput, Severity: Error, Lasting: true,
			Summary:     "A command could not start",
			Explanation: "The command line, a configuration file, or a file or directory that they name is wrong. Nothing was checked or fetched. The code appears in reports only; on stderr it is an error without a code.",
			Fix:         "Correct the command line or the configuration file; helmsrc COMMAND --help lists what it takes.",
		},
		{
			Code: OutsideLink, Name: "outside-link", Group: groupInput, Severity: Warning, Lasting: true,
			Summary:     "A link is not followed",
			Explanation: "Links that lead out of the repository (or, without a .git directory, out of the directory given) are not followed, nor are links to directories that are not read otherwise. Below the path of a Kustomization without a kustomization file, no link is followed: source-controller leaves links out of its artifacts, so Flux does not apply their targets. A link that is named on the command line is followed.",
			Fix:         "Put the file itself into the repository, or name what the link leads to with -f.",
		},
		{
			Code: LeftOut, Name: "left-out", Group: groupInput, Severity: Note, Lasting: true,
			Summary:     "Flux objects are left out",
			Explanation: "helmsrc does not support their kind. The note is printed without -v as well, and does not count with --strict.",
			Fix:         "Write the object in a newer API.",
			Example:     documents(repository(httpURL), object("helm.integrations.flux.weave.works/v1alpha2", "FluxHelmRelease", "app", "chartGitPath: app\n")),
			Better:      repository(httpURL),
		},
	}
}

func admissionRules() []Rule {
	return []Rule{
		{
			Code: InvalidValue, Name: "invalid-value", Group: groupAdmission, Severity: Error,
			Summary:     "A value does not have the form that its field requires",
			Explanation: "The schema of the kind restricts the field by a pattern, a length or a range. The API server refuses the object, and to Flux it does not exist.",
			Fix:         "Write the value in the form that the message names.",
			Example:     repository("url: charts.example.org\n"),
			Better:      repository(httpURL),
		},
		{
			Code: UnknownField, Name: "unknown-field", Group: groupAdmission, Severity: Error,
			Summary:     "A field does not exist in the kind",
			Explanation: "kubectl apply and Flux's server-side apply refuse unknown fields. If they are accepted, the setting is silently dropped.",
			Fix:         "Correct the name of the field, or move it to where it belongs.",
			Example:     repository(httpURL + "intervall: 5m\n"),
			Better:      repository(httpURL),
		},
		{
			Code: MissingField, Name: "missing-field", Group: groupAdmission, Severity: Error,
			Summary:     "A required field is missing",
			Explanation: "The API server refuses an object that lacks a required field. One that begins with metadata.generateName has no name before it is created, and cannot be applied.",
			Fix:         "Add the field.",
			Example:     object(sourceV1, "HelmChart", "podinfo", "interval: 10m\nchart: podinfo\n"),
			Better:      documents(repository(httpURL), helmChart("")),
		},
		{
			Code: WrongType, Name: "wrong-type", Group: groupAdmission, Severity: Error,
			Remedy:      &Remedy{Keys: []string{"version", "tag", "semver", "chart", "name"}, Quote: true},
			Summary:     "A value has the wrong type",
			Explanation: "YAML reads 1.10 as a number and yes as a boolean. A field of type string does not accept them; in quotes, any value is a string.",
			Fix:         "Put strings in quotes; write lists and maps where the field requires them.",
			Example:     documents(repository(httpURL), helmChart("version: 6.5\n")),
			Better:      documents(repository(httpURL), helmChart("version: \"6.5\"\n")),
		},
		{
			Code: UnsupportedValue, Name: "unsupported-value", Group: groupAdmission, Severity: Error,
			Summary:     "The value is not allowed in this field",
			Explanation: "The field is an enumeration. The API server refuses any other value, even if only its capitals differ.",
			Fix:         "Use one of the values that the message lists.",
			Example:     documents(repository(httpURL), helmChart("reconcileStrategy: Always\n")),
			Better:      documents(repository(httpURL), helmChart("reconcileStrategy: ChartVersion\n")),
		},
		{
			Code: UnknownVersion, Name: "unknown-version", Group: groupAdmission, Severity: Error,
			Summary:     "Flux never served this API version of the kind",
			Explanation: "The API server would answer that there are no matches for the kind in that version.",
			Fix:         "Use a version of the API that Flux serves: v1 for sources, v2 for HelmReleases.",
			Example:     object("source.toolkit.fluxcd.io/v2", "HelmRepository", "charts", "interval: 10m\n"+httpURL),
			Better:      repository(httpURL),
		},
		{
			Code: InvalidMetadata, Name: "invalid-metadata", Group: groupAdmission, Severity: Error,
			Summary:     "The name, namespace, a label or an annotation is not valid",
			Explanation: "Names are lower case letters, digits, - and ., at most 253 characters. Labels and annotations have strings for values, and rules of their own.",
			Fix:         "Choose a name that the rules allow; put values in quotes.",
			Example:     object(sourceV1, "HelmRepository", "My_Charts", "interval: 10m\n"+httpURL),
			Better:      object(sourceV1, "HelmRepository", "my-charts", "interval: 10m\n"+httpURL),
		},
		{
			Code: InvalidDuration, Name: "invalid-duration", Group: groupAdmission, Severity: Error,
			Summary:     "The interval or timeout is not a valid duration",
			Explanation: "Durations are numbers with a unit: ms, s, m, h. A number alone, days or spaces are refused; a timeout has no hours either.",
			Fix:         "Write the duration as in 90s or 10m.",
			Example:     object(sourceV1, "HelmRepository", "charts", "interval: 10 minutes\n"+httpURL),
			Better:      repository(httpURL),
		},
		{
			Code: UnresolvedVariable, Name: "unresolved-variable", Group: groupAdmission, Severity: Error,
			Summary:     "A ${VARIABLE} was not replaced by its value",
			Explanation: "A Flux Kustomization replaces variables after it has built the manifests. This manifest was not built, and the variable itself is not a valid value.",
			Fix:         "Give it a value with --substitute NAME=VALUE, or read the directory of its Kustomization with -R -f.",
			Example:     object(sourceV1, "HelmRepository", "charts", "interval: ${interval}\n"+httpURL),
			Better:      repository(httpURL),
		},
		{
			Code: BrokenRule, Name: "broken-rule", Group: groupAdmission, Severity: Error,
			Summary:     "Fields contradict each other",
			Explanation: "The kind has rules about fields that exclude or require each other. The API server refuses an object that breaks one of them.",
			Fix:         "Change one of the fields that the rule names.",
			Example:     documents(git(""), helmChart("chart: ./charts/podinfo\nverify:\n  provider: cosign\nsourceRef:\n  kind: GitRepository\n  name: charts\n")),
			Better:      documents(git(""), helmChart("chart: ./charts/podinfo\nsourceRef:\n  kind: GitRepository\n  name: charts\n")),
		},
	}
}

func deprecationRules() []Rule {
	old := func(version, spec string) string {
		return object("source.toolkit.fluxcd.io/"+version, "HelmRepository", "charts", "interval: 10m\n"+spec)
	}
	installed := object("fluxcd.controlplane.io/v1", "FluxInstance", "flux\n  namespace: flux-system", "distribution:\n  version: 2.6.x\n  registry: ghcr.io/fluxcd\n")
	return []Rule{
		{
			Code: DeprecatedVersion, Name: "deprecated-version", Group: groupDeprecated, Severity: Warning,
			Remedy:      &Remedy{Keys: []string{"apiVersion"}},
			Summary:     "The API version is deprecated",
			Explanation: "The Flux of --flux-version, or the one that the input installs, still serves it, and has a newer one. A later Flux refuses the object. It is read as the newer version here.",
			Fix:         "Change apiVersion to the version that the message names.",
			Example:     documents(installed, old("v1beta2", httpURL)),
			Better:      documents(installed, old("v1", httpURL)),
		},
		{
			Code: RemovedField, Name: "removed-field", Group: groupDeprecated, Severity: Warning,
			Summary:     "A field of an old API version was removed",
			Explanation: "The field was removed in v1. Most removed fields have no effect; spec.valuesFile is read as the first of spec.valuesFiles.",
			Fix:         "Remove the field; move spec.valuesFile into spec.valuesFiles.",
			Example: documents(installed, repository(httpURL), object("source.toolkit.fluxcd.io/v1beta2", "HelmChart", "podinfo",
				"interval: 10m\nchart: podinfo\nvaluesFile: values-prod.yaml\nsourceRef:\n  kind: HelmRepository\n  name: charts\n")),
			Better: documents(repository(httpURL), helmChart("valuesFiles: [values-prod.yaml]\n")),
		},
		{
			Code: DeprecatedSpelling, Name: "deprecated-spelling", Group: groupDeprecated, Severity: Warning,
			Remedy:      &Remedy{Keys: []string{"type"}, Replace: strings.ToLower},
			Summary:     "A value is spelled as in a proposal and not as in the API",
			Explanation: "The design document for OCI support spelled the types of a HelmRepository in capitals. The API accepts oci and default.",
			Fix:         "Write the type in lower case.",
			Example:     documents(installed, old("v1beta2", "type: OCI\n"+ociURL)),
			Better:      documents(installed, old("v1beta2", "type: oci\n"+ociURL)),
		},
		{
			Code: RemovedVersion, Name: "removed-version", Group: groupDeprecated, Severity: Error,
			Remedy:      &Remedy{Keys: []string{"apiVersion"}},
			Summary:     "Flux does not serve the API version",
			Explanation: "Flux 2.7 removed v1beta1 and v2beta1, 2.8 v1beta2 and v2beta2 of sources, Kustomizations and HelmReleases, 2.9 v1beta2 of images and notifications; v1 of some kinds is younger than Flux 2.0. The API server refuses such an object. The version of Flux is that of --flux-version, else the one that the input installs (a gotk-components.yaml, a FluxInstance, a source of Flux's own manifests), else the newest known. Commands that fetch convert such an object with a warning, unless --flux-version is given.",
			Fix:         "Change apiVersion to the version that the message names; flux migrate does it for files and clusters.",
			Example:     old("v1beta2", httpURL),
			Better:      old("v1", httpURL),
		},
	}
}

func ignoreRules() []Rule {
	return []Rule{
		{
			Code: UselessIgnore, Name: "useless-ignore", Group: groupIgnores, Severity: Note,
			Summary:     "A comment silences nothing",
			Explanation: "The mistake was corrected, or the comment is in the wrong place. If it stays, it hides the next mistake of the same kind. It is reported with -v, and as a warning with --strict.",
			Fix:         "Remove the comment, or the code from it.",
			Example:     repository("url: https://charts.example.org # helmsrc:ignore HS061\n"),
			Better:      repository(httpURL),
		},
		{
			Code: UnknownCode, Name: "unknown-code", Group: groupIgnores, Severity: Warning,
			Summary:     "A comment names a code that does not exist, or that cannot be silenced",
			Explanation: "The comment has no effect. Integrity failures and input that cannot be used cannot be silenced.",
			Fix:         "Copy the code from the message that is to be silenced.",
			Example:     repository("insecure: true # helmsrc:ignore HS999\n" + httpURL),
			Better:      repository("insecure: true # helmsrc:ignore HS061\n" + httpURL),
		},
	}
}
