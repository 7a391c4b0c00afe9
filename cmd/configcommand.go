package cmd

import (
	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/config"
)

func newConfigCommand(a *app) *cobra.Command {
	o := otherFormat("yaml", "json")
	c := &cobra.Command{
		Use:   "config",
		Short: "Print the effective configuration and where each value comes from",
		Long: `Print the effective value of each flag of each command, from the environment, the
configuration file or the default. The output is itself a configuration file; comments
show where each value comes from. Values that differ between commands are in a section for
each command.

` + config.Name + ` is searched for in the working directory and its parents, up to the root of
the repository. Its keys are the names of flags, and 'commands' has a section for each
command with settings of its own. Relative paths in it are relative to its directory.`,
		Example: `  helmsrc config
  helmsrc config --config .helmsrc.yaml -o json
  helmsrc config schema > helmsrc.schema.json`,
		Args:        noSubcommand,
		Annotations: map[string]string{config.Annotation: "true"},
	}
	o.add(a, c)
	o.addJSON(c, config.ByCommand)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.config.Write(a.env.Stdout, cmd, o.format)
	}
	c.AddCommand(newConfigSchemaCommand(a))
	return c
}

func newConfigSchemaCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of configuration files",
		Example: "  helmsrc config schema > helmsrc.schema.json",
		Args:    noArguments,
	}
	c.RunE = func(*cobra.Command, []string) error { return config.WriteSchema(a.env.Stdout, a.config.Root()) }
	return c
}
