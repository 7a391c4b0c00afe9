package finding

import (
	"fmt"
	"slices"
	"strings"
)

const (
	maxDependencies = 1000 // that a path is looked for among
	maxCycleNames   = 8    // that are written of a cycle
)

// DependencyPath returns a shortest path from one node to another, with both, or nil. Next returns what a node depends on.
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

// Cycle writes the names of a cycle, the first in the alphabet first: the findings of all members read alike. More is how many
// members are not among the names.
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
