package cmd

import (
	"fmt"
	"io"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/status"
)

// formatOf refuses a value of --output that is neither one of these formats nor a template.
func formatOf(format string, formats ...string) error {
	template, err := status.ParseTemplate(format)
	switch {
	case err != nil:
		return &exit.UsageError{Err: fmt.Errorf("--output: %w", err)}
	case template != nil:
		return nil
	}
	return oneOf("output", format, append(formats, status.JSONPath+"...", status.GoTemplate+"...")...)
}

// executeTemplate writes what a template picks of a value, unless there is an error already.
func executeTemplate(w io.Writer, template *status.Template, err error, value any) error {
	if err != nil {
		return err
	}
	return template.Execute(w, value)
}
