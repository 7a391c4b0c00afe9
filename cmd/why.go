package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/outline"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/trace"
)

func newWhyCommand(a *app) *cobra.Command {
	o := asking()
	format := formatFlag{formats: []string{treeFormat, "yaml", "json", "mermaid", "dot"}, people: treeFormat}
	c := &cobra.Command{
		Use:     "why -f FILE... [KIND/][NAMESPACE/]NAME",
		GroupID: groupCharts,
		Short:   "Explain where an object comes from and how its version was chosen",
		Long: `Explain an object: the file and kustomization it comes from, the fields that variables
or patches set, its source, its version constraint, how many versions are published, which
one is selected and why its neighbours are not, which login would be used and where it is
configured (never the login itself), how signatures are checked, and which objects depend
on it.

-o tree draws the path from the cluster to the source, with the candidate versions.

If objects of several kinds, namespaces or clusters have the name, each is explained.

Only the index or the list of tags is downloaded, and nothing is written.

Exit codes: 0 explained, 1 the object fails; it is explained as far as possible, 2 wrong
usage, no such object or unreadable input, 5 a retry may help, 130 interrupted.`,
		Example: `  helmsrc why -f helmrepository.yaml -f helmchart.yaml HelmChart/podinfo
  helmsrc why -R -f clusters/ app -o json`,
	}
	o.addListing(c)
	format.add(a, c)
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		var inputs []*load.Input
		var usage error
		o.Then = func(_ context.Context, read *load.Input, _ *reconcile.Reconciler) { inputs = append(inputs, read) }
		code, err := a.runReconciliation(ctx, o, args, func(results []*reconcile.Result) error {
			var answers []*trace.Answer
			var paths []*outline.Node
			tracer := trace.Tracer{Console: a.console}
			for _, in := range inputs {
				objects, err := askedObjects(in)
				if err != nil {
					usage = err
					return nil
				}
				for _, obj := range objects {
					answer := tracer.Answer(in, obj, results)
					answers = append(answers, answer)
					paths = append(paths, tracer.Outline(in, a.worker.ObjectsOf(in, failuresOf(results))).Path(obj, answer)...)
				}
			}
			if len(answers) == 0 {
				usage = exit.Usagef("no object is selected")
				return nil
			}
			if drawn(format.format) {
				return a.writeOutline(paths, format.format)
			}
			return writeAnswers(a.env.Stdout, answers, format.format)
		})
		if err == nil && usage != nil {
			return exit.Usage, usage
		}
		return code, err
	})
	return c
}

// askedObjects returns the objects of a cluster that the arguments name: several, if they have the same name. Objects that are
// made of a HelmRelease are left out, because its answer covers them.
func askedObjects(in *load.Input) ([]*manifest.Object, error) {
	var found []*manifest.Object
	var names []string
	for _, obj := range in.Inventory.Objects() {
		if in.Wanted(obj) && (obj.Origin == nil || obj.Origin.Kind != helmv2.HelmReleaseKind) {
			found, names = append(found, obj), append(names, obj.CalledText())
		}
	}
	if len(found) > 1 && len(in.Selectors) == 0 {
		return nil, &exit.UsageError{Err: fmt.Errorf("%d objects are selected: %s", len(found), console.Few(names)), Advice: "name one of them: helmsrc why -f FILE KIND/NAMESPACE/NAME"}
	}
	return found, nil
}

// failuresOf returns the results that failed. Without a fetch, a run finds no other errors.
func failuresOf(results []*reconcile.Result) []*reconcile.Result {
	return slices.DeleteFunc(slices.Clone(results), func(r *reconcile.Result) bool { return r.Failure == nil })
}

// writeAnswers writes an answer as one document, and several answers as one document each.
func writeAnswers(w io.Writer, answers []*trace.Answer, format string) error {
	if format == "json" {
		return records.Encode(w, answers, false)
	}
	for i, answer := range answers {
		text, err := yaml.Marshal(answer)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}
