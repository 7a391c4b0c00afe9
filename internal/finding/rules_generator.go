package finding

import "strings"

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
	consumer := inFile("apps.yaml", object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "apps\n  namespace: flux-system",
		"interval: 10m\nprune: true\npath: ./\nsourceRef:\n  kind: ExternalArtifact\n  name: apps\n"))
	config := func(name string) string {
		return inFile(name, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\n  namespace: apps\n")
	}
	built := func(operations string, files ...string) string {
		return documents(append([]string{gen(copying(operations)), consumer}, files...)...)
	}
	all := "  - from: \"@repo/apps/**\"\n    to: \"@artifact/\"\n"
	from := func(name, kind, source string) string {
		return inFile(name+".yaml", artifactGenerator(name, "sources:\n- alias: repo\n  kind: "+kind+"\n  name: "+source+"\nartifacts:\n- name: "+name+"\n  copy:\n"+all))
	}
	// A source with patterns of its own has none of the usual ones.
	ignoring := func(text string) string { return strings.Replace(text, "/fleet\n", "/fleet\n  ignore: /docs/\n", 1) }
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
			Code: GeneratorCycle, Name: "generator-cycle", Group: groupGenerators, Severity: Error,
			Summary:     "The artifacts of an ArtifactGenerator are made of themselves",
			Explanation: "Each generator waits for the artifact of the other, for ever.",
			Fix:         "Take one of the sources away.",
			Example:     documents(from("one", "ExternalArtifact", "two"), from("two", "ExternalArtifact", "one")),
			Better:      documents(from("one", "ExternalArtifact", "two"), from("two", "GitRepository", "flux-system"), source),
		},
		{
			Code: ArtifactClash, Name: "artifact-clash", Group: groupGenerators, Severity: Error,
			Summary:     "Two ArtifactGenerators make one artifact",
			Explanation: "source-watcher does not notice: each overwrites what the other made, and what takes the artifact changes with it.",
			Fix:         "Rename one of the artifacts.",
			Example:     documents(gen(copying(all)), inFile("other.yaml", artifactGenerator("other", copying(all)))),
			Better:      documents(gen(copying(all)), from("other", "GitRepository", "flux-system")),
		},
		{
			Code: CopyPattern, Name: "copy-pattern", Group: groupGenerators, Severity: Warning,
			Summary:     "A pattern of a copy operation leads to other paths than it seems to",
			Explanation: "Only DIR/** cuts the directory off; every other pattern keeps the whole path below the destination. ** within a pattern stands for one directory, like *, unless the strategy is Extract. Braces stand for themselves.",
			Fix:         "Copy DIR/** or a directory, or write the paths out.",
			Example:     gen(copying("  - from: \"@repo/apps/*.yaml\"\n    to: \"@artifact/config/\"\n")),
			Better:      gen(copying("  - from: \"@repo/apps/**\"\n    to: \"@artifact/config/\"\n")),
		},
		{
			Code: NothingCopied, Name: "nothing-matches", Group: groupGenerators, Severity: Warning,
			Summary:     "exclude or pathPattern matches nothing",
			Explanation: "The source is available, and nothing in it matches. A pathPattern without a match makes no artifact, and the generator is ready all the same.",
			Fix:         "Correct the pattern, or take it away.",
			Example:     built(all+"    exclude: [\"*.md\"]\n", config("apps/config.yaml")),
			Better:      built(all, config("apps/config.yaml")),
		},
		{
			Code: UnknownOrigin, Name: "unknown-origin", Group: groupGenerators, Severity: Warning,
			Summary:     "originRevision names an alias that no source has",
			Explanation: "source-watcher does not notice, and the artifact gets no origin revision.",
			Fix:         "Name the alias of a source.",
			Example:     gen(copying(all) + "  originRevision: \"@other\"\n"),
			Better:      gen(copying(all) + "  originRevision: \"@repo\"\n"),
		},
		{
			Code: MergedDirectory, Name: "merged-directory", Group: groupGenerators, Severity: Warning,
			Summary:     "The strategy Merge is used for a directory",
			Explanation: "Only files that from itself names or matches are merged. The files of a directory overwrite what is there.",
			Fix:         "Name the files, or take the strategy away.",
			Example:     built(all+"  - from: \"@repo/over/\"\n    to: \"@artifact/\"\n    strategy: Merge\n", config("apps/config.yaml"), config("over/config.yaml")),
			Better:      built(all+"  - from: \"@repo/over/config.yaml\"\n    to: \"@artifact/\"\n    strategy: Merge\n", config("apps/config.yaml"), config("over/config.yaml")),
		},
		{
			Code: DroppedFiles, Name: "dropped-files", Group: groupGenerators, Severity: Warning,
			Summary:     "Files are copied that no artifact holds",
			Explanation: "Every artifact leaves out images, .tar.gz and .zip archives, and files of version control, CI and SOPS, whatever a .sourceignore says.",
			Fix:         "Exclude them, or give them another name.",
			Example:     ignoring(built(all, config("apps/config.yaml"), inFile("apps/.sops.yaml", "creation_rules: []\n"))),
			Better:      ignoring(built(all+"    exclude: [\".sops.yaml\"]\n", config("apps/config.yaml"), inFile("apps/.sops.yaml", "creation_rules: []\n"))),
		},
		{
			Code: ShadowedSource, Name: "shadowed-source", Group: groupGenerators, Severity: Warning,
			Summary:     "An artifact has the name of the alias of a source",
			Explanation: "source-watcher makes the artifact where it has unpacked that source, so that the artifact holds all of it, and later artifacts see what was added.",
			Fix:         "Rename the artifact or the alias.",
			Example:     gen("sources:\n- alias: apps\n  kind: GitRepository\n  name: flux-system\nartifacts:\n- name: apps\n  copy:\n  - from: \"@apps/apps/**\"\n    to: \"@artifact/\"\n"),
			Better:      gen(copying(all)),
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
