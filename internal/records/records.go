// Package records prints what commands list that is no object: as tables, YAML, JSON, Markdown, or by a template.
package records

import (
	"io"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/table"
)

// Formats are those that records are printed in, besides templates.
func Formats() []string { return []string{"table", "wide", "yaml", "json", "jsonl", "markdown"} }

// Columns say how a record is shown in a table.
type Columns[T any] struct {
	Header, Wide []string // titles; wide ones follow the others
	Row          func(T) []string
	Cluster      func(T) string // of a record, "" where there is one cluster
	Color        func(title, cell string) table.Color
}

// Print writes records in a format. A table without rows is nothing; only one that is not wide is cut to the style.
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
		text, err := yaml.Marshal(append([]T{}, list...)) // an empty list is one, too
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

// WithClusters puts the clusters of rows into a column in front, where there are several.
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

// list is what JSON is printed as: the shape that kubectl gives to any number of objects.
type list[T any] struct {
	APIVersion string `json:"apiVersion"`
	Items      []T    `json:"items"`
	Kind       string `json:"kind"`
}

func listOf[T any](items []T) list[T] {
	return list[T]{"v1", append([]T{}, items...), "List"}
}

// Encode writes records as one JSON List, or as one JSON object a line.
func Encode[T any](w io.Writer, items []T, lines bool) error {
	if !lines {
		return report.Encode(w, listOf(items))
	}
	return report.EncodeLines(w, items)
}
