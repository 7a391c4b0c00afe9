package cmd

import (
	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// checkUntrusted refuses flags that give away what --untrusted keeps.
func (o *runOptions) checkUntrusted() error {
	switch {
	case !o.input.Untrusted:
	case o.ambient == config.AmbientAnywhere:
		return exit.Usagef("--untrusted and --ambient-credentials=anywhere exclude each other")
	case o.Reconcile.MissingSecrets == reconcile.MissingSecretsAmbient:
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
func (o *runOptions) reach() reconcile.Reach {
	switch {
	case o.input.Untrusted:
		return reconcile.ReachNowhere
	case o.ambient == config.AmbientAnywhere:
		return reconcile.ReachAnywhere
	}
	return reconcile.ReachHome
}
