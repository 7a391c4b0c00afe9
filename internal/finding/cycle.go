package finding

import (
	"fmt"
	"slices"
	"strings"
)

const (
	maxDependencies = 1000 // of a search for a path
	maxCycleNames   = 8    // written for a cycle
)

// DependencyPath returns a shortest path from one node to another, with both, or nil. Next returns the dependencies of a node.
func DependencyPath[N comparable](from, to N, next func(N) []N) []N {
	origin := map[N]N{}
	for queue := []N{from}; len(queue) > 0 && len(origin) < maxDependencies; queue = queue[1:] {
		at := queue[0]
		if at == to {
			path := []N{at}
			for ; at != from; path = append(path, at) {
				at = origin[at]
			}
			slices.Reverse(path)
			return path
		}
		for _, n := range next(at) {
			if _, known := origin[n]; !known && n != from {
				origin[n] = at
				queue = append(queue, n)
			}
		}
	}
	return nil
}

// Cycle joins the names of a cycle, beginning with the first in alphabetical order: the findings of all members have the same
// text. More is the number of members that are not among the names.
func Cycle(names []string, more int) string {
	at := slices.Index(names, slices.Min(names))
	names = slices.Concat(names[at:], names[:at+1])
	if left := len(names) - maxCycleNames; left > 0 {
		names, more = slices.Delete(names, maxCycleNames-1, len(names)-1), more+left
	}
	if more > 0 {
		names = slices.Insert(names, len(names)-1, fmt.Sprintf("%d others", more))
	}
	return strings.Join(names, " → ")
}
