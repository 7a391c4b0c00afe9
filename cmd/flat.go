package cmd

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
)

func (o *runOptions) addFlat(fs *pflag.FlagSet) {
	fs.StringVar(&o.flat, "flat", "", "`directory` to which the charts are also written as NAME-VERSION.tgz")
}

func (o *runOptions) checkFlat() error {
	if file.Outside(o.flat) {
		return exit.Usagef("--flat: %s: %w", o.flat, file.ErrOutside)
	}
	if info, err := os.Stat(o.flat); err == nil && !info.IsDir() {
		return exit.Usagef("--flat: %s is not a directory", o.flat)
	}
	return nil
}

// flatten leaves plain files, and returns the exit code that this alone would give.
func (a *app) flatten(o *runOptions, st *store.Store, results []*reconcile.Result) int {
	if o.flat == "" {
		return exit.OK
	}
	failures := reconcile.Flatten(st, results, o.flat, o.Reconcile.Chart)
	for _, f := range failures {
		a.console.Report(f)
	}
	if len(failures) > 0 {
		return exit.Failed
	}
	return exit.OK
}
