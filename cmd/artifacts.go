package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/status"
)

func newArtifactsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "artifacts",
		GroupID: groupArtifacts,
		Short:   "List, verify, prune and merge stored artifacts",
		Long: `Commands for the artifacts directory, where fetch stores charts and a record of each
object with its status. They do not use the network.`,
		Example: `  helmsrc artifacts status
  helmsrc artifacts verify
  helmsrc artifacts prune -R -f clusters/`,
		Args: noSubcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, sub := range []*cobra.Command{newStatusCommand(a), newArtifactsVerifyCommand(a), newPruneCommand(a), newMergeCommand(a)} {
		sub.GroupID = ""
		c.AddCommand(sub)
	}
	return c
}

// hiddenCommands returns the subcommands of artifacts under their former names at the top level, which still work.
func hiddenCommands(a *app) []*cobra.Command {
	list := []*cobra.Command{newStatusCommand(a), newPruneCommand(a), newMergeCommand(a)}
	for _, c := range list {
		c.Hidden = true
	}
	return list
}

func newArtifactsVerifyCommand(a *app) *cobra.Command {
	var in inputOptions
	var storage storeOptions
	c := &cobra.Command{
		Use:   "verify [[KIND/][NAMESPACE/]NAME...]",
		Short: "Compare stored artifacts with their recorded digests",
		Long: `Compare every stored artifact, or the artifacts of the named objects, with the digests
recorded when they were stored. Only artifacts are checked: 'helmsrc artifacts status'
reports whether objects are ready, and 'helmsrc verify' checks signatures.

Exit codes: 0 all artifacts are intact, 1 an artifact is missing, 2 wrong usage, or
nothing is recorded, 3 an artifact was altered.`,
		Example: "  helmsrc artifacts verify\n  helmsrc artifacts verify HelmChart/podinfo",
	}
	storage.addDir(c.Flags())
	in.addClusters(c.Flags())
	c.Flags().StringVarP(&in.Namespace, "namespace", "n", "", "only objects of this `namespace` (default: all)")
	c.Flags().BoolVar(&in.AllowEmpty, "allow-empty", false, "succeed if nothing is recorded")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := storage.check(a); err != nil {
			return exit.Usage, err
		}
		return a.verifyArtifacts(ctx, &in, &storage, args)
	})
	return c
}

func (a *app) verifyArtifacts(ctx context.Context, o *inputOptions, storage *storeOptions, args []string) (int, error) {
	dir, found, err := a.openRecorded(ctx, o, storage, args)
	if err != nil {
		return exit.Usage, err
	}
	defer dir.Close()
	code, damaged := found.Code, 0
	for _, r := range found.Results {
		if r.Failure == nil || r.Failure.Reason != status.ReadOperationFailed {
			continue
		}
		damaged++
		code = exit.Worst(code, session.CodeOf(r))
		if f, ok := r.FailureFinding(); ok {
			a.console.ReportAs(f, console.Presentation{At: console.ObjectSubject(r.Object.Object)})
		}
	}
	a.sum(fmt.Sprintf("%d intact, %d altered or missing", len(found.Results)-damaged, damaged))
	return code, nil
}
