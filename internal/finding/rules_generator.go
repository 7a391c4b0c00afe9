package finding

// artifactGenerator makes artifacts of the repository that it lies in.
func artifactGenerator(name, spec string) string {
	return object("source.extensions.fluxcd.io/v1beta1", "ArtifactGenerator", name+"\n  namespace: flux-system", spec)
}

func generatorRules() []Rule {
	const sources = "sources:\n- alias: repo\n  kind: GitRepository\n  name: flux-system\n"
	source := inFile("source.yaml", object(sourceV1, "GitRepository", "flux-system\n  namespace: flux-system", "interval: 10m\nurl: https://git.example.org/fleet\n"))
	copying := func(operations string) string {
		return sources + "artifacts:\n- name: apps\n  copy:\n" + operations
	}
	gen := func(spec string) string {
		return documents(inFile("generator.yaml", artifactGenerator("gen", spec)), source)
	}
	all := "  - from: \"@repo/apps/**\"\n    to: \"@artifact/\"\n"
	return []Rule{
		{
			Code: RefusedGenerator, Name: "refused-generator", Group: groupGenerators, Severity: Error,
			Summary:     "source-watcher refuses an ArtifactGenerator",
			Explanation: "Aliases and artifact names are unique, a revision names an alias, and each copy operation finds something to copy. The artifacts are not made, and what takes them is not built.",
			Fix:         "Correct the field that the message names.",
			Example:     gen(copying(all) + "  revision: \"@other\"\n"),
			Better:      gen(copying(all) + "  revision: \"@repo\"\n"),
		},
		{
			Code: CopyPattern, Name: "odd-artifact", Group: groupGenerators, Severity: Warning,
			Summary:     "An artifact is made of other files than it seems to",
			Explanation: "Only DIR/** cuts the directory off; every other pattern keeps the whole path below the destination. ** within a pattern stands for one directory, like *, unless the strategy is Extract. Braces stand for themselves. A pattern may match nothing. The strategy Merge merges only files that from itself names or matches. No artifact holds images, archives, or files of version control, CI and SOPS. An artifact that is called as the alias of a source holds all of that source, and originRevision needs the alias of a source.",
			Fix:         "Correct the pattern, the alias or the name; DIR/** copies what is in a directory.",
			Example:     gen(copying("  - from: \"@repo/apps/*.yaml\"\n    to: \"@artifact/config/\"\n")),
			Better:      gen(copying("  - from: \"@repo/apps/**\"\n    to: \"@artifact/config/\"\n")),
		},
		{
			Code: RefusedResourceSet, Name: "refused-resource-set", Group: groupGenerators, Severity: Error,
			Summary:     "The objects of a ResourceSet cannot be made",
			Explanation: "Its text is a template of Go with << and >>, an input that is missing is an error, and what comes out must be an object. flux-operator makes none of its objects then. No more than 10,000 objects and 1 MiB of text are made.",
			Fix:         "Correct the template or the expression that the message is about.",
			Example:     resourceSet("inputs:\n- tenant: one\n", "<< inputs.name >>"),
			Better:      resourceSet("inputs:\n- tenant: one\n", "<< inputs.tenant >>"),
		},
		{
			Code: UnexpandedResourceSet, Name: "unexpanded-resource-set", Group: groupGenerators, Severity: Warning,
			Summary:     "Only a cluster knows what a ResourceSet makes",
			Explanation: "Its inputs come from a server, or from a provider that is not in the input. What it makes takes no part in the run, and what is missing in its namespaces is not reported.",
			Fix:         "Nothing is wrong with it; check what it makes where it is made.",
			Example:     resourceSet("inputsFrom:\n- name: branches\n", "<< inputs.branch >>"),
			Better:      resourceSet("inputs:\n- branch: main\n", "<< inputs.branch >>"),
		},
	}
}

// resourceSet makes a HelmRepository for each of its inputs.
func resourceSet(inputs, name string) string {
	return documents(
		inFile("apps/set.yaml", object("fluxcd.controlplane.io/v1", "ResourceSet", "tenants\n  namespace: apps", inputs+
			"resources:\n- apiVersion: "+sourceV1+"\n  kind: HelmRepository\n  metadata:\n    name: charts-"+name+"\n    namespace: apps\n  spec:\n    interval: 10m\n    url: https://charts.example.org\n")),
		inFile("apps/kustomization.yaml", kustomization("resources:\n- set.yaml\n")),
	)
}
