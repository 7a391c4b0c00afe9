package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/render"
)

// A Cluster is a cluster of the manifests.
type Cluster struct {
	*render.Cluster
	Name  string // "" without a cluster directory
	Shown string // its name if the files that were read have several clusters, else ""
}

// begins returns the directory that a cluster begins in, may be "".
func (c *Cluster) begins() string {
	if c.Cluster == nil {
		return ""
	}
	return c.Dir
}

func clustersOf(r *render.Renderer) []*Cluster {
	var list []*Cluster
	for _, c := range r.Clusters() {
		named := &Cluster{Cluster: c, Name: clusterName(c.Dir)}
		if c.HasOthers() {
			named.Shown = named.Name
		}
		list = append(list, named)
	}
	return list
}

// clusterName returns a directory relative to the root of its repository, or to the working directory outside of a repository.
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

// Choose returns the clusters that match the options.
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
			advice := "the clusters are " + strings.Join(NamesOf(clusters), ", ")
			if len(clusters) == 1 && clusters[0].Name == "" {
				advice = "no directory of the input is that of a cluster: all objects are processed together"
			}
			return nil, &exit.UsageError{Option: "cluster", Value: pattern, Err: errors.New("no such cluster in the input"), Advice: advice}
		}
	}
	return slices.DeleteFunc(slices.Clone(clusters), func(c *Cluster) bool { return !chosen[c] }), nil
}

// NamesOf returns the names of clusters.
func NamesOf(clusters []*Cluster) []string {
	var names []string
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	return names
}

// Since narrows the options to the files that changed since a revision of the named repository, as if these files were arguments:
// then all clusters with such files count. If files were removed, or a .sourceignore changed, it does not change the options.
// Since returns false if nothing changed. Without a revision it returns true, and does not change the options.
func (l *Reader) Since(ctx context.Context, o *Options, revision string) (bool, error) {
	wrong := func(err error, advice string) error {
		return &exit.UsageError{Option: "changed-since", Value: revision, Err: err, Advice: advice}
	}
	if revision == "" {
		return true, nil
	}
	if len(o.Names) == 0 || slices.Contains(o.Names, "-") {
		return false, wrong(errors.New("it selects the files"), finding.NameDirs)
	}
	top, ok := git.Top(o.Names[0])
	if !ok {
		return false, wrong(fmt.Errorf("%s is not in a Git repository", o.Names[0]), "")
	}
	changed, gone, err := git.ChangedSince(ctx, top, revision, l.Getenv)
	if missing, ok := errors.AsType[*git.RevisionError](err); ok {
		return false, &exit.UsageError{Option: "changed-since", Err: err, Advice: missing.Hint()}
	}
	if err != nil {
		return false, err
	}
	wide := gone
	for _, name := range changed {
		if path.Base(name) == ".sourceignore" {
			wide = append(wide, name)
		}
	}
	if len(wide) > 0 {
		l.Console.Info(console.Subject{}, fmt.Sprintf("all objects are selected: since %s, files were removed or ignore rules changed: %s", revision, console.Few(wide)))
		return true, nil
	}
	changed = slices.DeleteFunc(changed, func(name string) bool { return strings.Contains("/"+name, "/.helmsrc/") }) // records of artifacts
	if len(changed) == 0 {
		l.Console.Info(console.Subject{}, "nothing changed since "+revision)
		return false, nil
	}
	top = fromHere(top)
	for _, name := range changed {
		o.Offered = append(o.Offered, filepath.Join(top, filepath.FromSlash(name)))
	}
	o.LookupDirs, o.Names, o.AllowEmpty = append(o.LookupDirs, top), nil, true
	return true, nil
}

// SeekClusters makes files that were passed as arguments parts of the clusters of their repository, unless lookup directories are
// given: then these have the clusters. The files may select nothing.
func (o *Options) SeekClusters() {
	if len(o.Names) > 0 || len(o.Offered) == 0 {
		return
	}
	o.AllowEmpty = true
	if top, ok := git.Top(o.Offered[0]); ok && len(o.LookupDirs) == 0 {
		o.LookupDirs = []string{fromHere(top)}
	}
}

// fromHere returns a directory relative to the working directory, if possible.
func fromHere(dir string) string {
	if rel, err := filepath.Rel(git.RealPath("."), dir); err == nil {
		return rel
	}
	return dir
}
