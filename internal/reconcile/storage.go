package reconcile

import (
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/store"
)

// closers holds the files to close at the end of a run, last opened first.
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
	for _, f := range slices.Backward(c.list) {
		failed = errors.Join(failed, f())
	}
	c.list = nil
	return failed
}

func keyOf(adm *admission.Admitted) store.Key {
	return store.NewKey(adm.Object.Kind, adm.Object.Namespace, adm.Object.Name)
}

// chartKey identifies a chart, or a version of it, in a registry.
type chartKey struct{ repository, chart, tag string }

// signatureKey identifies a subject and the verifier: the same signature is
// verified once per run.
type signatureKey struct{ chart, against string }
