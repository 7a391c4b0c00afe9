// Package outline draws what clusters are made of: as a tree for people, as Mermaid and DOT for documents. It looks nothing up.
package outline

// Node is a cluster, an object, or a file, with what belongs to it. Nodes may share what is below them. The fields are part
// of the contract.
type Node struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	File      string `json:"file,omitempty"` // with line and column
	Path      string `json:"path,omitempty"` // of a Kustomization
	URL       string `json:"url,omitempty"`
	Chart     string `json:"chart,omitempty"`

	// Constraint is what a manifest allows, Version what was chosen, or is stored.
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

// Mark says whether something was chosen.
type Mark string

// The marks of candidates. Other notes have none.
const (
	Taken Mark = "taken"
	Left  Mark = "left"
)

// Kinds of nodes that are no objects.
const (
	Cluster = "Cluster"
	File    = "File"
)

// States of objects of which no run says anything. The others are those of reports.
const (
	Suspended = "suspended"
	Invalid   = "invalid" // the API server would refuse it
	Missing   = "missing" // something refers to it, and it is not there
)

// title names a node.
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

// Unfold returns nodes that share nothing: what several have in common is below the first of them only, which bounds how many
// there are.
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

// Failing returns copies of the nodes that need attention and of those above them, none if no node does.
func Failing(roots []*Node) []*Node { return keep(roots, (*Node).bad, false, map[*Node]*Node{}) }

// Keep returns the nodes for which a function is true, with all that is below them, and what leads to them.
func Keep(roots []*Node, wanted func(*Node) bool) []*Node {
	return keep(roots, wanted, true, map[*Node]*Node{})
}

// keep returns the nodes that are wanted, with all that is below them if they are kept whole, and what leads to them.
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
