// Package session opens what the runs of one command share: the cache, connections, artifacts directories, and directories
// that go when the command ends. A Worker reconciles with it, and reports how that goes. It knows no flags.
package session

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
)

// Options are the choices of a command. They do not change.
type Options struct {
	// Edges are the connections of the process to the world.
	Edges reconcile.Edges
	// Reconcile has what all runs have in common, and what a Run leaves empty.
	Reconcile reconcile.Options
	// CacheDir is the directory of what is kept for later commands, "" for none.
	CacheDir string
	Cache    cache.Options
	// Warn is called with what goes wrong and changes no result, Debug with what goes wrong at the end.
	Warn, Debug func(error)
}

// A Session is what the runs of one command share. Open makes it, Close ends it. One goroutine at a time may use it.
type Session struct {
	o           Options
	connections *reconcile.Connections
	temp        store.Scratch
	stores      int
	closers     []func() error
}

// Open returns a session. Nothing is opened before a run needs it.
func Open(o Options) *Session {
	if o.Reconcile.Reach == reconcile.ReachNowhere {
		o.Edges.Dial = reconcile.PublicDial(o.Edges.Dial, o.Edges.Getenv)
		o.Edges.Getenv = withoutPrivateProxies(o.Edges.Getenv)
	}
	return &Session{o: o}
}

// connect opens the cache and the connections, once. Without a cache that can be opened it goes on, with a warning.
func (s *Session) connect() {
	if s.connections != nil {
		return
	}
	if s.o.CacheDir != "" {
		kept, err := cache.Open(s.o.CacheDir, s.o.Cache)
		if err != nil {
			s.o.Warn(err)
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
	s.connections = reconcile.Connect(s.o.Edges, s.o.Reconcile)
	s.closers = append(s.closers, s.connections.Close)
}

// Close ends the session with all that it opened.
func (s *Session) Close() {
	if s == nil {
		return
	}
	for _, end := range slices.Backward(append([]func() error{s.temp.Close}, s.closers...)) {
		if err := end(); err != nil {
			s.o.Debug(err)
		}
	}
	s.closers = nil
}

// Carry has a cache stand for all sources. It comes before the first run, and is closed with the session.
func (s *Session) Carry(c *cache.Cache) {
	s.o.Reconcile.Cache = c
	s.closers = append(s.closers, c.Close)
}

// Registry opens a place in a registry for writing, as the user names it: with the user's own login, and over HTTP with plain.
func (s *Session) Registry(url string, plain bool) (*reconcile.Registry, error) {
	s.connect()
	return s.connections.Registry(url, plain, s.o.Reconcile)
}

// Options are those of a run that says nothing of its own.
func (s *Session) Options() reconcile.Options { return s.o.Reconcile }

// Dir returns a directory that goes when the session ends.
func (s *Session) Dir() (string, error) { return s.temp.Dir() }

// Temporary opens an artifacts directory that goes when the session ends.
func (s *Session) Temporary() (*store.Store, error) {
	dir, err := s.Dir()
	if err != nil {
		return nil, err
	}
	s.stores++
	st, err := store.Open(filepath.Join(dir, "artifacts"+strconv.Itoa(s.stores)), store.Options{
		Algorithm: godigest.SHA256, RetentionRecords: 2,
		Kinds: reconcile.Kinds().Names(), Shared: reconcile.Kinds().WithoutArtifact(), Now: s.o.Edges.Now,
	})
	if err != nil {
		return nil, unwritten(err)
	}
	s.closers = append(s.closers, st.Close)
	return st, nil
}

func unwritten(err error) error {
	return fmt.Errorf("cannot write to the temporary directory: %w", err)
}

// A Run is what is done with objects of one cluster.
type Run struct {
	Inventory *inventory.Inventory
	Store     *store.Store
	// Options are those of the session with the choices of this run.
	Options  reconcile.Options
	Targets  []*admission.Admitted
	Progress reconcile.Progress
	// Then is called before what the run opened is closed, if it is not nil.
	Then func(*reconcile.Reconciler)
}

// Run reconciles objects, and returns their results in the same order. The error is that the next run would not remember what
// became of those without artifacts.
func (s *Session) Run(ctx context.Context, r Run) ([]*reconcile.Result, error) {
	reconciler := s.reconciler(r)
	results, err := reconciler.Run(ctx, r.Targets, r.Progress)
	if r.Then != nil {
		r.Then(reconciler)
	}
	if failed := reconciler.Close(); failed != nil {
		s.o.Debug(failed)
	}
	return results, err
}

// Begin does the same, and what the run opened stays open until the session ends: another run goes on with its results.
func (s *Session) Begin(ctx context.Context, r Run) ([]*reconcile.Result, *reconcile.Reconciler, error) {
	reconciler := s.reconciler(r)
	s.closers = append(s.closers, reconciler.Close)
	results, err := reconciler.Run(ctx, r.Targets, r.Progress)
	return results, reconciler, err
}

func (s *Session) reconciler(r Run) *reconcile.Reconciler {
	s.connect()
	r.Options.Cache = s.o.Reconcile.Cache
	return s.connections.Reconciler(reconcile.Kinds(), r.Inventory, r.Store, r.Options)
}
