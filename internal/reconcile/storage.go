package reconcile

import (
	"context"
	"os"

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
