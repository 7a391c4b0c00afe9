package cmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/status"
)

// formatFlag is -o, the format of stdout.
type formatFlag struct {
	format    string // also the default, "" where the default depends on stdout
	formats   []string
	people    string // the default on a terminal, where it is yaml elsewhere
	templates bool   // the templates of kubectl are formats, too
	lenient   bool   // formats that HELMSRC_OUTPUT sets for other commands are the default
}

// objectFormat returns -o for commands that print objects.
func objectFormat() formatFlag {
	return formatFlag{formats: []string{"yaml", "json", "jsonl", tableFormat, "wide", "name"}, people: tableFormat, templates: true}
}

// recordFormat returns -o for commands that print records, which are not objects.
func recordFormat() formatFlag {
	return formatFlag{formats: records.Formats(), people: tableFormat, templates: true}
}

// otherFormat returns -o for commands that print neither. The first format is the default.
func otherFormat(formats ...string) formatFlag {
	return formatFlag{format: formats[0], formats: formats, lenient: true}
}

// add declares the flag, whose value is checked before the command runs.
func (o *formatFlag) add(a *app, c *cobra.Command) {
	usage, choices := "`format` of stdout: "+strings.Join(o.formats, ", "), o.formats
	if o.templates {
		usage += ", or, as in kubectl, jsonpath=... or go-template=..."
		choices = slices.Concat(choices, []string{status.JSONPath, status.GoTemplate})
	}
	if o.format == "" {
		usage += " (default: " + o.people + " on a terminal, else yaml)"
	}
	byDefault := o.format
	c.Flags().StringVarP(&o.format, "output", "o", byDefault, usage)
	config.SetChoices(c.Flags(), "output", choices...)
	c.PreRunE = func(*cobra.Command, []string) error {
		if o.lenient && !slices.Contains(o.formats, o.format) && slices.Contains(append(records.Formats(), "name"), o.format) {
			o.format = byDefault
		}
		return o.check(a.env)
	}
}

// addJSON declares --json, the former name of -o json. It selects format, unless -o names another one.
func (o *formatFlag) addJSON(c *cobra.Command, format string) {
	json := c.Flags().Bool("json", false, "print JSON")
	hide(c.Flags(), "json")
	check, byDefault := c.PreRunE, o.format
	c.PreRunE = func(c *cobra.Command, args []string) error {
		err := check(c, args)
		if *json && o.format == byDefault {
			o.format = format
		}
		return err
	}
}

// check sets the default of the format, which depends on whether stdout is a terminal, and validates it.
func (o *formatFlag) check(env *Env) error {
	if o.format == "" && o.people != "" {
		o.format = "yaml"
		if env.Reads != nil && env.Reads() {
			o.format = o.people
		}
	}
	formats := o.formats
	if o.templates {
		template, err := status.ParseTemplate(o.format)
		if err != nil {
			return &exit.UsageError{Err: fmt.Errorf("--output: %w", err)}
		}
		if template != nil {
			return nil
		}
		formats = slices.Concat(formats, []string{status.JSONPath + "...", status.GoTemplate + "..."})
	}
	return oneOf("output", o.format, formats...)
}

// hide hides flags in the help: former names, which still work.
func hide(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		fs.Lookup(name).Hidden = true
	}
}

// addExitCode declares --exit-code, as in git diff and kubectl diff, and its former names.
func addExitCode(fs *pflag.FlagSet, set *bool, when string, older ...string) {
	fs.BoolVar(set, "exit-code", false, "exit 4 if "+when)
	for _, name := range older {
		fs.BoolVar(set, name, false, "exit 4 if "+when)
	}
	hide(fs, older...)
}

// checkChoices validates the flags with a list of choices. It leaves out -o, which also takes templates, and formats that
// HELMSRC_OUTPUT sets for other commands.
func checkChoices(fs *pflag.FlagSet) (err error) {
	fs.VisitAll(func(f *pflag.Flag) {
		if choices := config.Choices(f); choices != nil && f.Name != "output" && f.Value.String() != f.DefValue {
			err = cmp.Or(err, oneOf(f.Name, f.Value.String(), choices...))
		}
	})
	return err
}

// oneOf returns an error if a flag's value is not in the list.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return exit.Usagef("--%s: %q is not one of %s", flag, value, strings.Join(allowed, ", "))
}

// tableFormat is the format with a row for each release.
const tableFormat = "table"
