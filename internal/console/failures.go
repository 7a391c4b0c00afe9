package console

import (
	"slices"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// failure is an error of an object, with the clusters that report it.
type failure struct {
	finding.Finding
	in []string
}

// ReportFailure records an error of an object that may block other objects, or occur in several clusters, for Unite.
func (c *Console) ReportFailure(f finding.Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, failure{f, []string{c.cluster()}})
}

// reportFailures prints each failure once, with the objects that it blocks, and the clusters unless all have it.
func (c *Console) reportFailures(failures []failure, clusters int) {
	var found []finding.Finding
	for _, f := range united(failures) {
		if len(f.in) < clusters {
			f.Message, f.Clusters = f.Message+inClusters(f.in), f.in
		}
		found = append(found, f.Finding)
	}
	c.ReportByCause(found, Presentation{})
}

// united leaves out effects of other failures, and merges equal failures of several clusters.
func united(failures []failure) []failure {
	type identity struct {
		object            Subject
		code, message, by string
	}
	var all []failure
	known := map[identity]int{}
	for _, f := range folded(failures) {
		id := identity{SubjectOf(f.Finding), string(f.Code), f.Message, f.BlockedBy.String()}
		i, ok := known[id]
		if !ok || slices.Contains(all[i].in, f.in[0]) {
			known[id] = len(all)
			all = append(all, f)
			continue
		}
		all[i].Finding, all[i].in = all[i].Unite(f.Finding), append(all[i].in, f.in...)
	}
	return all
}

// folded returns the failures without the effects of other failures of the same cluster.
func folded(failures []failure) []failure {
	var all []failure
	for len(failures) > 0 {
		cluster := failures[0].in[0]
		n := slices.IndexFunc(failures, func(f failure) bool { return f.in[0] != cluster })
		if n < 0 {
			n = len(failures)
		}
		var found []finding.Finding
		for _, f := range failures[:n] {
			found = append(found, f.Finding)
		}
		for _, f := range finding.Fold(found) {
			all = append(all, failure{f, []string{cluster}})
		}
		failures = failures[n:]
	}
	return all
}
