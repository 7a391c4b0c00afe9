package reconcile

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/store"
)

// storage is what a reconciliation needs of the artifacts directory: see [store.Store].
type storage interface {
	Dir() string
	Lock(ctx context.Context, key store.Key) (unlock func() error, err error)
	Recall(key store.Key) (*store.Record, error)
	Verify(artifact, digest string) error
	OpenArtifact(artifact string) (*os.File, error)
	Create(key store.Key) (*store.Pending, error)
	Remember(key store.Key, r *store.Record) error
	Relink(artifact, link string) error
	Remove(artifact string) error
	Collect(key store.Key, current string) (int, error)
	Save(ctx context.Context) error
}

// readOnly is a storage that a run leaves as it is. It needs no locks.
type readOnly struct{ *store.Store }

func (readOnly) Lock(context.Context, store.Key) (func() error, error) {
	return func() error { return nil }, nil
}

func (readOnly) Remember(store.Key, *store.Record) error { return nil }

func (readOnly) Relink(string, string) error { return nil }

func (readOnly) Remove(string) error { return nil }

func (readOnly) Collect(store.Key, string) (int, error) { return 0, nil }

// closers is what the run has to close at its end, last opened first.
type closers struct {
	mu   sync.Mutex
	list []func() error
}

func (c *closers) add(closer io.Closer) { c.addFunc(closer.Close) }

func (c *closers) addFunc(f func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, f)
}

func (c *closers) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var failed error
	for i := len(c.list) - 1; i >= 0; i-- {
		failed = errors.Join(failed, c.list[i]())
	}
	c.list = nil
	return failed
}

func keyOf(adm *admission.Admitted) store.Key {
	return store.NewKey(adm.Object.Kind, adm.Object.Namespace, adm.Object.Name)
}

// chartKey names a chart, or a version of it, in a registry.
type chartKey struct{ repository, chart, tag string }

// schemeKey names a registry, and the settings that it is asked with.
type schemeKey struct{ host, settings string }

// signatureKey names what is verified, and against what: the same question is
// asked once per run.
type signatureKey struct{ chart, against string }
