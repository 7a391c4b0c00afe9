package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/lockfile"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// locking is one run of lock over all clusters.
type locking struct {
	app  *app
	o    *lockCommandOptions
	path string
	lock *lock.Lock // as it was read

	selectors []load.Selector // of --update, or of what the run is about
	put       *lock.Lock      // what is resolved now, and what was kept and stands in another file now
	present   map[lock.Key]bool
	clusters  map[string]bool
	objects   []report.Object
	followed  map[*load.Input]*session.Following // with --follow-sources
	shared    *session.Session

	kept, resolved, failed int
	unreadable             bool
	code                   int
}

func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func (r *locking) close() {
	r.shared.Close()
}

// choose finds out what the arguments name. With --update that is what is resolved anew, else what the run is about.
func (r *locking) choose(inputs []*load.Input) error {
	o := r.o.run.Load
	r.selectors = inputs[0].Selectors
	r.present, r.clusters = map[lock.Key]bool{}, map[string]bool{}
	if err := load.CheckSelectors(r.selectors, inputs...); err != nil {
		return err
	}
	wanted := o.AllowEmpty
	for _, in := range inputs {
		if r.o.update {
			in.Selectors = nil
		}
		wanted = wanted || slices.ContainsFunc(in.Inventory.Objects(), in.Wanted)
	}
	if !wanted {
		return inputs[0].NothingSelected()
	}
	return nil
}

// cluster does what is asked for with one cluster.
func (r *locking) cluster(ctx context.Context, in *load.Input) error {
	r.code = exit.Worst(r.code, in.Code)
	r.unreadable = r.unreadable || in.Code == exit.Usage
	locked := &reconcile.Locked{Lock: r.lock, File: filepath.ToSlash(r.path), Cluster: session.LockedCluster(in, r.path, r.lock), Mode: reconcile.LockedFirst}
	r.clusters[locked.Cluster] = true
	for _, obj := range in.Inventory.Objects() {
		r.present[lock.Key{Cluster: locked.Cluster, Object: obj.Kind + "/" + obj.Namespace + "/" + obj.Name}] = true
	}
	targets := r.app.worker.WithoutHome(in, r.app.worker.Targets(in), r.shared.Options())
	r.code = exit.Worst(r.code, in.Code)
	if r.o.update {
		locked.Anew = r.anew(in, targets)
	}
	var run []*admission.Admitted
	for _, adm := range targets {
		j, ok := locked.Judge(in.Inventory, adm)
		if ok && j.Entry != nil {
			r.present[j.Entry.Key()] = true
		}
		switch {
		case !ok:
		case in.Brought[inventory.KeyOf(adm.Object)]: // it could not be fetched, and what is in it is not known
			r.unreadable = true
			run = append(run, adm)
		case r.o.check:
			r.judge(j)
		case r.o.verify || !j.Fits():
			run = append(run, adm)
		default:
			r.keep(in, j, locked)
		}
	}
	if len(run) == 0 {
		return nil
	}
	if r.o.verify {
		locked.Mode = reconcile.LockedAsked
	}
	return r.run(ctx, in, locked, run)
}

// anew reports which objects are resolved anew: all, or those that the arguments name with what they come from.
func (r *locking) anew(in *load.Input, targets []*admission.Admitted) func(store.Key) bool {
	if len(r.selectors) == 0 {
		return func(store.Key) bool { return true }
	}
	named := map[store.Key]bool{}
	add := func(adm *admission.Admitted) {
		named[store.NewKey(adm.Object.Kind, adm.Object.Namespace, adm.Object.Name)] = true
	}
	for _, adm := range targets {
		if !slices.ContainsFunc(r.selectors, func(s load.Selector) bool { return s.Matches(adm.Object) }) {
			continue
		}
		add(adm)
		for _, source := range in.SourcesOf(adm, func(*inventory.RejectedError) {}) {
			add(source)
		}
	}
	return func(key store.Key) bool { return named[key] }
}

// judge reports in which fields an entry does not fit.
func (r *locking) judge(j *reconcile.Judgement) {
	o := session.NewReportObject(j.Object.Object)
	o.State = report.StateResolved
	err := j.Err()
	if err == nil {
		r.kept++
	} else {
		r.failed++
		f := j.Finding(err)
		o.State, o.Message = report.StateFailed, f.Message
		r.app.console.ReportAs(f, console.Presentation{At: console.ObjectSubject(j.Object.Object)})
		r.code = exit.Worst(r.code, session.CodeOf(&reconcile.Result{State: reconcile.Failed, Failure: j.Failure(err)}))
	}
	r.objects = append(r.objects, o)
}

// keep keeps an entry. Only its place may be another one.
func (r *locking) keep(in *load.Input, j *reconcile.Judgement, l *reconcile.Locked) {
	r.kept++
	o := session.NewReportObject(j.Object.Object)
	o.State, o.Version, o.Digest = report.StateResolved, j.Entry.Version, j.Entry.Digest
	r.objects = append(r.objects, o)
	e := *j.Entry
	if e.Cluster == l.Cluster {
		e.File = r.fileOf(in, j.Object.Object)
		r.put.Put(e)
	}
}

func (r *locking) fileOf(in *load.Input, obj *manifest.Object) string {
	for obj.Origin != nil {
		obj = obj.Origin
	}
	if obj.Pos.File == "" || obj.Pos.File == "-" || r.followed[in].Has(obj.Pos.File) {
		return strings.TrimPrefix(obj.Pos.File, "-")
	}
	return session.FromLock(r.path, filepath.FromSlash(obj.Pos.File))
}

// run resolves objects, in a directory that goes when the run ends.
func (r *locking) run(ctx context.Context, in *load.Input, locked *reconcile.Locked, run []*admission.Admitted) error {
	options := r.shared.Options()
	options.Locked = locked
	var st *store.Store
	if f := r.followed[in]; f == nil {
		var err error
		if st, err = r.shared.Temporary(); err != nil {
			return err
		}
	} else { // what was fetched before rendering is what is locked
		st = f.Store
		if !r.o.verify {
			options.Finished = f.Finished
		}
	}
	results, err := r.app.worker.Reconcile(ctx, r.shared, in, func() []*admission.Admitted { return run }, st, options, nil)
	if err != nil {
		return fmt.Errorf("cannot write to the temporary directory: %w", err)
	}
	for _, result := range results {
		r.take(in, locked, result)
	}
	return nil
}

// take takes up what an object was resolved to.
func (r *locking) take(in *load.Input, locked *reconcile.Locked, result *reconcile.Result) {
	obj := result.Object.Object
	r.objects = append(r.objects, r.app.worker.ResultObject(result))
	if code := session.CodeOf(result); code != exit.OK {
		r.failed++
		r.code = exit.Worst(r.code, code)
		return
	}
	e, err := locked.Entry(in.Inventory, result)
	switch {
	case err != nil:
		r.failed++
		r.code = exit.Worst(r.code, exit.Failed)
		r.app.console.ReportAs(validate.At(obj, finding.CodeOf(err), err.Error(), finding.Hints(err)), console.Presentation{At: console.ObjectSubject(obj)})
	case r.o.verify:
		r.kept++
	case e != nil:
		e.Cluster, e.File = locked.Cluster, r.fileOf(in, obj)
		r.resolved++
		r.put.Put(*e)
	}
}

// finish writes the lock, or says what of it is gone from the manifests, and sums up.
func (r *locking) finish(ctx context.Context) (string, error) {
	gone := r.gone()
	switch {
	case r.o.check:
		for _, e := range gone {
			r.failed++
			r.code = exit.Worst(r.code, exit.Drift)
			text := fmt.Sprintf("%s: the entry of %s is of no object any more", r.name(), e.Key())
			r.app.console.ReportAs(validate.New(nil, finding.NotLocked, text, "'helmsrc lock' with the same input drops it", manifest.Excerpt{}), console.Presentation{})
		}
		return fmt.Sprintf("%d locked, %d not", r.kept, r.failed), nil
	case r.o.verify:
		return fmt.Sprintf("%d as locked, %d not", r.kept, r.failed), nil
	case r.code == exit.Interrupted || ctx.Err() != nil:
		return "nothing was written: " + context.Cause(ctx).Error(), nil
	}
	if r.failed > 0 && r.kept+r.resolved == 0 {
		return fmt.Sprintf("%s: nothing was written: %d failed", r.name(), r.failed), nil
	}
	_, err := lockfile.Change(context.WithoutCancel(ctx), r.path, func(l *lock.Lock) {
		for _, e := range gone {
			l.Drop(func(other *lock.Entry) bool { return other.Key() == e.Key() })
		}
		for _, e := range r.put.Entries() {
			l.Put(*e)
		}
	})
	return fmt.Sprintf("%s: %d kept, %d resolved, %d dropped, %d failed", r.name(), r.kept, r.resolved, len(gone), r.failed), err
}

// gone are the entries whose object is in none of the files of the input any more. An input of which something cannot be
// read, or of which arguments name a part, says nothing about others.
func (r *locking) gone() []*lock.Entry {
	if r.unreadable || len(r.selectors) > 0 && !r.o.update {
		return nil
	}
	o := r.o.run.Load
	named := slices.Concat(o.Names, o.Offered)
	var gone []*lock.Entry
	for _, e := range r.lock.Entries() {
		namespace := strings.Split(e.Object, "/")[1]
		if !r.present[e.Key()] && (o.Namespace == "" || o.Namespace == namespace) && r.covers(named, e.File) && r.lookedAt(named, e.Cluster) {
			gone = append(gone, e)
		}
	}
	return gone
}

// lookedAt reports whether a cluster is one of the input, or would be if it was there.
func (r *locking) lookedAt(named []string, cluster string) bool {
	if cluster == "" || r.clusters[cluster] {
		return true
	}
	return len(r.o.run.input.Clusters) == 0 && r.covers(named, cluster+"/"+manifestsOf)
}

// manifestsOf stands for the files in the directory of a cluster.
const manifestsOf = "kustomization.yaml"

// fetched reports whether a file is one of a source that was fetched for a cluster.
func (r *locking) fetched(file string) bool {
	for _, f := range r.followed {
		if f.Has(file) {
			return true
		}
	}
	return false
}

// covers reports whether a file is one of the input, or would be if it was there.
func (r *locking) covers(named []string, manifest string) bool {
	if manifest == "" || inFetched(manifest) {
		return r.fetched(manifest)
	}
	return slices.ContainsFunc(named, func(name string) bool {
		at := session.FromLock(r.path, name)
		switch {
		case at == manifest:
			return true
		case at == "" || !file.IsDir(name):
			return false
		}
		rel, err := filepath.Rel(filepath.FromSlash(at), filepath.FromSlash(manifest))
		return err == nil && filepath.IsLocal(rel) && (r.o.run.input.Recursive || filepath.Dir(rel) == ".")
	})
}
