package cmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// runOptions are the flags of the commands that reconcile: fetch and resolve.
type runOptions struct {
	input  inputOptions
	output outputOptions
	store  storeOptions
	fetch  fetchOptions
	trust  trustOptions
	report reportOptions
	lock   lockOptions
	follow bool   // --follow-sources
	flat   string // the directory of plain files
	until  reconcile.Line
	list   bool // what is published
	level  resolve.Level
	edits  bool // manifests
	idle   bool // no object is looked at, and none need be selected
	// images is called with the reconciler of the run, before it is closed.
	images func(context.Context, *input, *reconcile.Reconciler)
	verify bool
	into   *cache.Cache // what is served is kept there, too
}

// member is one cluster of a run.
type member struct {
	in       *input
	st       *store.Store
	followed *following
	options  reconcile.Options
}

// close ends what was opened of a cluster besides the artifacts directory of the command.
func (m *member) close(a *app, root *store.Store) {
	m.followed.close()
	if m.st == nil || m.st == root {
		return
	}
	if err := m.st.Close(); err != nil {
		a.console.Debug(console.Subject{}, err.Error())
	}
}

func inputsOf(members []*member) []*input {
	var inputs []*input
	for _, m := range members {
		inputs = append(inputs, m.in)
	}
	return inputs
}

// runReconciliation reconciles what is selected in each cluster, and hands the results to print.
func (a *app) runReconciliation(ctx context.Context, o *runOptions, args []string, print func([]*reconcile.Result) error) (int, error) {
	a.purpose = purpose{chooses: o.until == reconcile.Choose, lists: o.list, verifies: o.verify, edits: o.edits}
	o.finishFrom()
	if err := o.fetch.check(); err != nil {
		return exitUsage, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.fetch.timeout, reconcile.Timeout("--timeout", o.fetch.timeout))
	defer cancel()
	if err := errors.Join(o.report.check(true), o.checkFlat()); err != nil {
		return exitUsage, err
	}
	if err := errors.Join(o.checkUntrusted(), o.checkLocked()); err != nil {
		return exitUsage, err
	}
	if err := o.input.checkShard(a); err != nil {
		return exitUsage, err
	}
	o.input.render.sources = o.fetch.sources
	root, err := a.openStore(&o.store)
	if err != nil {
		return exitUsage, err
	}
	defer root.Close()
	shared, err := a.openSession(ctx, o)
	if reconcile.ClassOf(err) == reconcile.Integrity {
		return exitIntegrity, err
	}
	if err != nil {
		return exitUsage, err
	}
	defer shared.Close()
	members, err := a.readRun(ctx, o, shared, args, root)
	defer func() {
		for _, m := range members {
			m.close(a, root)
		}
	}()
	if reconcile.ClassOf(err) == reconcile.Integrity {
		return exitIntegrity, err
	}
	if err != nil {
		return exitUsage, err
	}
	inputs := inputsOf(members)
	if code, err := a.prepare(ctx, o, shared, members); err != nil {
		return code, err
	}
	code := exitOK
	var results []*reconcile.Result
	var objects []report.Object
	for _, m := range members {
		a.console.In(m.in.cluster)
		found, failed, err := a.reconcileMember(ctx, o, shared, m)
		if err != nil {
			return exitFailed, err
		}
		code = worst(code, failed)
		results = append(results, found...)
		objects = append(objects, a.reportObjects(m.in, found)...)
	}
	a.console.In("")
	printed := print(results)
	a.console.Unite()
	a.summarise(results, inputs)
	if o.input.exitZero && code != exitInterrupted && code != exitUsage {
		code = exitOK
	}
	code = a.report(ctx, &o.report, a.newReport(objects), o.outputs(), code)
	if printed != nil {
		return code, fmt.Errorf("stdout: %w", printed)
	}
	return code, nil
}

// prepare checks what the run is about, and finds out what each cluster needs. The code is that of an error.
func (a *app) prepare(ctx context.Context, o *runOptions, shared *session.Session, members []*member) (int, error) {
	inputs := inputsOf(members)
	a.reportSkipped(inputs)
	a.reportFlux1(inputs...)
	if err := o.checkSelection(ctx, inputs); err != nil {
		return exitUsage, err
	}
	stands := map[*input]map[store.Key]string{}
	for _, m := range members {
		stands[m.in] = m.followed.stands
	}
	replaced, err := a.replaceSources(o, inputs, stands)
	if err != nil {
		return worst(exitUsage, codeOf(&reconcile.Result{State: reconcile.Failed, Failure: status.AsFailure(err)})), err
	}
	for _, m := range members {
		a.console.In(m.in.cluster)
		a.reportShard(m.in)
		if err := o.writable(m.st); err != nil {
			return exitUsage, err
		}
		m.in.renameStored(m.st)
		m.options = shared.Options()
		m.options.Directories, m.options.Archives, m.options.Finished = replaced[m.in].directories, replaced[m.in].archives, m.followed.finished
		m.options.AdvertisedAddress = advertised(o.store.advertised, m.in.cluster)
		if m.options.Locked, err = a.locked(ctx, &o.lock, m.in); err != nil {
			return exitUsage, err
		}
	}
	return exitOK, nil
}

// reconcileMember reconciles what is selected in a cluster, and returns the exit code of that.
func (a *app) reconcileMember(ctx context.Context, o *runOptions, shared *session.Session, m *member) ([]*reconcile.Result, int, error) {
	if err := m.st.Load(); err != nil {
		a.reportStorage(finding.OddStorage, fmt.Errorf("what was recorded of any %s is ignored: %w", strings.Join(bareKinds(reconcile.Kinds().WithoutArtifact()), ", "), err))
	}
	if o.until == reconcile.Fetch {
		if err := m.in.beginShard(m.st); err != nil {
			return nil, exitFailed, err
		}
	}
	results, forgotten := a.reconcile(ctx, shared, m, o)
	a.reportNotes(m.in)
	code := worst(m.in.code, a.flatten(o, m.st, results))
	for _, r := range results {
		code = worst(code, codeOf(r))
	}
	if forgotten == nil && o.until == reconcile.Fetch {
		forgotten = m.in.endShard(ctx, m.st, results)
	}
	if forgotten != nil {
		a.reportStorage(finding.Storage, forgotten)
		code = worst(code, exitFailed)
	}
	return resultsOf(m.in, results), code, nil
}

// checkSelection refuses a selection of nothing, where the run is about objects.
func (o *runOptions) checkSelection(ctx context.Context, inputs []*input) error {
	if o.idle {
		return o.input.checkSelectors(ctx, inputs[0].selectors, inputs...)
	}
	return o.input.check(ctx, inputs)
}

// reportStorage reports what is wrong with the artifacts directory as a whole.
func (a *app) reportStorage(code finding.Code, err error) {
	a.console.Report(validate.New(nil, code, err.Error(), "", manifest.Excerpt{}))
}

// writable refuses an artifacts directory that nothing can be written to, once for all objects.
func (o *runOptions) writable(st *store.Store) error {
	if o.until == reconcile.Choose {
		return nil
	}
	if err := st.Writable(); err != nil {
		return &usageError{err: fmt.Errorf("--artifacts-dir: %w", err), hint: "make the directory writable, or name another one with --artifacts-dir"}
	}
	return nil
}

// outputs are what a step of GitHub Actions wants to know besides what was found.
func (o *runOptions) outputs() []githubOutput {
	if o.until == reconcile.Choose {
		return nil
	}
	dir, err := filepath.Abs(o.store.dir)
	if err != nil {
		dir = o.store.dir
	}
	return []githubOutput{{"artifacts-path", dir}}
}

func (o *runOptions) limits() reconcile.ChartLimits {
	return reconcile.ChartLimits{
		Archive: int64(o.fetch.chartMax), File: int64(o.fetch.chartFileMax), Unpacked: int64(o.fetch.chartUnpackedMax),
	}
}

// reconcileOptions are the flags that every run of a command needs to know.
func (o *runOptions) reconcileOptions() reconcile.Options {
	return reconcile.Options{
		Until:             o.until,
		List:              o.list,
		Level:             o.level,
		Verify:            o.verify,
		Refresh:           o.fetch.refresh,
		Concurrency:       o.fetch.concurrency,
		Retries:           o.fetch.retries,
		IndexMax:          int64(o.fetch.indexMax),
		Chart:             o.limits(),
		IndexDigest:       o.fetch.indexDigest,
		AllowNameMismatch: o.fetch.allowNameMismatch,
		Ambient:           o.fetch.ambient != ambientNone,
		Reach:             o.reach(),
		PrivateRedirects:  o.fetch.privateRedirects,
		SkipTLSVerify:     o.fetch.skipTLSVerify,
		RegistryConfig:    o.fetch.registryConfig,
		RepositoryConfig:  o.fetch.repositoryConfig,
		MissingSecrets:    o.fetch.missingSecrets,
		AdvertisedAddress: o.store.advertised,
		DigestAlgorithm:   o.store.algorithm,
		Offline:           o.fetch.cache.offline,
	}
}

// openSession opens what the runs of a command share.
func (a *app) openSession(ctx context.Context, o *runOptions) (*session.Session, error) {
	options := session.Options{
		Edges:     reconcile.Edges{Dial: a.env.Dial, Getenv: a.env.Getenv, Now: a.now, UserAgent: "helmsrc/" + versionString()},
		Reconcile: o.reconcileOptions(),
		Cache:     o.fetch.cache.options(a, o.fetch.refresh),
		Warn: func(err error) {
			a.console.Warn(err.Error())
			for _, hint := range finding.Hints(err) {
				a.console.Hint(console.Subject{}, hint)
			}
		},
		Debug: func(err error) { a.console.Debug(console.Subject{}, err.Error()) },
	}
	options.Reconcile.Decisions = a.console.Verbosity() > 1
	if options.Reconcile.Offline {
		options.Reconcile.Online = a.onlineCommand()
	}
	options.Reconcile.From, options.Cache.Into = o.lock.bundle(), o.into
	err := o.trust.apply(ctx, &options.Reconcile, a.env.Getenv)
	if err == nil && o.lock.from != nil {
		return a.openBundle(ctx, &o.lock, session.Open(options))
	}
	if err == nil && !o.fetch.cache.none {
		options.CacheDir, err = o.fetch.cache.directory(a.env.Getenv)
		if options.CacheDir == "" && err == nil && options.Reconcile.Offline {
			a.console.Warn("there is no cache: neither HOME nor XDG_CACHE_HOME says where it is, and --cache-dir is not given")
		}
	}
	return session.Open(options), err
}

func (a *app) reconcile(ctx context.Context, shared *session.Session, m *member, run *runOptions) ([]*reconcile.Result, error) {
	choose := func() []*admission.Admitted { return a.withoutHome(m.in, a.targets(m.in), m.options) }
	if run.idle {
		choose = func() []*admission.Admitted { return nil }
	}
	return a.reconcileTargets(ctx, shared, m.in, choose, m.st, m.options, run.images)
}

// reconcileTargets calls then, if it is not nil, before the reconciler is closed.
func (a *app) reconcileTargets(ctx context.Context, shared *session.Session, in *input, choose func() []*admission.Admitted, st *store.Store, o reconcile.Options, then func(context.Context, *input, *reconcile.Reconciler)) ([]*reconcile.Result, error) {
	stop := a.console.StartRows()
	defer stop()
	targets := choose()
	if o.Locked != nil && (o.Locked.Mode == reconcile.LockedOnly || o.Locked.Mode == reconcile.LockedAnyway) {
		targets = in.untouched(targets)
	}
	progress := newProgress(a, &in.ignores, targets)
	if a.took == nil {
		a.took = progress.took
	} else { // of another cluster
		progress.took = a.took
	}
	for obj := range in.reported {
		progress.blocked.fail(subjectOf(obj), false)
	}
	ctx = a.tracing(a.reportsWaiting(ctx), in.inventory.Objects())
	return shared.Run(ctx, session.Run{
		Inventory: in.inventory, Store: st, Options: o, Targets: targets, Progress: progress,
		Then: func(r *reconcile.Reconciler) {
			progress.reportSameCause()
			progress.reportBlocked()
			if then != nil {
				then(ctx, in, r)
			}
		},
	})
}

func (a *app) openStore(o *storeOptions) (*store.Store, error) {
	if err := oneOf("artifact-digest-algo", o.algorithm, "sha256", "sha384", "sha512"); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if !a.ownDirectory {
		if err := refuseBrought(o.dir); err != nil {
			return nil, err
		}
	}
	st, err := store.Open(o.dir, store.Options{
		Algorithm:        godigest.Algorithm(o.algorithm),
		RetentionTTL:     o.ttl,
		RetentionRecords: o.records,
		Kinds:            reconcile.Kinds().Names(),
		Shared:           reconcile.Kinds().WithoutArtifact(),
		Now:              a.now,
	})
	if err != nil {
		return nil, unusableStore("--artifacts-dir", err)
	}
	return st, nil
}

// takenAlone lists the namespaces of the GitRepository that a --source names, if there is none in the input but generators
// take it: it may be in the cluster alone.
func (in *input) takenAlone(s selector) []string {
	if s.kind != "GitRepository" {
		return nil
	}
	taken := in.inventory.Taken(s.kind, s.name)
	return slices.DeleteFunc(taken, func(namespace string) bool { return s.namespace != "" && s.namespace != namespace })
}

// directoriesOf finds the object that each --source replaces: exactly one.
func directoriesOf(in *input, sources []string) (map[store.Key]string, error) {
	directories := map[store.Key]string{}
	for _, text := range sources {
		s, dir, err := parseSource(text)
		if err != nil {
			return nil, err
		}
		var found []string
		for _, obj := range in.replaceable() {
			if s.matches(obj) {
				found = append(found, obj.String())
				absolute, err := filepath.Abs(dir)
				if err != nil {
					return nil, usagef("--source %s: %v", text, err)
				}
				directories[store.NewKey(obj.Kind, obj.Namespace, obj.Name)] = absolute
			}
		}
		if taken := in.takenAlone(s); len(found) == 0 && len(taken) == 1 {
			s.namespace = taken[0]
			found = []string{s.kind + " " + s.namespace + "/" + s.name}
			absolute, err := filepath.Abs(dir)
			if err != nil {
				return nil, usagef("--source %s: %v", text, err)
			}
			directories[store.NewKey(s.kind, s.namespace, s.name)] = absolute
		}
		switch {
		case len(found) == 0 && in.rendered.Used(render.Source{Kind: s.kind, Namespace: s.namespace, Name: s.name, Dir: dir}):
			// It is where Kustomizations are, or what artifacts are made of.
			absolute, err := filepath.Abs(dir)
			if err != nil {
				return nil, usagef("--source %s: %v", text, err)
			}
			directories[store.NewKey(s.kind, s.namespace, s.name)] = absolute
		case len(found) == 0:
			return nil, usagef("--source %s: no such object in the input", text)
		case len(found) > 1:
			slices.Sort(found)
			return nil, &usageError{
				err:  fmt.Errorf("--source %s matches several objects: %s", text, join(found)),
				hint: "name its namespace: KIND/NAMESPACE/NAME=PATH",
			}
		}
	}
	return directories, nil
}

// codeOf is the exit code that a result alone would give.
func codeOf(r *reconcile.Result) int {
	switch r.State {
	case reconcile.Interrupted:
		if r.Failure != nil && !errors.Is(r.Failure, errInterrupted) {
			return exitTransient
		}
		return exitInterrupted
	case reconcile.Failed:
		switch reconcile.ClassOf(r.Failure) {
		case reconcile.Integrity:
			return exitIntegrity
		case reconcile.Transient:
			return exitTransient
		case reconcile.Drift:
			return exitDrift
		}
		return exitFailed
	}
	return exitOK
}

// purpose is what a run is for, where its lines and reports depend on that.
type purpose struct {
	chooses  bool // it stops once versions are known: whatever is stored, it says no more than that
	lists    bool // it is about what is published
	verifies bool // signatures
	foresees bool // successes are what the command prints anyway
	edits    bool // the command has a last line of its own
}

// stateOf is what became of an object, in the words of documents, reports and the last line.
func (a *app) stateOf(r *reconcile.Result) string {
	switch r.State {
	case reconcile.Suspended:
		return report.StateSuspended
	case reconcile.Interrupted:
		return report.StateInterrupted
	case reconcile.Failed:
		return report.StateFailed
	}
	switch {
	case a.purpose.verifies && (r.Signature != nil || r.Signed != nil):
		return report.StateVerified
	case a.purpose.chooses, r.State == reconcile.Resolved, r.State == reconcile.Waiting:
		return report.StateResolved
	}
	return report.StateReady
}

// summarise prints the last line: what became of how many objects.
func (a *app) summarise(results []*reconcile.Result, inputs []*input) {
	if a.purpose.edits {
		return
	}
	counts := map[string]int{report.StateFailed: a.unusable}
	for _, in := range inputs {
		counts[report.StateFailed] += len(in.reported)
	}
	for _, r := range results {
		counts[a.stateOf(r)]++
	}
	resolved := "resolved"
	if a.purpose.lists {
		resolved = "read"
	}
	var parts []string
	for _, p := range []struct {
		state, word string
		always      bool
	}{
		{report.StateReady, "ready", !a.purpose.chooses},
		{report.StateVerified, "verified", a.purpose.verifies},
		{report.StateResolved, resolved, a.purpose.chooses && !a.purpose.verifies},
		{report.StateFailed, "failed", true},
		{report.StateSuspended, "skipped", true},
		{report.StateInterrupted, "not finished", false},
	} {
		if n := counts[p.state]; n > 0 || p.always {
			parts = append(parts, fmt.Sprintf("%d %s", n, p.word))
		}
	}
	if a.unreadable > 0 {
		parts = append(parts, fmt.Sprintf("%d unreadable", a.unreadable))
	}
	text := join(parts)
	elapsed := a.env.Now().Sub(a.started).Round(100 * time.Millisecond)
	a.console.Info(console.Subject{}, fmt.Sprintf("%s in %.1fs", text, elapsed.Seconds()))
}

// printDocuments writes the documents in the order of the results.
func (a *app) printDocuments(o *outputOptions) func([]*reconcile.Result) error {
	return func(results []*reconcile.Result) error {
		encoder, err := a.encoder(o)
		if err != nil {
			return err
		}
		for _, r := range results {
			r.Object.Object.Secrets = a.console.Secrets() // one that is remembered knows of none
			doc, err := r.Document()
			if err != nil {
				return err
			}
			if err := encoder.Encode(doc); err != nil {
				return err
			}
			if !o.events {
				continue
			}
			for _, e := range r.Events {
				e.Message = r.Object.Object.ConcealText(e.Message)
				e.Annotations = concealedTexts(r.Object.Object, e.Annotations)
				if r.Cluster != "" {
					if e.Annotations == nil {
						e.Annotations = map[string]string{}
					}
					e.Annotations[status.ClusterAnnotation] = r.Cluster
				}
				if err := encoder.Encode(e.Document(doc, a.now())); err != nil {
					return err
				}
			}
		}
		return encoder.Close()
	}
}

func (a *app) encoder(o *outputOptions) (*status.Encoder, error) {
	return status.NewEncoder(a.env.Stdout, status.Format(o.format), a.now())
}

// check gives the format its default: a table for people, and else what other programs read.
func (o *outputOptions) check(env *Env) error {
	switch {
	case o.format != "":
	case env.Reads != nil && env.Reads():
		o.format = string(status.Table)
	default:
		o.format = string(status.YAML)
	}
	var names []string
	for _, f := range status.Formats() {
		names = append(names, string(f))
	}
	if err := formatOf(o.format, names...); err != nil {
		return err
	}
	var err error
	o.template, err = status.ParseTemplate(o.format)
	return err
}
