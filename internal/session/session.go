// Package session opens the resources that the runs of one command share: the cache, connections, artifacts directories, and
// temporary directories. A Worker reconciles with a session, and reports the progress. It knows no flags.
package session

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/bundle"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
)

// A Session holds the resources that the runs of a command share. Close ends it. One goroutine at a time may use it.
type Session struct {
	o           *Options
	edges       reconcile.Edges
	w           *Worker
	lock        *Lock
	carried     *lock.Lock // the lock of a bundle
	connections *reconcile.Connections
	temp        store.Scratch
	stores      int
	closers     []func() error
}

// Open returns a session. It reads only the trusted keys and a bundle; all other resources are opened on first use. The
// options must not change afterwards.
func (w *Worker) Open(ctx context.Context, o *Options) (*Session, error) {
	s := &Session{o: o, w: w, edges: w.Edges}
	o.Reconcile.From = o.Lock.Bundle()
	if o.Reconcile.Reach == auth.ReachNowhere {
		s.edges.Dial = auth.PublicDial(s.edges.Dial, s.edges.Getenv)
		s.edges.Getenv = withoutPrivateProxies(s.edges.Getenv)
	}
	err := o.Trust.read(ctx, &o.Reconcile)
	if err == nil && o.Lock.From != nil {
		err = s.openBundle(ctx)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// openBundle makes a bundle the only source of charts.
func (s *Session) openBundle(ctx context.Context) error {
	dir, err := s.Dir()
	if err != nil {
		return err
	}
	c, err := cache.Open(filepath.Join(dir, "carried"), cache.Options{Carried: true, MaxSize: math.MaxInt64, Now: s.edges.Now})
	if err != nil {
		return err
	}
	s.o.CacheDir, s.o.Reconcile.Cache = "", c
	s.closers = append(s.closers, c.Close)
	text, err := bundle.Read(ctx, s.o.Lock.From, c)
	if err == nil {
		s.carried, err = lock.Read(text)
	}
	if err != nil {
		return NotFrom(err)
	}
	return nil
}

// NotFrom returns the error of an unreadable bundle.
func NotFrom(err error) error {
	if reconcile.ClassOf(err) == reconcile.Integrity {
		return &exit.OptionError{Option: "from", Err: err}
	}
	return &exit.UsageError{Option: "from", Err: err}
}

// warn reports an error that does not change a result.
func (s *Session) warn(err error) {
	s.w.Console.Warn(err.Error())
	for _, hint := range finding.Hints(err) {
		s.w.Console.Hint(console.Subject{}, hint)
	}
}

// debug reports an error while resources are closed.
func (s *Session) debug(err error) { s.w.Console.Debug(console.Subject{}, err.Error()) }

// connect opens the cache and the connections, once. If the cache cannot be opened, it warns and continues without it.
func (s *Session) connect() {
	if s.connections != nil {
		return
	}
	if s.o.CacheDir != "" {
		kept, err := cache.Open(s.o.CacheDir, s.o.Cache)
		if err != nil {
			s.warn(err)
		} else {
			s.o.Reconcile.Cache = kept
			s.closers = append(s.closers, func() error {
				if err := kept.Close(); err != nil {
					return fmt.Errorf("cache: %w", err)
				}
				return nil
			})
		}
	}
	s.connections = reconcile.Connect(s.edges, s.o.Reconcile)
	s.closers = append(s.closers, s.connections.Close)
}

// Close closes all resources of the session.
func (s *Session) Close() {
	if s == nil {
		return
	}
	for _, end := range slices.Backward(append([]func() error{s.temp.Close}, s.closers...)) {
		if err := end(); err != nil {
			s.debug(err)
		}
	}
	s.closers = nil
}

// Registry opens a repository of a registry for writing, with the login of the user, and over HTTP if plain is set.
func (s *Session) Registry(url string, plain bool) (*oci.Namespace, error) {
	s.connect()
	return s.connections.Registry(url, plain, s.o.Reconcile)
}

// Options returns the options for a run without choices of its own.
func (s *Session) Options() reconcile.Options { return s.o.Reconcile }

// Dir returns a directory that is removed when the session ends.
func (s *Session) Dir() (string, error) { return s.temp.Dir() }

// Temporary opens an artifacts directory that is removed when the session ends.
func (s *Session) Temporary() (*store.Store, error) {
	dir, err := s.Dir()
	if err != nil {
		return nil, err
	}
	s.stores++
	st, err := s.w.openStore(filepath.Join(dir, "artifacts"+strconv.Itoa(s.stores)), store.Options{RetentionRecords: 2})
	if err != nil {
		return nil, fmt.Errorf("cannot write to the temporary directory: %w", err)
	}
	s.closers = append(s.closers, st.Close)
	return st, nil
}

// A Run is the reconciliation of objects of one cluster.
type Run struct {
	Inventory *inventory.Inventory
	Store     *store.Store
	// Options are those of the session with the choices of this run.
	Options  reconcile.Options
	Targets  []*admission.Admitted
	Progress reconcile.Progress
	// Then, if it is not nil, is called before the reconciler is closed.
	Then func(*reconcile.Reconciler)
}

// Run reconciles objects, and returns their results in the same order. The error means that the status of objects without
// artifacts was not recorded for the next run.
func (s *Session) Run(ctx context.Context, r Run) ([]*reconcile.Result, error) {
	reconciler := s.reconciler(r)
	results, err := reconciler.Run(ctx, r.Targets, r.Progress)
	if r.Then != nil {
		r.Then(reconciler)
	}
	if failed := reconciler.Close(); failed != nil {
		s.debug(failed)
	}
	return results, err
}

// Begin runs like Run, with a reconciler that stays open until the session ends, so that another run can use its results.
func (s *Session) Begin(ctx context.Context, r Run) ([]*reconcile.Result, *reconcile.Reconciler, error) {
	reconciler := s.reconciler(r)
	s.closers = append(s.closers, reconciler.Close)
	results, err := reconciler.Run(ctx, r.Targets, r.Progress)
	return results, reconciler, err
}

func (s *Session) reconciler(r Run) *reconcile.Reconciler {
	s.connect()
	load.RenameStored(r.Inventory, r.Store)
	r.Options.Cache = s.o.Reconcile.Cache
	return s.connections.Reconciler(reconcile.Kinds(), r.Inventory, r.Store, r.Options)
}
