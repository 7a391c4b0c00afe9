package finding

import "strings"

// maxNearest is the longest name, in bytes, that Nearest compares.
const maxNearest = 64

// maxCompared is the limit of the letters that one search compares with each other, so that many searches take time in
// proportion to their number.
const maxCompared = 1 << 17

// Nearest returns the known name that was probably meant: the name with the fewest changed letters, if only some changed. A
// name that differs only in case is the nearest. The rest of a very long list is not compared.
func Nearest(name string, known []string) (string, bool) {
	if len(name) > maxNearest {
		return "", false
	}
	best, bestDistance := "", min(1+max(1, len(name)/3), len(name))
	left := maxCompared
	for _, k := range known {
		if max(len(name)-len(k), len(k)-len(name)) >= bestDistance {
			continue
		}
		if left -= len(name) * len(k); left < 0 {
			break
		}
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best, best != ""
}

// distance counts insertions, deletions, replacements and swaps of neighbours.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
