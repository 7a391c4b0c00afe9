// Package cmd is the command line: it parses flags, opens the edges of the process, prints documents and picks the exit code.
// internal/reconcile decides about objects.
package cmd

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/heap"
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

// Main runs the program in the real process and returns its exit code.
func Main() int {
	heap.Adapt()
	env := &Env{
		Args:       os.Args[1:],
		Stdin:      os.Stdin,
		Stdout:     os.Stdout,
		Stderr:     os.Stderr,
		Terminal:   func() (int, int, bool) { return console.TerminalSize(os.Stderr) },
		Reads:      func() bool { return term.IsTerminal(int(os.Stdout.Fd())) },
		Kept:       func() bool { info, err := os.Stdout.Stat(); return err == nil && info.Mode().IsRegular() },
		Foreground: func() bool { return foreground(int(os.Stderr.Fd())) },
		Getenv:     os.Getenv,
		Environ:    os.Environ,
		Now:        time.Now,
		Dial:       (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext,
		Program:    programName(os.Args[0]),
	}
	return Interruptible(context.Background(), env, os.Exit)
}

const (
	dialTimeout = 30 * time.Second
	keepAlive   = 30 * time.Second
)

// Interruptible runs env and cancels the run at the first SIGINT, SIGTERM or SIGHUP, so that it can still print its results.
// At the second signal it calls end at once.
func Interruptible(ctx context.Context, env *Env, end func(int)) int {
	closeDefaultTransport()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// A terminal that is closed ends the run, as the other signals do, unless nohup started it.
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-signals:
			cancel(exit.ErrInterrupted)
		case <-done:
			return
		}
		select {
		case <-signals:
			env.restoreTerminal()
			end(exit.Interrupted)
		case <-done:
		}
	}()
	return Run(ctx, env)
}

// closeDefaultTransport makes the default transport of net/http refuse every connection: the program connects only through
// Env.Dial. kustomize, which makes its own client for URLs, therefore cannot connect at all.
func closeDefaultTransport() {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return
	}
	refuse := func(context.Context, string, string) (net.Conn, error) { return nil, errNoConnection }
	t.Proxy, t.DialContext, t.DialTLSContext = nil, refuse, refuse
}

var errNoConnection = errors.New("this program opens no connection here")

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
