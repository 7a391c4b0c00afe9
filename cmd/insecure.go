package cmd

import "github.com/spf13/cobra"

const insecureFlag = "insecure-skip-tls-verify"

// warnInsecure says on each run of a command that it verifies no server.
func (a *app) warnInsecure(c *cobra.Command) {
	if skip, err := c.Flags().GetBool(insecureFlag); err == nil && skip {
		a.console.Warn("--" + insecureFlag + ": server certificates are not verified, so what is fetched may come from anyone; no login of this machine is used")
	}
}
