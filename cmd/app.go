package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/listing"
	"github.com/helmsrc/helmsrc/internal/publish"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/table"
)

// app holds the state that the subcommands of one run share. Run makes it; the chosen command changes it, in one goroutine,
// and it ends with the process.
type app struct {
	env     *Env
	now     func() time.Time
	started time.Time
	began   time.Time // the same by the clock of the run
	console *console.Console
	code    int // of the subcommand that ran, when it ended without an error

	command   string // the subcommand
	config    config.Config
	worker    session.Worker
	publisher publish.Publisher
	lister    listing.Lister
	reported  bool        // a run was reported
	paper     table.Style // of stdout
	help      helpPages
}

// runner adapts the run function of a subcommand to cobra: it keeps the exit code in the app, and returns the error to Run.
func (a *app) runner(run func(ctx context.Context, args []string) (int, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		code, err := run(cmd.Context(), args)
		a.code = code
		return err
	}
}
