package cmd

import (
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// untrustedFlag is for manifests of strangers.
const untrustedFlag = "untrusted"

// checkUntrusted refuses flags that give away what --untrusted keeps.
func (o *runOptions) checkUntrusted() error {
	switch {
	case !o.input.Untrusted:
	case o.ambient == ambientAnywhere:
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
	if a.ignoredFile {
		a.console.Warn("the " + configName + " of the repository is not used: --untrusted")
		a.ignoredFile = false
	}
}
