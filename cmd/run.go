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
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/overview"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
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
	images func(context.Context, *load.Input, *reconcile.Reconciler)
	verify bool
	into   *cache.Cache // what is served is kept there, too
	named  bool         // images that charts name are listed
}

// member is one cluster of a run.
type member struct {
	in       *load.Input
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

func inputsOf(members []*member) []*load.Input {
	var inputs []*load.Input
	for _, m := range members {
		inputs = append(inputs, m.in)
	}
	return inputs
}

// runReconciliation reconciles what is selected in each cluster, and hands the results to print.
func (a *app) runReconciliation(ctx context.Context, o *runOptions, args []string, print func([]*reconcile.Result) error) (int, error) {
	a.worker.Purpose = session.Purpose{Chooses: o.until == reconcile.Choose, Lists: o.list, Verifies: o.verify, Edits: o.edits}
	o.finishFrom()
	if err := o.fetch.check(); err != nil {
		return exit.Usage, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.fetch.timeout, reconcile.Timeout("--timeout", o.fetch.timeout))
	defer cancel()
	if err := errors.Join(o.report.check(true), o.checkFlat()); err != nil {
		return exit.Usage, err
	}
	if err := errors.Join(o.checkUntrusted(), o.checkLocked(), o.checkImages()); err != nil {
		return exit.Usage, err
	}
	if err := o.input.checkShard(a); err != nil {
		return exit.Usage, err
	}
	o.input.render.sources = o.fetch.sources
	root, err := a.openStore(&o.store)
	if err != nil {
		return exit.Usage, err
	}
	defer root.Close()
	shared, err := a.openSession(ctx, o)
	if reconcile.ClassOf(err) == reconcile.Integrity {
		return exit.Integrity, err
	}
	if err != nil {
		return exit.Usage, err
	}
	defer shared.Close()
	members, err := a.readRun(ctx, o, shared, args, root)
	defer func() {
		for _, m := range members {
			m.close(a, root)
		}
	}()
	if reconcile.ClassOf(err) == reconcile.Integrity {
		return exit.Integrity, err
	}
	if err != nil {
		return exit.Usage, err
	}
	inputs := inputsOf(members)
	if code, err := a.prepare(ctx, o, shared, members); err != nil {
		return code, err
	}
	code := exit.OK
	var results []*reconcile.Result
	var objects []report.Object
	for _, m := range members {
		a.console.In(m.in.Cluster)
		found, failed, err := a.reconcileMember(ctx, o, shared, m)
		if err != nil {
			return exit.Failed, err
		}
		code = exit.Worst(code, failed)
		results = append(results, found...)
		reported := a.worker.ReportObjects(m.in, found)
		o.describe(a, m.st, found, reported)
		objects = append(objects, reported...)
	}
	a.console.In("")
	printed := print(results)
	a.console.Unite()
	a.summarise(results, inputs)
	if o.input.exitZero && code != exit.Interrupted && code != exit.Usage {
		code = exit.OK
	}
	code = a.report(ctx, &o.report, a.outlined(&o.report, a.newReport(objects), inputs, results), o.outputs(), code)
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
		return exit.Usage, err
	}
	stands := map[*load.Input]map[store.Key]string{}
	for _, m := range members {
		stands[m.in] = m.followed.stands
	}
	replaced, err := a.replaceSources(o, inputs, stands)
	if err != nil {
		return exit.Worst(exit.Usage, session.CodeOf(&reconcile.Result{State: reconcile.Failed, Failure: status.AsFailure(err)})), err
	}
	for _, m := range members {
		a.console.In(m.in.Cluster)
		a.reportShard(m.in)
		if err := o.writable(m.st); err != nil {
			return exit.Usage, err
		}
		m.in.RenameStored(m.st)
		m.options = shared.Options()
		m.options.Directories, m.options.Archives, m.options.Finished = replaced[m.in].directories, replaced[m.in].archives, m.followed.finished
		m.options.AdvertisedAddress = advertised(o.store.advertised, m.in.Cluster)
		if m.options.Locked, err = a.locked(ctx, &o.lock, m.in); err != nil {
			return exit.Usage, err
		}
	}
	return exit.OK, nil
}

// reconcileMember reconciles what is selected in a cluster, and returns the exit code of that.
func (a *app) reconcileMember(ctx context.Context, o *runOptions, shared *session.Session, m *member) ([]*reconcile.Result, int, error) {
	if err := m.st.Load(); err != nil {
		a.worker.ReportStorage(finding.OddStorage, fmt.Errorf("what was recorded of any %s is ignored: %w", strings.Join(bareKinds(reconcile.Kinds().WithoutArtifact()), ", "), err))
	}
	if o.until == reconcile.Fetch {
		if err := m.in.BeginShard(m.st); err != nil {
			return nil, exit.Failed, err
		}
	}
	results, forgotten := a.reconcile(ctx, shared, m, o)
	a.worker.ReportNotes(m.in)
	code := exit.Worst(m.in.Code, a.flatten(o, m.st, results))
	for _, r := range results {
		code = exit.Worst(code, session.CodeOf(r))
	}
	if forgotten == nil && o.until == reconcile.Fetch {
		forgotten = m.in.EndShard(ctx, m.st, results)
	}
	if forgotten != nil {
		a.worker.ReportStorage(finding.Storage, forgotten)
		code = exit.Worst(code, exit.Failed)
	}
	return resultsOf(m.in, results), code, nil
}

// checkSelection refuses a selection of nothing, where the run is about objects.
func (o *runOptions) checkSelection(ctx context.Context, inputs []*load.Input) error {
	if o.idle {
		return o.input.checkSelectors(ctx, inputs[0].Selectors, inputs...)
	}
	return o.input.check(ctx, inputs)
}

// writable refuses an artifacts directory that nothing can be written to, once for all objects.
func (o *runOptions) writable(st *store.Store) error {
	if o.until == reconcile.Choose {
		return nil
	}
	if err := st.Writable(); err != nil {
		return &exit.UsageError{Err: fmt.Errorf("--artifacts-dir: %w", err), Advice: "make the directory writable, or name another one with --artifacts-dir"}
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
	choose := func() []*admission.Admitted { return a.worker.WithoutHome(m.in, a.worker.Targets(m.in), m.options) }
	if run.idle {
		choose = func() []*admission.Admitted { return nil }
	}
	return a.worker.Reconcile(ctx, shared, m.in, choose, m.st, m.options, run.images)
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
func takenAlone(in *load.Input, s load.Selector) []string {
	if s.Kind != "GitRepository" {
		return nil
	}
	taken := in.Inventory.Taken(s.Kind, s.Name)
	return slices.DeleteFunc(taken, func(namespace string) bool { return s.Namespace != "" && s.Namespace != namespace })
}

// directoriesOf finds the object that each --source replaces: exactly one.
func directoriesOf(in *load.Input, sources []string) (map[store.Key]string, error) {
	directories := map[store.Key]string{}
	for _, text := range sources {
		s, dir, err := parseSource(text)
		if err != nil {
			return nil, err
		}
		var found []string
		for _, obj := range in.Replaceable() {
			if s.Matches(obj) {
				found = append(found, obj.String())
				absolute, err := filepath.Abs(dir)
				if err != nil {
					return nil, exit.Usagef("--source %s: %v", text, err)
				}
				directories[store.NewKey(obj.Kind, obj.Namespace, obj.Name)] = absolute
			}
		}
		if taken := takenAlone(in, s); len(found) == 0 && len(taken) == 1 {
			s.Namespace = taken[0]
			found = []string{s.Kind + " " + s.Namespace + "/" + s.Name}
			absolute, err := filepath.Abs(dir)
			if err != nil {
				return nil, exit.Usagef("--source %s: %v", text, err)
			}
			directories[store.NewKey(s.Kind, s.Namespace, s.Name)] = absolute
		}
		switch {
		case len(found) == 0 && in.Rendered.Used(render.Source{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, Dir: dir}):
			// It is where Kustomizations are, or what artifacts are made of.
			absolute, err := filepath.Abs(dir)
			if err != nil {
				return nil, exit.Usagef("--source %s: %v", text, err)
			}
			directories[store.NewKey(s.Kind, s.Namespace, s.Name)] = absolute
		case len(found) == 0:
			return nil, exit.Usagef("--source %s: no such object in the input", text)
		case len(found) > 1:
			slices.Sort(found)
			return nil, &exit.UsageError{
				Err:    fmt.Errorf("--source %s matches several objects: %s", text, strings.Join(found, ", ")),
				Advice: "name its namespace: KIND/NAMESPACE/NAME=PATH",
			}
		}
	}
	return directories, nil
}

// summarise prints the last line: what became of how many objects.
func (a *app) summarise(results []*reconcile.Result, inputs []*load.Input) {
	if a.worker.Purpose.Edits {
		return
	}
	counts := map[string]int{report.StateFailed: a.worker.Unusable}
	for _, in := range inputs {
		counts[report.StateFailed] += len(in.Reported)
	}
	for _, r := range results {
		counts[a.worker.StateOf(r)]++
	}
	resolved := "resolved"
	if a.worker.Purpose.Lists {
		resolved = "read"
	}
	var parts []string
	for _, p := range []struct {
		state, word string
		always      bool
	}{
		{report.StateReady, "ready", !a.worker.Purpose.Chooses},
		{report.StateVerified, "verified", a.worker.Purpose.Verifies},
		{report.StateResolved, resolved, a.worker.Purpose.Chooses && !a.worker.Purpose.Verifies},
		{report.StateFailed, "failed", true},
		{report.StateSuspended, "skipped", true},
		{report.StateInterrupted, "not finished", false},
	} {
		if n := counts[p.state]; n > 0 || p.always {
			parts = append(parts, fmt.Sprintf("%d %s", n, p.word))
		}
	}
	if a.worker.Unreadable > 0 {
		parts = append(parts, fmt.Sprintf("%d unreadable", a.worker.Unreadable))
	}
	text := strings.Join(parts, ", ")
	elapsed := a.env.Now().Sub(a.started).Round(100 * time.Millisecond)
	a.console.Info(console.Subject{}, fmt.Sprintf("%s in %.1fs", text, elapsed.Seconds()))
}

// printDocuments writes the documents in the order of the results.
func (a *app) printDocuments(o *outputOptions) func([]*reconcile.Result) error {
	return func(results []*reconcile.Result) error {
		var rows overview.Table
		shown := *o
		if o.format == tableFormat {
			shown.format = string(status.Wide) // of events
		}
		encoder, err := a.encoder(&shown)
		if err != nil {
			return err
		}
		for _, r := range results {
			r, err := r.Whole()
			if err != nil {
				return err
			}
			r.Object.Object.Secrets = a.console.Secrets() // one that is remembered knows of none
			doc, err := r.Document()
			if err != nil {
				return err
			}
			if shown.format != o.format {
				row := a.worker.ResultObject(r)
				a.concealObject(&row)
				rows.Add(doc, row)
			} else if err := encoder.Encode(doc); err != nil {
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
		if err := rows.Write(a.env.Stdout, a.paper); err != nil {
			return err
		}
		return encoder.Close()
	}
}

// tableFormat has a row of each release.
const tableFormat = "table"

func (a *app) encoder(o *outputOptions) (*status.Encoder, error) {
	return status.NewEncoder(a.env.Stdout, status.Format(o.format), a.now())
}

// check gives the format its default: a table for people, and else what other programs read.
func (o *outputOptions) check(env *Env) error {
	switch {
	case o.format != "":
	case env.Reads != nil && env.Reads():
		o.format = tableFormat
	default:
		o.format = string(status.YAML)
	}
	if err := formatOf(o.format, "yaml", "json", "jsonl", tableFormat, "wide", "name"); err != nil {
		return err
	}
	var err error
	o.template, err = status.ParseTemplate(o.format)
	return err
}
