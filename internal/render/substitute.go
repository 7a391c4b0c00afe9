package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// maxUnset is the limit of variables without a value in an object: each requires another pass over the object.
const maxUnset = 500

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

// withoutValues substitutes a text with variables that have no value. If the cluster may know them, they stay as they are written;
// otherwise they are empty, as in the cluster. A variable in a deciding field is an error.
func (v *variables) withoutValues(ctx context.Context, content map[string]any, text string) (*substituted, string, error) {
	if err := v.decidedObject(ctx, content); err != nil && !(v.open && v.tolerant) {
		return nil, "", err
	}
	s := &substituted{}
	known := *v
	known.values = maps.Clone(v.values)
	out, used, err := known.text(ctx, text)
	for unset := new(unsetError); len(s.unset) < maxUnset && errors.As(err, &unset); {
		s.unset = append(s.unset, unset.name)
		if known.values[unset.name] = ""; v.open {
			known.values[unset.name] = "${" + unset.name + "}"
		}
		out, used, err = known.text(ctx, text)
	}
	slices.Sort(s.unset)
	s.open = v.open && len(s.unset) > 0
	s.used = slices.DeleteFunc(used, func(name string) bool { return slices.Contains(s.unset, name) })
	return s, out, err
}

// decidedObject returns the error of the first variable without a value in a deciding field. For an object that is not Flux's,
// only its type and metadata count.
func (v *variables) decidedObject(ctx context.Context, content map[string]any) error {
	apiVersion, _, _, _ := manifest.Identify(content)
	group, _, _ := strings.Cut(apiVersion, "/")
	if !isFluxGroup(group) {
		content = map[string]any{"apiVersion": content["apiVersion"], "kind": content["kind"], "metadata": content["metadata"]}
	}
	for path, value := range manifest.Leaves(content, free) {
		text, _ := value.(string)
		if !strings.Contains(text, "$") || !deciding[lastKey(path)] {
			continue
		}
		if _, _, err := v.text(ctx, text); err != nil {
			if unset, ok := errors.AsType[*unsetError](err); ok {
				unset.path = path
			}
			return err
		}
	}
	return nil
}

// deciding lists the fields that determine downloads, names and references: chart, version, URL and so on. The last key of
// a path counts, except below a key in free.
var deciding = map[string]bool{
	"chart": true, "version": true, "url": true, "image": true,
	"apiVersion": true, "kind": true, "name": true, "namespace": true, "key": true, "valuesKey": true, "serviceAccountName": true,
	"releaseName": true, "targetNamespace": true, "storageNamespace": true, "namePrefix": true, "nameSuffix": true,
	"branch": true, "tag": true, "semver": true, "semverFilter": true, "commit": true, "digest": true, "range": true, "pattern": true,
	"bucketName": true, "endpoint": true, "region": true, "prefix": true, "path": true, "fromPath": true, "toPath": true,
	"valuesFile": true, "valuesFiles": true, "sparseCheckout": true, "components": true,
}

var free = map[string]bool{
	"values": true, "postRenderers": true, "patches": true, "commonMetadata": true, "labels": true, "annotations": true,
	"substitute": true, "data": true, "stringData": true, "status": true,
}

func lastKey(path []any) string {
	for _, step := range slices.Backward(path) {
		if key, ok := step.(string); ok {
			return key
		}
	}
	return ""
}

func ofFlux(o *manifest.Object) bool { return isFluxGroup(o.Group()) }

func isFluxGroup(group string) bool {
	return strings.HasSuffix(group, "toolkit.fluxcd.io") || manifest.IsFlux1(group)
}

// shown substitutes the variables in an object for display, without values from Secrets. The arguments are the object, and the
// part of it that may be shown before the substitution.
func (v *variables) shown(ctx context.Context, content, shown map[string]any) map[string]any {
	if !v.substitutes() {
		return shown
	}
	public := &variables{values: maps.Clone(v.values), secret: v.secret, unset: v.unset, always: v.always, open: v.open, tolerant: true, budget: v.budget}
	for name := range v.secret {
		if v.secret[name] {
			public.values[name] = conceal.Hidden
		}
	}
	s, err := public.object(ctx, shown)
	if err != nil {
		// An expression fails on the hidden value: hide all texts with variables. Keys are shown as they are written.
		hidden, _ := unexpanded(content, shown).(map[string]any)
		return hidden
	}
	return s.content
}

// unexpanded returns the object for display without texts that contain variables.
func unexpanded(content, shown any) any {
	return rebuilt(content, []any{shown}, func(v any, at []any) (any, bool) {
		text, _ := v.(string)
		list, isList := v.([]any)
		same, _ := at[0].([]any)
		if strings.Contains(text, "$") || isList && len(same) != len(list) {
			return conceal.Hidden, true
		}
		return at[0], isLeaf(v)
	})
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
