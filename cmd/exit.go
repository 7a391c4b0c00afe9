package cmd

import (
	"errors"
	"fmt"

	"github.com/helmsrc/helmsrc/internal/exit"
)

// The exit codes, by what the commands call them.
const (
	exitOK          = exit.OK
	exitFailed      = exit.Failed
	exitUsage       = exit.Usage
	exitIntegrity   = exit.Integrity
	exitDrift       = exit.Drift
	exitTransient   = exit.Transient
	exitInterrupted = exit.Interrupted
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
	var below *exit.UsageError
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, &passing) && passing.Transient():
		return exitTransient
	case errors.As(err, &usage), errors.As(err, &below):
		return exitUsage
	}
	return exitFailed
}

// withOption puts the option that an error is about before its text.
func withOption(err error) error {
	var usage *exit.UsageError
	if !errors.As(err, &usage) || usage.Option == "" {
		return err
	}
	option := "--" + usage.Option
	if usage.Value != "" {
		option += " " + usage.Value
	}
	return &usageError{err: fmt.Errorf("%s: %w", option, err), hint: usage.Advice}
}

// worst joins two exit codes of parts of a run into the one of the whole.
func worst(a, b int) int { return exit.Worst(a, b) }
