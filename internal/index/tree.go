package index

// Limits of one entry of a chart. The largest entries of public repositories have a few hundred values and some 200 KiB
// of text; an entry beyond these limits is dropped as an invalid one.
const (
	maxEntryValues = 1 << 17
	maxEntryText   = 4 << 20
)

// kind is the type of a value.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindMap
)

// A span is a part of tree.text.
type span struct{ from, to int }

// A node is a value in a tree.
type node struct {
	kind  kind
	rough bool // a string of unknown text
	key   span // in a mapping
	text  span
	child int32 // first one, 0 if none
	next  int32 // sibling, 0 if none
}

// A tree is one entry of a chart, read from YAML or JSON. Node 0 is the entry itself. The tree is reused from entry to
// entry.
type tree struct {
	nodes []node
	text  []byte
	open  []openNode // collections that are not closed yet
	key   span       // of the next value
	size  int        // bytes of text, kept or not
	full  bool       // the entry is beyond the limits: nothing more is added
}

type openNode struct{ at, last int32 }

func (t *tree) reset() {
	t.nodes, t.text, t.open = t.nodes[:0], t.text[:0], t.open[:0]
	t.key, t.size, t.full = span{}, 0, false
}

// setKey sets the key of the next value.
func (t *tree) setKey(key []byte) { t.key = t.keep(key) }

// scalar adds a value that is not a collection.
func (t *tree) scalar(k kind, text []byte) {
	t.add(node{kind: k, text: t.keep(text)})
}

// begin opens a collection; end closes the innermost one.
func (t *tree) begin(k kind) {
	at := t.add(node{kind: k})
	t.open = append(t.open, openNode{at: at})
}

func (t *tree) end() { t.open = t.open[:len(t.open)-1] }

func (t *tree) add(n node) int32 {
	if t.full || len(t.nodes) >= maxEntryValues {
		t.full = true
		return 0
	}
	at := int32(len(t.nodes))
	n.key, t.key = t.key, span{}
	t.nodes = append(t.nodes, n)
	if len(t.open) == 0 {
		return at
	}
	top := &t.open[len(t.open)-1]
	if top.last == 0 {
		t.nodes[top.at].child = at
	} else {
		t.nodes[top.last].next = at
	}
	top.last = at
	return at
}

func (t *tree) keep(text []byte) span {
	if t.grow(len(text)); t.full {
		return span{}
	}
	from := len(t.text)
	t.text = append(t.text, text...)
	return span{from, len(t.text)}
}

// grow counts text, so that a single value cannot make the tree large.
func (t *tree) grow(n int) {
	t.size += n
	if t.size > maxEntryText {
		t.full = true
	}
}

func (t *tree) bytes(s span) []byte { return t.text[s.from:s.to] }
