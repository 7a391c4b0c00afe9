package recorded

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
)

// Prune removes the objects of an artifacts directory that are not in the inputs, or reports them if dryRun is set.
// The exit code is also valid with an error.
func Prune(ctx context.Context, w *session.Worker, o *session.StoreOptions, inputs []*load.Input, dryRun bool) (int, error) {
	for _, in := range inputs {
		if in.Code != exit.OK {
			return in.Code, errors.New("nothing was removed: the input could not be read completely")
		}
		if in.Rendered.Incomplete {
			return exit.Usage, &exit.UsageError{
				Err:    errors.New("nothing was removed: a part of the input is not in this repository"),
				Advice: finding.CompleteInput,
			}
		}
	}
	if err := inputs[0].Options.CheckSelected(inputs); err != nil {
		return exit.Usage, err
	}
	d, err := Open(w, o)
	if err != nil {
		return exit.Usage, err
	}
	defer d.Close()
	for _, in := range inputs {
		if code, err := d.prune(ctx, in, dryRun); err != nil {
			return code, err
		}
	}
	return exit.OK, nil
}

// prune removes the objects that are not in a cluster. The exit code is also valid with an error.
func (d *Directory) prune(ctx context.Context, in *load.Input, dryRun bool) (int, error) {
	st, err := d.of(in.Cluster)
	if err != nil {
		return exit.Usage, err
	}
	defer d.done(st)
	if err := session.KnownKinds(st, d.o.DirOf(in.Cluster), "prune"); err != nil {
		return exit.Usage, &exit.UsageError{Err: fmt.Errorf("nothing was removed: %w", err)}
	}
	load.RenameStored(in.Inventory, st)
	present := keysOf(in)
	for k := range maps.Clone(present) {
		present[st.Stored(k)] = true
	}
	keep := func(k store.Key) bool {
		return present[k] || in.Namespace != "" && k.Namespace != in.Namespace
	}
	var removed []store.Key
	if dryRun {
		removed, err = pruned(st, keep)
	} else {
		removed, err = st.Prune(d.w.ReportsWaiting(ctx), keep)
	}
	of := ""
	if in.Cluster != "" {
		of = " of " + in.Cluster
	}
	verb := "removed "
	if dryRun {
		verb = "would remove "
	}
	for _, k := range removed {
		d.w.Console.Info(console.Subject{}, verb+objectName(k)+of)
	}
	if err != nil {
		return exit.Failed, err
	}
	return exit.OK, nil
}

// keysOf returns the keys of the input's objects, and of the sources beside it that its charts refer to.
func keysOf(in *load.Input) map[store.Key]bool {
	present := map[store.Key]bool{}
	for _, obj := range in.Inventory.Objects() {
		present[store.NewKey(obj.Kind, obj.Namespace, obj.Name)] = true
		// An object that is suspended, rejected or in conflict today creates its HelmChart again tomorrow.
		if chart, ok := inventory.DerivedKey(obj); ok {
			present[chart] = true
		}
		adm, err := in.Inventory.Admit(obj)
		if err != nil {
			continue // a rejected object may be fixed tomorrow: its files stay
		}
		if kind, namespace, name, ok := reconcile.Kinds().SourceRef(adm); ok {
			present[store.NewKey(kind, namespace, name)] = true
		}
	}
	return present
}

// objectName returns the name of an object of the store in the form of all other messages.
func objectName(k store.Key) string {
	if kind, ok := reconcile.Kinds().Named(k.Kind); ok {
		return console.Subject{Kind: kind, Namespace: k.Namespace, Name: k.Name}.String()
	}
	return k.String()
}

// pruned returns the objects that Prune would remove.
func pruned(st *store.Store, keep func(store.Key) bool) ([]store.Key, error) {
	keys, err := st.Keys()
	var removed []store.Key
	for _, k := range keys {
		if !keep(k) {
			removed = append(removed, k)
		}
	}
	return removed, err
}
