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
		Short:   "Write down what the manifests resolve to, for runs with --locked",
		Long: `Resolve the selected HelmCharts, also those of HelmReleases, OCIRepositories,
GitRepositories and Buckets, and write into ` + lock.FileName + ` what each is: version, place,
revision and digests, with what charts of Git and buckets depend on. It is made to be
committed. fetch, resolve, verify, plan and template with --locked take everything from it.

What fits the manifests stays as it is, what is new is resolved, and what is gone from the
files of -f is dropped. --update resolves again, within the ranges: everything, or what the
arguments name. Nothing is stored but the lock file, which is replaced in one step.

--check asks no server and writes nothing: it names each field in which lock and manifests
do not fit. --verify asks the servers whether what is locked is still what they have: a tag
may have been moved, a version published again.

--follow-sources locks the sources that Kustomizations are made of, and what is in them; with
--check they have to be in the cache.

Where the manifests are of several clusters, each entry has the name of its own; only entries of
clusters that are looked at change.

The lock file lies beside ` + config.Name + `, else in the current directory.

Exit codes: 0 done, or everything fits, 1 an object cannot be resolved, 2 wrong usage, a
lock file that cannot be used, or unreadable input, 3 a digest or signature check failed, or
something moved, 4 lock and manifests do not fit or, with --exit-code, the file changed,
5 only failures that a retry may help.`,
		Example: `  helmsrc lock -R -f clusters/
  helmsrc lock -R -f clusters/ --update HelmRelease/app
  helmsrc lock -R -f clusters/ --check`,
	}
	fs := c.Flags()
	fs.BoolVar(&o.Update, "update", false, "resolve everything again, or what the arguments name")
	fs.BoolVar(&o.Check, "check", false, "only say what does not fit, without a network; exit 4 if anything does not")
	fs.BoolVar(&o.Verify, "verify", false, "only ask whether what is locked is still published; exit 3 if anything is not")
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
			return exit.Usage, exit.Usagef("--update, --check and --verify exclude each other")
		}
		if len(o.run.input.render.sources)+len(o.run.SourceDir) > 0 {
			return exit.Usage, exit.Usagef("lock takes no --source and no --source-dir: a directory of this machine is not locked")
		}
		o.run.Reconcile.Offline = o.run.Reconcile.Offline || o.Check
		o.run.cache.none = o.run.cache.none || o.Verify // the servers are asked, and not what they said before
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
