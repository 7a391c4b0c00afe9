package cmd

import (
	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/console"
)

// warnInsecure says on each run of a command that it verifies no server.
func warnInsecure(c *cobra.Command, to *console.Console) {
	if skip, err := c.Flags().GetBool(config.InsecureFlag); err == nil && skip {
		to.Warn("--" + config.InsecureFlag + ": server certificates are not verified, so what is fetched may come from anyone; no login of this machine is used")
	}
}
