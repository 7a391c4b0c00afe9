package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/bundle"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/rewrite"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
)

func newBundleCommand(a *app) *cobra.Command {
	o := &runOptions{}
	var name, since string
	c := &cobra.Command{
		GroupID: groupCharts,
		Use:     "bundle -f FILE... -o FILE|DIR/ [[KIND/][NAMESPACE/]NAME...]",
		Short:   "Pack the locked charts into one file, for runs without a network",
		Long: `Fetch everything that ` + lock.FileName + ` records for the selected objects, and write it into one
file: charts and their dependencies, Git repositories, buckets and OCI artifacts, with the
signatures, bills of materials and attestations that refer to them, and the lock file. With
--from, fetch, resolve, verify and plan use that file instead of the sources, and mirror
copies it into a registry.

The file is an OCI image layout in a tar archive or, if its name ends in a slash, in a
directory. Charts are stored as 'helm push' stores them; charts from registries keep their
manifest and digest. Before the file is put in place, everything is fetched from it once, so
that a bundle is always complete. If anything fails, no file is written.
A bundle also contains the charts of private sources: anyone who has the file can read them.

Exit codes: 0 written, 1 an object is not ready or was rejected, 2 wrong usage or unreadable
input, 3 a digest or signature check failed, 4 the lock file is out of date, 5 only failures
that may pass on a retry.`,
		Example: `  helmsrc bundle -R -f clusters/ -o charts.tar`,
	}
	flags := c.Flags()
	flags.StringVarP(&name, "bundle-file", "o", "", "`file` to write, or a directory if the name ends in a slash")
	flags.StringVar(&since, "since", "", "earlier bundle `file` that the recipient already has: only new content is written")
	o.addCarried(flags)
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		o.Lock.Locked, o.report.stdout = true, true
		switch {
		case name == "":
			return exit.Usage, exit.Usagef("name the file to write with -o")
		case o.Reconcile.Offline:
			return exit.Usage, &exit.UsageError{Err: errors.New("--offline: artifacts that refer to a chart are requested from its registry"), Advice: "leave out --offline"}
		}
		directory, err := bundleTarget(name)
		if err != nil {
			return exit.Usage, &exit.UsageError{Err: fmt.Errorf("--bundle-file: %w", err), Advice: "name another file with -o"}
		}
		if err := o.begin(a, args); err != nil {
			return exit.Usage, err
		}
		ctx, cancel := o.deadline(ctx)
		defer cancel()
		var on bundle.Base
		if since != "" {
			if on, err = bundle.ReadBase(ctx, since); err != nil {
				return exit.Usage, &exit.UsageError{Err: fmt.Errorf("--since: %w", err)}
			}
		}
		name = filepath.Clean(name)
		b := newCarrying(a, o)
		b.beside = store.Scratch{Parent: filepath.Dir(name), Hidden: true}
		defer b.close()
		code, err := b.gather(ctx)
		if err == nil && code == exit.OK {
			if err = b.bundle(ctx, name, directory, on); err != nil {
				code = exit.CodeOf(err)
			}
		}
		if err != nil {
			return code, err
		}
		return b.report(ctx, code, nil)
	})
	return c
}

// addCarried declares the flags that select the charts of a bundle or a mirror.
func (o *runOptions) addCarried(flags *pflag.FlagSet) {
	o.input.add(flags)
	o.input.addLookup(flags)
	o.addFetch(flags)
	addLockFile(&o.Lock, flags)
	o.addTrust(flags)
	o.addDependencies(flags)
	o.report.addBilled(flags, annotatedImages)
}

// bundleTarget reports whether a bundle of this name is a directory, and returns an error if it cannot be written there.
func bundleTarget(name string) (directory bool, err error) {
	if !file.IsDir(name) && !os.IsPathSeparator(name[len(name)-1]) {
		return false, rewrite.Writable(name)
	}
	entries, err := file.ReadDir(name)
	if len(entries) > 0 {
		return true, fmt.Errorf("%s is not empty", filepath.ToSlash(name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return true, err
}

// carrying is a run of bundle or mirror: it fetches all locked objects, and keeps them with their signatures and attestations.
type carrying struct {
	app     *app
	o       *runOptions
	put     *lock.Lock // the entries of the objects that are carried
	entries map[carried]*lock.Entry
	charts  *bundle.Charts // nil where everything comes from a bundle
	scratch store.Scratch
	dir     string        // created by gather
	beside  store.Scratch // of the charts, in the directory of the bundle
	parts   []*session.Member
	all     *session.Reconciled
}

// report writes the reports of the run. It returns the error of an earlier print to stdout, if there was one.
func (b *carrying) report(ctx context.Context, code int, printed error) (int, error) {
	b.app.console.Unite()
	run := b.app.outlined(&b.o.report, b.app.worker.Report(b.all.Objects), b.all.Inputs, b.all.Results)
	return b.app.conclude(ctx, b.o, run, nil, code, printed)
}

func newCarrying(a *app, o *runOptions) carrying {
	return carrying{app: a, o: o, put: lock.New(), entries: map[carried]*lock.Entry{}, all: &session.Reconciled{}}
}

// close removes the temporary files of the run. A later run removes the files that cannot be removed now.
func (b *carrying) close() { _, _ = b.scratch.Close(), b.beside.Close() }

// carried is the key of a locked object in its input.
type carried struct {
	in  *load.Input
	key store.Key
}

// gather reads the manifests, and fetches the locked objects. A code other than 0 ends the run.
func (b *carrying) gather(ctx context.Context) (code int, err error) {
	o := b.o
	if b.dir, err = b.scratch.Dir(); err != nil {
		return exit.Failed, err
	}
	if o.Lock.From == nil {
		if b.charts, err = bundle.NewCharts(&b.beside, o.Reconcile.Chart); err != nil {
			return exit.Failed, err
		}
		o.Reconcile.Carry = b.charts
	}
	if o.CacheDir == "" {
		o.CacheDir = filepath.Join(b.dir, "kept")
	}
	o.Store = session.StoreOptions{Dir: filepath.Join(b.dir, "artifacts"), Own: true, Records: 2}
	var failed error
	found := func(m *session.Member, results []*reconcile.Result, objects []report.Object) int {
		o.bill(b.app, m.Store).Describe(results, objects)
		if b.charts != nil && failed == nil {
			failed = reconcile.CarryPackages(ctx, b.charts, m.Store, results)
		}
		return exit.OK
	}
	b.all, code, err = b.app.worker.ReconcileAll(ctx, &o.Options, session.Batch{Of: b.of, Found: found})
	if err != nil {
		return code, err
	}
	defer b.all.Close()
	if failed != nil {
		return exit.CodeOf(failed), failed
	}
	if b.charts != nil && code == exit.OK {
		for _, line := range b.charts.Missing() {
			b.app.console.Warn(line)
		}
	}
	return code, nil
}

// of returns the locked objects of a cluster. It puts their entries into the lock that is carried.
func (b *carrying) of(m *session.Member, targets []*admission.Admitted) []*admission.Admitted {
	b.parts = append(b.parts, m)
	return slices.DeleteFunc(targets, func(adm *admission.Admitted) bool {
		j, ok := m.Options.Locked.Judge(m.In.Inventory, adm)
		if ok && j.Entry != nil {
			b.put.Put(*j.Entry)
			b.entries[carried{m.In, inventory.KeyOf(adm.Object)}] = j.Entry
		}
		return !ok
	})
}

// bundle writes the gathered objects to a file or a directory, without the content of the bundle of --since.
func (b *carrying) bundle(ctx context.Context, name string, directory bool, on bundle.Base) error {
	kept, err := cache.Open(filepath.Join(b.dir, "carried"), cache.Options{Carried: true, MaxSize: math.MaxInt64, Now: b.app.now})
	if err != nil {
		return err
	}
	defer func() { _ = kept.Close() }() // its directory is removed with the scratch directory
	if err := b.again(ctx, kept); err != nil {
		return err
	}
	text, err := b.put.Write()
	if err != nil {
		return err
	}
	size, err := b.charts.Write(ctx, name, directory, text, kept, on)
	if err != nil {
		return fmt.Errorf("--bundle-file: %w", err)
	}
	b.app.console.Unite()
	b.app.console.Info(console.Subject{}, fmt.Sprintf("%s: %d objects, %d bytes", filepath.ToSlash(name), len(b.put.Entries()), size))
	return nil
}

// again reconciles all objects offline, to prove that the bundle is complete, and puts the downloads into a cache.
func (b *carrying) again(ctx context.Context, into *cache.Cache) error {
	o := b.o.Options
	o.Cache.Into, o.Reconcile.Offline, o.Reconcile.Refresh, o.Cache.Refresh = into, true, false, false
	shared, err := b.app.worker.Open(ctx, &o)
	if err != nil {
		return err
	}
	defer shared.Close()
	for _, m := range b.parts {
		st, err := shared.Temporary()
		if err != nil {
			return err
		}
		options := shared.Options()
		options.Locked, options.Directories = m.Options.Locked, m.Options.Directories
		results, err := shared.Run(ctx, session.Run{Inventory: m.In.Inventory, Store: st, Options: options, Targets: m.Targets, Progress: session.Silence{}})
		for _, r := range results {
			if r.Failure != nil {
				return fmt.Errorf("%s cannot be bundled: %w", r.Object.Object, r.Failure)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
