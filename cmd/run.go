package cmd

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/listing"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/overview"
	"github.com/helmsrc/helmsrc/internal/publish"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

// runOptions are the flags of the commands that reconcile.
type runOptions struct {
	session.Options
	session.Batch
	input   inputOptions
	output  formatFlag
	events  bool // events are printed, too
	store   storeOptions
	cache   cacheOptions
	ambient config.Ambient
	report  reportOptions
	flat    string // the directory of plain files
	edits   bool   // manifests are edited
	// asksNothing is a flag of the command that makes it offline, as --offline does, "" if it has no such flag.
	asksNothing string
}

// begin completes the options from the flags, and parses the arguments.
func (o *runOptions) begin(a *app, args []string) error {
	if err := o.complete(a); err != nil {
		return err
	}
	return o.read(a, args)
}

// read parses the arguments, and sets which files and objects are read.
func (o *runOptions) read(a *app, args []string) (err error) {
	o.Load, err = a.loadOptions(&o.input, args, o.store.Dir)
	return err
}

// complete validates the values that no flag type validates, and sets the options that follow from flags.
func (o *runOptions) complete(a *app) error {
	o.Reconcile.Offline = o.Reconcile.Offline || o.Lock.From != nil
	o.Lock.Locked, o.Lock.Usual = o.Lock.Locked || o.Lock.From != nil, a.config.Beside(lock.FileName)
	if err := cmp.Or(o.checkFetch(), o.report.check(!o.report.stdout), o.checkFlat(), o.checkUntrusted(), o.checkLocked(), o.input.checkShard(a), o.store.check(a)); err != nil {
		return err
	}
	o.Store = o.store.StoreOptions
	r := &o.Reconcile
	r.Ambient, r.Reach, r.Decisions, r.Online = o.ambient != config.AmbientNone, o.reach(), a.console.Verbosity() > 1, o.onlineCommand(a)
	r.AdvertisedAddress, r.DigestAlgorithm = o.Store.Advertised, o.Store.Algorithm
	if dir := cacheDir(runtime.GOOS, a.env.Getenv); dir != "" {
		r.TrustCache = filepath.Join(dir, "sigstore")
	}
	return o.findCache(a)
}

// findCache sets the directory and the options of the cache.
func (o *runOptions) findCache(a *app) (err error) {
	o.Cache = o.cache.options(a, o.Reconcile.Refresh)
	if o.CacheDir = ""; o.cache.none || o.Lock.From != nil {
		return nil
	}
	if o.CacheDir, err = o.cache.directory(a.env.Getenv); o.CacheDir == "" && err == nil && o.Reconcile.Offline {
		a.console.Warn("no cache is used: HOME, XDG_CACHE_HOME and --cache-dir are not set")
	}
	return err
}

// deadline returns a context that ends with the run's --timeout.
func (o *runOptions) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, o.Timeout, fetch.NewTimeout("--timeout", o.Timeout))
}

// runReconciliation reconciles the selected objects of each cluster, and passes the results to print.
func (a *app) runReconciliation(ctx context.Context, o *runOptions, args []string, print func([]*reconcile.Result) error) (int, error) {
	a.worker.Purpose = session.Purpose{Chooses: o.Reconcile.Until == reconcile.Choose, Lists: o.Reconcile.List, Verifies: o.Reconcile.Verify, Edits: o.edits}
	if err := o.begin(a, args); err != nil {
		return exit.Usage, err
	}
	ctx, cancel := o.deadline(ctx)
	defer cancel()
	if some, err := a.worker.Since(ctx, o.Load, o.input.since); err != nil {
		return exit.CodeOf(err), err
	} else if !some {
		return exit.OK, nil
	}
	batch := o.Batch
	batch.Found = func(m *session.Member, results []*reconcile.Result, objects []report.Object) int {
		o.bill(a, m.Store).Describe(results, objects)
		return a.flatten(o, m.Store, results)
	}
	all, code, err := a.worker.ReconcileAll(ctx, &o.Options, batch)
	if err != nil {
		return code, err
	}
	defer all.Close()
	printed := print(all.Results)
	a.console.Unite()
	run := a.worker.Report(all.Objects)
	if !a.worker.Purpose.Edits {
		a.sum(a.worker.Summary(run))
	}
	return a.conclude(ctx, o, a.outlined(&o.report, run, all.Inputs, all.Results), o.outputs(), code, printed)
}

// bill returns the writer of components for bills of materials, with artifacts of st. It is nil if no bill is written.
func (o *runOptions) bill(a *app, st *store.Store) *listing.Bill {
	if !o.report.Bills() {
		return nil
	}
	if o.Reconcile.Until != reconcile.Fetch {
		st = nil
	}
	return &listing.Bill{Lister: a.lister, Images: o.report.images, Store: st}
}

// conclude writes the reports of a run, and returns its exit code, and the error of an earlier print to stdout, if any.
func (a *app) conclude(ctx context.Context, o *runOptions, run *report.Run, outputs []publish.Output, code int, printed error) (int, error) {
	code = a.report(ctx, &o.report, run, outputs, o.input.forgiven(code))
	if printed != nil {
		return code, fmt.Errorf("stdout: %w", printed)
	}
	return code, nil
}

// outputs returns the outputs of a step of GitHub Actions, besides those of the findings.
func (o *runOptions) outputs() []publish.Output {
	if o.Reconcile.Until == reconcile.Choose {
		return nil
	}
	dir, err := filepath.Abs(o.Store.Dir)
	if err != nil {
		dir = o.Store.Dir
	}
	return []publish.Output{{Name: "artifacts-path", Value: dir}}
}

// sum prints the last line of a run, with its duration.
func (a *app) sum(text string) {
	elapsed := a.env.Now().Sub(a.started).Round(100 * time.Millisecond)
	a.console.Info(console.Subject{}, fmt.Sprintf("%s in %.1fs", text, elapsed.Seconds()))
}

// printDocuments returns a function that prints the documents, in the order of the results.
func (a *app) printDocuments(format string, events bool) func([]*reconcile.Result) error {
	return func(results []*reconcile.Result) error {
		var rows overview.Table
		shown := status.Format(format)
		if format == tableFormat {
			shown = status.Wide // for events
		}
		encoder, err := status.NewEncoder(a.env.Stdout, shown, a.now())
		if err != nil {
			return err
		}
		for _, r := range results {
			r, err := r.Whole()
			if err != nil {
				return err
			}
			r.Object.Object.Secrets = a.console.Secrets() // a recorded object has no Secrets yet
			doc, err := r.Document()
			if err != nil {
				return err
			}
			if format == tableFormat {
				row := a.worker.ResultObject(r)
				a.worker.Conceal(&row)
				rows.Add(doc, row)
			} else if err := encoder.Encode(doc); err != nil {
				return err
			}
			if !events {
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

// concealedTexts copies the texts of an event, without values of Secrets, which may be part of an artifact's revision.
func concealedTexts(obj *manifest.Object, texts map[string]string) map[string]string {
	if texts == nil {
		return nil
	}
	shown := make(map[string]string, len(texts))
	for name, text := range texts {
		shown[name] = obj.Secrets.Text(obj.Veil(text))
	}
	return shown
}

// onlineCommand returns the command line of this run without --offline and with the cache, for messages.
func (o *runOptions) onlineCommand(a *app) string {
	command := []string{a.env.Program}
	if a.env.Program == "" {
		command[0] = "helmsrc"
	}
	given := false
	for _, arg := range a.env.Args {
		if arg == "--offline" || strings.HasPrefix(arg, "--offline=") || o.asksNothing != "" && arg == "--"+o.asksNothing {
			given = true
			continue
		}
		if arg == "--no-cache" {
			continue
		}
		command = append(command, quoted(arg))
	}
	if !given { // the environment or a file sets it
		command = slices.Insert(command, min(2, len(command)), "--offline=false")
	}
	return strings.Join(command, " ")
}
