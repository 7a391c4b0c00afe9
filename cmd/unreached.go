package cmd

import (
	"context"
	"fmt"
	"io"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
)

// listUnreached prints the files that nothing applies.
func (a *app) listUnreached(ctx context.Context, o *inputOptions, args []string) (int, error) {
	o.Validating = true
	inputs, err := a.readClusters(ctx, o, args, "")
	if err != nil {
		return exit.Usage, err
	}
	for _, name := range inputs[0].Unreached {
		if _, err := io.WriteString(a.env.Stdout, name+"\n"); err != nil {
			return exit.Usage, fmt.Errorf("cannot print the list: %w", err)
		}
	}
	return inputs[0].Code, nil
}

// reportUnreached says how many files nothing applies. Of files that were passed it says so by name: they are judged by
// themselves.
func reportUnreached(to *console.Console, unreached []string, passed bool) {
	switch {
	case len(unreached) == 0:
	case passed:
		for _, name := range unreached {
			to.Info(console.Subject{}, name+" is applied by nothing: it is checked on its own")
		}
	case len(unreached) == 1:
		to.Info(console.Subject{}, "1 file is applied by nothing: helmsrc validate --unreached lists it")
	default:
		to.Info(console.Subject{}, fmt.Sprintf("%d files are applied by nothing: helmsrc validate --unreached lists them", len(unreached)))
	}
}
