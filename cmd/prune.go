package cmd

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
)

func newPruneCommand(a *app) *cobra.Command {
	var in inputOptions
	storage := storeOptions{}
	var dryRun bool
	c := &cobra.Command{
		Use:     "prune -f FILE...",
		GroupID: groupArtifacts,
		Short:   "Remove artifacts and memory of objects that are not in the input",
		Long: `Remove from the artifacts directory everything that belongs to objects which are
not in the manifests given with -f. Files that helmsrc did not write stay.

Nothing is removed when the input cannot be read: what could not be read may be
what is still needed.`,
		Example: `  helmsrc prune -R -f clusters/
  helmsrc prune -R -f clusters/ --dry-run`,
		Args: noArguments,
	}
	in.add(c.Flags())
	in.render.addSources(c.Flags())
	storage.addDir(c.Flags())
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only print what would be removed")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := storage.check(a); err != nil {
			return exit.Usage, err
		}
		return a.prune(ctx, &in, &storage, dryRun)
	})
	return c
}

func (a *app) prune(ctx context.Context, o *inputOptions, storage *storeOptions, dryRun bool) (int, error) {
	inputs, err := a.readClusters(ctx, o, nil, storage.Dir)
	if err != nil {
		return exit.Usage, err
	}
	a.console.Unite()
	for _, in := range inputs {
		if in.Code != exit.OK {
			return in.Code, errors.New("nothing was removed: the input could not be read completely")
		}
		if in.Rendered.Incomplete {
			return exit.Usage, &exit.UsageError{
				Err:    errors.New("nothing was removed: a part of the input is not in this repository"),
				Advice: "do what the warnings above say: name checkouts with --source, and put copies of remote resources into the repository",
			}
		}
	}
	if err := o.CheckSelected(inputs); err != nil {
		return exit.Usage, err
	}
	root, err := a.worker.Artifacts(&storage.StoreOptions)
	if err != nil {
		return exit.Usage, err
	}
	defer root.Close()
	for _, in := range inputs {
		if code, err := a.pruneCluster(ctx, o, storage, in, root, dryRun); err != nil {
			return code, err
		}
	}
	return exit.OK, nil
}

// pruneCluster removes what no object of a cluster has. The code is that of an error.
func (a *app) pruneCluster(ctx context.Context, o *inputOptions, storage *storeOptions, in *load.Input, root *store.Store, dryRun bool) (int, error) {
	st, err := a.worker.ArtifactsOf(in.Cluster, &storage.StoreOptions, root)
	if err != nil {
		return exit.Usage, err
	}
	if st != root {
		defer st.Close()
	}
	if err := session.KnownKinds(st, storage.DirOf(in.Cluster), "prune"); err != nil {
		return exit.Usage, &exit.UsageError{Err: fmt.Errorf("nothing was removed: %w", err)}
	}
	in.RenameStored(st)
	present := keysOf(in)
	for k := range maps.Clone(present) {
		present[st.Stored(k)] = true
	}
	keep := func(k store.Key) bool {
		return present[k] || o.Namespace != "" && k.Namespace != o.Namespace
	}
	var removed []store.Key
	if dryRun {
		removed, err = pruned(st, keep)
	} else {
		removed, err = st.Prune(a.worker.ReportsWaiting(ctx), keep)
	}
	of := ""
	if in.Cluster != "" {
		of = " of " + in.Cluster
	}
	for _, k := range removed {
		if dryRun {
			a.console.Info(console.Subject{}, "would remove "+objectName(k)+of)
		} else {
			a.console.Info(console.Subject{}, "removed "+objectName(k)+of)
		}
	}
	if err != nil {
		return exit.Failed, err
	}
	return exit.OK, nil
}

// keysOf are those of the input's objects, and of the sources beside it that its
// charts refer to.
func keysOf(in *load.Input) map[store.Key]bool {
	present := map[store.Key]bool{}
	for _, obj := range in.Inventory.Objects() {
		present[store.NewKey(obj.Kind, obj.Namespace, obj.Name)] = true
		// What is suspended, rejected or in conflict today makes its HelmChart
		// again tomorrow.
		if chart, ok := inventory.DerivedKey(obj); ok {
			present[chart] = true
		}
		adm, err := in.Inventory.Admit(obj)
		if err != nil {
			continue // a rejected object may be fixed tomorrow: what it has stays
		}
		if kind, namespace, name, ok := reconcile.Kinds().SourceRef(adm); ok {
			present[store.NewKey(kind, namespace, name)] = true
		}
	}
	return present
}

// objectName names an object of the store as all other lines do.
func objectName(k store.Key) string {
	if kind, ok := reconcile.Kinds().Named(k.Kind); ok {
		return console.Subject{Kind: kind, Namespace: k.Namespace, Name: k.Name}.String()
	}
	return k.String()
}

// pruned is what Prune would remove.
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
