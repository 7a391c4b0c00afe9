package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/exit"
)

func newCompletionCommand(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	var root *cobra.Command
	c := &cobra.Command{
		Use:       "completion bash|zsh|fish|powershell",
		Short:     "Print a completion script for a shell",
		Example:   "  helmsrc completion bash > /etc/bash_completion.d/helmsrc",
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("completion takes one argument, the shell: bash, zsh, fish or powershell")
			}
			root = cmd.Root()
			return nil
		},
	}
	c.RunE = a.runner(func(_ context.Context, args []string) (int, error) {
		switch args[0] {
		case "bash":
			return exit.OK, root.GenBashCompletionV2(a.env.Stdout, true)
		case "zsh":
			return exit.OK, root.GenZshCompletion(a.env.Stdout)
		case "fish":
			return exit.OK, root.GenFishCompletion(a.env.Stdout, true)
		case "powershell":
			return exit.OK, root.GenPowerShellCompletionWithDesc(a.env.Stdout)
		}
		return exit.Usage, exit.Usagef("no completion for shell %q: bash, zsh, fish and powershell have one", args[0])
	})
	return c
}
