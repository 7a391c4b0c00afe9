// Package overview prints a table of the results of a run: a row for each release, with its chart, version, source and state, and
// rows for charts and sources that no release uses.
package overview

import (
	"cmp"
	"io"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/table"
)

// Table gathers objects. The zero value is ready to use.
type Table struct{ rows []row }

// id identifies an object of a run.
type id struct{ cluster, kind, namespace, name string }

type row struct {
	id
	chart, version, url string
	source              id // zero for a source
	owner               id // the release that a HelmChart is made for
	state, message      string
}

// Add adds an object with its document and its state.
func (t *Table) Add(doc map[string]any, o report.Object) {
	text := func(path ...string) string { return status.Text(doc, path...) }
	reference := func(field ...string) id {
		part := func(name string) string { return text(append(slices.Clip(field), name)...) }
		if part("name") == "" {
			return id{}
		}
		return id{o.Cluster, part("kind"), cmp.Or(part("namespace"), o.Namespace), part("name")}
	}
	r := row{id: id{o.Cluster, o.Kind, o.Namespace, o.Name}, state: o.State, message: o.Message}
	switch base, _, _ := strings.Cut(o.Kind, "."); base {
	case helmv2.HelmReleaseKind:
		r.chart = cmp.Or(text("metadata", "annotations", status.ChartAnnotation), text("spec", "chart", "spec", "chart"), text("spec", "chart", "name"))
		r.version = cmp.Or(o.Version, text("metadata", "annotations", status.VersionAnnotation), text("spec", "chart", "spec", "version"), text("spec", "chart", "version"))
		r.source = cmp.Or(reference("spec", "chartRef"), reference("spec", "chart", "spec", "sourceRef"))
	case sourcev1.HelmChartKind:
		r.chart, r.version = text("spec", "chart"), cmp.Or(o.Version, o.Revision, text("spec", "version"))
		r.source = reference("spec", "sourceRef")
		labels := []string{"metadata", "labels", helmv2.GroupVersion.Group + "/"}
		label := func(name string) string { return text(labels[0], labels[1], labels[2]+name) }
		r.owner = id{o.Cluster, helmv2.HelmReleaseKind, label("namespace"), label("name")}
	default:
		r.url, r.version = cmp.Or(text("spec", "url"), text("spec", "endpoint")), cmp.Or(o.Version, o.Revision)
	}
	t.rows = append(t.rows, r)
}

// Write writes the rows: releases, then charts, then sources.
func (t *Table) Write(w io.Writer, s table.Style) error {
	p := t.parts()
	several := slices.ContainsFunc(t.rows, func(r row) bool { return r.cluster != "" })
	spaced := slices.ContainsFunc(t.rows, func(r row) bool { return r.namespace != t.rows[0].namespace })
	name := func(i id) string {
		if spaced && i.namespace != "" {
			return i.namespace + "/" + i.name
		}
		return i.name
	}
	chart := func(r row) []string {
		return []string{name(r.id), r.chart, table.Short(r.version), r.source.short(), r.says()}
	}
	written := false
	for _, part := range []struct {
		header []string
		rows   []row
		cells  func(r row) []string
	}{
		{[]string{"RELEASE", "CHART", "VERSION", "SOURCE", "STATE"}, p.releases, chart},
		{[]string{"HELMCHART", "CHART", "VERSION", "SOURCE", "STATE"}, p.charts, chart},
		{[]string{"SOURCE", "URL", "REVISION", "STATE"}, p.sources, func(r row) []string {
			return []string{r.kind + "/" + name(r.id), r.url, table.Short(r.version), r.says()}
		}},
	} {
		if len(part.rows) == 0 {
			continue
		}
		if written {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		written = true
		var rows [][]string
		for _, r := range part.rows {
			cells := part.cells(r)
			if several {
				cells = append([]string{r.cluster}, cells...)
			}
			rows = append(rows, cells)
		}
		if several {
			part.header = append([]string{"CLUSTER"}, part.header...)
		}
		if err := s.Write(w, part.header, rows, StateColor); err != nil {
			return err
		}
	}
	return nil
}

// short returns the kind and name of a source, without its namespace: that would be too wide.
func (i id) short() string {
	if i.name == "" {
		return ""
	}
	return i.kind + "/" + i.name
}

// says returns the state, with the message if the object failed or was interrupted.
func (r *row) says() string {
	switch r.state {
	case report.StateFailed, report.StateInterrupted:
		return strings.TrimSuffix(r.state+": "+r.message, ": ")
	}
	return r.state
}

// StateColor returns the colour of a cell with a state.
func StateColor(title, cell string) table.Color {
	if title != "STATE" && title != "READY" {
		return table.Plain
	}
	state, _, _ := strings.Cut(cell, ":")
	switch state {
	case report.StateReady, report.StateVerified, report.StateResolved, "True":
		return table.Green
	case report.StateFailed, report.StateInterrupted, "False":
		return table.Red
	case report.StateBlocked, report.StateSuspended, "Unknown":
		return table.Yellow
	}
	return table.Plain
}

// parts holds the rows to write.
type parts struct{ releases, charts, sources []row }

// parts merges each HelmChart into its release, and leaves out sources that releases use, unless they failed.
func (t *Table) parts() *parts {
	p := &parts{}
	at, used := map[id]int{}, map[id]bool{}
	for _, r := range t.rows {
		if isRelease(r.kind) {
			at[r.id] = len(p.releases)
			p.releases = append(p.releases, r)
			used[r.source] = true
		}
	}
	for _, r := range t.rows {
		if r.kind != sourcev1.HelmChartKind {
			continue
		}
		if i, ok := at[r.owner]; ok {
			p.releases[i].version = cmp.Or(r.version, p.releases[i].version)
		} else if !used[r.id] {
			p.charts = append(p.charts, r)
			continue
		}
		used[r.source] = true
	}
	for _, r := range t.rows {
		if isSource := !isRelease(r.kind) && r.kind != sourcev1.HelmChartKind; isSource && (!used[r.id] || r.state == report.StateFailed) {
			p.sources = append(p.sources, r)
		}
	}
	return p
}

func isRelease(kind string) bool {
	base, _, _ := strings.Cut(kind, ".")
	return base == helmv2.HelmReleaseKind
}
