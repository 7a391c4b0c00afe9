package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/recorded"
)

func newPruneCommand(a *app) *cobra.Command {
	var in inputOptions
	storage := storeOptions{}
	var dryRun bool
	c := &cobra.Command{
		Use:     "prune -f FILE...",
		GroupID: groupArtifacts,
		Short:   "Remove artifacts and records of objects that are not in the input",
		Long: `Remove from the artifacts directory everything that belongs to objects which are
not in the manifests given with -f. Files that helmsrc did not write are kept.

If the input cannot be read completely, nothing is removed.`,
		Example: `  helmsrc artifacts prune -R -f clusters/
  helmsrc artifacts prune -R -f clusters/ --dry-run`,
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
	return recorded.Prune(ctx, &a.worker, &storage.StoreOptions, inputs, dryRun)
}
