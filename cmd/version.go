package cmd

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/report"
)

// version is set by the linker in releases; other builds report the version of the module.
var version = ""

func newVersionCommand(a *app) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  helmsrc version\n  helmsrc version -o json",
		Args:    noArguments,
		RunE: a.runner(func(context.Context, []string) (int, error) {
			return a.printVersion(format)
		}),
	}
	c.Flags().StringVarP(&format, "output", "o", "text", "`format` of stdout: text, json, yaml")
	config.SetChoices(c.Flags(), "output", "text", "json", "yaml")
	return c
}

// printVersion prints the output of --version, in a format for people or for programs.
func (a *app) printVersion(format string) (int, error) {
	about := struct {
		Version   string `json:"version"`
		GoVersion string `json:"goVersion"`
		Platform  string `json:"platform"`
	}{versionString(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	var err error
	switch format {
	case "json":
		err = report.Encode(a.env.Stdout, about)
	case "yaml":
		var text []byte
		if text, err = yaml.Marshal(about); err == nil {
			_, err = a.env.Stdout.Write(text)
		}
	case "text", "table", "wide", "name": // HELMSRC_OUTPUT is meant for other commands
		_, err = io.WriteString(a.env.Stdout, versionLine())
	default:
		return exit.Usage, oneOf("output", format, "text", "json", "yaml")
	}
	return exit.OK, err
}

func versionLine() string {
	return fmt.Sprintf("helmsrc %s %s %s/%s\n", versionString(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionString returns the version of the release, or that of the module in other builds.
func versionString() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &exit.UsageError{
		Err:    fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args[0]),
		Advice: fmt.Sprintf("see '%s --help'", cmd.CommandPath()),
	}
}
