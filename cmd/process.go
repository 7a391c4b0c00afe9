package cmd

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/heap"
)

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
	log.SetOutput(io.Discard) // kustomize writes values of Secrets there, past all that conceals them
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
