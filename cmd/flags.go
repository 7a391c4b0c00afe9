package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
)

// inputOptions are the flags that select the objects of a command.
type inputOptions struct {
	load.Options
	since     string // the revision that the files are compared with, or ""
	files     []string
	exitZero  bool
	shardText string
	render    renderOptions
}

func (o *inputOptions) add(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&o.files, "filename", "f", nil, "`file`, directory or glob with manifests, - for stdin (repeatable, or with commas)")
	fs.BoolVarP(&o.Recursive, "recursive", "R", false, "descend into the directories given with -f")
	o.addClusters(fs)
	fs.StringVarP(&o.Namespace, "namespace", "n", "", "only objects of this `namespace` (default: all)")
	fs.StringVar(&o.DefaultNamespace, "default-namespace", "default", "`namespace` of objects without metadata.namespace")
	fs.BoolVar(&o.AllowEmpty, "allow-empty", false, "succeed if nothing is selected")
	fs.BoolVar(&o.exitZero, "exit-zero", false, "exit 0 even if an object failed")
	fs.BoolVar(&o.SameNamespace, "no-cross-namespace-refs", false, "refuse references of HelmReleases into other namespaces, as helm-controller's flag does")
	fs.StringVar(&o.FluxVersion, "flux-version", "", "`version` of Flux whose API versions are accepted, such as 2.8 (default: the version that the input installs, else the newest known)")
	fs.BoolVar(&o.Untrusted, config.UntrustedFlag, false, "do not trust the manifests: use no logins, identities or SOPS keys of this machine, no private addresses and no configuration from the repository")
	o.render.add(fs)
}

// forgiven returns an exit code after --exit-zero.
func (o *inputOptions) forgiven(code int) int {
	if o.exitZero && code != exit.Interrupted && code != exit.Usage {
		return exit.OK
	}
	return code
}

// addLookup declares --lookup-dir, for the commands that follow references of objects.
func (o *inputOptions) addLookup(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.LookupDirs, "lookup-dir", nil, "`directory` that is searched, with its subdirectories, for objects that the input refers to and for kustomizations that build it (repeatable)")
}

// addSince declares --changed-since, for the commands that can be limited to a change.
func (o *inputOptions) addSince(fs *pflag.FlagSet) {
	fs.StringVar(&o.since, "changed-since", "", "only objects affected by files that differ from a Git `revision`, such as origin/main, in all clusters of the repository given with -f")
}

// storeOptions are the flags of the artifacts directory, and of the names of artifacts.
type storeOptions struct {
	session.StoreOptions
	given *pflag.Flag // the flag of Dir, or nil
}

func (o *storeOptions) addDir(fs *pflag.FlagSet) {
	fs.StringVarP(&o.Dir, "artifacts-dir", "d", "artifacts", "`directory` of the artifacts")
	o.given = fs.Lookup("artifacts-dir")
}

func (o *storeOptions) addAddress(fs *pflag.FlagSet) {
	fs.StringVar(&o.Advertised, "storage-adv-addr", "", "`address` under which the artifacts directory is served, for artifact URLs (default: file:// URLs)")
}

func (o *storeOptions) addWriting(fs *pflag.FlagSet) {
	fs.StringVar(&o.Algorithm, "artifact-digest-algo", "sha256", "digest `algorithm` of artifacts: sha256, sha384, sha512")
	config.SetChoices(fs, "artifact-digest-algo", "sha256", "sha384", "sha512")
	fs.DurationVar(&o.TTL, "artifact-retention-ttl", time.Minute, "`age` at which earlier artifacts of an object are removed")
	fs.IntVar(&o.Records, "artifact-retention-records", 2, "`number` of artifacts kept for each object")
}

// check validates the values that no flag type validates.
func (o *storeOptions) check(a *app) error {
	if o.given == nil {
		return nil
	}
	o.Named, o.Own = o.given.Changed, a.config.OwnDirectory
	switch {
	case o.Records < 0:
		return exit.Usagef("--artifact-retention-records must not be negative, got %d", o.Records)
	case o.TTL < 0:
		return exit.Usagef("--artifact-retention-ttl must not be negative, got %s", o.TTL)
	case strings.ContainsAny(o.Advertised, "@?#"):
		// The value is not quoted: it may hold a password, and would be printed with every artifact.
		return exit.Usagef("--storage-adv-addr must be a host and port, or a URL of scheme, host, port and path alone")
	}
	return nil
}

// addFetch declares the flags for connections to sources, and for the limits on their content.
func (o *runOptions) addFetch(fs *pflag.FlagSet) {
	o.cache.add(fs)
	r := &o.Reconcile
	r.IndexMax, r.Chart = 50<<20, chart.Limits{Archive: 10 << 20, File: 5 << 20, Unpacked: 100 << 20}
	fs.BoolVar(&r.Offline, "offline", false, "open no connection: content that is neither in the artifacts directory nor in the cache is an error")
	fs.StringArrayVar(&o.input.render.sources, "source", nil, "replace a source by a local directory: `KIND/[NAMESPACE/]NAME=PATH` (repeatable)")
	fs.StringVar(&o.SourceDir, "source-dir", "", "artifacts `directory` whose artifacts replace the sources that they came from")
	fs.IntVarP(&r.Concurrency, "concurrency", "j", 8, "`number` of objects processed at a time")
	fs.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "time `limit` for the whole run")
	fs.IntVar(&r.Retries, "retries", 3, "`number` of retries after a transient failure")
	fs.Var((*config.Bytes)(&r.IndexMax), "helm-index-max-size", "largest accepted index, in `bytes` or as a quantity")
	fs.Var((*config.Bytes)(&r.Chart.Archive), "helm-chart-max-size", "largest accepted chart archive, in `bytes` or as a quantity")
	fs.Var((*config.Bytes)(&r.Chart.File), "helm-chart-file-max-size", "largest accepted file in a chart, in `bytes` or as a quantity")
	fs.Var((*config.Bytes)(&r.Chart.Unpacked), "helm-chart-max-unpacked-size", "largest accepted total size of the files of a chart, in `bytes` or as a quantity")
	fs.StringVar(&r.IndexDigest, "index-digest", "enforce", "`policy` for an archive that differs from the digest in its index: enforce, warn, ignore")
	config.SetChoices(fs, "index-digest", "enforce", "warn", "ignore")
	fs.BoolVar(&r.AllowNameMismatch, "allow-name-mismatch", false, "accept an archive whose name or version differs from its index entry or tag, with a warning")
	fs.StringVar(&r.RegistryConfig, "registry-config", "", "`file` with registry logins (default: those of docker and helm)")
	fs.StringVar(&r.RepositoryConfig, "repository-config", "", "Helm's repositories.yaml `file` (default: Helm's own)")
	o.ambient = config.AmbientHome
	fs.Var(&o.ambient, "ambient-credentials", "`policy` for the logins of docker and helm and the identity of this machine where a manifest names no Secret: true, false (a source that names a provider still uses the identity), or anywhere (also through a proxy, with an authority or over plain HTTP that the manifest chose)")
	fs.Lookup("ambient-credentials").NoOptDefVal = string(config.AmbientHome)
	config.SetChoices(fs, "ambient-credentials", string(config.AmbientHome), string(config.AmbientNone), string(config.AmbientAnywhere))
	fs.BoolVar(&r.PrivateRedirects, "allow-private-redirects", false, "follow redirects from a public host to loopback, private and link-local addresses also where a login of this machine is used")
	fs.BoolVar(&r.SkipTLSVerify, config.InsecureFlag, false, "do not verify the server certificates of sources, with a warning; logins of this machine are not used")
	fs.StringVar(&r.MissingSecrets, "missing-secrets", "fail", "`policy` for a Secret that is not in the input: fail, ambient, anonymous")
	config.SetChoices(fs, "missing-secrets", "fail", "ambient", "anonymous")
}

func (o *runOptions) addRefresh(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Reconcile.Refresh, "refresh", false, "rebuild everything, reuse nothing")
}

func (o *runOptions) addFollow(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Follow, "follow-sources", false, "fetch the sources of Kustomizations and ArtifactGenerators that are not in the checkout, and the sources that the fetched manifests use, at most 10 levels deep")
}

func (o *runOptions) addTrust(fs *pflag.FlagSet) {
	fs.StringVar(&o.Trust.Root, "trusted-root", "", "`file` with the authorities and logs for keyless signatures (default: from the public Sigstore, fetched at most once a day)")
	fs.StringVar(&o.Trust.Keyring, "keyring", "", "`file` with PGP keys: charts without spec.verify must have a provenance file signed with one of them")
	fs.BoolVar(&o.Reconcile.RequireVerification, "require-verification", false, "fail charts that are verified by neither spec.verify nor a provenance file")
}

func (o *runOptions) addDependencies(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Reconcile.VerifyDependencies, "verify-dependencies", false, "with --keyring: charts fetched as dependencies must have a provenance file as well")
}

// checkFetch validates the values that no flag type validates.
func (o *runOptions) checkFetch() error {
	r := &o.Reconcile
	switch {
	case r.Offline && r.Refresh:
		return exit.Usagef("--offline and --refresh are mutually exclusive: nothing can be fetched without a connection")
	case r.SkipTLSVerify && o.ambient == config.AmbientAnywhere:
		return exit.Usagef("--insecure-skip-tls-verify and --ambient-credentials=anywhere are mutually exclusive: logins of this machine are not sent to unverified servers")
	case r.Concurrency < 1:
		return exit.Usagef("--concurrency must be at least 1, got %d", r.Concurrency)
	case r.Retries < 0:
		return exit.Usagef("--retries must not be negative, got %d", r.Retries)
	case o.Timeout <= 0:
		return exit.Usagef("--timeout must be positive, got %s", o.Timeout)
	}
	// The default files need not exist. A file that a flag names must exist.
	return cmp.Or(
		named("registry-config", r.RegistryConfig), named("repository-config", r.RepositoryConfig),
		o.checkTrust(),
	)
}

func (o *runOptions) checkTrust() error {
	if o.Reconcile.VerifyDependencies && o.Trust.Keyring == "" {
		return &exit.UsageError{Err: errors.New("--verify-dependencies needs --keyring")}
	}
	return nil
}

// named returns an error if the file that a flag names does not exist, or is a directory.
func named(flag, file string) error {
	if file == "" {
		return nil
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return &exit.UsageError{Err: fmt.Errorf("--%s: %w", flag, err)}
	case info.IsDir():
		return exit.Usagef("--%s: %s is a directory", flag, file)
	}
	return nil
}

func (o *runOptions) addFlat(fs *pflag.FlagSet) {
	fs.StringVar(&o.flat, "flat", "", "also write the charts to this `directory`, as NAME-VERSION.tgz")
}

func (o *runOptions) checkFlat() error {
	if file.Outside(o.flat) {
		return exit.Usagef("--flat: %s: %w", o.flat, file.ErrOutside)
	}
	if info, err := os.Stat(o.flat); err == nil && !info.IsDir() {
		return exit.Usagef("--flat: %s is not a directory", o.flat)
	}
	return nil
}

// flatten writes the plain files of --flat, and returns the exit code for this step alone.
func (a *app) flatten(o *runOptions, st *store.Store, results []*reconcile.Result) int {
	if o.flat == "" {
		return exit.OK
	}
	failures := reconcile.Flatten(st, results, o.flat, o.Reconcile.Chart)
	for _, f := range failures {
		a.console.Report(f)
	}
	if len(failures) > 0 {
		return exit.Failed
	}
	return exit.OK
}

// helmOptions are the flags that choose the helm program and its limits.
type helmOptions struct{ foresee.HelmOptions }

func (o *helmOptions) add(fs *pflag.FlagSet) {
	o.Memory = 1 << 30
	fs.StringVar(&o.Program, "helm", "", "helm `program` (default: the one in the PATH)")
	fs.DurationVar(&o.Time, "helm-timeout", 30*time.Second, "time `limit` for rendering one release")
	fs.Var((*config.Bytes)(&o.Memory), "helm-max-memory", "memory limit for rendering one release, in `bytes` or as a quantity")
	fs.StringVar(&o.KubeVersion, "kube-version", "", "Kubernetes `version` that charts see (default: helm's own)")
	fs.StringArrayVar(&o.APIVersions, "api-versions", nil, "additional API `version` or kind that charts see, such as monitoring.coreos.com/v1 (repeatable)")
}

func (o *helmOptions) check() error {
	if o.Time <= 0 {
		return exit.Usagef("--helm-timeout must be positive, got %s", o.Time)
	}
	return nil
}

func addLockFile(o *session.LockOptions, fs *pflag.FlagSet) {
	fs.StringVar(&o.File, "lock-file", "", "lock `file` (default: "+lock.FileName+" beside "+config.Name+", else in the current directory)")
}

func addLocked(o *session.LockOptions, fs *pflag.FlagSet) {
	addLockFile(o, fs)
	fs.BoolVar(&o.Locked, "locked", false, "use the versions and digests of the lock file, and download no index and no list of tags; exit 4 if the lock file is out of date")
}

func addFrom(o *session.LockOptions, fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.From, "from", nil, "bundle `file` to use in place of all sources, without a network (repeatable, for the bundles that it builds on)")
}

// checkLocked refuses a local directory that replaces a locked source.
func (o *runOptions) checkLocked() error {
	if o.Lock.Locked && len(o.input.render.sources)+len(o.SourceDir) > 0 {
		return &exit.UsageError{Err: errors.New("--locked and --source or --source-dir are mutually exclusive"), Advice: "leave out --source and --source-dir, or set --locked=false"}
	}
	return nil
}

// renderOptions are the flags for variables and for the local directories of sources.
type renderOptions struct {
	substitute []string
	strict     config.OptionalBool
	sources    []string // of --source, for commands that have it
}

func (o *renderOptions) add(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.substitute, "substitute", nil, "value of a variable ${KEY} in the manifests: `KEY=VALUE` (repeatable); wins over spec.postBuild")
	fs.Var(&o.strict, "substitute-strict", "a variable without a value is an error; false makes it empty (default: an error where it decides a chart, version, URL, name or reference, elsewhere empty with a warning)")
	fs.Lookup("substitute-strict").NoOptDefVal = "true"
}

// addSources declares --source, for the commands that fetch nothing.
func (o *renderOptions) addSources(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.sources, "source", nil, "local directory of a source that Kustomizations refer to: `KIND/[NAMESPACE/]NAME=PATH` (repeatable)")
}

// unset returns the treatment of variables without a value.
func (o *renderOptions) unset() render.Unset {
	switch {
	case !o.strict.Given:
		return render.UnsetDecides
	case o.strict.True:
		return render.UnsetFails
	}
	return render.UnsetEmpty
}

// checkUntrusted refuses flags that disclose credentials that --untrusted protects.
func (o *runOptions) checkUntrusted() error {
	switch {
	case !o.input.Untrusted:
	case o.ambient == config.AmbientAnywhere:
		return exit.Usagef("--untrusted and --ambient-credentials=anywhere are mutually exclusive")
	case o.Reconcile.MissingSecrets == credential.MissingAmbient:
		return exit.Usagef("--untrusted and --missing-secrets=ambient are mutually exclusive")
	case o.Reconcile.PrivateRedirects:
		return exit.Usagef("--untrusted and --allow-private-redirects are mutually exclusive")
	}
	return nil
}

// reportIgnoredFile warns once if a configuration file was found, but not read.
func (a *app) reportIgnoredFile() {
	if a.config.Ignored {
		a.console.Warn("the " + config.Name + " of the repository is not used: --untrusted")
		a.config.Ignored = false
	}
}

// reach returns the hosts to which the credentials of this machine may be sent.
func (o *runOptions) reach() auth.Reach {
	switch {
	case o.input.Untrusted:
		return auth.ReachNowhere
	case o.ambient == config.AmbientAnywhere:
		return auth.ReachAnywhere
	}
	return auth.ReachHome
}

// jobIndex is the variable in which Kubernetes passes a Pod of an Indexed Job its number, from 0.
const jobIndex = "JOB_COMPLETION_INDEX"

// maxShards is the largest number of shards of a selection.
const maxShards = 100_000

func (o *inputOptions) addShard(fs *pflag.FlagSet) {
	fs.StringVar(&o.shardText, "shard", "", "only shard `I/N` of the selected objects, from 0/N; /N takes I from "+jobIndex)
}

// checkShard parses --shard. It warns about the number of a Pod without --shard.
func (o *inputOptions) checkShard(a *app) error {
	index := a.env.Getenv(jobIndex)
	if o.shardText == "" {
		if index != "" && o.shardText == "" {
			a.console.Warn(fmt.Sprintf("%s is %q, but --shard does not set the number of shards: all objects are selected; --shard /N selects the shard of this Pod", jobIndex, index))
		}
		return nil
	}
	var err error
	o.Shard, err = parseShard(o.shardText, index)
	return err
}

// parseShard parses I/N, or /N with the number of a Pod.
func parseShard(text, index string) (load.Shard, error) {
	first, second, found := strings.Cut(text, "/")
	form := &exit.UsageError{Err: fmt.Errorf("--shard %q is not of the form I/N", text), Advice: "0/4 is the first of four shards; /4 takes the number from " + jobIndex}
	if !found {
		return load.Shard{}, form
	}
	from := ""
	if first == "" {
		if index == "" {
			return load.Shard{}, &exit.UsageError{
				Err:    fmt.Errorf("--shard %s: %s is not set", text, jobIndex),
				Advice: "Kubernetes sets it in a Job with completionMode: Indexed; elsewhere write I/N, as 0" + text,
			}
		}
		first, from = index, ", of "+jobIndex
	}
	count, err := number(second)
	if err != nil {
		return load.Shard{}, form
	}
	i, err := number(first)
	switch {
	case err != nil && from != "":
		return load.Shard{}, exit.Usagef("%s %q is not a number", jobIndex, index)
	case err != nil:
		return load.Shard{}, form
	case count < 1 || count > maxShards:
		return load.Shard{}, exit.Usagef("--shard %s: the number of shards must be 1 to %d, got %d", text, maxShards, count)
	case i >= count:
		return load.Shard{}, &exit.UsageError{Err: fmt.Errorf("--shard %s: there is no shard %d%s", text, i, from), Advice: fmt.Sprintf("the shards are 0/%d to %d/%d", count, count-1, count)}
	}
	return load.Shard{Index: i, Count: count}, nil
}

// number parses a number that consists of digits alone.
func number(text string) (int, error) {
	if strings.Trim(text, "0123456789") != "" {
		return 0, errors.New("no number")
	}
	return strconv.Atoi(text)
}
