package cmd

import (
	"errors"
	"fmt"

	"github.com/helmsrc/helmsrc/internal/exit"
)

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
	return &exit.UsageError{Err: fmt.Errorf("%s: %w", option, err), Advice: usage.Advice}
}
