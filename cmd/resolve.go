package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/records"
)

func newResolveCommand(a *app) *cobra.Command {
	o := choosing()
	c := &cobra.Command{
		Use:     "resolve -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupCharts,
		Short:   "Report which versions the charts resolve to, without fetching them",
		Long: `Do what fetch does up to the point where versions are known. No archive is
downloaded and nothing is written.

-o wide, json and jsonl print a record per chart; -o yaml prints the objects with
the status that a controller would show at that moment.`,
		Example: `  helmsrc resolve -f helmchart.yaml -o table
  helmsrc resolve -R -f clusters/ -o json`,
	}
	o.input.add(c.Flags())
	o.input.addShard(c.Flags())
	o.input.addLookup(c.Flags())
	o.report.addBilled(c.Flags())
	o.output.addFormat(c.Flags())
	o.store.addDir(c.Flags())
	o.store.addAddress(c.Flags())
	o.addFetch(c.Flags())
	addLocked(&o.Lock, c.Flags())
	addFrom(&o.Lock, c.Flags())
	o.addFollow(c.Flags())
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := o.output.check(a.env); err != nil {
			return exit.Usage, err
		}
		return a.runReconciliation(ctx, o, args, a.printResolutions(&o.output))
	})
	return c
}

// resolution is a record of resolve's output. Its fields are part of the contract.
type resolution struct {
	Cluster    string    `json:"cluster,omitempty"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace"`
	Name       string    `json:"name"`
	Chart      string    `json:"chart"`
	Constraint string    `json:"constraint"`
	Version    string    `json:"version"`
	URL        string    `json:"url"`
	Digest     string    `json:"digest"`
	Source     sourceRef `json:"source"`
	Error      string    `json:"error,omitempty"`
}

type sourceRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (a *app) printResolutions(o *outputOptions) func([]*reconcile.Result) error {
	switch o.format {
	case "yaml", "name", "table":
		return a.printDocuments(o)
	}
	return func(results []*reconcile.Result) error {
		var list []resolution
		for _, r := range results {
			if r.Resolution != nil {
				list = append(list, a.newResolution(r))
			}
		}
		return resolutionColumns().Print(a.env.Stdout, o.format, a.paper, list)
	}
}

func (a *app) newResolution(r *reconcile.Result) resolution {
	obj := r.Object.Object
	record := resolution{
		Cluster: r.Cluster,
		Kind:    obj.Kind, Namespace: obj.Namespace, Name: obj.Name,
		Chart: r.Resolution.Chart, Constraint: r.Resolution.Constraint, Version: r.Resolution.Version,
		URL: r.Resolution.URL, Digest: r.Resolution.Digest,
	}
	record.Source = sourceRef{obj.Kind, obj.Namespace, obj.Name} // of a source, it is itself
	if kind, namespace, name, ok := reconcile.Kinds().SourceRef(r.Object); ok {
		record.Source = sourceRef{kind, namespace, name}
	}
	if r.Failure != nil {
		record.Error = r.Failure.Message
	}
	a.concealResolution(obj, &record)
	return record
}

func resolutionColumns() *records.Columns[resolution] {
	return &records.Columns[resolution]{
		Header:  []string{"NAMESPACE", "NAME", "CHART", "CONSTRAINT", "VERSION", "SOURCE", "DIGEST", "URL"},
		Cluster: func(r resolution) string { return r.Cluster },
		Row: func(r resolution) []string {
			return []string{
				r.Namespace, r.Name, r.Chart, r.Constraint, orNone(r.Version), r.Source.Kind + "/" + r.Source.Name, orNone(r.Digest), orNone(r.URL),
			}
		},
	}
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
