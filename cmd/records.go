package cmd

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/status"
)

// recordOptions say how records are printed that are no objects.
type recordOptions struct{ format string }

func recordFormats() []string { return []string{"table", "wide", "yaml", "json", "jsonl", "markdown"} }

func (o *recordOptions) add(fs *pflag.FlagSet) {
	fs.StringVarP(&o.format, "output", "o", "", "`format` of stdout: "+strings.Join(recordFormats(), ", ")+", or as in kubectl jsonpath=... or go-template=... of what json prints (default: table on a terminal, else yaml)")
	choices(fs, "output", append(recordFormats(), status.JSONPath, status.GoTemplate)...)
}

// check gives the format its default: a table for people, and else what other programs read.
func (o *recordOptions) check(env *Env) error {
	switch {
	case o.format != "":
	case env.Reads != nil && env.Reads():
		o.format = "table"
	default:
		o.format = "yaml"
	}
	return formatOf(o.format, recordFormats()...)
}

// records are what a command prints: one value and one row each.
type records[T any] struct {
	header, wide []string // columns; wide ones follow the others
	row          func(T) []string
	cluster      func(T) string // of a record, "" where there is one cluster
}

// print writes the records. A table without rows is nothing.
func (r *records[T]) print(w io.Writer, format string, list []T) error {
	if template, err := status.ParseTemplate(format); template != nil || err != nil {
		return executeTemplate(w, template, err, list)
	}
	switch format {
	case "json", "jsonl":
		return encodeRecords(w, list, format == "jsonl")
	case "yaml":
		text, err := yaml.Marshal(list)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	if len(list) == 0 {
		return nil
	}
	header := r.header
	if format != "table" {
		header = append(header[:len(header):len(header)], r.wide...)
	}
	rows := make([][]string, len(list))
	for i, record := range list {
		rows[i] = r.row(record)[:len(header)]
	}
	if r.cluster != nil {
		header, rows = withClusters(header, rows, func(i int) string { return r.cluster(list[i]) })
	}
	if format == "markdown" {
		return report.MarkdownTable(w, header, rows)
	}
	return status.WriteTable(w, header, rows)
}

// withClusters puts the clusters of rows into a column in front, where there are several.
func withClusters(header []string, rows [][]string, cluster func(i int) string) ([]string, [][]string) {
	several := false
	for i := range rows {
		several = several || cluster(i) != ""
	}
	if !several {
		return header, rows
	}
	for i := range rows {
		rows[i] = slices.Insert(slices.Clone(rows[i]), 0, cluster(i))
	}
	return slices.Insert(slices.Clone(header), 0, "CLUSTER"), rows
}
