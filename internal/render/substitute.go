package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	goyaml "go.yaml.in/yaml/v2"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

const (
	substituteMark = manifest.KustomizeGroup + "/substitute"
	disabled       = "disabled"

	// maxUnset is the limit of variables without a value in an object: each requires another pass over the object.
	maxUnset = 500

	// maxExpressions and maxNesting limit the recursion of the library. maxSubstituted is the limit, in bytes, of the
	// result.
	maxExpressions = 100_000
	maxNesting     = 100
	maxSubstituted = 32 << 20

	namePattern = `^[_[:alpha:]][_[:alpha:][:digit:]]*$`
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

type substituted struct {
	content map[string]any
	used    []string // variables with a value
	unset   []string // variables without a value
	open    bool     // these stay as they are written
}

// object substitutes the variables in the YAML text of an object, including its keys.
func (v *variables) object(ctx context.Context, content map[string]any) (*substituted, error) {
	if !v.substitutes() || marked(content, substituteMark, disabled) {
		return &substituted{content: content}, nil
	}
	if !mayName(content) {
		return &substituted{content: withNumbers(content, rounded)}, v.check()
	}
	text, err := textOf(content)
	if err != nil {
		return nil, err
	}
	s := &substituted{}
	out, used, err := v.text(ctx, string(text))
	if s.used = used; errors.As(err, new(*unsetError)) && (v.unset == UnsetDecides || v.open && v.tolerant) {
		s, out, err = v.withoutValues(ctx, content, string(text))
	}
	if err != nil {
		return nil, fmt.Errorf("post build failed for '%s': envsubst error: %w", longName(content), err)
	}
	var result map[string]any
	if err = v.budget.Fits(postBuild, weightOfText(out)); err == nil {
		result, err = kustomize.Guard(func() (map[string]any, error) { return parseObject(out) })
	}
	if err == nil {
		err = v.budget.Keep(postBuild, keptForms*max(0, kustomize.WeightOf(result)-kustomize.WeightOf(content)))
	}
	if err != nil {
		return nil, fmt.Errorf("post build failed for '%s': envsubst error: %w", longName(content), err)
	}
	s.content = withNumbers(result, rounded)
	_, _ = manifest.Shared(s.content, content)
	return s, nil
}

// textOf marshals an object like the controller's library, which uses JSON.
func textOf(content map[string]any) ([]byte, error) {
	return goyaml.Marshal(withNumbers(content, wholeNumber))
}

func mayName(value any) bool {
	switch value := value.(type) {
	case string:
		return strings.Contains(value, "$")
	case []any:
		return slices.ContainsFunc(value, mayName)
	case map[string]any:
		for key, v := range value {
			if strings.Contains(key, "$") || mayName(v) {
				return true
			}
		}
	}
	return false
}

// keptForms is the number of copies of an object's text that are kept: substituted, rounded, and for display.
const keptForms = 4

// postBuild names the substitutions in errors about limits.
const postBuild = "post build"

// parsedWeight estimates the memory, in bytes, that a value of a text needs while the text is parsed. parsedForms is the number of
// copies of the text at that time.
const (
	parsedWeight = 320
	parsedForms  = 8
)

// weightOfText estimates the maximum memory, in bytes, that an object needs while its text is parsed.
func weightOfText(text string) int64 {
	values := 0
	for _, mark := range []string{",", "\n", ":"} {
		values += strings.Count(text, mark)
	}
	return int64(parsedForms*len(text) + parsedWeight*values)
}

func parseObject(text string) (map[string]any, error) {
	data, err := sigsyaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, errNotYAML()
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil || content == nil {
		return nil, errNotYAML()
	}
	return content, nil
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

// longName returns the name of an object in the controller's messages.
func longName(content map[string]any) string {
	apiVersion, kind, _, name := manifest.Identify(content)
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		group, version = "", apiVersion
	}
	if group == "" {
		return fmt.Sprintf("%s.%s/%s", kind, version, name)
	}
	return fmt.Sprintf("%s.%s.%s/%s", kind, version, group, name)
}

func marked(content map[string]any, key, value string) bool {
	return slices.ContainsFunc([]string{"labels", "annotations"}, func(field string) bool {
		return strings.EqualFold(manifest.At[string](content, "metadata", field, key), value)
	})
}

// errNotYAML returns the error of text that is not YAML after the substitution. The library's message would quote values.
func errNotYAML() error {
	return &finding.Problem{
		Text:   "YAMLToJSON: the object is not YAML after the substitution",
		Advice: "if the value of a variable has a colon, a brace or a quote, put quotes into the value; quotes around ${…} are removed before it is substituted",
	}
}

// exactIntegers is the largest integer that a substitution keeps exactly: the controller parses the result with a library that
// only has floating point numbers.
const exactIntegers = 1 << 53

// rounded returns the integer that the controller's library makes of a number, and whether it differs.
func rounded(number any) (any, bool) {
	i, ok := number.(int64)
	if !ok || i >= -exactIntegers && i <= exactIntegers {
		return number, false
	}
	f := float64(i)
	if f >= math.MaxInt64 { // beyond int64, as a float64
		return f, true
	}
	return int64(f), true
}

// wholeNumber returns the integer that JSON writes for a floating point number without a fraction.
func wholeNumber(number any) (any, bool) {
	f, ok := number.(float64)
	switch {
	case !ok || f != math.Trunc(f) || f < math.MinInt64 || f >= math.MaxUint64:
		return number, false
	case f >= math.MaxInt64:
		return uint64(f), true
	}
	return int64(f), true
}

// withNumbers returns a value with its numbers replaced by other. Parts without a changed number are not copied.
func withNumbers[T any](value T, other func(any) (any, bool)) T {
	v, _ := replaced(value, other)
	return v.(T)
}

func replaced(v any, other func(any) (any, bool)) (_ any, changed bool) {
	switch v := v.(type) {
	case map[string]any:
		c := v
		for key, e := range v {
			if e, ok := replaced(e, other); ok {
				if !changed {
					c, changed = maps.Clone(v), true
				}
				c[key] = e
			}
		}
		return c, changed
	case []any:
		c := v
		for i, e := range v {
			if e, ok := replaced(e, other); ok {
				if !changed {
					c, changed = slices.Clone(v), true
				}
				c[i] = e
			}
		}
		return c, changed
	}
	return other(v)
}
