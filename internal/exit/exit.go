// Package exit has the exit codes of the program, and the error of wrong usage.
package exit

import (
	"errors"
	"fmt"
)

// Exit codes. When several apply, Worst says which one wins.
const (
	OK          = 0
	Failed      = 1 // an object is not Ready, or was rejected
	Usage       = 2 // wrong usage, nothing selected, unreadable input
	Integrity   = 3 // a digest or signature check failed
	Drift       = 4 // something differs that was asked about: outdated --fail, update --check, plan --fail-on-change
	Transient   = 5 // nothing worse than failures that a retry may help
	Interrupted = 130
)

// Worst joins two exit codes of parts of a run into the one of the whole.
func Worst(a, b int) int {
	for _, code := range []int{Interrupted, Integrity, Usage, Failed, Transient, Drift} {
		if a == code || b == code {
			return code
		}
	}
	return OK
}

// ErrInterrupted is the cause of the context of a run after SIGINT, SIGTERM or SIGHUP.
var ErrInterrupted = errors.New("interrupted")

// CodeOf returns the exit code of an error that ended a run.
func CodeOf(err error) int {
	var passing interface{ Transient() bool }
	var usage *UsageError
	switch {
	case errors.Is(err, ErrInterrupted):
		return Interrupted
	case errors.As(err, &passing) && passing.Transient():
		return Transient
	case errors.As(err, &usage):
		return Usage
	}
	return Failed
}

// A UsageError is wrong usage, which ends the run.
type UsageError struct {
	// Option is the option that Err is about, "" for several or no option, and Value its value where Err does not say that. The
	// command line puts both before the text.
	Option, Value string
	Err           error
	Advice        string
}

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Hint returns the advice.
func (e *UsageError) Hint() string { return e.Advice }

// An OptionError is what failed of that which an option names, and is no wrong usage.
type OptionError struct {
	Option, Value string
	Err           error
}

func (e *OptionError) Error() string { return e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

// Usagef is wrong usage in words.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}
