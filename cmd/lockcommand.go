package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/locking"
)

// lockCommandOptions are the flags of lock.
type lockCommandOptions struct {
	locking.Options
	run      runOptions
	exitCode bool
}

func newLockCommand(a *app) *cobra.Command {
	o := &lockCommandOptions{}
	c := &cobra.Command{
		GroupID: groupCharts,
		Use:     "lock -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		Short:   "Record resolved versions and digests, for runs with --locked",
		Long: `Resolve the selected HelmCharts (including those of HelmReleases), OCIRepositories,
GitRepositories and Buckets, and record the result in ` + lock.FileName + `: version, location,
revision and digests, and the dependencies of charts from Git repositories and buckets.
Commit that file. With --locked, fetch, resolve, verify, plan and template use it
instead of resolving again.

Entries that still match the manifests are kept, new objects are resolved, and entries
of objects that are no longer in the input are removed. --update resolves again, within
the version ranges: every entry, or only the entries of the named objects. Only the lock
file is written, and it is replaced in one step.

--check contacts no server and writes nothing: it reports each field in which the lock
and the manifests differ. --verify asks the servers whether they still serve the
locked versions: a tag may have moved, or a version may have been published again.

--follow-sources also locks the sources of Kustomizations and the objects in them; with
--check, these sources must be in the cache.

If the manifests contain several clusters, each cluster has its own entries, and only
the entries of clusters in the input change.

The lock file is beside ` + config.Name + ` or, without one, in the current directory.

Exit codes: 0 done or up to date, 1 an object cannot be resolved, 2 wrong usage,
unreadable input or an invalid lock file, 3 a digest or signature check failed, or
a version moved, 4 the lock file is out of date or, with --exit-code, it changed,
5 only failures that may pass on a retry.`,
		Example: `  helmsrc lock -R -f clusters/
  helmsrc lock -R -f clusters/ --update HelmRelease/app
  helmsrc lock -R -f clusters/ --check`,
	}
	fs := c.Flags()
	fs.BoolVar(&o.Update, "update", false, "resolve all objects again, or only the named objects")
	fs.BoolVar(&o.Check, "check", false, "only report entries that are out of date, without a network; exit 4 if there are any")
	fs.BoolVar(&o.Verify, "verify", false, "only check that the locked versions are still published; exit 3 if one is not")
	addExitCode(fs, &o.exitCode, "the lock file changed")
	o.run.asksNothing = "check"
	addLockFile(&o.run.Lock, fs)
	o.run.input.add(fs)
	o.run.input.addLookup(fs)
	o.run.addFollow(fs)
	o.run.report.add(fs)
	o.run.addFetch(fs)
	o.run.addTrust(fs)
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if o.Update && o.Check || o.Update && o.Verify || o.Check && o.Verify {
			return exit.Usage, exit.Usagef("--update, --check and --verify are mutually exclusive")
		}
		if len(o.run.input.render.sources)+len(o.run.SourceDir) > 0 {
			return exit.Usage, exit.Usagef("lock does not accept --source and --source-dir: a local directory cannot be locked")
		}
		o.run.Reconcile.Offline = o.run.Reconcile.Offline || o.Check
		o.run.cache.none = o.run.cache.none || o.Verify // the servers are asked again, without their earlier answers
		if err := o.run.begin(a, args); err != nil {
			return exit.Usage, err
		}
		return a.lock(ctx, o)
	})
	return c
}

func (a *app) lock(ctx context.Context, o *lockCommandOptions) (int, error) {
	ctx, cancel := o.run.deadline(ctx)
	defer cancel()
	l, err := locking.Run(ctx, &a.worker, &o.run.Options, o.Options)
	if err != nil {
		return max(exit.Usage, exit.CodeOf(err)), err
	}
	a.sum(l.Summary)
	if l.Changed && o.exitCode {
		l.Code = exit.Worst(l.Code, exit.Drift)
	}
	return a.conclude(ctx, &o.run, a.worker.Report(l.Objects), nil, l.Code, nil)
}
