package cmd

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
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
	events  bool // are printed, too
	store   storeOptions
	cache   cacheOptions
	ambient config.Ambient
	report  reportOptions
	flat    string // the directory of plain files
	edits   bool   // manifests
	// asksNothing is a flag of the command that has it ask no server, as --offline does, "" for none.
	asksNothing string
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
	return context.WithTimeoutCause(ctx, o.Timeout, fetch.NewTimeout("--timeout", o.Timeout))
}

// runReconciliation reconciles what is selected in each cluster, and hands the results to print.
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

// bill makes the components of bills of materials, with what is in a store. It is nil if none are wanted.
func (o *runOptions) bill(a *app, st *store.Store) *listing.Bill {
	if !o.report.Bills() {
		return nil
	}
	if o.Reconcile.Until != reconcile.Fetch {
		st = nil
	}
	return &listing.Bill{Lister: a.lister, Images: o.report.images, Store: st}
}

// conclude writes the reports of a run, and returns its exit code. What was printed may have failed.
func (a *app) conclude(ctx context.Context, o *runOptions, run *report.Run, outputs []publish.Output, code int, printed error) (int, error) {
	code = a.report(ctx, &o.report, run, outputs, o.input.forgiven(code))
	if printed != nil {
		return code, fmt.Errorf("stdout: %w", printed)
	}
	return code, nil
}

// outputs are what a step of GitHub Actions wants to know besides what was found.
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

// sum prints the last line of a run, with the time that it took.
func (a *app) sum(text string) {
	elapsed := a.env.Now().Sub(a.started).Round(100 * time.Millisecond)
	a.console.Info(console.Subject{}, fmt.Sprintf("%s in %.1fs", text, elapsed.Seconds()))
}

// printDocuments writes the documents in the order of the results.
func (a *app) printDocuments(format string, events bool) func([]*reconcile.Result) error {
	return func(results []*reconcile.Result) error {
		var rows overview.Table
		shown := status.Format(format)
		if format == tableFormat {
			shown = status.Wide // of events
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
			r.Object.Object.Secrets = a.console.Secrets() // one that is remembered knows of none
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

// tableFormat has a row of each release.
const tableFormat = "table"

// concealedTexts copies what an event says about an artifact: its revision may be made of a Secret's value.
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
