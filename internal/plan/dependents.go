package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// takenOver adds a reason to a removed and a new release that name the same Helm release: the HelmRelease was renamed, or
// moved to another namespace.
func takenOver(pairs []Pair, changes []Change) {
	gone := map[clusterTarget]int{}
	for i, p := range pairs {
		if changes[i].Action == Uninstall {
			gone[clusterTarget{p.Before.Cluster, p.Before.Target}] = i
		}
	}
	for i, p := range pairs {
		if p.After == nil || p.Before != nil || changes[i].Action != Install {
			continue
		}
		j, ok := gone[clusterTarget{p.After.Cluster, p.After.Target}]
		if !ok {
			continue
		}
		changes[i].add(Reason{Code: ReasonTaken, Text: fmt.Sprintf(
			"takes over the Helm release %s/%s of HelmRelease %s, whose removal uninstalls it: which comes first is not certain",
			p.After.Target.Namespace, p.After.Target.Name, pairs[j].Before.ID)})
		changes[j].add(Reason{Code: ReasonTaken, Text: fmt.Sprintf("HelmRelease %s takes over its Helm release", p.After.ID)})
	}
}

type clusterTarget struct {
	cluster string
	target  Target
}

// blockDependents blocks releases that depend on a blocked release, or on themselves: helm-controller waits for these.
func blockDependents(pairs []Pair, changes []Change) {
	at := map[ID]int{}
	for i, p := range pairs {
		if p.After != nil {
			at[p.After.ID] = i
		}
	}
	blocks := func(id ID) bool {
		i, ok := at[id]
		return ok && changes[i].Action == Blocked
	}
	waiting := cycles(pairs, at)
	for again := true; again; {
		again = false
		for i, p := range pairs {
			if p.After == nil || changes[i].Action == Blocked || p.After.Suspended {
				continue
			}
			on := slices.IndexFunc(p.After.DependsOn, blocks)
			if on < 0 && waiting[i] == nil {
				continue
			}
			r := Reason{Code: ReasonDependency}
			if waiting[i] != nil {
				r.Text = "waits for itself: it depends on " + strings.Join(waiting[i], ", which depends on ")
			} else {
				r.Text = fmt.Sprintf("dependency '%s' is not ready: it is blocked", p.After.DependsOn[on])
			}
			changes[i].Action, changes[i].Replaces = Blocked, nil
			changes[i].Reasons = append([]Reason{r}, changes[i].Reasons...)
			again = true
		}
	}
}

// cycles returns the releases that depend on themselves, each with the path from its dependency back to it.
func cycles(pairs []Pair, at map[ID]int) map[int][]string {
	found := map[int][]string{}
	next := func(id ID) []ID {
		if i, ok := at[id]; ok {
			return pairs[i].After.DependsOn
		}
		return nil
	}
	for i, p := range pairs {
		if p.After == nil {
			continue
		}
		for _, on := range p.After.DependsOn {
			for _, id := range finding.DependencyPath(on, p.After.ID, next) {
				found[i] = append(found[i], id.String())
			}
			if found[i] != nil {
				break
			}
		}
	}
	return found
}
