package cmd

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/overview"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/status"
)

// runOptions are the flags of the commands that reconcile.
type runOptions struct {
	session.Options
	input   inputOptions
	output  outputOptions
	store   storeOptions
	cache   cacheOptions
	ambient ambientPolicy
	report  reportOptions
	flat    string // the directory of plain files
	edits   bool   // manifests
	idle    bool   // no object is looked at, and none need be selected
	// images is called with the reconciler of the run, before it is closed.
	images func(context.Context, *load.Input, *reconcile.Reconciler)
	named  bool // images that charts name are listed
}

// begin completes what the flags say by what the command line says else.
func (o *runOptions) begin(a *app, args []string) error {
	if err := o.complete(a); err != nil {
		return err
	}
	return o.read(a, args)
}

// read says what is read.
func (o *runOptions) read(a *app, args []string) (err error) {
	o.Load, err = a.loadOptions(&o.input, args, o.store.Dir)
	return err
}

// complete refuses values that no flag can refuse by itself, and fills in what follows from the flags.
func (o *runOptions) complete(a *app) error {
	o.Reconcile.Offline = o.Reconcile.Offline || o.Lock.From != nil
	o.Lock.Locked, o.Lock.Usual = o.Lock.Locked || o.Lock.From != nil, a.defaultLockFile()
	if err := cmp.Or(o.checkFetch(), o.report.check(!o.report.stdout), o.checkFlat(), o.checkImages(), o.checkUntrusted(), o.checkLocked(), o.input.checkShard(a), o.store.check(a)); err != nil {
		return err
	}
	o.Store = o.store.StoreOptions
	r := &o.Reconcile
	r.Ambient, r.Reach, r.Decisions, r.Online = o.ambient != ambientNone, o.reach(), a.console.Verbosity() > 1, a.onlineCommand()
	r.AdvertisedAddress, r.DigestAlgorithm = o.Store.Advertised, o.Store.Algorithm
	if dir := cacheDir(runtime.GOOS, a.env.Getenv); dir != "" {
		r.TrustCache = filepath.Join(dir, "sigstore")
	}
	return o.findCache(a)
}

// findCache says where the cache is.
func (o *runOptions) findCache(a *app) (err error) {
	o.Cache = o.cache.options(a, o.Reconcile.Refresh)
	if o.CacheDir = ""; o.cache.none || o.Lock.From != nil {
		return nil
	}
	if o.CacheDir, err = o.cache.directory(a.env.Getenv); o.CacheDir == "" && err == nil && o.Reconcile.Offline {
		a.console.Warn("there is no cache: neither HOME nor XDG_CACHE_HOME says where it is, and --cache-dir is not given")
	}
	return err
}

// deadline ends a run with its --timeout.
func (o *runOptions) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, o.Timeout, reconcile.Timeout("--timeout", o.Timeout))
}

func inputsOf(members []*session.Member) []*load.Input {
	var inputs []*load.Input
	for _, m := range members {
		inputs = append(inputs, m.In)
	}
	return inputs
}

// usageCode is the exit code of an error that ends a run before it begins.
func usageCode(err error) int {
	switch code := exit.CodeOf(err); {
	case reconcile.ClassOf(err) == reconcile.Integrity:
		return exit.Integrity
	case code != exit.Failed:
		return code
	}
	return exit.Usage
}

// runReconciliation reconciles what is selected in each cluster, and hands the results to print.
func (a *app) runReconciliation(ctx context.Context, o *runOptions, args []string, print func([]*reconcile.Result) error) (int, error) {
	a.worker.Purpose = session.Purpose{Chooses: o.Reconcile.Until == reconcile.Choose, Lists: o.Reconcile.List, Verifies: o.Reconcile.Verify, Edits: o.edits}
	if err := o.begin(a, args); err != nil {
		return exit.Usage, err
	}
	ctx, cancel := o.deadline(ctx)
	defer cancel()
	root, err := a.worker.Artifacts(&o.Store)
	if err != nil {
		return exit.Usage, err
	}
	defer root.Close()
	shared, err := a.worker.Open(ctx, &o.Options)
	if err != nil {
		return usageCode(err), err
	}
	defer shared.Close()
	members, closeAll, err := shared.Members(ctx, &a.worker, root)
	defer closeAll()
	if err != nil {
		return usageCode(err), err
	}
	if code, err := a.prepare(ctx, o, shared, members); err != nil {
		return code, err
	}
	code := exit.OK
	var results []*reconcile.Result
	var objects []report.Object
	for _, m := range members {
		a.console.In(m.In.Cluster)
		found, failed, err := a.reconcileMember(ctx, o, shared, m)
		if err != nil {
			return exit.Failed, err
		}
		code = exit.Worst(code, failed)
		results = append(results, found...)
		reported := a.worker.ReportObjects(m.In, found)
		o.describe(a, m.Store, found, reported)
		objects = append(objects, reported...)
	}
	a.console.In("")
	printed := print(results)
	a.console.Unite()
	run := a.newReport(objects)
	a.summarise(run)
	return a.conclude(ctx, o, a.outlined(&o.report, run, inputsOf(members), results), o.outputs(), code, printed)
}

// conclude writes the reports of a run, and returns its exit code. What was printed may have failed.
func (a *app) conclude(ctx context.Context, o *runOptions, run *report.Run, outputs []githubOutput, code int, printed error) (int, error) {
	if o.input.exitZero && code != exit.Interrupted && code != exit.Usage {
		code = exit.OK
	}
	code = a.report(ctx, &o.report, run, outputs, code)
	if printed != nil {
		return code, fmt.Errorf("stdout: %w", printed)
	}
	return code, nil
}

// prepare checks what the run is about, and finds out what each cluster needs. The code is that of an error.
func (a *app) prepare(ctx context.Context, o *runOptions, shared *session.Session, members []*session.Member) (int, error) {
	inputs := inputsOf(members)
	a.reportSkipped(inputs)
	a.worker.ReportFlux1(inputs...)
	if err := o.checkSelection(inputs); err != nil {
		return exit.Usage, err
	}
	if err := shared.Replace(members); err != nil {
		return exit.Worst(exit.Usage, session.CodeOf(&reconcile.Result{State: reconcile.Failed, Failure: status.AsFailure(err)})), err
	}
	for _, m := range members {
		a.console.In(m.In.Cluster)
		a.reportShard(m.In)
		if o.Reconcile.Until != reconcile.Choose {
			if err := session.Writable(m.Store); err != nil {
				return exit.Usage, err
			}
		}
		m.In.RenameStored(m.Store)
		var err error
		if m.Options.Locked, err = shared.Locked(ctx, m.In); err != nil {
			return exit.Usage, err
		}
	}
	return exit.OK, nil
}

// reconcileMember reconciles what is selected in a cluster, and returns the exit code of that.
func (a *app) reconcileMember(ctx context.Context, o *runOptions, shared *session.Session, m *session.Member) ([]*reconcile.Result, int, error) {
	if err := m.Store.Load(); err != nil {
		a.worker.ReportStorage(finding.OddStorage, fmt.Errorf("what was recorded of any %s is ignored: %w", strings.Join(bareKinds(reconcile.Kinds().WithoutArtifact()), ", "), err))
	}
	if o.Reconcile.Until == reconcile.Fetch {
		if err := m.In.BeginShard(m.Store); err != nil {
			return nil, exit.Failed, err
		}
	}
	results, forgotten := a.reconcile(ctx, shared, m, o)
	a.worker.ReportNotes(m.In)
	code := exit.Worst(m.In.Code, a.flatten(o, m.Store, results))
	for _, r := range results {
		r.Cluster = m.In.Cluster
		code = exit.Worst(code, session.CodeOf(r))
	}
	if forgotten == nil && o.Reconcile.Until == reconcile.Fetch {
		forgotten = m.In.EndShard(ctx, m.Store, results)
	}
	if forgotten != nil {
		a.worker.ReportStorage(finding.Storage, forgotten)
		code = exit.Worst(code, exit.Failed)
	}
	return results, code, nil
}

// checkSelection refuses a selection of nothing, where the run is about objects.
func (o *runOptions) checkSelection(inputs []*load.Input) error {
	if o.idle {
		return load.CheckSelectors(inputs[0].Selectors, inputs...)
	}
	return o.Load.CheckSelected(inputs)
}

// outputs are what a step of GitHub Actions wants to know besides what was found.
func (o *runOptions) outputs() []githubOutput {
	if o.Reconcile.Until == reconcile.Choose {
		return nil
	}
	dir, err := filepath.Abs(o.Store.Dir)
	if err != nil {
		dir = o.Store.Dir
	}
	return []githubOutput{{"artifacts-path", dir}}
}

func (a *app) reconcile(ctx context.Context, shared *session.Session, m *session.Member, run *runOptions) ([]*reconcile.Result, error) {
	choose := func() []*admission.Admitted { return a.worker.WithoutHome(m.In, a.worker.Targets(m.In), m.Options) }
	if run.idle {
		choose = func() []*admission.Admitted { return nil }
	}
	return a.worker.Reconcile(ctx, shared, m.In, choose, m.Store, m.Options, run.images)
}

// summarise prints the last line: what became of how many objects.
func (a *app) summarise(run *report.Run) {
	if a.worker.Purpose.Edits {
		return
	}
	resolved := "resolved"
	if a.worker.Purpose.Lists {
		resolved = "read"
	}
	var parts []string
	for _, p := range []struct {
		count  int
		word   string
		always bool
	}{
		{run.Ready, "ready", !a.worker.Purpose.Chooses},
		{run.Verified, "verified", a.worker.Purpose.Verifies},
		{run.Resolved, resolved, a.worker.Purpose.Chooses && !a.worker.Purpose.Verifies},
		{run.Failed, "failed", true},
		{run.Blocked, "blocked", false},
		{run.Skipped, "skipped", true},
		{run.Interrupted(), "not finished", false},
		{a.worker.Unreadable, "unreadable", false},
	} {
		if p.count > 0 || p.always {
			parts = append(parts, fmt.Sprintf("%d %s", p.count, p.word))
		}
	}
	a.sum(strings.Join(parts, ", "))
}

// sum prints the last line of a run, with the time that it took.
func (a *app) sum(text string) {
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
