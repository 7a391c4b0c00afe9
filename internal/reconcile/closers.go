package reconcile

import (
	"errors"
	"io"
	"sync"
)

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
