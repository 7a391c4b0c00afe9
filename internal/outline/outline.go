// Package outline draws the objects of clusters: as a tree for people, as Mermaid and DOT for documents. It makes no look-ups.
package outline

// Node is a cluster, an object, or a file, with its children. Nodes may share children. The fields are part
// of the contract.
type Node struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	File      string `json:"file,omitempty"` // with line and column
	Path      string `json:"path,omitempty"` // of a Kustomization
	URL       string `json:"url,omitempty"`
	Chart     string `json:"chart,omitempty"`

	// Constraint is the version of the manifest, Version the version that was chosen, or is stored.
	Constraint string `json:"constraint,omitempty"`
	Version    string `json:"version,omitempty"`

	State    string  `json:"state,omitempty"`
	Message  string  `json:"message,omitempty"`
	Notes    []Note  `json:"notes,omitempty"`
	Children []*Node `json:"children,omitempty"`
}

// Note is a line about an object.
type Note struct {
	Mark Mark   `json:"mark,omitempty"`
	Text string `json:"text"`
}

// Mark marks a candidate as chosen or not.
type Mark string

// The marks of candidates. Other notes have no mark.
const (
	Taken Mark = "taken"
	Left  Mark = "left"
)

// Kinds of nodes that are not objects.
const (
	Cluster = "Cluster"
	File    = "File"
)

// States of objects that no run reports. Other states are those of reports.
const (
	Suspended = "suspended"
	Invalid   = "invalid" // the API server would refuse it
	Missing   = "missing" // an object refers to it, but it does not exist
)

// title returns the name of a node.
func (n *Node) title() string {
	switch {
	case n.Kind == Cluster:
		return n.Name
	case n.Namespace == "":
		return n.Kind + " " + n.Name
	}
	return n.Kind + " " + n.Namespace + "/" + n.Name
}

// bad reports whether a state needs attention.
func (n *Node) bad() bool {
	switch n.State {
	case "failed", "interrupted", Invalid, Missing:
		return true
	}
	return false
}

// Unfold returns nodes without shared children: shared children are below the first of their parents only, which limits their
// number.
func Unfold(roots []*Node) []*Node { return unfold(roots, map[*Node]bool{}) }

func unfold(nodes []*Node, seen map[*Node]bool) []*Node {
	var copies []*Node
	for _, n := range nodes {
		c := *n
		c.Children = nil
		if !seen[n] {
			seen[n] = true
			c.Children = unfold(n.Children, seen)
		}
		copies = append(copies, &c)
	}
	return copies
}

// Failing returns copies of the nodes that need attention, with their ancestors, or nil if no node needs attention.
func Failing(roots []*Node) []*Node { return keep(roots, (*Node).bad, false, map[*Node]*Node{}) }

// Keep returns the nodes for which wanted is true, with everything below them, and with their ancestors.
func Keep(roots []*Node, wanted func(*Node) bool) []*Node {
	return keep(roots, wanted, true, map[*Node]*Node{})
}

// keep returns the wanted nodes and their ancestors. If whole is set, it also returns everything below wanted nodes.
func keep(nodes []*Node, wanted func(*Node) bool, whole bool, done map[*Node]*Node) []*Node {
	var kept []*Node
	for _, n := range nodes {
		k, known := done[n]
		if !known {
			if whole && wanted(n) {
				k = n
			} else if below := keep(n.Children, wanted, whole, done); below != nil || wanted(n) {
				c := *n
				c.Children, k = below, &c
			}
			done[n] = k
		}
		if k != nil {
			kept = append(kept, k)
		}
	}
	return kept
}
