//go:build unix

package cache_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/helmsrc/helmsrc/internal/cache"
)

// TestReadOnly serves what is there, and says once that nothing is added. As root nothing is read only, so that a file
// in the place of a directory stands for it.
func TestReadOnly(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	d := keep(c, alice, "archive")
	temp := filepath.Join(cache.Path(w.dir), "temp")
	if err := os.RemoveAll(temp); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(temp, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	keep(c, alice, "another")
	keep(c, alice, "a third")
	w.warned("nothing is kept in the cache in " + w.dir)
	if _, ok := load(c, alice, d); !ok {
		t.Error("what is there is not served")
	}
}
