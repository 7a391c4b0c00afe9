package cmd

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/session"
)

func addLockFile(o *session.LockOptions, fs *pflag.FlagSet) {
	fs.StringVar(&o.File, "lock-file", "", "lock `file` (default: "+lock.FileName+" beside "+config.Name+", else in the current directory)")
}

func addLocked(o *session.LockOptions, fs *pflag.FlagSet) {
	addLockFile(o, fs)
	fs.BoolVar(&o.Locked, "locked", false, "use the versions and digests of the lock file, and download no index and no list of tags; exit 4 if it is out of date")
}

func addFrom(o *session.LockOptions, fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.From, "from", nil, "bundle `file` to use in place of all sources, without a network (repeatable: the bundles that it builds on)")
}

// checkLocked refuses a local directory that replaces a locked source.
func (o *runOptions) checkLocked() error {
	if o.Lock.Locked && len(o.input.render.sources)+len(o.SourceDir) > 0 {
		return &exit.UsageError{Err: errors.New("--locked and --source or --source-dir exclude each other"), Advice: "leave out --source and --source-dir, or set --locked=false"}
	}
	return nil
}
