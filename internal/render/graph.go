package render

import "slices"

// origins are the nodes of a graph to begin at, so that all are reached and none of them from another: those that nothing
// leads to, and the first one of each circle that nothing leads into. They are in the order of the nodes.
func origins(edges [][]int) []int {
	var order []int // by the time at which they are done with
	seen := make([]bool, len(edges))
	for i := range edges {
		visit(edges, i, seen, func(j int) { order = append(order, j) })
	}
	slices.Reverse(order)
	// What is done with last is in a circle that nothing leads into, or alone.
	reached := make([]bool, len(edges))
	var starts []int
	for _, i := range order {
		if reached[i] {
			continue
		}
		visit(edges, i, reached, func(int) {})
		starts = append(starts, firstOfCircle(edges, i))
	}
	slices.Sort(starts)
	return starts
}

// visit goes through everything that a node leads to and that was not seen before. It keeps a stack of its own: the way
// may be as long as there are nodes.
func visit(edges [][]int, start int, seen []bool, done func(int)) {
	if seen[start] {
		return
	}
	type step struct{ node, next int }
	stack := []step{{node: start}}
	seen[start] = true
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next == len(edges[top.node]) {
			done(top.node)
			stack = stack[:len(stack)-1]
			continue
		}
		next := edges[top.node][top.next]
		top.next++
		if !seen[next] {
			seen[next] = true
			stack = append(stack, step{node: next})
		}
	}
}

// firstOfCircle is the first node that leads to this one and that this one leads to.
func firstOfCircle(edges [][]int, node int) int {
	from := make([]bool, len(edges))
	visit(edges, node, from, func(int) {})
	for i := range node {
		if !from[i] {
			continue
		}
		back := make([]bool, len(edges))
		if visit(edges, i, back, func(int) {}); back[node] {
			return i
		}
	}
	return node
}
