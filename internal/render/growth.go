package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
	sigsyaml "sigs.k8s.io/yaml"
)

// maxGrowth bounds how often one kustomization may copy the same into itself. Each replacement or copy that takes from
// where an earlier one has put something may double it.
const maxGrowth = 1000

// growth follows what the replacements and the patches of one kustomization copy, in their order.
type growth struct {
	flows []flow
}

// flow is one copy: from a field of objects of a kind to another field. A kind that is not known is any.
type flow struct {
	kind  string
	to    []string
	adds  bool // to what is there
	times int  // how much it may be of what was there at first
}

// feedsItselfError is a kustomization that copies what it copied.
type feedsItselfError struct{ what string }

func (e *feedsItselfError) Error() string {
	return e.what + " copies what was copied before, again and again: what comes out would be more than 1000 times as much"
}

// Hint says what to look at.
func (e *feedsItselfError) Hint() string {
	return "take the value from a field that no replacement or copy writes to"
}

// add notes a copy. It fails if that might be one too many.
func (g *growth) add(what, kind string, from []string, to flow) error {
	to.times = 1
	most := 0
	for _, f := range g.flows {
		if f.kind != "" && kind != "" && f.kind != kind || !overlap(f.to, from) {
			continue
		}
		if f.adds || len(f.to) > len(from) {
			to.times += f.times
		} else {
			most = max(most, f.times)
		}
	}
	to.times += most
	if to.times > maxGrowth {
		return &feedsItselfError{what}
	}
	g.flows = append(g.flows, to)
	return nil
}

// overlap reports whether one of two fields may be in the other, or is the other.
func overlap(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] && a[i] != anyStep && b[i] != anyStep {
			return false
		}
	}
	return true
}

// anyStep is a step of a path that is not known: an item of a list, or one that is looked for.
const anyStep = "*"

func steps(parts []string) []string {
	var list []string
	for _, part := range parts {
		if part == "" || part == "-" || strings.Trim(part, "0123456789") == "" || strings.ContainsAny(part, "*[]=") {
			part = anyStep
		}
		list = append(list, part)
	}
	return list
}

// literal is the name of a kind, nothing if it is a pattern.
func literal(kind string) string {
	if strings.ContainsAny(kind, `.*+?()|[]{}^$\`) {
		return ""
	}
	return kind
}

func (g *growth) patch(what string, target *types.Selector, text []byte) error {
	if !bytes.Contains(text, []byte("copy")) && !bytes.Contains(text, []byte("move")) {
		return nil
	}
	var ops []struct {
		Op   string `json:"op"`
		From string `json:"from"`
		Path string `json:"path"`
	}
	if sigsyaml.Unmarshal(text, &ops) != nil {
		return nil // of another kind
	}
	kind := ""
	if target != nil {
		kind = literal(target.Kind)
	}
	pointer := strings.NewReplacer("~1", "/", "~0", "~")
	fields := func(path string) []string {
		parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
		for i := range parts {
			parts[i] = pointer.Replace(parts[i])
		}
		if path == "" {
			parts = nil
		}
		return steps(parts)
	}
	for _, op := range ops {
		if op.Op != "copy" && op.Op != "move" {
			continue
		}
		if err := g.add(what, kind, fields(op.From), flow{kind: kind, to: fields(op.Path)}); err != nil {
			return err
		}
	}
	return nil
}

func (g *growth) replacement(what string, r types.Replacement) error {
	if r.Source == nil {
		return nil
	}
	field := func(path string) []string {
		if path == "" {
			path = types.DefaultReplacementFieldPath
		}
		return steps(strings.Split(path, "."))
	}
	for _, t := range r.Targets {
		if t == nil || t.Select == nil {
			continue
		}
		paths := t.FieldPaths
		if len(paths) == 0 {
			paths = []string{""}
		}
		adds := t.Options != nil && t.Options.Delimiter != ""
		for _, path := range paths {
			to := flow{kind: literal(t.Select.Kind), to: field(path), adds: adds}
			if err := g.add(what, r.Source.Kind, field(r.Source.FieldPath), to); err != nil {
				return err
			}
		}
	}
	return nil
}

// plugin looks at the configuration of a plugin that patches or replaces.
func (g *growth) plugin(text []byte) error {
	var c struct {
		Kind         string                   `json:"kind"`
		Patch        string                   `json:"patch"`
		JSONOp       string                   `json:"jsonOp"`
		Target       *types.Selector          `json:"target"`
		Replacements []types.ReplacementField `json:"replacements"`
	}
	if sigsyaml.Unmarshal(text, &c) != nil {
		return nil // not one of those
	}
	for _, patch := range []string{c.Patch, c.JSONOp} {
		if err := g.patch(c.Kind, c.Target, []byte(patch)); err != nil {
			return err
		}
	}
	for i, r := range c.Replacements {
		if err := g.replacement(fmt.Sprintf("replacements[%d]", i), r.Replacement); err != nil {
			return err
		}
	}
	return nil
}

// grows refuses a kustomization whose replacements and patches feed themselves.
func (p *pathResolver) grows(k *types.Kustomization) {
	g := &growth{}
	for i, patch := range k.Patches {
		text := []byte(patch.Patch)
		if patch.Path != "" {
			text = p.text(patch.Path)
		}
		if err := g.patch(fmt.Sprintf("patches[%d]", i), patch.Target, text); err != nil {
			p.fail(err, "patches", i)
			return
		}
	}
	for i, r := range k.Replacements {
		list := []types.Replacement{r.Replacement}
		if r.Path != "" {
			list = replacementsIn(p.text(r.Path))
		}
		for _, one := range list {
			if err := g.replacement(fmt.Sprintf("replacements[%d]", i), one); err != nil {
				p.fail(err, "replacements", i)
				return
			}
		}
	}
}

// text is a file that was found to be there. kustomize reports what is wrong with it.
func (p *pathResolver) text(path string) []byte {
	real, err := p.r.within(join(p.d.path, path))
	if err != nil {
		return nil
	}
	text, err := p.r.read(real)
	if err != nil {
		return nil
	}
	return text
}

func replacementsIn(text []byte) []types.Replacement {
	var list []types.Replacement
	if sigsyaml.Unmarshal(text, &list) == nil {
		return list
	}
	var one types.Replacement
	if sigsyaml.Unmarshal(text, &one) != nil {
		return nil
	}
	return []types.Replacement{one}
}

// maxVariables bounds what the vars of a build may make of the text that refers to them, in bytes.
const maxVariables = 32 << 20

// variables refuses kustomizations whose vars would make far more of their files: each reference may become the longest
// value.
func (c *closure) variables() error {
	hasVars := func(d *directory) bool {
		return d.kustomization != nil && len(d.kustomization.Vars) > 0 //nolint:staticcheck // people still write them
	}
	if !slices.ContainsFunc(c.dirs, hasVars) {
		return nil
	}
	references, longest := 0, 0
	for path := range c.files {
		text, err := c.dirs[0].repo.read(path)
		if err != nil {
			continue // reported where it is read
		}
		references += bytes.Count(text, []byte("$("))
		longest = max(longest, longestIn(text))
	}
	if longest > 0 && references > maxVariables/longest {
		return &endlessError{fmt.Sprintf("vars: %d references to values of up to %d bytes", references, longest)}
	}
	return nil
}

// longestIn is the length of the longest value in a text.
func longestIn(text []byte) int {
	longest := 0
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if dec.Decode(&doc) != nil {
			return longest
		}
		longest = max(longest, longestNode(&doc))
	}
}

func longestNode(n *yaml.Node) int {
	longest := len(n.Value)
	for _, c := range n.Content {
		longest = max(longest, longestNode(c))
	}
	return longest
}
