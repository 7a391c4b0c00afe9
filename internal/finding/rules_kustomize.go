package finding

import "strings"

// inFile puts manifests into a file of their own: examples about kustomizations are of several.
func inFile(name, text string) string { return "# " + name + "\n" + text }

// fluxKustomization is one of the repository that it lies in.
func fluxKustomization(spec string) string {
	return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: apps\n  namespace: flux-system\nspec:\n" +
		indented("interval: 10m\nprune: true\ntargetNamespace: apps\n"+spec)
}

func kustomization(fields string) string {
	return "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + fields
}

func kustomizationRules() []Rule {
	const ours = "sourceRef:\n  kind: GitRepository\n  name: flux-system\n"
	const path = "path: ./apps\n"
	apps := inFile("apps/charts.yaml", repository(httpURL))
	cluster := func(spec string) string { return inFile("cluster.yaml", fluxKustomization(spec)) }
	file := func(fields string) string { return inFile("apps/kustomization.yaml", kustomization(fields)) }
	variables := "postBuild:\n  substituteFrom:\n  - kind: ConfigMap\n    name: values\n"
	config := func(namespace, data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: values\n  namespace: " + namespace + "\ndata:\n" + indented(data)
	}
	keys := "decryption:\n  provider: sops\n  secretRef:\n    name: keys\n"
	sealed := inFile("apps/login.yaml", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: login\n  namespace: apps\ndata:\n  password: c2VjcmV0\n")
	key := func(name string) string {
		return inFile("keys.yaml", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: keys\n  namespace: flux-system\nstringData:\n  "+name+": not a key\n")
	}
	tenant := func(spec string) string {
		return inFile("apps/tenant.yaml", object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "tenant\n  namespace: flux-system",
			"interval: 10m\nprune: true\npath: ./tenant\n"+ours+spec))
	}
	patch := func(name string) string {
		return "patches:\n- target:\n    kind: HelmRepository\n    name: " + name + "\n  patch: |\n    - op: replace\n      path: /spec/interval\n      value: 1h\n"
	}
	encrypted := inFile("tenant/login.yaml", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: login\n  namespace: apps\ndata:\n  password: ENC[AES256_GCM,data:Zg==,iv:Zg==,tag:Zg==,type:str]\n"+
		"sops:\n  mac: ENC[AES256_GCM,data:Zg==,iv:Zg==,tag:Zg==,type:str]\n  version: 3.9.0\n")
	return []Rule{
		{
			Code: SourceElsewhere, Name: "source-elsewhere", Group: groupKustomizations, Severity: Warning,
			Summary:     "The source of a Kustomization is not available",
			Explanation: "The Kustomization uses another repository than the one it is in, or its path does not exist here. It is not built, and what it would apply takes no part in the run.",
			Fix:         "Name a checkout of the source with --source. fetch, resolve and lock fetch it first with --follow-sources.",
			Example:     documents(cluster("path: ./deploy\nsourceRef:\n  kind: GitRepository\n  name: podinfo\n"), apps),
			Better:      documents(cluster(path+ours), apps),
		},
		{
			Code: RemoteResource, Name: "remote-resource", Group: groupKustomizations, Severity: Warning,
			Summary:     "A kustomization refers to a remote resource",
			Explanation: "Only files of the repository are read, and nothing is downloaded for a build. The remote resource is left out.",
			Fix:         "If it contains Flux objects, put a copy of it into the repository.",
			Example:     documents(file("namespace: apps\nresources:\n- charts.yaml\n- https://github.com/example/base?ref=v1\n"), apps),
			Better:      documents(file("namespace: apps\nresources:\n- charts.yaml\n"), apps),
		},
		{
			Code: MissingVariables, Name: "missing-variables", Group: groupKustomizations, Severity: Warning,
			Summary:     "A ConfigMap or Secret with variables is missing, or cannot be decrypted",
			Explanation: "It may exist in the cluster. Its variables are left unreplaced, and validate does not check fields that depend on their values; it does not warn about a Secret that is encrypted with SOPS, or about objects that a controller makes from the input, such as those of an ExternalSecret, a SealedSecret, a OnePasswordItem or an ObjectBucketClaim. In commands that fetch, such a variable is an error in a chart, a version, a URL, a name or a reference.",
			Fix:         "Add the file that holds it with -f, or set its variables with --substitute.",
			Example:     documents(cluster(path+ours+variables), apps),
			Better:      documents(cluster(path+ours+variables), inFile("values.yaml", config("flux-system", "domain: example.org\n")), apps),
		},
		{
			Code: UnsetVariable, Name: "unset-variable", Group: groupKustomizations, Severity: Warning,
			Summary:     "A variable has no value",
			Explanation: "Flux replaces it by an empty string, and so does helmsrc. In a chart, a version, a URL, a name or a reference it is an error instead. A controller with the feature gate StrictPostBuildSubstitutions fails the whole Kustomization: --substitute-strict makes it an error here too.",
			Fix:         "Set it in spec.postBuild or with --substitute, or write ${NAME:=default}.",
			Example:     documents(cluster(path+ours+"postBuild:\n  substitute:\n    domain: example.org\n"), inFile("apps/values.yaml", config("apps", "host: www.${zone}\n")), apps),
			Better:      documents(cluster(path+ours+"postBuild:\n  substitute:\n    zone: example.org\n"), inFile("apps/values.yaml", config("apps", "host: www.${zone}\n")), apps),
		},
		{
			Code: NoNamespace, Name: "no-namespace", Group: groupKustomizations, Severity: Warning,
			Summary:     "An object has no namespace, and no kustomization sets one",
			Explanation: "helmsrc assumes the namespace of --default-namespace. In a repository this is rarely intended: Flux refuses the object unless the Kustomization has spec.targetNamespace.",
			Fix:         "Set metadata.namespace, or namespace in a kustomization.yaml.",
			Example:     documents(file("resources:\n- charts.yaml\n"), apps),
			Better:      documents(file("namespace: apps\nresources:\n- charts.yaml\n"), apps),
		},
		{
			Code: UnusableKeys, Name: "unusable-keys", Group: groupKustomizations, Severity: Warning,
			Summary:     "Keys for SOPS cannot be read",
			Explanation: "The Secret of spec.decryption, or a file or variable with the user's own keys, has no valid keys. What is encrypted for them is not decrypted.",
			Fix:         "Put age keys under names that end in .agekey, and PGP keys under names that end in .asc.",
			Example:     documents(cluster(path+ours+keys), key("age.agekey"), sealed, apps),
			Better:      documents(cluster(path+ours), sealed, apps),
		},
		{
			Code: NoDecryption, Name: "no-decryption", Group: groupKustomizations, Severity: Warning,
			Summary:     "A Secret is encrypted, but its Kustomization does not decrypt it",
			Explanation: "Flux does not apply a Secret that SOPS encrypted, and the whole Kustomization fails. It is reported for Kustomizations that another one applies, because the patches of that one are known.",
			Fix:         "Add spec.decryption with the provider sops to the Kustomization, or patch it in where the Kustomization comes from.",
			Example:     documents(cluster(path+ours), tenant(""), encrypted, apps),
			Better:      documents(cluster(path+ours), tenant("decryption:\n  provider: sops\n"), encrypted, apps),
		},
		{
			Code: DroppedLabels, Name: "dropped-labels", Group: groupKustomizations, Severity: Warning,
			Summary:     "A label or an annotation is not a string, and all of them are dropped",
			Explanation: "kustomize-controller cannot read the labels of an object one of which is a boolean or a number, and writes its own in their place. The object is applied without the others. Annotations go the same way where the Kustomization adds some. An object that nothing builds is refused instead.",
			Fix:         "Put the value in quotes.",
			Example:     documents(cluster(path+ours), inFile("apps/charts.yaml", strings.Replace(repository(httpURL), "metadata:\n", "metadata:\n  labels:\n    team: true\n", 1))),
			Better:      documents(cluster(path+ours), inFile("apps/charts.yaml", strings.Replace(repository(httpURL), "metadata:\n", "metadata:\n  labels:\n    team: \"true\"\n", 1))),
		},
		{
			Code: UnknownKustomizeField, Name: "unknown-kustomize-field", Group: groupKustomizations, Severity: Warning,
			Summary:     "A kustomization file has a field that kustomize does not know",
			Explanation: "kustomize-controller edits the file at spec.path, and drops the field: it has no effect. kustomize build refuses the file, and so does the controller where another kustomization includes it.",
			Fix:         "Correct the name of the field, or remove it.",
			Example:     documents(cluster(path+ours), inFile("apps/kustomization.yaml", kustomization("namespace: apps\nresource:\n- extra.yaml\nresources:\n- charts.yaml\n")), apps),
			Better:      documents(cluster(path+ours), inFile("apps/kustomization.yaml", kustomization("namespace: apps\nresources:\n- charts.yaml\n")), apps),
		},
		{
			Code: IdlePatch, Name: "idle-patch", Group: groupKustomizations, Severity: Warning,
			Summary:     "A patch changes nothing",
			Explanation: "The target of the patch matches no object in any build of the run. Patches that another object adds to a Kustomization are not reported: they are often meant for many Kustomizations.",
			Fix:         "Correct the kind and the name in the target, or remove the patch.",
			Example:     documents(cluster(path+ours), file("resources:\n- charts.yaml\n"+patch("chart")), apps),
			Better:      documents(cluster(path+ours), file("resources:\n- charts.yaml\n"+patch("charts")), apps),
		},
		{
			Code: ForeignBuild, Name: "foreign-not-built", Group: groupKustomizations, Severity: Warning,
			Summary:     "A kustomization that Flux does not use cannot be built",
			Explanation: "kustomize would refuse it, and so would a Flux Kustomization that uses it. What it would build takes no part in the run. Either none of its existing files contains a Flux object, or it needs helm, which Flux does not run, and no Kustomization uses it.",
			Fix:         "Fix the kustomization file, or the file that the message names.",
			Example:     documents(file("resources:\n- deployment.yaml\n"), inFile("charts.yaml", object(sourceV1, "HelmRepository", "charts\n  namespace: apps", "interval: 10m\n"+httpURL))),
			Better:      documents(inFile("apps/kustomization.yaml", kustomization("namespace: apps\nresources:\n- charts.yaml\n")), apps),
		},
	}
}
