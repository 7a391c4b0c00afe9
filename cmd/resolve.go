package cmd

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/status"
)

func newResolveCommand(a *app) *cobra.Command {
	o := &runOptions{until: reconcile.Choose}
	c := &cobra.Command{
		Use:     "resolve -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupCharts,
		Short:   "Report which versions the charts resolve to, without fetching them",
		Long: `Do what fetch does up to the point where versions are known. No archive is
downloaded and nothing is written.

-o table, json and jsonl print a record per chart; -o yaml prints the objects with
the status that a controller would show at that moment.`,
		Example: `  helmsrc resolve -f helmchart.yaml -o table
  helmsrc resolve -R -f clusters/ -o json`,
	}
	o.input.add(c.Flags())
	o.input.addShard(c.Flags())
	o.input.addLookup(c.Flags())
	o.report.add(c.Flags())
	o.output.addFormat(c.Flags())
	o.store.addDir(c.Flags())
	o.store.addAddress(c.Flags())
	o.store.algorithm = "sha256"
	o.fetch.add(c.Flags())
	o.lock.add(c.Flags())
	o.lock.addFrom(c.Flags())
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
	case "yaml", "name":
		return a.printDocuments(o)
	}
	return func(results []*reconcile.Result) error {
		records := []resolution{}
		for _, r := range results {
			if r.Resolution != nil {
				records = append(records, a.newResolution(r))
			}
		}
		if o.format == "table" || o.format == "wide" {
			return a.tabulate(records, o.format == "wide")
		}
		return printRecords(a.env.Stdout, records, o)
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

// printRecords writes records as one JSON list, one JSON object per line, or what a template picks of the list.
func printRecords[T any](w io.Writer, records []T, o *outputOptions) error {
	if o.template != nil {
		return o.template.Execute(w, records)
	}
	return encodeRecords(w, records, o.format == "jsonl")
}

// encodeRecords writes records as one JSON list, or one JSON object per line.
func encodeRecords[T any](w io.Writer, records []T, lines bool) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if !lines {
		encoder.SetIndent("", "  ")
		return encoder.Encode(records)
	}
	for _, r := range records {
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) tabulate(records []resolution, wide bool) error {
	if len(records) == 0 {
		return nil
	}
	header := []string{"NAMESPACE", "NAME", "CHART", "CONSTRAINT", "VERSION", "SOURCE", "DIGEST"}
	if wide {
		header = append(header, "URL")
	}
	var rows [][]string
	for _, r := range records {
		row := []string{
			r.Namespace, r.Name, r.Chart, r.Constraint, orNone(r.Version), r.Source.Kind + "/" + r.Source.Name, orNone(r.Digest),
		}
		if wide {
			row = append(row, orNone(r.URL))
		}
		rows = append(rows, row)
	}
	header, rows = withClusters(header, rows, func(i int) string { return records[i].Cluster })
	return status.WriteTable(a.env.Stdout, header, rows)
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
