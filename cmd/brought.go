package cmd

import (
	"github.com/spf13/pflag"
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
