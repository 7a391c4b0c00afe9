package finding

import (
	"slices"
	"strings"
)

// maxNearest is the longest name that Nearest looks at.
const maxNearest = 64

// Nearest is the known name that was probably meant: the one with the fewest changed letters, if they are few. Equal
// except for case is nearer than anything else.
func Nearest(name string, known []string) (string, bool) {
	if len(name) > maxNearest {
		return "", false
	}
	best, bestDistance := "", 1+max(1, len(name)/3)
	for _, k := range known {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best, best != ""
}

// distance counts insertions, deletions, replacements and swaps of neighbours.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// Cycle writes the names of a cycle, first that which sorts first, so that the findings of all its members read alike.
func Cycle(names []string) string {
	at := slices.Index(names, slices.Min(names))
	return strings.Join(slices.Concat(names[at:], names[:at+1]), " → ")
}
