package cmd

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/load"
)

const clusterFlag = "cluster"

func (o *inputOptions) addClusters(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.Clusters, clusterFlag, nil, "only this cluster of the input: `NAME` is its directory relative to the root of the repository, or a pattern (repeatable)")
}

// completeClusters names the clusters of the files that are given already.
func (a *app) completeClusters(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if _, err := a.config.Configure(c, namesFiles(args)); err != nil {
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
