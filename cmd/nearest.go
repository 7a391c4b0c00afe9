package cmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// flagHint offers the flag that may be meant, else the help.
func flagHint(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if flag, _, two := strings.Cut(unknown.GetSpecifiedName(), " "); two && c.Flag(flag) != nil {
			return fmt.Sprintf("flag and value are one argument here: write --%s= before the value, or each on its own", flag)
		}
		if near, ok := nearestFlag(c, unknown.GetSpecifiedName()); ok {
			return fmt.Sprintf("did you mean --%s?", near)
		}
	}
	return fmt.Sprintf("see '%s --help'", c.CommandPath())
}

// nearestFlag is the flag of a command that is spelled nearly so, or that begins or is begun so.
func nearestFlag(c *cobra.Command, name string) (string, bool) {
	var names []string
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	c.Flags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	const least = 4 // shorter words begin too many
	for _, known := range names {
		if len(name) >= least && strings.HasPrefix(known, name) {
			return known, true
		}
	}
	return finding.Nearest(name, names)
}

// helmsrcRelease is read by the GitHub Action, which hands its environment on.
const helmsrcRelease = "HELMSRC_RELEASE"

// unknownVariables are warnings of variables that look like variables of flags. The flags of all commands are read only if
// there is such a variable.
func unknownVariables(root *cobra.Command, environ []string) []string {
	var names []string
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "HELMSRC_") && value != "" {
			names = append(names, name)
		}
	}
	if names == nil {
		return nil
	}
	slices.Sort(names)
	known := []string{helmsrcRelease}
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		for _, flags := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) { known = append(known, environmentName(f.Name)) })
		}
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(root)
	var warnings []string
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		text := console.OneLine(name) + " is set, but belongs to no flag"
		if near, ok := finding.Nearest(name, known); ok {
			text += ": did you mean " + near + "?"
		}
		warnings = append(warnings, text)
	}
	return warnings
}
