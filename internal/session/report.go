package session

import (
	"maps"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
)

// ReportObjects are the results of a run, and the objects that got none because they
// were rejected.
func (w *Worker) ReportObjects(in *load.Input, results []*reconcile.Result) []report.Object {
	var objects []report.Object
	for _, r := range results {
		objects = append(objects, w.ResultObject(r))
	}
	return append(objects, RejectedObjects(in)...)
}

// RejectedObjects are the objects of an input that the API server would refuse, and those beside it that something needs.
func RejectedObjects(in *load.Input) []report.Object {
	left := maps.Clone(in.Reported)
	var objects []report.Object
	for _, obj := range append(in.Set.Objects(), slices.SortedFunc(maps.Keys(in.Reported), byName)...) {
		if left[obj] {
			delete(left, obj)
			o := NewReportObject(obj)
			o.State, o.Reason = report.StateFailed, "Invalid"
			objects = append(objects, o)
		}
	}
	return objects
}

func byName(a, b *manifest.Object) int { return strings.Compare(a.String(), b.String()) }

// NewReportObject is an object of which nothing is known yet.
func NewReportObject(obj *manifest.Object) report.Object {
	return report.Object{
		APIVersion: obj.APIVersion, Kind: obj.Kind, Namespace: obj.Namespace, Name: obj.Name, Pos: obj.Pos, State: report.StateReady,
	}
}

// ResultObject is an object with what became of it.
func (w *Worker) ResultObject(r *reconcile.Result) report.Object {
	o := NewReportObject(r.Object.Object)
	o.Cluster, o.State = r.Cluster, w.StateOf(r)
	o.Message = r.Message()
	o.Duration = w.took[r.Object.Object]
	if o.State == report.StateBlocked {
		o.BlockedBy = r.BlockedBy()
	}
	switch r.State {
	case reconcile.Suspended:
		o.Message = "suspended, left as it is"
	case reconcile.Ready, reconcile.Waiting, reconcile.Resolved:
		o.Message = w.describe(r)
	case reconcile.Static:
		o.Message = "has no status by design"
	}
	conditions, _ := r.Status["conditions"].([]any)
	for _, c := range conditions {
		if fields, ok := c.(map[string]any); ok && fields["type"] == "Ready" {
			o.Reason, _ = fields["reason"].(string)
		}
	}
	if artifact, ok := r.Status["artifact"].(map[string]any); ok && r.State != reconcile.Failed {
		o.Revision, _ = artifact["revision"].(string)
		o.Digest, _ = artifact["digest"].(string)
		o.Path, _ = artifact["path"].(string)
	}
	if found := r.Resolution; found != nil {
		o.Version = r.Object.Object.Veil(found.Version)
		if o.Digest == "" {
			o.Digest = found.Digest
		}
	}
	for _, text := range []*string{&o.Message, &o.Revision, &o.Path, &o.Version} {
		*text = r.Object.Object.ConcealText(*text)
	}
	return o
}
