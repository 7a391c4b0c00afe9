package finding

// Ways out that the command line has: below package cmd, only this table knows how its options are spelled.
const (
	NotPublic        = "'%s' is a loopback, private or link-local address: --untrusted connects to none"
	WithoutUntrusted = "leave --untrusted out for manifests that you trust"
	PrivateRedirects = "--allow-private-redirects allows it"
	OtherCache       = "name another directory with --cache-dir"

	FromBundle    = ", and --from opens no connection"
	NotCached     = " is not in the cache, and --offline opens no connection"
	AnotherBundle = "run 'helmsrc bundle' with these manifests on a machine with a network, and copy that file here"
	OnceOnline    = "run the same command once without --offline: it keeps what it fetches"
	LongerTimeout = "the server limits the rate of requests: try again later, or raise spec.timeout and --timeout"

	WriteLock = "'helmsrc lock' writes it; --lock-file names another one"
	OtherLock = "name another file with --lock-file"

	AllowMismatch     = "--allow-name-mismatch accepts it with a warning"
	OneCluster        = "name the directory of one cluster with -f"
	AcceptMoved       = "find out who published it again; 'helmsrc lock --update' with its name accepts the current state"
	AcceptPackage     = "what it is made of is what is locked: another version of helmsrc, metadata.generation, spec.reconcileStrategy or SOURCE_DATE_EPOCH make another package; 'helmsrc lock --update' with its name accepts it"
	MayBeDeleted      = " names it, and the source may have deleted it since; 'helmsrc lock --update' with its name resolves it again"
	WhatIsVerified    = "--require-verification wants spec.verify in the HelmChart of an OCI registry or in the OCIRepository, --keyring for charts with provenance files, or spec.verify in the GitRepository"
	VerifyWithKeyring = "spec.verify works only with charts from OCI registries; --keyring checks the provenance files of other charts"

	SetVariables = "set its variables with --substitute"
	LetBeEmpty   = "; --substitute-strict=false makes them empty"
)
