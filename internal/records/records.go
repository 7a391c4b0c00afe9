// Package records prints lists of records, which are not objects: as tables, YAML, JSON, Markdown, or with a template.
package records

import (
	"io"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/table"
)

// Formats returns the formats of records, except templates.
func Formats() []string { return []string{"table", "wide", "yaml", "json", "jsonl", "markdown"} }

// Columns describe how a record is shown in a table.
type Columns[T any] struct {
	Header, Wide []string // titles; those of Wide come last
	Row          func(T) []string
	Cluster      func(T) string // of a record, "" with a single cluster
	Color        func(title, cell string) table.Color
}

// Print writes records in a format. A table without rows is empty; only the format table is cut to the style.
func (c *Columns[T]) Print(w io.Writer, format string, s table.Style, list []T) error {
	if template, err := status.ParseTemplate(format); template != nil || err != nil {
		if err != nil {
			return err
		}
		return template.Execute(w, listOf(list))
	}
	switch format {
	case "json", "jsonl":
		return Encode(w, list, format == "jsonl")
	case "yaml":
		text, err := yaml.Marshal(append([]T{}, list...)) // an empty list prints as [], not null
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	if len(list) == 0 {
		return nil
	}
	header := c.Header
	if format != "table" {
		header = slices.Concat(header, c.Wide)
		s.Columns = 0
	}
	rows := make([][]string, len(list))
	for i, record := range list {
		rows[i] = c.Row(record)[:len(header)]
	}
	if c.Cluster != nil {
		header, rows = WithClusters(header, rows, func(i int) string { return c.Cluster(list[i]) })
	}
	if format == "markdown" {
		return report.MarkdownTable(w, header, rows)
	}
	return s.Write(w, header, rows, c.Color)
}

// WithClusters adds a first column with the clusters of rows, if there are several clusters.
func WithClusters(header []string, rows [][]string, cluster func(i int) string) ([]string, [][]string) {
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

// list is the form of records in JSON: that of kubectl for any number of objects.
type list[T any] struct {
	APIVersion string `json:"apiVersion"`
	Items      []T    `json:"items"`
	Kind       string `json:"kind"`
}

func listOf[T any](items []T) list[T] {
	return list[T]{"v1", append([]T{}, items...), "List"}
}

// Encode writes records as one JSON List, or as one JSON object per line.
func Encode[T any](w io.Writer, items []T, lines bool) error {
	if !lines {
		return report.Encode(w, listOf(items))
	}
	return report.EncodeLines(w, items)
}
