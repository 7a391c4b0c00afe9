// Package config sets the flags of commands: from the command line, the environment, a configuration file, or their defaults.
// It defines which flags a file may set, describes the file in a schema, and prints the effective values.
package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
)

const (
	// Annotation marks a command that reads the configuration file although it reads no manifests.
	Annotation = "helmsrc.dev/configuration"
	// UntrustedFlag is for manifests of strangers: their configuration file is ignored.
	UntrustedFlag = "untrusted"
	// InsecureFlag is for servers whose certificates are not verified.
	InsecureFlag = "insecure-skip-tls-verify"

	directoryFlag = "artifacts-dir"
	filesFlag     = "filename"
)

// Config is the configuration of a run. Configure changes it; only one goroutine may use it at a time.
type Config struct {
	Getenv       func(string) string
	Root         func() *cobra.Command // the root with all commands, whose flags are the keys of a file
	File         string                // the file that was read, "" without one
	Ignored      bool                  // a file was found, but not read because of --untrusted
	OwnDirectory bool                  // a user who trusts the checkout has named the artifacts directory
}

// Origins holds the origins of the values of flags that do not have their default.
type Origins map[string]string

// AddFlags adds the flags that choose the file. They have environment variables, but no keys in the file.
func AddFlags(fs *pflag.FlagSet) {
	fs.String("config", "", "`file` with values for flags (default: "+Name+" in the working directory or a parent, up to the root of the repository)")
	fs.Bool("no-config", false, "read no configuration file")
}

// Configure sets the flags of a command from the first of: flag, environment, file, default. Files that are given as arguments
// count as typed, like those of -f: a hook that passes the changed files does not want the files of the configuration.
func (c *Config) Configure(command *cobra.Command, filesGiven bool) (Origins, error) {
	from, flags := Origins{}, command.Flags()
	flags.Visit(func(f *pflag.Flag) { from[f.Name] = "--" + f.Name })
	if err := applyEnvironment(flags, c.Getenv, from); err != nil {
		return nil, err
	}
	c.OwnDirectory = ownsDirectory(flags, command.Name(), nil, from)
	if flags.Lookup(filesFlag) == nil && command.Annotations[Annotation] == "" {
		return from, nil
	}
	file, err := c.read(command, from)
	if file == nil || err != nil {
		return from, err
	}
	if file.ignored {
		c.Ignored = true
		return from, nil
	}
	c.File = file.path
	if filesGiven {
		file.forget(filesFlag)
	}
	err = file.apply(command.Name(), flags, from)
	c.OwnDirectory = ownsDirectory(flags, command.Name(), file, from)
	return from, err
}

// Beside returns the path of a file in the directory of the configuration, or in the working directory without one.
func (c *Config) Beside(name string) string {
	if filepath.Base(c.File) == Name {
		return filepath.Join(filepath.Dir(filepath.FromSlash(c.File)), name)
	}
	return name
}

// ownsDirectory reports whether the user has named the artifacts directory, and trusts the author of the checkout: a
// configuration that was found in the repository is not the user's choice.
func ownsDirectory(flags *pflag.FlagSet, command string, file *configuration, from Origins) bool {
	f := flags.Lookup(directoryFlag)
	if f == nil || !f.Changed {
		return false
	}
	if untrusted, err := flags.GetBool(UntrustedFlag); err == nil && untrusted {
		return false
	}
	if file == nil || !file.found {
		return true
	}
	s, ok := file.setting(command, f.Name)
	return !ok || from[f.Name] != file.position(s.line)
}

// choicesAnnotation holds the values of a flag with a fixed set of values.
const choicesAnnotation = "helmsrc.dev/choices"

// SetChoices sets the values of a flag with a fixed set of values, for completions and for the schema of the file.
func SetChoices(fs *pflag.FlagSet, flag string, values ...string) {
	fs.Lookup(flag).Annotations = map[string][]string{choicesAnnotation: values}
}

// Choices returns the values of a flag with a fixed set of values, nil for any other flag.
func Choices(f *pflag.Flag) []string { return f.Annotations[choicesAnnotation] }

// OpenEnded reports whether a choice is only the beginning of a value.
func OpenEnded(choice string) bool { return strings.HasSuffix(choice, "=") }

// Variable returns the environment variable of a flag: --artifacts-dir is HELMSRC_ARTIFACTS_DIR.
func Variable(flag string) string {
	return "HELMSRC_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// applyEnvironment sets every flag that is not set on the command line from its
// environment variable. A list has one value per line.
func applyEnvironment(flags *pflag.FlagSet, getenv func(string) string, origins Origins) error {
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || failed != nil {
			return
		}
		value := getenv(Variable(f.Name))
		if value == "" {
			return
		}
		if err := setFlag(flags, f, value); err != nil {
			failed = &exit.UsageError{Err: fmt.Errorf("%s: %w", Variable(f.Name), err)}
		}
		origins[f.Name] = Variable(f.Name)
	})
	return failed
}

func setFlag(flags *pflag.FlagSet, f *pflag.Flag, value string) error {
	if !isList(f) {
		return flags.Set(f.Name, value)
	}
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if err := flags.Set(f.Name, line); err != nil {
			return err
		}
	}
	return nil
}

// helmsrcRelease is read by the GitHub Action, which passes on its environment.
const helmsrcRelease = "HELMSRC_RELEASE"

// UnknownVariables returns warnings about variables that look like those of flags, but belong to no flag. It reads the flags
// of all commands only if the environment has variables with the prefix HELMSRC_ besides that of the Action.
func (c *Config) UnknownVariables(environ []string) []string {
	var names []string
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "HELMSRC_") && name != helmsrcRelease && value != "" {
			names = append(names, name)
		}
	}
	if names == nil {
		return nil
	}
	slices.Sort(names)
	known := []string{helmsrcRelease}
	var add func(*cobra.Command)
	add = func(command *cobra.Command) {
		for _, flags := range []*pflag.FlagSet{command.Flags(), command.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) { known = append(known, Variable(f.Name)) })
		}
		for _, sub := range command.Commands() {
			add(sub)
		}
	}
	add(c.Root())
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
