package status

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/helmsrc/helmsrc/internal/table"
)

// tables collects rows until the widths of the columns are known.
type tables struct {
	w          io.Writer
	now        time.Time
	order      []string // kinds, by first appearance
	rows       map[string][][]string
	namespaces []string // of all rows, without duplicates
	clusters   bool     // rows name their cluster
}

func (t *tables) add(doc map[string]any) error {
	kind := Text(doc, "kind")
	if t.rows == nil {
		t.rows = map[string][][]string{}
	}
	if !slices.Contains(t.order, kind) {
		t.order = append(t.order, kind)
	}
	namespace := Text(doc, "metadata", "namespace")
	if !slices.Contains(t.namespaces, namespace) {
		t.namespaces = append(t.namespaces, namespace)
	}
	cluster := Text(doc, "metadata", "annotations", ClusterAnnotation)
	t.clusters = t.clusters || cluster != ""
	row := []string{cluster, namespace}
	for _, column := range columns(kind) {
		row = append(row, column.cell(doc, t.now))
	}
	t.rows[kind] = append(t.rows[kind], row)
	return nil
}

// flush writes a table per kind. It omits the namespace if all rows have the same, and the cluster if there is only one.
func (t *tables) flush() error {
	kinds := slices.DeleteFunc(slices.Clone(t.order), func(kind string) bool { return kind == eventKind })
	if len(kinds) < len(t.order) { // events follow the objects
		kinds = append(kinds, eventKind)
	}
	for i, kind := range kinds {
		if i > 0 {
			if _, err := io.WriteString(t.w, "\n"); err != nil {
				return err
			}
		}
		rows := [][]string{{"CLUSTER", "NAMESPACE"}}
		for _, column := range columns(kind) {
			rows[0] = append(rows[0], column.title)
		}
		rows = append(rows, t.rows[kind]...)
		for i, row := range rows {
			rows[i] = t.shown(row)
		}
		rows = withoutUnknown(rows)
		if err := (table.Style{}).Write(t.w, rows[0], rows[1:], nil); err != nil {
			return err
		}
	}
	return nil
}

// shown removes from a row the columns that are equal in all tables.
func (t *tables) shown(row []string) []string {
	if len(t.namespaces) <= 1 {
		row = slices.Delete(row, 1, 2)
	}
	if !t.clusters {
		row = row[1:]
	}
	return row
}

// withoutUnknown removes the age if it is unknown for all objects: manifests rarely contain it. The first row has the titles.
func withoutUnknown(rows [][]string) [][]string {
	at := slices.Index(rows[0], ageTitle)
	if at < 0 || slices.ContainsFunc(rows[1:], func(row []string) bool { return row[at] != unknown }) {
		return rows
	}
	for i, row := range rows {
		rows[i] = slices.Delete(row, at, at+1)
	}
	return rows
}

type column struct {
	title string
	cell  func(doc map[string]any, now time.Time) string
}

func field(title string, path ...string) column {
	return column{title, func(doc map[string]any, _ time.Time) string { return Text(doc, path...) }}
}

func columns(kind string) []column {
	if kind == eventKind {
		return eventColumns()
	}
	if kind == releaseKind {
		return releaseColumns()
	}
	columns := []column{field("NAME", "metadata", "name")}
	switch kind {
	case sourcev1.HelmRepositoryKind, sourcev1.GitRepositoryKind, sourcev1.OCIRepositoryKind:
		columns = append(columns, field("URL", "spec", "url"))
	case sourcev1.BucketKind:
		columns = append(columns, field("ENDPOINT", "spec", "endpoint"))
	case sourcev1.HelmChartKind:
		columns = append(columns,
			field("CHART", "spec", "chart"),
			field("VERSION", "spec", "version"),
			field("SOURCE KIND", "spec", "sourceRef", "kind"),
			field("SOURCE NAME", "spec", "sourceRef", "name"))
	}
	last := []column{{ageTitle, age}, readyColumn("READY", "status"), readyColumn("STATUS", "message")}
	if kind == sourcev1.OCIRepositoryKind {
		last = append(last[1:], last[0]) // as in its CRD
	}
	columns = append(columns, last...)
	return append(columns, field("REVISION", "status", "artifact", "revision"), field("PATH", "status", "artifact", "path"))
}

const (
	releaseKind = "HelmRelease"
	eventKind   = "Event"
	ageTitle    = "AGE"
	unknown     = "<unknown>"
)

// releaseColumns returns columns with the chart of a release; kubectl shows only its age and readiness.
func releaseColumns() []column {
	return []column{
		field("NAME", "metadata", "name"),
		field("CHART", "metadata", "annotations", ChartAnnotation),
		field("VERSION", "metadata", "annotations", VersionAnnotation),
		field("ARTIFACT", "metadata", "annotations", ArtifactAnnotation),
		readyColumn("READY", "status"),
		readyColumn("STATUS", "message"),
		{ageTitle, age},
		field("REVISION DIGEST", "status", "lastAttemptedRevisionDigest"),
		field("CONFIG DIGEST", "status", "lastAttemptedConfigDigest"),
	}
}

func eventColumns() []column {
	return []column{
		{"LAST SEEN", func(doc map[string]any, now time.Time) string {
			return since(Text(doc, "lastTimestamp"), now)
		}},
		field("TYPE", "type"),
		field("REASON", "reason"),
		{"OBJECT", func(doc map[string]any, _ time.Time) string {
			kind := strings.ToLower(Text(doc, "involvedObject", "kind"))
			return kind + "/" + Text(doc, "involvedObject", "name")
		}},
		field("MESSAGE", "message"),
	}
}

func age(doc map[string]any, now time.Time) string {
	return since(Text(doc, "metadata", "creationTimestamp"), now)
}

func since(timestamp string, now time.Time) string {
	then, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return unknown
	}
	return duration.HumanDuration(now.Sub(then))
}

// readyColumn returns a column with a field of the Ready condition, empty without the condition, as for OCI repositories.
func readyColumn(title, name string) column {
	return column{title, func(doc map[string]any, _ time.Time) string {
		list, _ := at(doc, "status", "conditions").([]any)
		for _, item := range list {
			condition, _ := item.(map[string]any)
			if Text(condition, "type") == meta.ReadyCondition {
				return Text(condition, name)
			}
		}
		return ""
	}}
}
