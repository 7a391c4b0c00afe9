package listing

import (
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/table"
)

// Resolution is a record of resolve's output. Its fields are part of the contract.
type Resolution struct {
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

// Resolution returns the record of an object. The result must have a resolution.
func (l Lister) Resolution(r *reconcile.Result) Resolution {
	obj := r.Object.Object
	record := Resolution{
		Cluster: r.Cluster,
		Kind:    obj.Kind, Namespace: obj.Namespace, Name: obj.Name,
		Chart: r.Resolution.Chart, Constraint: r.Resolution.Constraint, Version: r.Resolution.Version,
		URL: r.Resolution.URL, Digest: r.Resolution.Digest,
	}
	record.Source = sourceRef{obj.Kind, obj.Namespace, obj.Name} // a source is its own source
	if kind, namespace, name, ok := reconcile.Kinds().SourceRef(r.Object); ok {
		record.Source = sourceRef{kind, namespace, name}
	}
	if r.Failure != nil {
		record.Error = r.Failure.Message
	}
	l.conceal(obj, &record)
	return record
}

// ResolutionColumns returns the columns of a table of resolutions.
func ResolutionColumns() *records.Columns[Resolution] {
	return &records.Columns[Resolution]{
		Header:  []string{"NAMESPACE", "NAME", "CHART", "CONSTRAINT", "VERSION", "SOURCE", "DIGEST", "URL"},
		Cluster: func(r Resolution) string { return r.Cluster },
		Row: func(r Resolution) []string {
			return []string{
				r.Namespace, r.Name, r.Chart, r.Constraint, table.OrNone(r.Version), r.Source.Kind + "/" + r.Source.Name, table.OrNone(r.Digest), table.OrNone(r.URL),
			}
		},
	}
}

// conceal removes the values that are not shown from the record of an object.
func (l Lister) conceal(obj *manifest.Object, r *Resolution) {
	shown := l.Console.Called(console.Subject{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
	r.Kind, r.Namespace, r.Name = shown.Kind, shown.Namespace, shown.Name
	source := l.Console.Called(console.Subject{Kind: r.Source.Kind, Namespace: r.Source.Namespace, Name: r.Source.Name})
	r.Source = sourceRef{source.Kind, source.Namespace, source.Name}
	for _, text := range []*string{
		&r.Kind, &r.Namespace, &r.Name, &r.Source.Kind, &r.Source.Namespace, &r.Source.Name,
	} {
		*text = l.Console.Secrets().Text(*text)
	}
	for _, text := range []*string{&r.Chart, &r.Constraint, &r.Version} {
		*text = obj.VeilField(*text)
	}
	for _, text := range []*string{&r.URL, &r.Error} {
		*text = obj.ConcealText(*text)
	}
}
