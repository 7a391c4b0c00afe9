package cmd

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/session"
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

// stored are the clusters of which an artifacts directory holds anything, and that the flags choose; "" is the one without a
// part of its own.
func (o *inputOptions) stored(root *store.Store) ([]string, error) {
	names, err := root.Parts(session.ClustersDir)
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
	return load.NamesOf(chosen), err
}
