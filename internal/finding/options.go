package finding

import "fmt"

// Sentences that name an option: outside of package cmd, only this table knows the spelling of options. TestOptions checks it
// against the commands.
const (
	SetVariables = "set its variables with --substitute"
	LetBeEmpty   = "; --substitute-strict=false makes them empty"
	MakeEmpty    = "; --substitute-strict=false makes it empty"
	MakeError    = "; --substitute-strict makes it an error"
	GiveValue    = "${%s} was not substituted: give it a value with --substitute, or read the directory of its Kustomization with -R -f"

	AnotherBundle = "run 'helmsrc bundle' with these manifests on a machine with a network, and copy that file here"
	EarlierBundle = "name the earlier bundle, and the bundles that it builds on, with further --from flags"
	WriteBundle   = "'helmsrc bundle' writes the files that --from reads"
	FromBundle    = ", and --from opens no connection"
	NotCached     = " is not in the cache, and --offline opens no connection"
	OnceOnline    = "run the same command once without --offline: it keeps what it fetches"
	OtherCache    = "name another directory with --cache-dir"
	LongerTimeout = "the server limits the rate of requests: try again later, or raise spec.timeout and --timeout"

	NotPublic          = "'%s' is a loopback, private or link-local address: --untrusted does not connect to such addresses"
	WithoutUntrusted   = "leave out --untrusted for manifests that you trust"
	PrivateRedirects   = "--allow-private-redirects allows it"
	SkipsVerification  = "--insecure-skip-tls-verify does not verify server certificates"
	LeavesOutOthers    = "--untrusted uses only logins from the manifests"
	LoginForUntrusted  = "name a Secret with the login in spec.secretRef, or leave out --untrusted for manifests that you trust"
	LoginForUnverified = "name a Secret with the login in spec.secretRef, or replace --insecure-skip-tls-verify by a Secret with the server's authority in spec.certSecretRef"
	LoginAnywhere      = "name a Secret with the login in spec.secretRef or, if you trust all manifests, use --ambient-credentials=anywhere"
	IdentityAnywhere   = "write the credentials into a Secret; if you trust all manifests, --ambient-credentials=anywhere allows the identity of this machine"
	WithoutIdentity    = "write the credentials into a Secret for spec.secretRef; with --ambient-credentials=false, no other credentials are used"
	IdentityLeftOut    = "the Secret names an identity of this machine, which --ambient-credentials=false does not use"
	KeysLeftOut        = "--untrusted does not use the SOPS keys of this machine"
	KeysNotFollowed    = "the SOPS keys of this machine do not decrypt files that --follow-sources fetched"
	SecretMissing      = "%s, which is not available: --missing-secrets is %s"

	WriteLock         = "'helmsrc lock' writes it; --lock-file names another file"
	OtherLock         = "name another file with --lock-file"
	AcceptMoved       = "find out who published it again; 'helmsrc lock --update' with its name accepts the current state"
	AcceptPackage     = "its files match the lock file, but the package also depends on the version of helmsrc, metadata.generation, spec.reconcileStrategy and SOURCE_DATE_EPOCH; 'helmsrc lock --update' with its name accepts it"
	MayBeDeleted      = " names it, and the source may have deleted it since; 'helmsrc lock --update' with its name resolves it again"
	AllowMismatch     = "--allow-name-mismatch accepts it with a warning"
	WhatIsVerified    = "--require-verification requires spec.verify in the HelmChart of an OCI registry or in the OCIRepository, --keyring for charts with provenance files, or spec.verify in the GitRepository"
	VerifyWithKeyring = "spec.verify works only with charts from OCI registries; --keyring checks the provenance files of other charts"
	TrustedRoot       = "without a network, name a trusted_root.json, as 'cosign trusted-root create' writes it, with --trusted-root"

	SourceFailed     = "--source: %s: %w"
	SourceTakes      = "--source takes the directory of a chart, its archive, or a directory of manifests"
	CheckoutOfSource = "name a checkout of the source with --source"
	CheckoutsOfThem  = "name checkouts of them with --source"
	SayWhatItIs      = "identify it with source: [%s/%s/%s=PATH] in .helmsrc.yaml, or with --source"
	FollowFirst      = "fetch, resolve and lock fetch it first with --follow-sources"
	OrFollow         = "; fetch, resolve and lock fetch it with --follow-sources"
	CompleteInput    = "follow the warnings above: name checkouts with --source, and put copies of remote resources into the repository"

	OneCluster    = "name the directory of one cluster with -f"
	OneDefinition = "remove one definition, or, if they belong to different clusters, " + OneCluster
	AddFile       = "add the file that contains %s with -f"
	NameFiles     = "name files with -f"
	NameDirs      = "name directories with -f"
	NameRelease   = "name one of them: helmsrc values -f FILE NAMESPACE/NAME"
	NotNamed      = "the file is not among the named files: name it with -f"
	PipeURL       = "a URL cannot be read: download it and name the file, or pipe it into -f -"
	RootOfPath    = "spec.path begins at the root of the repository: the nearest directory with a .git above the one given with -f, else that one"
	Root          = "a repository begins at the nearest directory with a .git above the one given with -f, else at that one"
	ChooseCluster = "use different names for the policies of the clusters, or select a cluster with --cluster"
	AllowEmpty    = "--allow-empty accepts an input without any"
	NoDoubleStar  = "%s: ** is not supported: name the directory and use --recursive"
	NamesThisFile = " names this file: read its directory with -R -f, or pass the file as an argument with --lookup-dir"

	NameLink        = "name the directory with --artifacts-dir, or the link itself if it is yours"
	Unwritable      = "make the directory writable, or name another one with --artifacts-dir"
	OtherOrAccepted = "name another directory with --artifacts-dir; naming this one accepts it, if you trust everyone who can commit (not with --untrusted)"
	OtherArtifacts  = "write to another one with --artifacts-dir"
	OtherTarget     = "name another one with --artifacts-dir, or leave it out of the list"
	OtherOrEmpty    = "-d names another artifacts directory; --allow-empty accepts an empty one"
	NameShards      = "use --artifacts-dir to name the directory that 'helmsrc fetch --shard' wrote"
	ShardsAgain     = "run 'helmsrc fetch --shard' for these again"
	FlatFailed      = "--flat: %v"
	FlatClash       = "--flat: %s would be written for this chart and for the different chart of %s"

	RecordOrCompare = "'helmsrc fetch' records the state; --against names a Git revision or a directory to compare with"
	ValuesNotKnown  = "is not known: only the digest of the values of the last fetch is recorded (--against compares with a revision or a directory)"
	Stripped        = "%s: objects that differ only in version labels and checksums: %d (--strip=false shows them)"
	MoreDiffs       = "\n%d more diffs do not fit here: 'helmsrc plan --diff' prints them.\n"
	InstallHelm     = "install Helm 3 or 4 (https://helm.sh/docs/intro/install/), or name the program with --helm"
	OtherHelm       = "Helm 3 and Helm 4 are supported; --helm names another program"
	HelmLimits      = "a template of the chart may not terminate; --helm-timeout and --helm-max-memory set other limits"
)

// StandIn returns the option that replaces a source by a directory.
func StandIn(kind, namespace, name string) string {
	return fmt.Sprintf("--source %s/%s/%s=PATH", kind, namespace, name)
}

// SetVariable returns advice on how to set a variable.
func SetVariable(name string) string {
	return fmt.Sprintf("set it with --substitute %s=…, or write ${%[1]s:=default}", name)
}
