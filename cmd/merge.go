package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/recorded"
)

// mergeOptions are the flags of merge.
type mergeOptions struct {
	input       inputOptions // of status: all of it
	output      formatFlag
	report      reportOptions
	store       storeOptions
	concurrency int
}

func newMergeCommand(a *app) *cobra.Command {
	o := &mergeOptions{output: objectFormat()}
	c := &cobra.Command{
		Use:     "merge DIR...",
		GroupID: groupArtifacts,
		Short:   "Join the artifacts directories of shards",
		Long: `Join artifacts directories into one, and print the objects with their status, as
'helmsrc artifacts status' does. Each DIR is the artifacts directory of 'helmsrc fetch
--shard I/N'. The directories are only read, and each artifact is checked. All shards of a
selection must be given and be complete; other directories are joined as they are.

A source that several shards need may have changed while they ran: the newest artifact is
used, with a warning. Any other object whose artifacts differ between two directories is
an error; it is left out, and the others are joined. An interrupted merge can be repeated.

Exit codes: 0 all ready, 1 an object is not ready or was left out, 2 wrong usage, or a
shard is missing, 3 an artifact was altered.`,
		Example: `  helmsrc artifacts merge shard-0 shard-1
  helmsrc artifacts merge shard-0 shard-1 -d whole -o table`,
	}
	c.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	fs := c.Flags()
	o.store.addDir(fs)
	o.store.addAddress(fs)
	o.output.add(a, c)
	o.report.add(fs)
	fs.IntVar(&o.concurrency, "concurrency", 8, "`number` of objects copied at a time")
	fs.BoolVar(&o.input.exitZero, "exit-zero", false, "exit 0 even if an object failed")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := errors.Join(o.report.check(true), o.store.check(a)); err != nil {
			return exit.Usage, err
		}
		if o.concurrency < 1 {
			return exit.Usage, exit.Usagef("--concurrency must be positive, got %d", o.concurrency)
		}
		return a.merge(ctx, o, args)
	})
	return c
}

func (a *app) merge(ctx context.Context, o *mergeOptions, args []string) (int, error) {
	code, err := recorded.Join(ctx, &a.worker, &o.store.StoreOptions, args, o.concurrency)
	if err != nil {
		return code, err
	}
	o.input.AllowEmpty = true
	rest, err := a.status(ctx, &o.input, o.output.format, &o.store, &o.report, nil)
	if o.input.exitZero {
		return rest, err
	}
	return exit.Worst(code, rest), err
}
