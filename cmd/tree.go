package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/outline"
	"github.com/helmsrc/helmsrc/internal/recorded"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/trace"
)

// treeFormat is the format of an outline for people.
const treeFormat = "tree"

func newTreeCommand(a *app) *cobra.Command {
	var in inputOptions
	format := formatFlag{format: treeFormat, formats: []string{treeFormat, "mermaid", "dot", "json"}}
	storage := storeOptions{}
	c := &cobra.Command{
		Use:     "tree -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupManifests,
		Short:   "Draw clusters: Kustomizations, releases, charts and sources",
		Long: `Draw the objects of each cluster as a tree: Kustomizations and what they build,
HelmReleases with their HelmCharts, and the sources of these. Sources and charts that no
release uses are drawn below the Kustomization that builds them.

Versions come from the manifests and states from the artifacts directory: no network is
used and nothing is written. Objects that the API server would reject and sources that do
not exist are marked.

Exit codes: 0 the tree is drawn, 1 an object is not valid, 2 wrong usage, nothing
selected or unreadable input.`,
		Example: `  helmsrc tree -R -f clusters/
  helmsrc tree -R -f clusters/ app -o mermaid`,
	}
	in.add(c.Flags())
	in.addLookup(c.Flags())
	in.render.addSources(c.Flags())
	storage.addDir(c.Flags())
	format.add(a, c)
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := storage.check(a); err != nil {
			return exit.Usage, err
		}
		return a.tree(ctx, &in, &storage, format.format, args)
	})
	return c
}

func (a *app) tree(ctx context.Context, o *inputOptions, storage *storeOptions, format string, args []string) (int, error) {
	dir, err := recorded.Open(&a.worker, &storage.StoreOptions)
	if err != nil {
		return exit.Usage, err
	}
	defer dir.Close()
	inputs, err := a.readSelected(ctx, o, args, storage.Dir)
	if err != nil {
		return exit.Usage, err
	}
	code := exit.OK
	var drawn []*outline.Node
	err = a.worker.Each(load.WithoutLoose(inputs), func(in *load.Input) error {
		objects, err := dir.Objects(in.Cluster)
		if err != nil {
			return err
		}
		outline := trace.Tracer{Console: a.console}.Outline(in, objects)
		drawn = append(drawn, outline.Selected()...)
		for _, obj := range outline.Invalid() {
			_, err := in.Inventory.Admit(obj)
			a.worker.Reject(in, obj, err)
		}
		code = exit.Worst(code, in.Code)
		return nil
	})
	if err != nil {
		return exit.Usage, err
	}
	return o.forgiven(code), a.writeOutline(drawn, format)
}

// drawn reports whether a format is one of outlines.
func drawn(format string) bool {
	return format == treeFormat || format == "mermaid" || format == "dot"
}

func (a *app) writeOutline(roots []*outline.Node, format string) error {
	switch format {
	case "mermaid":
		return outline.Mermaid(a.env.Stdout, roots)
	case "dot":
		return outline.DOT(a.env.Stdout, roots)
	case "json":
		return records.Encode(a.env.Stdout, outline.Unfold(roots), false)
	}
	return outline.Draw(a.env.Stdout, roots, a.paper)
}
