package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// ending is a context that ends after a number of calls of Err.
type ending struct {
	context.Context
	left int
}

func (c *ending) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestTargetsEnded admits objects and finds their sources until the context ends.
func TestTargetsEnded(t *testing.T) {
	const objects = 2*admittedAtOnce + 1
	var text strings.Builder
	for i := range objects {
		fmt.Fprintf(&text, "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: r%d, namespace: apps}\nspec: {url: 'https://charts.test'}\n", i)
	}
	targets := func(ctx context.Context) (int, error) {
		set := manifest.NewSet("default")
		if err := set.Add("a.yaml", []byte(text.String())); err != nil {
			t.Fatal(err)
		}
		in := &Input{Set: set, Inventory: inventory.New(set), table: reconcile.Kinds(), validating: true, common: &common{noted: map[string]bool{}}}
		found, err := (&Reader{Console: console.New(io.Discard)}).Targets(ctx, in)
		return len(found), err
	}
	if n, err := targets(t.Context()); n != objects || err != nil {
		t.Errorf("%d targets, %v", n, err)
	}
	for _, left := range []int{0, 2, 3, objects + 2} { // three times while they are admitted, then for each
		parent, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("a signal"))
		if n, err := targets(&ending{parent, left}); n != 0 || err == nil || err.Error() != "a signal" {
			t.Errorf("%d left: %d targets, %v", left, n, err)
		}
	}
	if n, err := targets(&ending{t.Context(), objects + 3}); n != objects || err != nil {
		t.Errorf("%d targets, %v", n, err)
	}
}
