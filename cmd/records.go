package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/status"
)

// recordOptions say how records are printed that are no objects.
type recordOptions struct{ format string }

func (o *recordOptions) add(fs *pflag.FlagSet) {
	fs.StringVarP(&o.format, "output", "o", "", "`format` of stdout: "+strings.Join(records.Formats(), ", ")+", or, as in kubectl, jsonpath=... or go-template=... (default: table on a terminal, else yaml)")
	config.SetChoices(fs, "output", append(records.Formats(), status.JSONPath, status.GoTemplate)...)
}

// check gives the format its default: a table for people, and else what other programs read.
func (o *recordOptions) check(env *Env) error {
	switch {
	case o.format != "":
	case env.Reads != nil && env.Reads():
		o.format = "table"
	default:
		o.format = "yaml"
	}
	return formatOf(o.format, records.Formats()...)
}

// otherFormat is -o of the commands whose output is neither documents nor records, with the --json that it was before.
type otherFormat struct {
	format, otherwise string
	formats           []string
	json              bool
}

func (o *otherFormat) add(fs *pflag.FlagSet, formats ...string) {
	o.formats, o.otherwise = formats, formats[0]
	fs.StringVarP(&o.format, "output", "o", o.otherwise, "`format` of stdout: "+strings.Join(formats, ", "))
	config.SetChoices(fs, "output", formats...)
	fs.BoolVar(&o.json, "json", false, "print JSON")
	hide(fs, "json")
}

// check makes the default of a format that HELMSRC_OUTPUT sets for other commands.
func (o *otherFormat) check() error {
	if !slices.Contains(o.formats, o.format) && slices.Contains(append(records.Formats(), "name"), o.format) {
		o.format = o.otherwise
	}
	return oneOf("output", o.format, o.formats...)
}

// hide leaves flags out of the help: older names, which are still taken.
func hide(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		fs.Lookup(name).Hidden = true
	}
}

// addExitCode declares --exit-code, as git diff and kubectl diff have it, under the names that it had before, too.
func addExitCode(fs *pflag.FlagSet, set *bool, when string, older ...string) {
	fs.BoolVar(set, "exit-code", false, "exit 4 if "+when)
	for _, name := range older {
		fs.BoolVar(set, name, false, "exit 4 if "+when)
	}
	hide(fs, older...)
}
