package render

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/envsubst"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

const (
	substituteMark = manifest.KustomizeGroup + "/substitute"
	disabled       = "disabled"

	// maxExpressions and maxNesting limit the recursion of the library. maxSubstituted is the limit, in bytes, of the
	// result.
	maxExpressions = 100_000
	maxNesting     = 100
	maxSubstituted = 32 << 20

	namePattern = `^[_[:alpha:]][_[:alpha:][:digit:]]*$`
)

// Unset selects the treatment of a variable without a value.
type Unset int

const (
	// UnsetDecides makes it empty, as Flux does, with a warning; it is an error in a field that decides about downloads or names.
	UnsetDecides Unset = iota
	// UnsetFails makes it an error everywhere.
	UnsetFails
	// UnsetEmpty makes it empty everywhere, as Flux does.
	UnsetEmpty
)

type variables struct {
	values   map[string]string
	secret   map[string]bool // that come from a Secret
	unset    Unset
	always   bool   // substitute although no variable is known
	hint     string // why some may be missing
	open     bool   // a variable without a value may have one in the cluster: keep it as it is written
	tolerant bool   // also keep it in deciding fields
	budget   *kustomize.Budget
}

func newVariables(unset Unset, b *kustomize.Budget) *variables {
	return &variables{values: map[string]string{}, secret: map[string]bool{}, unset: unset, budget: b}
}

// set adds variables, and replaces earlier ones. It removes line breaks, as the controller does.
func (v *variables) set(values map[string]string, secret func(name string) bool) {
	for name, value := range values {
		v.values[name] = strings.ReplaceAll(value, "\n", "")
		v.secret[name] = secret(name)
	}
}

// public reports that a variable does not come from a Secret.
func public(string) bool { return false }

// check returns an error for an invalid name: one such name makes the substitution of every object fail.
func (v *variables) check() error {
	for _, name := range slices.Sorted(maps.Keys(v.values)) {
		if !ValidName(name) {
			return fmt.Errorf("'%s' var name is invalid, must match '%s'", name, namePattern)
		}
	}
	return nil
}

// ValidName reports whether a name is a valid name of a variable.
func ValidName(name string) bool {
	for i, c := range name {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

func (v *variables) substitutes() bool { return v != nil && (len(v.values) > 0 || v.always) }

func (v *variables) hides(used []string) bool {
	return slices.ContainsFunc(used, func(name string) bool { return v.secret[name] })
}

// text substitutes the variables in a text. It also returns the names of the used variables.
func (v *variables) text(ctx context.Context, text string) (string, []string, error) {
	if err := v.check(); err != nil {
		return "", nil, err
	}
	if err := v.bounded(text); err != nil {
		return "", nil, err
	}
	used := map[string]bool{}
	missing, size := "", 0
	out, err := kustomize.Guard(func() (string, error) {
		return envsubst.Eval(text, func(name string) (string, bool) {
			value, ok := v.values[name]
			if size += len(value); size > maxSubstituted {
				return "", true
			}
			if ok {
				used[name] = true
			} else {
				missing = name
			}
			return value, ok || v.unset == UnsetEmpty
		})
	})
	if ctx.Err() != nil {
		return "", nil, context.Cause(ctx)
	}
	if err == nil && (size > maxSubstituted || len(out) > maxSubstituted) {
		return "", nil, &endlessError{fmt.Sprintf("variable substitution failed: more than %d MiB", maxSubstituted>>20)}
	}
	if err != nil {
		err = v.failure(err, missing)
	}
	return out, slices.Sorted(maps.Keys(used)), err
}

// bounded returns an error for text that the library would parse without end or expand without limit.
func (v *variables) bounded(text string) error {
	longest := 0
	for _, value := range v.values {
		longest = max(longest, len(value))
	}
	depth, count := 0, 0
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '}' && depth > 0:
			depth--
		case strings.HasPrefix(text[i:], "${"):
			depth++
			if count++; count > maxExpressions || depth > maxNesting {
				return &endlessError{"too many variables, or too deeply nested"}
			}
			rest := strings.TrimLeft(text[i+2:], "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
			if strings.HasPrefix(rest, "//") && longest*len(text) > 8*maxSubstituted {
				return &endlessError{"the values are too long to replace in them"}
			}
		}
	}
	return nil
}

// failure distinguishes a variable without a value from a mistake in an expression: the library has no error type for it, but
// looked the variable up last.
func (v *variables) failure(err error, missing string) error {
	text := fmt.Sprintf("variable substitution failed: %v", err)
	if missing != "" && v.unset != UnsetEmpty && strings.HasSuffix(err.Error(), fmt.Sprintf("%q", missing)) {
		return &unsetError{text: text, name: missing, hint: v.hint}
	}
	return &finding.Problem{Text: text, Advice: "write $${ if it is not a variable, or annotate the object with " + substituteMark + ": " + disabled}
}

// culprit returns the path of the first text in an object that cannot be substituted, nil if each can be alone.
func (v *variables) culprit(ctx context.Context, content map[string]any) []any {
	for path, value := range manifest.Leaves(content, nil) {
		if text, _ := value.(string); strings.Contains(text, "$") {
			if _, _, err := v.text(ctx, text); err != nil {
				return path
			}
		}
	}
	return nil
}

type unsetError struct {
	text, name, hint string
	path             []any // of the deciding field
}

func (e *unsetError) Error() string { return e.text }

// Variable returns the name of the variable.
func (e *unsetError) Variable() string { return e.name }

// Hint explains how to set the variable.
func (e *unsetError) Hint() string {
	if e.hint != "" {
		return e.hint
	}
	return finding.SetVariable(e.name) + finding.MakeEmpty
}

// missing is a ConfigMap or Secret that variables should come from.
type missing struct {
	text, hint string
	reason     string // why the cluster has it nevertheless; "" if unknown
}
