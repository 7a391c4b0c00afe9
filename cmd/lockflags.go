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
	fs.BoolVar(&o.Locked, "locked", false, "take what the lock file says of each object, and ask no index and no list of tags; exit 4 where it does not fit")
}

func addFrom(o *session.LockOptions, fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.From, "from", nil, "bundle `file` that stands for every source: nothing else is used, and no connection is opened (repeatable: the bundles that it stands on)")
}

// checkLocked refuses a local directory in the place of something that is locked.
func (o *runOptions) checkLocked() error {
	if o.Lock.Locked && len(o.input.render.sources)+len(o.SourceDir) > 0 {
		return &exit.UsageError{Err: errors.New("--locked and --source or --source-dir exclude each other"), Advice: "--locked=false takes what the directories hold"}
	}
	return nil
}
