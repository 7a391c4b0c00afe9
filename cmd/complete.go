package cmd

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/recorded"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/session"
)

// completing reports whether a shell runs the program to get completions.
func completing(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// addCompletions registers the completions of the flags and arguments of all commands.
func (a *app) addCompletions(root *cobra.Command) {
	addFlagCompletions(root, root.PersistentFlags())
	a.addSubcommandCompletions(root)
}

func (a *app) addSubcommandCompletions(parent *cobra.Command) {
	for _, c := range parent.Commands() {
		a.addSubcommandCompletions(c)
		addFlagCompletions(c, c.LocalNonPersistentFlags())
		_ = c.RegisterFlagCompletionFunc(clusterFlag, a.completeClusters) // fails for a command without the flag
		switch {
		case c.ValidArgs != nil || c.ValidArgsFunction != nil:
		case c.Flags().Lookup("filename") != nil && c.Args == nil:
			c.ValidArgsFunction = a.completeObjects
		default:
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
}

func addFlagCompletions(c *cobra.Command, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		complete := flagCompletion(f)
		_, f.Usage = pflag.UnquoteUsage(f) // a shell would show the backquotes
		if complete != nil && f.Name != clusterFlag {
			_ = c.RegisterFlagCompletionFunc(f.Name, complete) // fails for an unknown flag
		}
	})
}

// flagCompletion returns the completion of a flag's value, nil for files.
func flagCompletion(f *pflag.Flag) cobra.CompletionFunc {
	word, _ := pflag.UnquoteUsage(f)
	switch {
	case config.Choices(f) != nil:
		directive := cobra.ShellCompDirectiveNoFileComp
		if slices.ContainsFunc(config.Choices(f), config.OpenEnded) {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return cobra.FixedCompletions(config.Choices(f), directive)
	case word == "directory":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case f.Name == "report":
		var formats []string
		for _, format := range slices.Concat(report.Formats(), report.Bills()) {
			if strings.Contains(f.Usage, format) { // some write no bills of materials
				formats = append(formats, format+"=")
			}
		}
		return cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp)
	case word == "file" || f.NoOptDefVal != "":
		return nil
	}
	return cobra.NoFileCompletions
}

// completeObjects completes arguments with the objects of the files that are already given, or with file names if no file is
// given.
func (a *app) completeObjects(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if _, err := a.config.Configure(c, namesFiles(args)); err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	named, _ := c.Flags().GetStringArray("filename")
	given, err := splitArguments(args, len(named) == 0)
	if err != nil {
		given = arguments{}
	}
	files := slices.DeleteFunc(slices.Concat(given.files, given.dirs, splitNames(named)), pipe)
	if len(files) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	recursive, _ := c.Flags().GetBool("recursive")
	namespace, _ := c.Flags().GetString("default-namespace")
	set, _ := manifest.Load(c.Context(), manifest.Options{Files: files, Recursive: recursive, DefaultNamespace: namespace})
	var found []cobra.Completion
	for _, obj := range inventory.New(set).Objects() { // with the HelmCharts of HelmReleases
		if name := objectArgument(obj, begun); strings.HasPrefix(name, begun) && reconcile.Kinds().Supports(obj) {
			found = append(found, cobra.CompletionWithDesc(name, obj.Pos.String()))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// pipe reports whether a file may not be readable a second time: stdin, a pipe or a device.
func pipe(file string) bool {
	info, err := os.Stat(file)
	return file == "-" || err == nil && !info.IsDir() && !info.Mode().IsRegular()
}

// objectArgument returns an object as an argument, with its kind in small letters if the user typed small letters.
func objectArgument(obj *manifest.Object, begun string) string {
	kind := obj.Kind
	if begun != "" && strings.ToLower(begun) == begun {
		kind = strings.ToLower(kind)
	}
	return kind + "/" + obj.Namespace + "/" + obj.Name
}

const clusterFlag = "cluster"

func (o *inputOptions) addClusters(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.Clusters, clusterFlag, nil, "only this cluster of the input: `NAME` is its directory relative to the root of the repository, or a pattern (repeatable)")
}

// completeClusters completes the value of --cluster with the clusters of the files that are already given, or else of the
// artifacts directory.
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
		return recordedClusters(&a.worker, c), cobra.ShellCompDirectiveNoFileComp
	}
	return load.NamesOf(a.worker.Read(c.Context(), options, nil).Clusters), cobra.ShellCompDirectiveNoFileComp
}

func recordedClusters(w *session.Worker, c *cobra.Command) []string {
	dir, err := c.Flags().GetString("artifacts-dir")
	if err != nil {
		return nil
	}
	d, err := recorded.Open(w, &session.StoreOptions{Dir: dir, Named: c.Flags().Changed("artifacts-dir")})
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Clusters() // a directory that cannot be read has none
	return names
}
