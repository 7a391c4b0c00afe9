package cmd

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/store"
)

// cluster is one of those that an input holds.
type cluster struct {
	*render.Cluster
	name  string // "" if it begins nowhere
	shown string // its name where the input holds several, else ""
}

// begins is the directory that a cluster begins in, "" for none.
func (c *cluster) begins() string {
	if c.Cluster == nil {
		return ""
	}
	return c.Dir
}

const clusterFlag = "cluster"

func (o *inputOptions) addClusters(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.clusters, clusterFlag, nil, "only this cluster of those that the input holds: `NAME` or pattern, a directory as seen from the root of the repository (repeatable)")
}

// clustersOf are the clusters of a renderer with their names.
func clustersOf(r *render.Renderer) []*cluster {
	var list []*cluster
	for _, c := range r.Clusters() {
		list = append(list, &cluster{Cluster: c, name: clusterName(c.Dir)})
	}
	if len(list) > 1 {
		for _, c := range list {
			c.shown = c.name
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

// choose keeps the clusters that --cluster names.
func (o *inputOptions) choose(clusters []*cluster) ([]*cluster, error) {
	if len(o.clusters) == 0 {
		return clusters, nil
	}
	chosen := map[*cluster]bool{}
	for _, pattern := range o.clusters {
		found := false
		for _, c := range clusters {
			if ok, err := path.Match(pattern, c.name); err != nil {
				return nil, usagef("--%s %s: the pattern is invalid", clusterFlag, pattern)
			} else if ok || pattern == c.name {
				found, chosen[c] = true, true
			}
		}
		if !found {
			return nil, &usageError{err: fmt.Errorf("--%s %s: no such cluster in the input", clusterFlag, pattern), hint: "the clusters are " + join(namesOf(clusters))}
		}
	}
	return slices.DeleteFunc(slices.Clone(clusters), func(c *cluster) bool { return !chosen[c] }), nil
}

func namesOf(clusters []*cluster) []string {
	var names []string
	for _, c := range clusters {
		names = append(names, c.name)
	}
	return names
}

// completeClusters names the clusters of the files that are given already.
func (a *app) completeClusters(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if _, err := a.configure(c, args); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	o := &inputOptions{}
	o.files, _ = c.Flags().GetStringArray("filename")
	o.recursive, _ = c.Flags().GetBool("recursive")
	o.defaultNamespace, _ = c.Flags().GetString("default-namespace")
	if slices.ContainsFunc(splitNames(o.files), pipe) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	r, err := a.read(c.Context(), o, args, "", nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return namesOf(r.clusters), cobra.ShellCompDirectiveNoFileComp
}

// each calls a function for each input, with lines about its cluster.
func (a *app) each(inputs []*input, do func(*input) error) error {
	defer a.console.In("")
	for _, in := range inputs {
		a.console.In(in.cluster)
		if err := do(in); err != nil {
			return err
		}
	}
	return nil
}

// storeOf opens the artifacts directory of a cluster: that of the command, or a part of it where the input holds several. What
// several have is stored once.
func (a *app) storeOf(cluster string, o *storeOptions, root *store.Store) (*store.Store, error) {
	if cluster == "" {
		return root, nil
	}
	part := *o
	part.dir = dirOf(o, cluster)
	st, err := a.openStore(&part)
	if err == nil {
		st.LinkTo(root)
	}
	return st, err
}

// clustersDir is the directory of an artifacts directory that holds those of clusters.
const clustersDir = "clusters"

func clusterDir(dir, cluster string) string {
	return filepath.Join(dir, clustersDir, filepath.FromSlash(path.Join("/", cluster)))
}

// dirOf is the artifacts directory of a cluster, as the user calls it.
func dirOf(o *storeOptions, cluster string) string {
	if cluster == "" {
		return o.dir
	}
	return clusterDir(o.dir, cluster)
}

// withoutLoose leaves out what nothing applies.
func withoutLoose(inputs []*input) []*input {
	return slices.DeleteFunc(inputs, func(in *input) bool { return in.loose })
}

// resultsOf says of results which cluster they are of.
func resultsOf(in *input, results []*reconcile.Result) []*reconcile.Result {
	for _, r := range results {
		r.Cluster = in.cluster
	}
	return results
}

// sayClusters says that there are several.
func (a *app) sayClusters(clusters []*cluster) {
	if len(clusters) > 1 {
		a.console.Info(console.Subject{}, fmt.Sprintf("%d clusters, each judged by itself: %s", len(clusters), console.Few(namesOf(clusters))))
	}
}

// advertised is the address of the artifacts directory of a cluster, "" if no address was given.
func advertised(address, cluster string) string {
	if cluster == "" || address == "" {
		return address
	}
	return strings.TrimRight(address, "/") + "/" + clustersDir + "/" + cluster
}

// stored are the clusters of which an artifacts directory holds anything, and that the flags choose; "" is the one without a
// part of its own.
func (o *inputOptions) stored(root *store.Store) ([]string, error) {
	names, err := root.Parts(clustersDir)
	if err != nil {
		return nil, usagef("--artifacts-dir: %v", err)
	}
	all := []*cluster{}
	for _, name := range names {
		all = append(all, &cluster{name: name})
	}
	if len(o.clusters) == 0 {
		return append([]string{""}, names...), nil
	}
	chosen, err := o.choose(all)
	return namesOf(chosen), err
}
