// Package cmd is the command line: it parses flags, opens the edges of the process, prints documents and picks the exit code.
// internal/reconcile decides about objects.
package cmd

import (
	"context"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/helmsrc/helmsrc/internal/console"
)

// Env is the environment of a run: its arguments, streams, clock and network. A test can run the whole program with an Env of
// its own.
type Env struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Terminal returns the columns and lines of the terminal behind Stderr, and whether there is one. It is called repeatedly,
	// because windows change their size.
	Terminal func() (width, height int, ok bool)
	// Reads reports whether Stdout is a terminal, where a person reads. Nil means never.
	Reads func() bool
	// Kept reports whether Stdout is a regular file, which no runner reads as a log. Nil means never.
	Kept func() bool
	// Foreground reports whether this program has the terminal now, and not the shell or another job. Nil means always.
	Foreground func() bool
	// Getenv reads the environment, also for proxies, logins and flags.
	Getenv func(string) string
	// Environ lists the environment, to find misspelt variables of flags. Nil means an empty environment.
	Environ func() []string
	Now     func() time.Time
	// Dial opens every connection of the run, for every protocol.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Program is the name under which the program was called, for usage texts.
	Program string
}

// restoreTerminal shows the cursor again, which an unfinished run has hidden.
func (e *Env) restoreTerminal() {
	if _, _, ok := e.Terminal(); ok && e.Getenv("TERM") != "dumb" {
		_, _ = io.WriteString(e.Stderr, console.ShowCursor)
	}
}

// clock returns the clock of the run. SOURCE_DATE_EPOCH (seconds since 1970) stops it, so that the same input and the same
// directory give the same bytes.
func (e *Env) clock() func() time.Time {
	if s := e.Getenv("SOURCE_DATE_EPOCH"); s != "" {
		if secs, err := strconv.ParseInt(s, 10, 64); err == nil && secs >= 0 {
			fixed := time.Unix(secs, 0).UTC()
			return func() time.Time { return fixed }
		}
	}
	return e.Now
}
