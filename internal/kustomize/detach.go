package kustomize

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// detached holds fields that were removed from an object while a patch is merged with it. kustomize visits each field of an object
// for every patch, and parses each plain text as YAML 1.1: with long values that is most of the work.
type detached struct{ mappings []detachedMapping }

type detachedMapping struct {
	node  *yaml.Node
	was   []*yaml.Node        // its keys and values
	taken map[*yaml.Node]bool // keys
}

// detach removes fields from an object that a patch does not name and a merge does not change: scalars, and mappings of only such
// fields. Nulls and lists stay. The metadata stays: the caller reads it, and may set it. Types stay, in nested objects too: kustomize
// merges lists by their schema.
func detach(object, patch *yaml.Node) *detached {
	s := &detached{}
	if object.Kind == yaml.MappingNode && patch.Kind == yaml.MappingNode && !hasDirective(patch) {
		s.take(object, patch, "metadata")
	}
	return s
}

// take removes fields from a mapping; patch is nil if the patch does not name it. It reports whether the mapping is empty now.
func (s *detached) take(object, patch *yaml.Node, except ...string) bool {
	m := detachedMapping{node: object, was: object.Content, taken: map[*yaml.Node]bool{}}
	var left []*yaml.Node
	for i := 0; i+1 < len(m.was); i += 2 {
		key, value := m.was[i], m.was[i+1]
		if !s.takes(key, value, patch, except) {
			left = append(left, key, value)
			continue
		}
		m.taken[key] = true
	}
	if len(m.taken) > 0 {
		object.Content = left
		s.mappings = append(s.mappings, m)
	}
	return len(left) == 0
}

func (s *detached) takes(key, value, patch *yaml.Node, except []string) bool {
	if key.Kind != yaml.ScalarNode || key.Value == "apiVersion" || key.Value == "kind" || slices.Contains(except, key.Value) {
		return false
	}
	named, known := fieldOf(patch, key.Value)
	switch {
	case !known && value.Kind == yaml.ScalarNode:
		return value.ShortTag() != yaml.NodeTagNull
	case value.Kind != yaml.MappingNode || known && (named.Kind != yaml.MappingNode || hasDirective(named)):
		return false
	}
	return s.take(value, named) && !known
}

// restore restores the removed fields at their places after the merge.
func (s *detached) restore() {
	for _, m := range s.mappings {
		values := make(map[*yaml.Node]*yaml.Node, len(m.node.Content)/2)
		for i := 0; i+1 < len(m.node.Content); i += 2 {
			values[m.node.Content[i]] = m.node.Content[i+1]
		}
		content := make([]*yaml.Node, 0, len(m.was)+len(m.node.Content))
		for i := 0; i+1 < len(m.was); i += 2 {
			key := m.was[i]
			if value, kept := values[key]; kept {
				content = append(content, key, value)
				delete(values, key)
			} else if m.taken[key] {
				content = append(content, key, m.was[i+1])
			}
		}
		for i := 0; i+1 < len(m.node.Content); i += 2 {
			if key := m.node.Content[i]; values[key] != nil {
				content = append(content, key, values[key])
			}
		}
		m.node.Content = content
	}
}

// fieldOf returns a field of a mapping, which may be nil.
func fieldOf(mapping *yaml.Node, name string) (value *yaml.Node, found bool) {
	for i := 0; mapping != nil && i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1], true
		}
	}
	return nil, false
}

// hasDirective reports whether a patch has a directive for merging a mapping, as in $patch: replace.
func hasDirective(patch *yaml.Node) bool {
	for i := 0; i < len(patch.Content); i += 2 {
		if strings.HasPrefix(patch.Content[i].Value, "$") {
			return true
		}
	}
	return false
}
