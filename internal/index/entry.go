package index

import (
	"time"

	"github.com/helmsrc/helmsrc/internal/resolve"
)

// A verdict is the result of judging an entry.
type verdict uint8

const (
	keep  verdict = iota
	drop          // Helm would not accept it
	rough         // the text of a string that matters is not known
)

// unquotedDigest marks a digest that was written as a number. Reading a number changes its text, so it can never be
// taken for a digest.
const unquotedDigest = resolve.UnquotedDigest

// A reader makes a candidate of each tree.
type reader struct {
	tree
	meta metadata
	bad  verdict
}

// candidate reads the entry in the tree.
func (r *reader) candidate() (resolve.Candidate, verdict) {
	var c resolve.Candidate
	if r.full || len(r.nodes) == 0 || r.nodes[0].kind != kindMap {
		return c, drop
	}
	r.meta = metadata{maintainers: r.meta.maintainers[:0], dependencies: r.meta.dependencies[:0]}
	r.bad = keep
	for at := r.nodes[0].child; at != 0; at = r.nodes[at].next {
		r.field(&c, &r.nodes[at])
		if r.bad == drop {
			return c, drop
		}
	}
	if r.bad != keep {
		return c, r.bad
	}
	r.meta.name = sanitize(r.meta.name)
	if !r.meta.valid() {
		return c, drop
	}
	c.Name, c.Version = r.meta.name, r.meta.version
	return c, keep
}

// field reads one field of the entry. Names are matched as written; fields that Helm does not know are ignored.
func (r *reader) field(c *resolve.Candidate, n *node) {
	switch string(r.bytes(n.key)) {
	case "name":
		r.meta.name = r.str(n)
	case "version":
		r.meta.version = r.str(n)
	case "type":
		r.meta.typ = r.str(n)
	case "digest":
		c.Digest = r.digest(n)
	case "urls":
		c.URLs = r.list(n)
	case "created":
		c.Created = r.time(n)
	case "removed":
		c.Removed = r.boolean(n)
	case "deprecated":
		c.Deprecated = r.boolean(n)
	case "appVersion":
		c.AppVersion = r.str(n)
	case "apiVersion", "checksum", "condition", "description", "engine", "home", "icon", "kubeVersion",
		"tags", "tillerVersion", "url":
		r.wantString(n)
	case "sources", "keywords":
		r.wantStrings(n, kindList)
	case "annotations":
		r.wantStrings(n, kindMap)
	case "maintainers":
		r.maintainers(n)
	case "dependencies":
		r.dependencies(n)
	}
}

func (r *reader) fail(v verdict) {
	if r.bad != drop {
		r.bad = v
	}
}

// want checks a type; null is allowed everywhere.
func (r *reader) want(n *node, k kind) bool {
	if n.kind == k {
		return true
	}
	if n.kind != kindNull {
		r.fail(drop)
	}
	return false
}

func (r *reader) wantString(n *node) { r.want(n, kindString) }

func (r *reader) wantStrings(n *node, collection kind) {
	if !r.want(n, collection) {
		return
	}
	for at := n.child; at != 0; at = r.nodes[at].next {
		r.want(&r.nodes[at], kindString)
	}
}

// text returns the bytes of a string; null is an empty one.
func (r *reader) textOf(n *node) []byte {
	if !r.want(n, kindString) {
		return nil
	}
	if n.rough {
		r.fail(rough)
	}
	return r.bytes(n.text)
}

func (r *reader) str(n *node) string { return string(r.textOf(n)) }

func (r *reader) digest(n *node) string {
	if n.kind == kindNumber {
		return unquotedDigest + string(r.bytes(n.text))
	}
	return r.str(n)
}

func (r *reader) list(n *node) []string {
	if !r.want(n, kindList) || n.child == 0 {
		return nil
	}
	var list []string
	for at := n.child; at != 0; at = r.nodes[at].next {
		list = append(list, r.str(&r.nodes[at]))
	}
	return list
}

// time returns the zero time for an invalid one: it only decides between versions of equal precedence.
func (r *reader) time(n *node) (t time.Time) {
	if n.kind != kindString {
		return t
	}
	if t.UnmarshalText(r.textOf(n)) != nil {
		return time.Time{}
	}
	return t
}

func (r *reader) boolean(n *node) bool {
	if !r.want(n, kindBool) {
		return false
	}
	switch string(r.bytes(n.text)) {
	case "true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true
	}
	return false
}

func (r *reader) maintainers(n *node) {
	if !r.want(n, kindList) {
		return
	}
	for at := n.child; at != 0; at = r.nodes[at].next {
		item := &r.nodes[at]
		r.meta.maintainers = append(r.meta.maintainers, item.kind != kindNull)
		if !r.want(item, kindMap) {
			continue
		}
		for at := item.child; at != 0; at = r.nodes[at].next {
			switch field := &r.nodes[at]; string(r.bytes(field.key)) {
			case "name", "email", "url":
				r.wantString(field)
			}
		}
	}
}

func (r *reader) dependencies(n *node) {
	if !r.want(n, kindList) {
		return
	}
	for at := n.child; at != 0; at = r.nodes[at].next {
		item := &r.nodes[at]
		if !r.want(item, kindMap) {
			r.meta.dependencies = append(r.meta.dependencies, nil)
			continue
		}
		r.meta.dependencies = append(r.meta.dependencies, r.dependency(item))
	}
}

func (r *reader) dependency(item *node) *dependency {
	d := &dependency{}
	for at := item.child; at != 0; at = r.nodes[at].next {
		switch field := &r.nodes[at]; string(r.bytes(field.key)) {
		case "name":
			d.name = r.str(field)
		case "alias":
			d.alias = r.str(field)
		case "version", "repository", "condition":
			r.wantString(field)
		case "tags":
			r.wantStrings(field, kindList)
		case "enabled":
			r.want(field, kindBool)
		case "import-values":
			r.want(field, kindList)
		}
	}
	return d
}
