package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// advised adds to an error of wrong usage the option that the error is about, as it is typed on the command line, and advice
// on how to correct the command.
func advised(ctx context.Context, err error) error {
	var usage *exit.UsageError
	var option *exit.OptionError
	switch {
	case errors.As(err, &option):
		return fmt.Errorf("%s: %w", spelled(option.Option, option.Value), err)
	case !errors.As(err, &usage):
		return err
	}
	var object *load.NoObjectError
	var nothing *load.NothingSelectedError
	switch {
	case errors.As(usage.Err, &object):
		return &exit.UsageError{Err: err, Advice: objectAdvice(ctx, object)}
	case errors.As(usage.Err, &nothing):
		return &exit.UsageError{Err: err, Advice: selectionAdvice(ctx, nothing)}
	case usage.Option == "":
		return err
	}
	return &exit.UsageError{Err: fmt.Errorf("%s: %w", spelled(usage.Option, usage.Value), err), Advice: usage.Advice}
}

// spelled returns an option as it is typed on the command line.
func spelled(option, value string) string { return strings.TrimRight("--"+option+" "+value, " ") }

func objectAdvice(ctx context.Context, e *load.NoObjectError) string {
	if kind, ok := load.KindNamed(e.Selector.Text); ok && e.Next != nil {
		return "kind and name are one argument: " + kind + "/" + e.Next.Text
	}
	if advice := meant(e.Selector.Text); advice != "" || e.Inputs == nil {
		return advice
	}
	if advice := nearestObject(e.Selector, e.Inputs); advice != "" {
		return advice
	}
	return deeper(ctx, e.Inputs[0])
}

func selectionAdvice(ctx context.Context, e *load.NothingSelectedError) string {
	if e.Elsewhere() {
		return "no object is in namespace " + e.Input.Namespace
	}
	if e.Input.Code == exit.Usage {
		return ""
	}
	if advice := deeper(ctx, e.Input); advice != "" {
		return advice
	}
	return "helmsrc supports " + strings.Join(manifest.BareKinds(reconcile.Kinds().Names()), ", ") + "; --allow-empty accepts an input without them"
}

// deeper returns the advice to use -R if the directories below hold objects of known kinds, else "".
func deeper(ctx context.Context, in *load.Input) string {
	kinds := in.Options.KindsBelow(ctx, in)
	if len(kinds) == 0 {
		return ""
	}
	return "-R also reads the subdirectories, which contain " + strings.Join(kinds, ", ")
}

// nearestObject returns the advice to use the object of the inputs whose name is nearest to that of the selector, else "".
func nearestObject(s load.Selector, inputs []*load.Input) string {
	var names []string
	for _, in := range inputs {
		for _, obj := range in.Inventory.Objects() {
			if s.Fits(obj.Kind) && (s.Namespace == "" || s.Namespace == obj.Namespace) {
				if _, _, name := obj.Called(); name == obj.Name { // a name of a Secret is no hint
					names = append(names, name)
				}
			}
		}
	}
	if near, ok := finding.Nearest(s.Name, names); ok {
		return fmt.Sprintf("did you mean %s?", strings.TrimSuffix(s.Text, s.Name)+near)
	}
	return ""
}

// noSubcommand returns an error for words that are not a subcommand, and names the nearest one.
func noSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := fmt.Sprintf("see '%s --help'", cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean '%s %s'?", cmd.CommandPath(), near[0])
	}
	if args[0] == "diff" {
		hint = fmt.Sprintf("'%s plan --diff' prints what changes", cmd.CommandPath())
	}
	return &exit.UsageError{Err: fmt.Errorf("unknown command %q", args[0]), Advice: hint}
}
