package chart

import (
	"path"
	"slices"
	"strings"
)

// similar returns the name that is most likely meant by a name which does not exist: a YAML file with the same base
// name, else with nearly the same one. It returns the empty string if nothing comes close.
func similar(want string, have []string) string {
	best, bestDistance := "", len(stem(want))/3+1
	slices.Sort(have)
	for _, name := range have {
		if ext := path.Ext(name); ext != ".yaml" && ext != ".yml" {
			continue
		}
		if d := distance(stem(want), stem(name), bestDistance); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

func stem(name string) string {
	base := strings.ToLower(path.Base(name))
	return strings.TrimSuffix(base, path.Ext(base))
}

// distance is the number of characters to insert, delete or replace to get from a to b, or at least limit.
func distance(a, b string, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
