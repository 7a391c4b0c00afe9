package cmd

import (
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/exit"
)

// checkUntrusted refuses flags that give away what --untrusted keeps.
func (o *runOptions) checkUntrusted() error {
	switch {
	case !o.input.Untrusted:
	case o.ambient == config.AmbientAnywhere:
		return exit.Usagef("--untrusted and --ambient-credentials=anywhere exclude each other")
	case o.Reconcile.MissingSecrets == credential.MissingAmbient:
		return exit.Usagef("--untrusted and --missing-secrets=ambient exclude each other")
	case o.Reconcile.PrivateRedirects:
		return exit.Usagef("--untrusted and --allow-private-redirects exclude each other")
	}
	return nil
}

// reportIgnoredFile reports a configuration that was found, and not read.
func (a *app) reportIgnoredFile() {
	if a.config.Ignored {
		a.console.Warn("the " + config.Name + " of the repository is not used: --untrusted")
		a.config.Ignored = false
	}
}

// reach is how far the credentials of this machine may go.
func (o *runOptions) reach() auth.Reach {
	switch {
	case o.input.Untrusted:
		return auth.ReachNowhere
	case o.ambient == config.AmbientAnywhere:
		return auth.ReachAnywhere
	}
	return auth.ReachHome
}
