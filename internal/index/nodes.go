package index

import (
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/resolve"
)

// versions holds the entries of one chart.
type versions struct {
	known      bool // a list, or a null, which is an empty one
	candidates []resolve.Candidate
	dropped    int
	err        error
}

// parseIndex reads a whole YAML index with the full parser.
func parseIndex(r io.Reader) (map[string]versions, error) {
	root, err := parse(r)
	if err != nil {
		return nil, err
	}
	if root == nil || nodeKind(root) == kindNull {
		return nil, errNoAPIVersion
	}
	if err := checkNode(root); err != nil {
		return nil, err
	}
	if root.Kind != yaml.MappingNode {
		return nil, errNotMapping
	}
	w := &nodeReader{}
	charts := w.charts(root)
	return charts, w.err
}

// nodeReader reads charts from nodes of the full parser.
type nodeReader struct {
	recorder
	aliased int // values reached through aliases so far
	within  int // how many aliases and merge keys lead to where it reads
	err     error
}

func (w *nodeReader) charts(root *yaml.Node) map[string]versions {
	var apiVersion bool
	var entries *yaml.Node
	w.pairs(root, func(key string, value *yaml.Node) {
		switch key {
		case "apiVersion":
			apiVersion = nodeKind(value) == kindString && target(value).Value != ""
		case "entries":
			entries = target(value)
		}
	})
	switch {
	case w.err != nil:
		return nil
	case entries != nil && entries.Kind != yaml.MappingNode && nodeKind(entries) != kindNull:
		w.err = errEntries
		return nil
	case !apiVersion:
		w.err = errNoAPIVersion
		return nil
	}
	charts := map[string]versions{}
	if entries != nil && entries.Kind == yaml.MappingNode {
		w.pairs(entries, func(key string, value *yaml.Node) { charts[key] = w.chart(value) })
	}
	return charts
}

// chart reads the list of a chart's versions.
func (w *nodeReader) chart(value *yaml.Node) (v versions) {
	defer w.enter(value)()
	value = target(value)
	if value.Kind != yaml.SequenceNode {
		v.known = nodeKind(value) == kindNull
		return v
	}
	v.known = true
	if len(value.Content) > maxVersions {
		v.err = errTooManyVersions
		return v
	}
	w.out, w.lost = make([]resolve.Candidate, 0, len(value.Content)), 0
	for _, item := range value.Content {
		w.next()
		if w.fill(item); w.err != nil {
			return versions{}
		}
	}
	w.finish()
	v.candidates, v.dropped = w.out, w.lost
	return v
}

// fill copies a node into the tree.
func (w *nodeReader) fill(n *yaml.Node) {
	defer w.enter(n)()
	n = target(n)
	if !w.count(len(n.Value)) {
		return
	}
	switch n.Kind {
	case yaml.ScalarNode:
		w.scalar(nodeKind(n), []byte(n.Value))
	case yaml.SequenceNode:
		w.begin(kindList)
		for _, item := range n.Content {
			w.fill(item)
		}
		w.end()
	case yaml.MappingNode:
		w.begin(kindMap)
		w.pairs(n, func(key string, value *yaml.Node) {
			w.setKey([]byte(key))
			w.fill(value)
		})
		w.end()
	}
}

// enter records that the values below an alias may be read more often than they are written, until leave is called.
func (w *nodeReader) enter(n *yaml.Node) (leave func()) {
	if n.Kind != yaml.AliasNode {
		return func() {}
	}
	w.within++
	return func() { w.within-- }
}

// count counts a value with its text, and reports whether more values are allowed.
func (w *nodeReader) count(text int) bool {
	if w.within > 0 {
		w.aliased += 1 + text/aliasedText
	}
	if w.aliased > maxAliased {
		w.err = errAliases
	}
	return w.err == nil && !w.full
}

// pairs calls do for each pair of a mapping, and then for the pairs of its merge keys, except for keys that it has
// already.
func (w *nodeReader) pairs(n *yaml.Node, do func(key string, value *yaml.Node)) {
	var seen map[string]bool
	w.walk(n, func(merging bool, key string, value *yaml.Node) {
		switch {
		case value == nil: // the first merge key: from now on it matters what was there
			seen = keysOf(n)
		case !merging:
			do(key, value)
		case !seen[key]:
			seen[key] = true
			do(key, value)
		}
	})
}

func keysOf(n *yaml.Node) map[string]bool {
	keys := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		if !isMerge(n.Content[i]) {
			keys[target(n.Content[i]).Value] = true
		}
	}
	return keys
}

func (w *nodeReader) walk(n *yaml.Node, do func(merging bool, key string, value *yaml.Node)) {
	merges := w.own(n, func(key string, value *yaml.Node) { do(false, key, value) })
	if len(merges) == 0 {
		return
	}
	do(true, "", nil)
	w.within++
	defer func() { w.within-- }()
	w.merged(merges, func(key string, value *yaml.Node) { do(true, key, value) })
}

// merged visits the pairs of merged mappings, mapping by mapping.
func (w *nodeReader) merged(list []*yaml.Node, do func(key string, value *yaml.Node)) {
	for _, n := range list {
		if !w.count(0) {
			return
		}
		merges := w.own(n, func(key string, value *yaml.Node) {
			if w.count(0) {
				do(key, value)
			}
		})
		w.merged(merges, do)
	}
}

// own visits the pairs of a mapping without its merge keys, and returns the mappings that it merges.
func (w *nodeReader) own(n *yaml.Node, do func(key string, value *yaml.Node)) (merges []*yaml.Node) {
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !isMerge(key) {
			do(target(key).Value, value)
			continue
		}
		if value = target(value); value.Kind == yaml.MappingNode {
			merges = append(merges, value)
			continue
		}
		for _, item := range value.Content {
			merges = append(merges, target(item))
		}
	}
	return merges
}

// nodeKind returns the type of a node's value. It follows an alias.
func nodeKind(n *yaml.Node) kind {
	n = target(n)
	switch {
	case n.Kind == yaml.SequenceNode:
		return kindList
	case n.Kind == yaml.MappingNode:
		return kindMap
	case n.Style == 0:
		return plainKind([]byte(n.Value))
	}
	return tagKind(n.ShortTag())
}
