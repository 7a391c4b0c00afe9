// Package resourceset computes the objects of a ResourceSet from its inputs, in bounded memory and time. It does not use a
// server: a set that needs one is not expanded.
package resourceset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/cel"
)

// The kinds, their API group, and the annotations that decide about an object.
const (
	Group        = "fluxcd.controlplane.io"
	Kind         = "ResourceSet"
	ProviderKind = "ResourceSetInputProvider"
	Static       = "Static"

	reconcileAnnotation = Group + "/reconcile"
	copyFromAnnotation  = Group + "/copyFrom"
	convertAnnotation   = Group + "/convertKubeConfigFrom"

	disabled = "disabled"
)

// Disabled reports whether the operator does not reconcile a ResourceSet or provider.
func Disabled(content map[string]any) bool {
	return strings.EqualFold(annotated(content, reconcileAnnotation), disabled)
}

// The limits of one set.
const (
	maxObjects      = 10_000
	maxPermutations = 10_000
	maxText         = 1 << 20 // bytes of one rendered text
)

// The limits of all sets that share a budget.
const (
	maxAllText  = 32 << 20 // rendered bytes
	maxAllSteps = 2_000_000
)

// Budget limits sets that are expanded one after the other.
type Budget struct{ text, steps int }

func (b *Budget) spendText(n int) error {
	if b.text += n; b.text > maxAllText {
		return fmt.Errorf("more than %d MiB of text in all ResourceSets", maxAllText>>20)
	}
	return nil
}

func (b *Budget) spendSteps(n int) error {
	if b.steps += n; b.steps > maxAllSteps {
		return fmt.Errorf("more than %d steps in all ResourceSets", maxAllSteps)
	}
	return nil
}

// Spec holds the fields of the spec of a ResourceSet that matter here.
type Spec struct {
	DependsOn     []Dependency     `json:"dependsOn"`
	Inputs        []map[string]any `json:"inputs"`
	InputsFrom    []InputsFrom     `json:"inputsFrom"`
	InputStrategy struct {
		Name                  string `json:"name"`
		IncludeEmptyProviders bool   `json:"includeEmptyProviders"`
	} `json:"inputStrategy"`
	Resources         []map[string]any `json:"resources"`
	ResourcesTemplate string           `json:"resourcesTemplate"`
	Steps             []Step           `json:"steps"`
	CommonMetadata    struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"commonMetadata"`
}

// Step is a part of a set. All steps are expanded together.
type Step struct {
	Name              string           `json:"name"`
	Resources         []map[string]any `json:"resources"`
	ResourcesTemplate string           `json:"resourcesTemplate"`
}

// InputsFrom refers to providers.
type InputsFrom struct {
	Name     string    `json:"name"`
	Selector *Selector `json:"selector"`
}

// Selector chooses providers by their labels.
type Selector struct {
	MatchLabels      map[string]string `json:"matchLabels"`
	MatchExpressions []struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	} `json:"matchExpressions"`
}

// Provider is a ResourceSetInputProvider.
type Provider struct {
	Namespace, Name string
	Labels          map[string]string
	Disabled        bool // it is not reconciled, and has no inputs
	Spec            struct {
		Type          string         `json:"type"`
		DefaultValues map[string]any `json:"defaultValues"`
	}
}

// Set is a ResourceSet.
type Set struct {
	Namespace, Name string
	Spec            Spec
	Providers       []Provider // of its namespace
	Budget          *Budget    // nil for a separate budget
}

// Object is an object of a set.
type Object struct {
	Content map[string]any
	Path    []any // of the field that it is made from
	// Copied is set if its data is a copy of another object's data.
	Copied bool
	// From is the namespace and name of that object, with a slash; "" if the data is converted.
	From string
}

// ServerError reports a set that only a cluster can expand.
type ServerError struct{ what string }

func (e *ServerError) Error() string { return e.what }

// Error reports a mistake in a set.
type Error struct {
	Path    []any // of the field; its last step may be the index of a line in a text
	Err     error
	Unknown *Unknown // the unknown name in the template, or nil
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Decode decodes the spec of an object. Integers stay integers.
func Decode(content map[string]any, into any) error {
	text, err := json.Marshal(content["spec"])
	if err != nil {
		return err
	}
	return utiljson.Unmarshal(text, into)
}

// Expand returns the objects of a set. It returns a [*ServerError] if only a cluster knows them, an [*Error], or the cause of
// the context's end.
func Expand(ctx context.Context, s Set) ([]Object, error) {
	if s.Budget == nil {
		s.Budget = &Budget{}
	}
	if err := s.checkReadiness(); err != nil {
		return nil, err
	}
	for i, step := range s.Spec.Steps {
		if len(step.Resources) == 0 && step.ResourcesTemplate == "" {
			return nil, &Error{Path: []any{"spec", "steps", i}, Err: fmt.Errorf("build failed: step %q: at least one of resources or resourcesTemplate must be set", step.Name)}
		}
	}
	inputs, given, err := s.inputs()
	if err != nil {
		return nil, err
	}
	x := &expansion{ctx: ctx, set: s, inputs: inputs, given: given, seen: map[string]origin{}}
	if err := x.part(Step{Resources: s.Spec.Resources, ResourcesTemplate: s.Spec.ResourcesTemplate}, "spec"); err != nil {
		return nil, err
	}
	for i, step := range s.Spec.Steps {
		if err := x.part(step, "spec", "steps", i); err != nil {
			return nil, err
		}
	}
	return x.made, nil
}

type expansion struct {
	ctx    context.Context
	set    Set
	inputs []map[string]any
	given  bool
	made   []Object
	seen   map[string]origin
}

// origin is the index of an object among all objects, and its step.
type origin struct {
	index int
	step  string
}

// part makes the objects of a list of resources, then those of a template.
func (x *expansion) part(s Step, path ...any) error {
	for i, resource := range s.Resources {
		at := append(slices.Clone(path), "resources", i)
		text, err := yaml.Marshal(resource)
		if err != nil {
			return &Error{Path: at, Err: err}
		}
		if err := x.render(fmt.Sprintf("resources[%d]", i), string(text), s.Name, true, at); err != nil {
			return err
		}
	}
	if s.ResourcesTemplate == "" {
		return nil
	}
	return x.render("resources template", s.ResourcesTemplate, s.Name, false, append(slices.Clone(path), "resourcesTemplate"))
}

func (x *expansion) render(what, text, step string, one bool, path []any) error {
	fail := func(err error) error {
		err = fmt.Errorf("build failed: failed to build %s: %w", what, err)
		name := unknownIn(text, x.inputs)
		switch {
		case name != nil && one:
			path = append(slices.Clone(path), pathAt(text, name.line)...)
		case name != nil:
			path = append(slices.Clone(path), name.line-1)
		}
		return &Error{path, err, name}
	}
	t, err := parseTemplate(text)
	if err != nil {
		return fail(err)
	}
	for _, inputs := range x.inputs {
		out, err := t.execute(x.ctx, inputs, x.set.Budget)
		if x.ctx.Err() != nil {
			return context.Cause(x.ctx)
		}
		if err != nil {
			return fail(fmt.Errorf("failed to execute template: %w", err))
		}
		objects, err := decode(out, one)
		if err != nil {
			return fail(err)
		}
		for _, o := range objects {
			if err := x.add(o, step, one, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds an object. Of objects with the same name in a step, the first counts. The resources of a set without inputs are
// applied one after the other, even if disabled: of these, the last counts.
func (x *expansion) add(content map[string]any, step string, one bool, path []any) error {
	if annotated(content, reconcileAnnotation) == disabled && (x.given || !one) {
		return nil
	}
	from := annotated(content, copyFromAnnotation)
	if from != "" && strings.Count(from, "/") != 1 {
		return &Error{Path: path, Err: fmt.Errorf("invalid %s annotation value '%s', must be in the format 'namespace/name'", copyFromAnnotation, from)}
	}
	apiVersion, _ := content["apiVersion"].(string)
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	metadata, _ := content["metadata"].(map[string]any)
	x.common(metadata)
	made := Object{content, path, from != "" || annotated(content, convertAnnotation) != "", from}
	key := fmt.Sprintf("%s %v %v %v", group, content["kind"], metadata["namespace"], metadata["name"])
	if before, ok := x.seen[key]; ok {
		switch {
		case before.step != step:
			return &Error{Path: path, Err: fmt.Errorf("duplicate resource %s in step %q, already defined in step %q", describe(content, metadata), step, before.step)}
		case one && !x.given:
			x.made[before.index] = made
		}
		return nil
	}
	if len(x.made) >= maxObjects {
		return &Error{Path: path, Err: fmt.Errorf("more than %d objects", maxObjects)}
	}
	x.seen[key] = origin{len(x.made), step}
	x.made = append(x.made, made)
	return nil
}

// describe returns an object in the operator's format: kind, namespace if there is one, and name.
func describe(content, metadata map[string]any) string {
	parts := []string{fmt.Sprint(content["kind"])}
	if namespace, _ := metadata["namespace"].(string); namespace != "" {
		parts = append(parts, namespace)
	}
	return strings.Join(append(parts, fmt.Sprint(metadata["name"])), "/")
}

// common adds the metadata of the set. The operator also sets its own labels on each object, and replaces a map that holds
// values other than strings.
func (x *expansion) common(metadata map[string]any) {
	if metadata == nil {
		return
	}
	if labels, ok := metadata["labels"].(map[string]any); ok && !onlyTexts(labels) {
		delete(metadata, "labels")
	}
	for field, values := range map[string]map[string]string{"labels": x.set.Spec.CommonMetadata.Labels, "annotations": x.set.Spec.CommonMetadata.Annotations} {
		if len(values) == 0 {
			continue
		}
		m := map[string]any{}
		if before, ok := metadata[field].(map[string]any); ok && onlyTexts(before) {
			m = maps.Clone(before)
		}
		for k, v := range values {
			m[k] = v
		}
		metadata[field] = m
	}
}

func onlyTexts(m map[string]any) bool {
	for _, v := range m {
		if _, ok := v.(string); !ok {
			return false
		}
	}
	return true
}

func annotated(content map[string]any, name string) string {
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[name].(string)
	return text
}

// decode decodes the objects of a text, and those of a List separately. It skips empty documents and objects without a name,
// unless it decodes a single object.
func decode(text string, one bool) ([]map[string]any, error) {
	var objects []map[string]any
	for _, doc := range strings.Split("\n"+text, "\n---") {
		data, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
		}
		var content map[string]any
		if err := utiljson.Unmarshal(data, &content); err != nil || content != nil && content["kind"] == nil {
			return nil, fmt.Errorf("Object 'Kind' is missing in '%s'", data)
		}
		if items, ok := content["items"].([]any); ok && !one {
			for _, item := range items {
				if o, ok := item.(map[string]any); ok {
					objects = append(objects, o)
				}
			}
		} else if one || isNamed(content) {
			objects = append(objects, content)
		}
		if one {
			if content == nil {
				return nil, errors.New("the text is not an object")
			}
			break
		}
		if len(objects) > maxObjects {
			return nil, fmt.Errorf("more than %d objects", maxObjects)
		}
	}
	return objects, nil
}

func isNamed(content map[string]any) bool {
	metadata, _ := content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	apiVersion, _ := content["apiVersion"].(string)
	return name != "" && apiVersion != ""
}

// Dependency is an object that a set waits for. Only a cluster can evaluate the expression.
type Dependency struct {
	Ready     bool   `json:"ready"`
	ReadyExpr string `json:"readyExpr"`
}

// checkReadiness refuses expressions that the operator cannot parse: the set would wait for ever.
func (s *Set) checkReadiness() error {
	for i, d := range s.Spec.DependsOn {
		if !d.Ready || d.ReadyExpr == "" {
			continue
		}
		err := s.Budget.spendSteps(1 + len(d.ReadyExpr)/parseLen)
		if err == nil {
			err = cel.Check(d.ReadyExpr)
		}
		if err != nil {
			return &Error{Path: []any{"spec", "dependsOn", i, "readyExpr"}, Err: err}
		}
	}
	return nil
}
