package load

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/render"
)

// A Cluster is one of those that the manifests hold.
type Cluster struct {
	*render.Cluster
	Name  string // "" if it begins nowhere
	Shown string // its name where the input holds several, else ""
}

// begins is the directory that a cluster begins in, "" for none.
func (c *Cluster) begins() string {
	if c.Cluster == nil {
		return ""
	}
	return c.Dir
}

func clustersOf(r *render.Renderer) []*Cluster {
	var list []*Cluster
	for _, c := range r.Clusters() {
		list = append(list, &Cluster{Cluster: c, Name: clusterName(c.Dir)})
	}
	if len(list) > 1 {
		for _, c := range list {
			c.Shown = c.Name
		}
	}
	return list
}

// clusterName is a directory as seen from the root of its repository, or from the working directory if it is in none.
func clusterName(dir string) string {
	if dir == "" {
		return ""
	}
	top, ok := git.Top(dir)
	if !ok {
		var err error
		if top, err = os.Getwd(); err != nil {
			return filepath.ToSlash(dir)
		}
	}
	rel, err := filepath.Rel(git.RealPath(top), git.RealPath(dir))
	if err != nil {
		return filepath.ToSlash(dir)
	}
	return filepath.ToSlash(rel)
}

// Choose keeps the clusters that the options name.
func (o *Options) Choose(clusters []*Cluster) ([]*Cluster, error) {
	if len(o.Clusters) == 0 {
		return clusters, nil
	}
	chosen := map[*Cluster]bool{}
	for _, pattern := range o.Clusters {
		found := false
		for _, c := range clusters {
			if ok, err := path.Match(pattern, c.Name); err != nil {
				return nil, &exit.UsageError{Option: "cluster", Value: pattern, Err: errors.New("the pattern is invalid")}
			} else if ok || pattern == c.Name {
				found, chosen[c] = true, true
			}
		}
		if !found {
			return nil, &exit.UsageError{Option: "cluster", Value: pattern, Err: errors.New("no such cluster in the input"), Advice: "the clusters are " + strings.Join(NamesOf(clusters), ", ")}
		}
	}
	return slices.DeleteFunc(slices.Clone(clusters), func(c *Cluster) bool { return !chosen[c] }), nil
}

// NamesOf are the names of clusters.
func NamesOf(clusters []*Cluster) []string {
	var names []string
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	return names
}
