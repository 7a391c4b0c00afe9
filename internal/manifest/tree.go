package manifest

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// locate follows a path to the deepest existing node. For a map entry it returns the key, which is where a reader looks.
func locate(root *yaml.Node, path []any) *yaml.Node {
	found, _ := locateValue(root, path)
	return found
}

// at returns the value at a path, or nil.
func at(root *yaml.Node, path ...string) *yaml.Node {
	for _, step := range path {
		_, root = entry(root, step)
	}
	return root
}

// scalar returns the text of a scalar at a path, or "".
func scalar(root *yaml.Node, path ...string) string {
	n := resolve(at(root, path...))
	if n == nil || n.Kind != yaml.ScalarNode || isNull(n) {
		return ""
	}
	return n.Value
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// resolve follows aliases. An alias to an alias does not exist in YAML.
func resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func entry(n *yaml.Node, name string) (k, v *yaml.Node) {
	n = resolve(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if keyText(n.Content[i]) == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			if k, v := merged(n.Content[i+1], name); v != nil {
				return k, v
			}
		}
	}
	return nil, nil
}

// merged finds a key in the value of a merge key, which is a map or a list of maps. It follows only one level of
// merging: for a deeper level the position is that of the parent.
func merged(n *yaml.Node, name string) (k, v *yaml.Node) {
	n = resolve(n)
	sources := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		sources = n.Content
	}
	for _, source := range sources {
		source = resolve(source)
		if source.Kind != yaml.MappingNode {
			continue
		}
		for i := 0; i+1 < len(source.Content); i += 2 {
			if keyText(source.Content[i]) == name {
				return source.Content[i], source.Content[i+1]
			}
		}
	}
	return nil, nil
}

func element(n *yaml.Node, i int) *yaml.Node {
	n = resolve(n)
	if n == nil || n.Kind != yaml.SequenceNode || i < 0 || i >= len(n.Content) {
		return nil
	}
	return n.Content[i]
}

func isMerge(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!merge" }

// keyText returns the key as it reads in JSON. YAML 1.1 makes `on` the key "true" and 0x1 the key "1".
func keyText(n *yaml.Node) string {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 || isWord(n.Value) {
		return n.Value
	}
	v := map[string]any{}
	if err := sigsyaml.Unmarshal([]byte("? "+n.Value+"\n: 0\n"), &v); err != nil || len(v) != 1 {
		return n.Value
	}
	for k := range v {
		return k
	}
	return n.Value
}

// isWord reports whether a plain scalar is a string in every version of YAML, like nearly all keys.
func isWord(s string) bool {
	if s == "" || !isLetter(s[0]) {
		return false
	}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	return true
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// check refuses documents that must not reach the value decoder: duplicate keys, endless nesting, exploding aliases.
func (d *document) check(root *yaml.Node) error {
	if d.checked {
		return d.checkErr
	}
	c := d.newChecker()
	size, err := c.visit(root, 0)
	d.surplus, d.checkErr = max(0, size-2*len(d.text)), err
	d.checked = true
	return d.checkErr
}

// expansion is check without the search for duplicate keys.
func (d *document) expansion(root *yaml.Node) error {
	c := d.newChecker()
	c.anyKeys = true
	_, err := c.visit(root, 0)
	return err
}

func (d *document) newChecker() *checker {
	// Without aliases a value counts at most twice its text, so only aliases can exceed this limit.
	return &checker{doc: d, limit: 2*len(d.text) + maxExpansion, sizes: map[*yaml.Node]int{}}
}

type checker struct {
	doc     *document
	limit   int
	anyKeys bool               // duplicate keys are allowed
	sizes   map[*yaml.Node]int // the sizes of anchored nodes; 0 during the visit of a node
}

// visit returns the size of a value with its aliases expanded.
func (c *checker) visit(n *yaml.Node, depth int) (int, error) {
	if depth > maxDepth {
		return 0, c.doc.errorAt(n, fmt.Sprintf("nested deeper than %d levels", maxDepth))
	}
	if n.Kind == yaml.AliasNode {
		return c.alias(n, depth)
	}
	if n.Anchor != "" {
		if size, seen := c.sizes[n]; seen {
			return size, nil
		}
		c.sizes[n] = 0
	}
	if n.Kind == yaml.MappingNode && !c.anyKeys {
		if err := c.keys(n); err != nil {
			return 0, err
		}
	}
	size := 1 + len(n.Value)
	for _, child := range n.Content {
		s, err := c.visit(child, depth+1)
		if err != nil {
			return 0, err
		}
		if size += s; size > c.limit {
			return 0, c.doc.errorAt(child, "aliases expand to too much")
		}
	}
	if n.Anchor != "" {
		c.sizes[n] = size
	}
	return size, nil
}

func (c *checker) alias(n *yaml.Node, depth int) (int, error) {
	if size, seen := c.sizes[n.Alias]; seen && size == 0 {
		return 0, c.doc.errorAt(n, fmt.Sprintf("anchor %q contains itself", n.Value))
	}
	return c.visit(n.Alias, depth+1)
}

func (c *checker) keys(n *yaml.Node) error {
	first := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if isMerge(k) || resolve(k).Kind != yaml.ScalarNode {
			continue
		}
		name := keyText(k)
		if other, dup := first[name]; dup {
			e := c.doc.errorAt(k, fmt.Sprintf("duplicate key %q, first at line %d", name, c.doc.pos(other).Line))
			e.ofDocument = true
			return e
		}
		first[name] = k
	}
	return nil
}

// unsupported returns the first value that JSON cannot represent.
func unsupported(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			if resolve(n.Content[i]).Kind != yaml.ScalarNode || isNull(n.Content[i]) {
				return n.Content[i]
			}
		}
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!float" && strings.HasSuffix(strings.ToLower(n.Value), "nan") ||
		n.Tag == "!!float" && strings.HasSuffix(strings.ToLower(n.Value), "inf") {
		return n
	}
	for _, child := range n.Content {
		if bad := unsupported(child); bad != nil {
			return bad
		}
	}
	return nil
}
