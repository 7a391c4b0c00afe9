package finding

func runRules() []Rule {
	return []Rule{
		{
			Code: Authentication, Name: "authentication", Group: groupRun, Severity: Error,
			Summary:     "A server does not accept the login, or wants one",
			Explanation: "It answered 401 or 403, or the login could not be made. What is asked for may also exist, but not for this user.",
			Fix:         "Check the Secret that the source names, and what its user may read; without a Secret, log in with docker or helm.",
		},
		{
			Code: Unreachable, Name: "unreachable", Group: groupRun, Severity: Error,
			Summary:     "A server cannot be reached, or the connection broke",
			Explanation: "The name does not resolve, nobody listens, or the connection ended early. It was tried several times.",
			Fix:         "Check the URL, the network and the proxy settings, and try again.",
		},
		{
			Code: Certificate, Name: "certificate", Group: groupRun, Severity: Error,
			Summary:     "A TLS connection was refused",
			Explanation: "The server's certificate is of an authority that is not trusted, for another name or expired; or the server wants a client certificate.",
			Fix:         "Name a Secret with the authority's ca.crt in spec.certSecretRef.",
		},
		{
			Code: ServerError, Name: "server-error", Group: groupRun, Severity: Error,
			Summary:     "A server failed, or limits the rate of requests",
			Explanation: "It answered with a status of 5xx, 408, 425 or 429, also after several attempts.",
			Fix:         "Try again later.",
		},
		{
			Code: NotFound, Name: "not-found", Group: groupRun, Severity: Error,
			Summary:     "What is asked for is not on the server",
			Explanation: "The server answered 404 or 410. Some servers answer so too where a login is missing.",
			Fix:         "Check the URL, the names of repository and chart, and the login.",
		},
		{
			Code: RefusedRequest, Name: "refused-request", Group: groupRun, Severity: Error,
			Summary:     "A server refused a request, or its answer makes no sense",
			Explanation: "The status is one that no further attempt changes, a redirect leads somewhere forbidden, or a registry's answer is malformed.",
			Fix:         "Check whether the URL is really that of a Helm repository or registry.",
		},
		{
			Code: TimedOut, Name: "timed-out", Group: groupRun, Severity: Error,
			Summary:     "Something took longer than its limit",
			Explanation: "spec.timeout bounds one fetch with its retries, --timeout the whole run; a transfer that makes no progress is given up, too.",
			Fix:         "Raise the limit that the message names, or try again.",
		},
		{
			Code: TooLarge, Name: "too-large", Group: groupRun, Severity: Error,
			Summary:     "Something is larger than its limit",
			Explanation: "Indexes, archives, the files in them and what they unpack to are bounded, as in source-controller.",
			Fix:         "Raise the limit with the flag --helm-…-max-size if the source is to be trusted.",
		},
		{
			Code: InvalidIndex, Name: "invalid-index", Group: groupRun, Severity: Error,
			Summary:     "What a repository serves is no Helm index",
			Explanation: "The file is not YAML or JSON, lacks apiVersion, or has keys twice. Often it is an HTML page: that of a login or of a forge.",
			Fix:         "Check whether URL/index.yaml is what helm repo add would accept.",
		},
		{
			Code: UnknownChart, Name: "unknown-chart", Group: groupRun, Severity: Error,
			Summary:     "The source has no such chart",
			Explanation: "The index has no entry of that name, or the directory of the source is not there.",
			Fix:         "Correct spec.chart: it is the name of an entry of the index, or of a repository of the registry.",
		},
		{
			Code: NoMatch, Name: "no-match", Group: groupRun, Severity: Error,
			Summary:     "No published version matches",
			Explanation: "Ranges leave out pre-releases, and tags with a v in front.",
			Fix:         "Ask for a version that is published, or a range that takes one: 'helm search repo --versions' and the tags of a registry list them.",
		},
		{
			Code: InvalidArchive, Name: "invalid-archive", Group: groupRun, Severity: Error,
			Summary:     "What was fetched is no chart that Helm could load",
			Explanation: "The archive is broken, holds paths that lead out of it, or has no Chart.yaml that is valid.",
			Fix:         "Have the chart published again, or ask for another version.",
		},
		{
			Code: ValuesFiles, Name: "values-files", Group: groupRun, Severity: Error,
			Summary:     "Values files cannot be merged",
			Explanation: "A file of spec.valuesFiles is not in the chart or not YAML. Paths are relative to the chart, or to the root of a Git repository or bucket.",
			Fix:         "Correct spec.valuesFiles, or set spec.ignoreMissingValuesFiles.",
		},
		{
			Code: Dependencies, Name: "dependencies", Group: groupRun, Severity: Error,
			Summary:     "A dependency of a chart cannot be had",
			Explanation: "The charts that Chart.yaml names are fetched when a chart is packaged. Their repositories are the HelmRepositories of the namespace with the same URL, or are asked without a login.",
			Fix:         "Add a HelmRepository with the URL of the dependency's repository, or run helm dependency update and commit the result.",
		},
		{
			Code: Packaging, Name: "packaging", Group: groupRun, Severity: Error,
			Summary:     "A chart cannot be packaged",
			Explanation: "Its version cannot be read, or the chart in the source is not one that Helm accepts.",
			Fix:         "Run helm lint on the chart.",
		},
		{
			Code: SourceNotReady, Name: "source-not-ready", Group: groupRun, Severity: Error,
			Summary:     "The source has nothing in storage",
			Explanation: "It failed in this run and there is nothing from an earlier one, or it is suspended. Its own failure comes first.",
			Fix:         "Fix the source first.",
		},
		{
			Code: GitReference, Name: "git-reference", Group: groupRun, Severity: Error,
			Summary:     "A Git repository has no such branch, tag or commit",
			Explanation: "spec.ref names something that the server does not have, or the repository is empty.",
			Fix:         "Correct spec.ref.",
		},
		{
			Code: GitFailed, Name: "git-failed", Group: groupRun, Severity: Error,
			Summary:     "A Git repository cannot be fetched",
			Explanation: "The server or its answer is at fault, or a directory of spec.sparseCheckout is not there.",
			Fix:         "Try git ls-remote with the URL.",
		},
		{
			Code: BucketFailed, Name: "bucket-failed", Group: groupRun, Severity: Error,
			Summary:     "A bucket cannot be fetched",
			Explanation: "The bucket does not exist, or the storage service refused to list or hand out objects.",
			Fix:         "Check spec.bucketName, spec.endpoint, spec.region and spec.provider.",
		},
		{
			Code: NotSupported, Name: "not-supported", Group: groupRun, Severity: Error,
			Summary:     "helmsrc cannot do this yet",
			Explanation: "Nothing is wrong with the manifest.",
			Fix:         "Replace the source by a local directory with --source.",
		},
		{
			Code: Storage, Name: "storage", Group: groupRun, Severity: Error,
			Summary:     "The artifacts directory cannot be written or read",
			Explanation: "The disk is full, the directory belongs to another user, or another run holds the lock. In the directory of --flat, two charts of one name and version differ.",
			Fix:         "Check the directory that --artifacts-dir or --flat names.",
		},
		{
			Code: Interrupted, Name: "interrupted", Group: groupRun, Severity: Error,
			Summary:     "The run ended before this object was done",
			Explanation: "It was interrupted, or --timeout was over. What was stored before is as it was.",
			Fix:         "Run it again; raise --timeout if that was the reason.",
		},
		{
			Code: UnusableLayer, Name: "unusable-layer", Group: groupRun, Severity: Error,
			Summary:     "A layer of an artifact in a registry is not there or cannot be used",
			Explanation: "No layer has the media type that spec.layerSelector names, or the layer is not a gzip-compressed tar archive, or holds entries that must not be unpacked.",
			Fix:         "Select the layer by its media type; spec.layerSelector.operation: copy stores one as it is.",
		},
		{
			Code: OddSource, Name: "odd-source", Group: groupRun, Severity: Warning,
			Summary:     "A source or chart is unusual",
			Explanation: "The run went on, but it needs a look.",
			Fix:         "Compare the source with what its publisher says of it, and correct whichever is wrong.",
		},
		{
			Code: DeprecatedChart, Name: "deprecated-chart", Group: groupRun, Severity: Warning,
			Summary:     "A chart is deprecated, or its version was removed by its publisher",
			Explanation: "It still works, but gets no corrections any more.",
			Fix:         "Look for its successor, which its README often names.",
		},
		{
			Code: NotVerified, Name: "not-verified", Group: groupRun, Severity: Warning,
			Summary:     "A signature was asked for, but the trust policy enforces nothing",
			Explanation: "Notation's levels audit, permissive and skip let charts through that nobody trusted has signed.",
			Fix:         "Use the level strict in trustpolicy.json, or --require-verification.",
		},
		{
			Code: AcceptedChart, Name: "accepted-chart", Group: groupRun, Severity: Warning,
			Summary:     "An archive holds another chart or version than was asked for, and was accepted",
			Explanation: "--allow-name-mismatch says so. Without it this is an integrity failure.",
			Fix:         "Have the chart published under its own name.",
		},
		{
			Code: OddStorage, Name: "odd-storage", Group: groupRun, Severity: Warning,
			Summary:     "What was stored before cannot be used",
			Explanation: "The record of the last run is damaged or from a newer helmsrc, an artifact is not what was stored, or the link to the newest one was not set. It is made again; verify fails on an artifact that was altered.",
			Fix:         "Find out who else writes to the artifacts directory.",
		},
		{
			Code: NeverFetched, Name: "never-fetched", Group: groupRun, Severity: Error,
			Summary:     "Nothing is recorded of an object",
			Explanation: "It was never fetched into the artifacts directory that status looks at.",
			Fix:         "Run helmsrc fetch, or name the directory that it wrote to with -d.",
		},
		{
			Code: ArtifactMissing, Name: "artifact-missing", Group: groupRun, Severity: Error,
			Summary:     "A stored artifact is not in the artifacts directory any more",
			Explanation: "The record of the last run names a file that was removed since. The next fetch stores it again.",
			Fix:         "Run helmsrc fetch.",
		},
		{
			Code: BorrowedLogin, Name: "borrowed-login", Group: groupRun, Severity: Warning,
			Summary:     "A login of the user stands in for a Secret",
			Explanation: "The Secret is not in the input, and --missing-secrets=ambient says to use what Helm knows. In a cluster the Secret counts, whatever it holds.",
			Fix:         "Add the file that holds the Secret with -f.",
		},
		{
			Code: WithheldLogin, Name: "withheld-login", Group: groupRun, Severity: Warning,
			Summary:     "A login of this machine is not used, because a manifest chose the way to its server",
			Explanation: "What docker, podman and helm know, and the identity of the machine at a cloud, go only over TLS that the system's authorities verify, through the proxy of the environment. With proxySecretRef, with an authority in certSecretRef, with insecure or over plain HTTP only credentials from the manifest's own Secrets are used.",
			Fix:         "Refer with spec.secretRef to a Secret with the login. If every manifest is your own, --ambient-credentials=anywhere uses the login of the machine all the same.",
		},
		{
			Code: FirstLayer, Name: "first-layer", Group: groupRun, Severity: Warning,
			Summary:     "Flux would take another layer of an artifact",
			Explanation: "Without spec.layerSelector Flux takes the first layer, which is not the chart. Here the chart is taken.",
			Fix:         "Set spec.layerSelector.mediaType to application/vnd.cncf.helm.chart.content.v1.tar+gzip.",
		},
		{
			Code: IncompleteChart, Name: "incomplete-chart", Group: groupRun, Severity: Warning,
			Summary:     "Files of a published chart are left out",
			Explanation: "Flux unpacks a layer, leaves out what its own list and spec.ignore name, and packs the rest. The chart is not the one that was published, and has another digest.",
			Fix:         "Set spec.layerSelector.operation to copy.",
		},
		{
			Code: StaleDependencies, Name: "stale-dependencies", Group: groupRun, Severity: Warning,
			Summary:     "A chart's lock file or the charts in it are not what it requires",
			Explanation: "What it contains and what its lock file says is used all the same, as Flux does.",
			Fix:         "Run helm dependency update, and commit or publish the result.",
		},
		{
			Code: OddArchive, Name: "odd-archive", Group: groupRun, Severity: Warning,
			Summary:     "An archive holds what Helm reads otherwise than it looks",
			Explanation: "Links are read as empty files, and what follows the archive is not read at all; or the chart has an apiVersion that Helm does not know.",
			Fix:         "Have the chart packaged by helm package.",
		},
		{
			Code: OtherName, Name: "other-name", Group: groupRun, Severity: Warning,
			Summary:     "A chart is called otherwise than the repository that it lies in",
			Explanation: "A HelmRelease that refers to an OCIRepository installs whatever chart lies there. Only the URL says which one is meant.",
			Fix:         "Check spec.url of the OCIRepository.",
		},
		{
			Code: UncheckedDigest, Name: "unchecked-digest", Group: groupRun, Severity: Warning,
			Summary:     "An archive is used whose digest the index does not vouch for",
			Explanation: "The index has a digest that is none, or another one, which --index-digest=warn accepts.",
			Fix:         "Have the index generated anew.",
		},
		{
			Code: MissingSubmodule, Name: "missing-submodule", Group: groupRun, Severity: Warning,
			Summary:     "A working tree lacks a submodule",
			Explanation: "It stands in for a source, but the submodule is not checked out. In a cluster its files would be there if spec.recurseSubmodules is set.",
			Fix:         "Run git submodule update --init.",
		},
		{
			Code: Unexpected, Name: "unexpected", Group: groupRun, Severity: Error,
			Summary:     "A failure that has no code of its own",
			Explanation: "It was not foreseen. An internal error is a mistake in helmsrc itself.",
			Fix:         "Run it again with -v for more about it; report it if it says that it is an internal error.",
		},
	}
}

func integrityRules() []Rule {
	return []Rule{
		{
			Code: DigestMismatch, Name: "digest-mismatch", Group: groupIntegrity, Severity: Error, Lasting: true,
			Summary:     "What was fetched does not have the digest that it should have",
			Explanation: "The index or the registry's manifest says what the bytes have to be, and they are others. The archive was published again over the old one, damaged, or replaced. Nothing of it is stored.",
			Fix:         "Find out who changed the archive; --index-digest=warn accepts it.",
		},
		{
			Code: OtherChart, Name: "other-chart", Group: groupIntegrity, Severity: Error, Lasting: true,
			Summary:     "An archive holds another chart or version than was asked for",
			Explanation: "Its Chart.yaml names another chart or another version than the index or the tag.",
			Fix:         "Have the chart published under its own name; --allow-name-mismatch accepts it.",
		},
		{
			Code: Unsigned, Name: "unsigned", Group: groupIntegrity, Severity: Error, Lasting: true,
			Summary:     "There is no signature where one is asked for",
			Explanation: "spec.verify, --keyring or --require-verification asks for a signature, and the chart has none.",
			Fix:         "Have the chart signed, or take a version that is.",
		},
		{
			Code: SignatureFailed, Name: "signature-refused", Group: groupIntegrity, Severity: Error, Lasting: true,
			Summary:     "No signature is by a trusted signer",
			Explanation: "There are signatures, but none fits the keys, identities or authorities that were given, or they are about other bytes.",
			Fix:         "Compare the keys and identities with those that the publisher announces.",
		},
		{
			Code: Unverifiable, Name: "unverifiable", Group: groupIntegrity, Severity: Error, Lasting: true,
			Summary:     "A verification is asked for that cannot be made",
			Explanation: "The keys, certificates or policy are missing or cannot be read, or the source is of a kind that has no signatures.",
			Fix:         "Fix the Secret that spec.verify names.",
		},
		{
			Code: ArtifactAltered, Name: "artifact-altered", Group: groupIntegrity, Severity: Error, Lasting: true,
			Summary:     "A stored artifact is not what was stored",
			Explanation: "Its digest is another one than when it was written: the file was edited, damaged or replaced.",
			Fix:         "Find out who changed it; fetch makes it again.",
		},
		{
			Code: GitUnsigned, Name: "git-signature", Group: groupIntegrity, Severity: Error, Lasting: true,
			Summary:     "A Git commit or tag is not signed by a key that is trusted",
			Explanation: "spec.verify of the GitRepository asks for a PGP signature by one of the keys in its Secret.",
			Fix:         "Have the commit or tag signed, or add the signer's public key to the Secret.",
		},
	}
}
