package cmd

import (
	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/config"
)

func newConfigCommand(a *app) *cobra.Command {
	var o otherFormat
	c := &cobra.Command{
		Use:   "config",
		Short: "Print the effective configuration, and where each value comes from",
		Long: `Print the value that each flag of each command has here and now: by the
environment, by the configuration file, or by default. The output is a configuration
file itself; comments in it tell where a value comes from. What differs between
commands is in the section of each.

` + config.Name + ` is looked for in the working directory and those above it, up to the
root of the repository. Its keys are the names of flags, and 'commands' has a section
for each command with settings of its own. Relative paths in it begin where it is.`,
		Example: `  helmsrc config
  helmsrc config --config .helmsrc.yaml -o json
  helmsrc config schema > helmsrc.schema.json`,
		Args:        noSubcommand,
		Annotations: map[string]string{config.Annotation: "true"},
	}
	o.add(c.Flags(), "yaml", "json")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		if o.json && o.format == o.otherwise {
			o.format = config.ByCommand
		}
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
	c.RunE = func(cmd *cobra.Command, _ []string) error { return config.WriteSchema(a.env.Stdout, cmd.Root()) }
	return c
}
