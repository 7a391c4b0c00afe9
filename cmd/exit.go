package cmd

import "errors"

// Exit codes. When several apply, worst says which one wins.
const (
	exitOK          = 0
	exitFailed      = 1 // an object is not Ready, or was rejected
	exitUsage       = 2 // wrong usage, nothing selected, unreadable input
	exitIntegrity   = 3 // a digest or signature check failed
	exitDrift       = 4 // something differs that was asked about: outdated --fail, update --check, plan --fail-on-change
	exitTransient   = 5 // nothing worse than failures that a retry may help
	exitInterrupted = 130
)

// errInterrupted is the cause of the run's context after SIGINT, SIGTERM or SIGHUP.
var errInterrupted = errors.New("interrupted")

// usageError is wrong usage: it ends the run with exit code 2 and a pointer to
// the command's help.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }
func (e *usageError) Hint() string  { return e.hint }

// codeOfFailure is the exit code of an error that ended the run.
func codeOfFailure(err error) int {
	var passing interface{ Transient() bool }
	var usage *usageError
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, &passing) && passing.Transient():
		return exitTransient
	case errors.As(err, &usage):
		return exitUsage
	}
	return exitFailed
}

// worst joins two exit codes of parts of a run into the one of the whole.
func worst(a, b int) int {
	for _, code := range []int{exitInterrupted, exitIntegrity, exitUsage, exitFailed, exitTransient, exitDrift} {
		if a == code || b == code {
			return code
		}
	}
	return exitOK
}
