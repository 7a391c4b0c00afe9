package cmd

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
)

// ownsDirectory reports whether the user has named the artifacts directory, and trusts the author of the checkout: a
// configuration that was found in the repository is no word of the user.
func ownsDirectory(flags *pflag.FlagSet, command string, file *configuration, from origins) bool {
	f := flags.Lookup("artifacts-dir")
	if f == nil || !f.Changed {
		return false
	}
	if untrusted, err := flags.GetBool(untrustedFlag); err == nil && untrusted {
		return false
	}
	if file == nil || !file.found {
		return true
	}
	s, ok := file.setting(command, f.Name)
	return !ok || from[f.Name] != file.position(s.line)
}

// refuseBrought refuses an artifacts directory whose records came with the checkout. A record says what was fetched from
// where, so that it need not be fetched again: who commits one can have a chart of their own taken for the published one.
func refuseBrought(dir string) error {
	tracked, err := git.Tracked(filepath.Join(dir, ".helmsrc"))
	if err != nil {
		return &exit.UsageError{
			Err:    fmt.Errorf("%s has records, and whether Git tracks them is not known: %w", dir, err),
			Advice: "make the repository readable, or name another directory with --artifacts-dir, which takes this one, too, if all who can commit are trusted; not with --untrusted",
		}
	}
	if !tracked {
		return nil
	}
	return &exit.UsageError{
		Err:    fmt.Errorf("%s has records that Git tracks, and which a stranger may have committed: they are not believed", dir),
		Advice: "remove them from Git with 'git rm -r --cached' and name the directory in .gitignore, or name another directory with --artifacts-dir, which takes this one, too, if all who can commit are trusted; not with --untrusted",
	}
}
