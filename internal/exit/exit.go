// Package exit defines the exit codes of the program, and the error of wrong usage.
package exit

import (
	"errors"
	"fmt"
)

// Exit codes. If several apply, Worst returns the one that takes precedence.
const (
	OK          = 0
	Failed      = 1 // an object is not Ready, or was rejected
	Usage       = 2 // wrong usage, nothing selected, unreadable input
	Integrity   = 3 // a digest or signature check failed
	Drift       = 4 // a requested check found a difference: outdated --fail, update --check, plan --fail-on-change
	Transient   = 5 // only failures that a retry may fix
	Interrupted = 130
)

// Worst returns the exit code of a run with two parts, from the codes of the parts.
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

// A UsageError reports wrong usage, which ends the run.
type UsageError struct {
	// Option is the option that Err is about, "" for several or no option, and Value its value unless Err contains it. The
	// command line puts both before the text.
	Option, Value string
	Err           error
	Advice        string
}

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Hint returns the advice.
func (e *UsageError) Hint() string { return e.Advice }

// An OptionError reports a failed operation on the file or place that an option names. It is not wrong usage.
type OptionError struct {
	Option, Value string
	Err           error
}

func (e *OptionError) Error() string { return e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

// Usagef returns a formatted UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}
