package cmd

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/table"
)

func addConsoleFlags(fs *pflag.FlagSet) {
	fs.BoolP("quiet", "q", false, "print errors only")
	fs.CountP("verbose", "v", "print more: requests with -v, decisions as well with -vv (repeatable)")
	fs.String("log-format", "text", "`format` of stderr: text or json")
	config.SetChoices(fs, "log-format", "text", "json")
	fs.Bool("no-progress", false, "print no live rows on a terminal")
	fs.String("color", "auto", "`when` to use colour: auto, always, never (NO_COLOR is honoured)")
	config.SetChoices(fs, "color", "auto", "always", "never")
}

// consoleOptions reads the flags of addConsoleFlags. The origins of their values decide between conflicting flags.
func consoleOptions(fs *pflag.FlagSet, from config.Origins, env *Env) (console.Options, error) {
	quiet, _ := fs.GetBool("quiet")
	verbose, _ := fs.GetCount("verbose")
	format, _ := fs.GetString("log-format")
	noProgress, _ := fs.GetBool("no-progress")
	color, _ := fs.GetString("color")
	var o console.Options
	if quiet && verbose > 0 {
		byFlag := from["quiet"] == "--quiet"
		if byFlag == (from["verbose"] == "--verbose") {
			return o, exit.Usagef("--quiet and --verbose are mutually exclusive")
		}
		quiet = byFlag // a typed flag takes precedence over the environment and the file
	}
	o = console.Options{Verbosity: verbose, JSON: format == "json", GitHub: env.Getenv("GITHUB_ACTIONS") == "true", Terminal: env.Terminal, Now: env.clock()}
	if quiet {
		o.Verbosity = -1
	}
	_, _, terminal := env.Terminal()
	smart := terminal && env.Getenv("TERM") != "dumb"
	o.Color = color == "always" || color == "auto" && smart && env.Getenv("NO_COLOR") == ""
	if smart && !noProgress && !quiet && !o.JSON {
		o.Rows = &console.Rows{Now: env.Now, ASCII: notUTF8(env.Getenv), Foreground: env.Foreground, OnSuspension: onSuspension}
	}
	return o, nil
}

// defaultColumns is the width of a table if neither a terminal nor COLUMNS sets it.
const defaultColumns = 80

// paperOf returns the style of tables on stdout: the width of the terminal or of COLUMNS, colours, and the character set.
func paperOf(fs *pflag.FlagSet, env *Env) table.Style {
	s := table.Style{Columns: defaultColumns, ASCII: notUTF8(env.Getenv)}
	color, _ := fs.GetString("color")
	reads := env.Reads != nil && env.Reads()
	if width, _, ok := env.Terminal(); ok && reads {
		s.Columns = width
	} else if columns, err := strconv.Atoi(env.Getenv("COLUMNS")); err == nil && columns > 0 {
		s.Columns = columns
	}
	s.Color = color == "always" || color == "auto" && reads && env.Getenv("TERM") != "dumb" && env.Getenv("NO_COLOR") == ""
	return s
}

// notUTF8 reports whether the locale names a character set other than UTF-8. It is false without a locale.
func notUTF8(getenv func(string) string) bool {
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return locale != "" && !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
}
