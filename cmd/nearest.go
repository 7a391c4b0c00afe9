package cmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
