package bound

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// maxComparisons is the limit of the comparisons of keys in a text. To decode a mapping, the YAML library compares all its
// keys with each other, and makes a message of some 70 bytes for each two equal ones.
const maxComparisons = 1_000_000

// ErrKeys reports a text with too many keys in its mappings for the YAML library.
var ErrKeys = fmt.Errorf("too many keys in mappings: more than %d comparisons", maxComparisons)

// Decode decodes a node, or returns [ErrKeys].
func Decode(n *yaml.Node, into any) error {
	if err := Keys(n); err != nil {
		return err
	}
	return n.Decode(into)
}

// Keys returns [ErrKeys] for a node that takes too long to decode.
func Keys(n *yaml.Node) error {
	if Comparisons(n, map[*yaml.Node]int64{}) > maxComparisons {
		return ErrKeys
	}
	return nil
}

// Comparisons returns the number of comparisons between keys of the same mapping in a node, counting a mapping again for each
// alias. Seen holds the nodes with an anchor.
func Comparisons(n *yaml.Node, seen map[*yaml.Node]int64) int64 {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if known, ok := seen[n]; ok {
		return known
	}
	if n.Anchor != "" {
		seen[n] = 0 // within itself
	}
	var all int64
	if n.Kind == yaml.MappingNode {
		all = int64(len(n.Content)) * int64(len(n.Content)) / 4
	}
	for _, part := range n.Content {
		all = min(all+Comparisons(part, seen), 1<<50)
	}
	if n.Anchor != "" {
		seen[n] = all
	}
	return all
}
