// Package locking resolves the objects of manifests, and writes, checks or verifies their lock file.
package locking

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

// Options select the operation on the lock file. At most one is set. Without any, fitting entries are kept, and the rest is resolved.
type Options struct {
	Update bool // all objects, or those that the selectors name, are resolved again
	Check  bool // no request is sent, and no file is written
	Verify bool // servers must still have the locked artifacts, and no file is written
}

// A Locking is one run of lock over all clusters.
type Locking struct {
	w    *session.Worker
	s    *session.Options
	o    Options
	path string
	lock *session.Lock // the lock as it was read

	selectors []load.Selector // the objects of an update, or of the run
	put       *lock.Lock      // the resolved and the kept entries, with their current files
	present   map[lock.Key]bool
	clusters  map[string]bool
	followed  map[*load.Input]*session.Following // the sources that are fetched before rendering
	shared    *session.Session

	kept, resolved, failed int
	unreadable             bool

	Code    int             // the code of objects that could not be resolved, or do not fit
	Objects []report.Object // the objects for reports
	Summary string          // the summary of the run
	Changed bool            // the content of the file has changed
}

// Run runs the operation of the options on the lock file of a session, for all clusters of its input. Failures of
// objects are reported, and part of the result; an error ends the whole run.
func Run(ctx context.Context, w *session.Worker, s *session.Options, o Options) (*Locking, error) {
	l := &Locking{
		w: w, s: s, o: o, path: s.Lock.Path(), put: lock.New(),
		present: map[lock.Key]bool{}, clusters: map[string]bool{}, followed: map[*load.Input]*session.Following{},
	}
	if err := l.open(); err != nil {
		return nil, err
	}
	var err error
	if l.shared, err = w.Open(ctx, s); err != nil {
		return nil, err
	}
	defer l.shared.Close()
	inputs, err := l.read(ctx)
	if err == nil {
		err = l.choose(inputs)
	}
	if err == nil {
		err = w.Each(inputs, func(in *load.Input) error { return l.cluster(ctx, in) })
	}
	if err != nil {
		return nil, err
	}
	w.Console.Unite()
	if err := l.finish(ctx); err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	return l, nil
}

// open reads the lock, and checks early whether it can be written.
func (l *Locking) open() error {
	var err error
	l.lock, err = session.ReadLock(l.path, reconcile.LockedFirst)
	if errors.Is(err, fs.ErrNotExist) && !l.o.Verify {
		l.lock, err = &session.Lock{Lock: lock.New(), Path: l.path, Mode: reconcile.LockedFirst}, nil
	}
	if err != nil || l.o.Check || l.o.Verify {
		return err
	}
	if err := lockfile.Check(l.path); err != nil {
		return &exit.UsageError{Err: err}
	}
	return nil
}

// choose reads the selectors of the arguments. With --update they select the objects to resolve again, else those of the run.
func (l *Locking) choose(inputs []*load.Input) error {
	o := l.s.Load
	l.selectors = inputs[0].Selectors
	if err := load.CheckSelectors(inputs); err != nil {
		return err
	}
	wanted := o.AllowEmpty
	for _, in := range inputs {
		if l.o.Update {
			in.Selectors = nil
		}
		wanted = wanted || slices.ContainsFunc(in.Inventory.Objects(), in.Wanted)
	}
	if !wanted {
		return inputs[0].NothingSelected()
	}
	return nil
}

// cluster resolves, checks or verifies the objects of one cluster.
func (l *Locking) cluster(ctx context.Context, in *load.Input) error {
	l.Code = exit.Worst(l.Code, in.Code)
	l.unreadable = l.unreadable || in.Code == exit.Usage
	locked := l.lock.Of(in)
	l.clusters[locked.Cluster] = true
	for _, obj := range in.Inventory.Objects() {
		l.present[lock.Key{Cluster: locked.Cluster, Object: obj.Kind + "/" + obj.Namespace + "/" + obj.Name}] = true
	}
	targets, err := l.w.Targets(ctx, in)
	if err != nil {
		return fmt.Errorf("the run is not complete: %w", err)
	}
	targets = l.w.WithoutHome(in, targets, l.shared.Options())
	l.Code = exit.Worst(l.Code, in.Code)
	if l.o.Update {
		locked.Again = l.again(in, targets)
	}
	var run []*admission.Admitted
	for _, adm := range targets {
		j, ok := locked.Judge(in.Inventory, adm)
		if ok && j.Entry != nil {
			l.present[j.Entry.Key()] = true
		}
		switch {
		case !ok:
		case in.Required[inventory.KeyOf(adm.Object)]: // the source could not be fetched, and its content is not known
			l.unreadable = true
			run = append(run, adm)
		case l.o.Check:
			l.judge(j)
		case l.o.Verify || !j.Fits():
			run = append(run, adm)
		default:
			l.keep(in, j, locked)
		}
	}
	if len(run) == 0 {
		return nil
	}
	if l.o.Verify {
		locked.Mode = reconcile.LockedAsked
	}
	return l.run(ctx, in, locked, run)
}

// again returns a filter for the objects to resolve again: all, or those that the arguments name with their sources.
func (l *Locking) again(in *load.Input, targets []*admission.Admitted) func(store.Key) bool {
	if len(l.selectors) == 0 {
		return func(store.Key) bool { return true }
	}
	var selected []*manifest.Object
	for _, adm := range targets {
		if slices.ContainsFunc(l.selectors, func(s load.Selector) bool { return s.Matches(adm.Object) }) {
			selected = append(selected, adm.Object)
		}
	}
	named := map[store.Key]bool{}
	for _, adm := range in.WithSources(selected...) {
		named[inventory.KeyOf(adm.Object)] = true
	}
	return func(key store.Key) bool { return named[key] }
}

// judge reports the fields in which an entry does not fit.
func (l *Locking) judge(j *reconcile.Judgement) {
	o := session.NewReportObject(j.Object.Object)
	o.State = report.StateResolved
	err := j.Err()
	if err == nil {
		l.kept++
	} else {
		l.failed++
		f := j.Finding(err)
		o.State, o.Message = report.StateFailed, f.Message
		l.w.Console.ReportAs(f, console.Presentation{At: console.ObjectSubject(j.Object.Object)})
		l.Code = exit.Worst(l.Code, session.CodeOf(&reconcile.Result{State: reconcile.Failed, Failure: j.Failure(err)}))
	}
	l.Objects = append(l.Objects, o)
}

// keep keeps an entry. Only its file may change.
func (l *Locking) keep(in *load.Input, j *reconcile.Judgement, locked *reconcile.Locked) {
	l.kept++
	o := session.NewReportObject(j.Object.Object)
	o.State, o.Version, o.Digest = report.StateResolved, j.Entry.Version, j.Entry.Digest
	l.Objects = append(l.Objects, o)
	e := *j.Entry
	if e.Cluster == locked.Cluster {
		e.File = l.fileOf(in, j.Object.Object)
		l.put.Put(e)
	}
}

func (l *Locking) fileOf(in *load.Input, obj *manifest.Object) string {
	for obj.Origin != nil {
		obj = obj.Origin
	}
	if obj.Pos.File == "" || obj.Pos.File == "-" || l.followed[in].Has(obj.Pos.File) {
		return strings.TrimPrefix(obj.Pos.File, "-")
	}
	return session.FromLock(l.path, filepath.FromSlash(obj.Pos.File))
}

// run resolves objects, in a directory that is removed at the end of the run.
func (l *Locking) run(ctx context.Context, in *load.Input, locked *reconcile.Locked, run []*admission.Admitted) error {
	options := l.shared.Options()
	options.Locked = locked
	var st *store.Store
	if f := l.followed[in]; f == nil {
		var err error
		if st, err = l.shared.Temporary(); err != nil {
			return err
		}
	} else { // the artifacts that were fetched before rendering are locked
		st = f.Store
		if !l.o.Verify {
			options.Finished = f.Finished
		}
	}
	results, err := l.w.Reconcile(ctx, l.shared, in, func() []*admission.Admitted { return run }, st, options, nil)
	if err != nil {
		return fmt.Errorf("cannot write to the temporary directory: %w", err)
	}
	for _, result := range results {
		l.take(in, locked, result)
	}
	return nil
}

// take records the result of an object.
func (l *Locking) take(in *load.Input, locked *reconcile.Locked, result *reconcile.Result) {
	obj := result.Object.Object
	l.Objects = append(l.Objects, l.w.ResultObject(result))
	if code := session.CodeOf(result); code != exit.OK {
		l.failed++
		l.Code = exit.Worst(l.Code, code)
		return
	}
	e, err := locked.Entry(in.Inventory, result)
	switch {
	case err != nil:
		l.failed++
		l.Code = exit.Worst(l.Code, exit.Failed)
		l.w.Console.ReportAs(validate.At(obj, finding.CodeOf(err), err.Error(), finding.Hints(err)), console.Presentation{At: console.ObjectSubject(obj)})
	case l.o.Verify:
		l.kept++
	case e != nil:
		e.Cluster, e.File = locked.Cluster, l.fileOf(in, obj)
		l.resolved++
		l.put.Put(*e)
	}
}

// finish writes the lock, or reports the entries that are gone from the manifests, and sets the summary.
func (l *Locking) finish(ctx context.Context) error {
	gone := l.gone()
	switch {
	case l.o.Check:
		for _, e := range gone {
			l.failed++
			l.Code = exit.Worst(l.Code, exit.Drift)
			text := fmt.Sprintf("%s: the entry of %s is for an object that no longer exists", l.name(), e.Key())
			l.w.Console.ReportAs(validate.New(nil, finding.NotLocked, text, "'helmsrc lock' with the same input removes it", manifest.Excerpt{}), console.Presentation{})
		}
		l.Summary = fmt.Sprintf("%d locked, %d out of date", l.kept, l.failed)
		return nil
	case l.o.Verify:
		l.Summary = fmt.Sprintf("%d as locked, %d not", l.kept, l.failed)
		return nil
	case l.Code == exit.Interrupted || ctx.Err() != nil:
		l.Summary = "nothing was written: " + context.Cause(ctx).Error()
		return nil
	case l.failed > 0 && l.kept+l.resolved == 0:
		l.Summary = fmt.Sprintf("%s: nothing was written: %d failed", l.name(), l.failed)
		return nil
	}
	var err error
	l.Changed, err = lockfile.Change(context.WithoutCancel(ctx), l.path, func(now *lock.Lock) {
		for _, e := range gone {
			now.Drop(func(other *lock.Entry) bool { return other.Key() == e.Key() })
		}
		for _, e := range l.put.Entries() {
			now.Put(*e)
		}
	})
	l.Summary = fmt.Sprintf("%s: %d kept, %d resolved, %d dropped, %d failed", l.name(), l.kept, l.resolved, len(gone), l.failed)
	return err
}

// name returns the path of the lock file for messages.
func (l *Locking) name() string { return filepath.ToSlash(l.path) }
