package cmd

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
)

const clusterFlag = "cluster"

func (o *inputOptions) addClusters(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.Clusters, clusterFlag, nil, "only this cluster of those that the input holds: `NAME` or pattern, a directory as seen from the root of the repository (repeatable)")
}

// completeClusters names the clusters of the files that are given already.
func (a *app) completeClusters(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if _, err := a.configure(c, args); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	o := &inputOptions{}
	o.files, _ = c.Flags().GetStringArray("filename")
	o.Recursive, _ = c.Flags().GetBool("recursive")
	o.DefaultNamespace, _ = c.Flags().GetString("default-namespace")
	if slices.ContainsFunc(splitNames(o.files), pipe) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	options, err := a.loadOptions(o, args, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return load.NamesOf(a.worker.Read(c.Context(), options, nil).Clusters), cobra.ShellCompDirectiveNoFileComp
}

// each calls a function for each input, with lines about its cluster.
func (a *app) each(inputs []*load.Input, do func(*load.Input) error) error {
	defer a.console.In("")
	for _, in := range inputs {
		a.console.In(in.Cluster)
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
func withoutLoose(inputs []*load.Input) []*load.Input {
	return slices.DeleteFunc(inputs, func(in *load.Input) bool { return in.Loose })
}

// resultsOf says of results which cluster they are of.
func resultsOf(in *load.Input, results []*reconcile.Result) []*reconcile.Result {
	for _, r := range results {
		r.Cluster = in.Cluster
	}
	return results
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
		return nil, exit.Usagef("--artifacts-dir: %v", err)
	}
	all := []*load.Cluster{}
	for _, name := range names {
		all = append(all, &load.Cluster{Name: name})
	}
	if len(o.Clusters) == 0 {
		return append([]string{""}, names...), nil
	}
	chosen, err := o.Choose(all)
	return load.NamesOf(chosen), withOption(err)
}
