package cmd

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in releases; other builds report their module's.
var version = ""

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  helmsrc version",
		Args:    noArguments,
		RunE: a.runner(func(context.Context, []string) (int, error) {
			_, err := fmt.Fprintf(a.env.Stdout, "helmsrc %s %s %s/%s\n", versionString(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return exitOK, err
		}),
	}
}

// versionString is the release's version, or what the build knows of itself.
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
	return &usageError{
		err:  fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args[0]),
		hint: fmt.Sprintf("see '%s --help'", cmd.CommandPath()),
	}
}
