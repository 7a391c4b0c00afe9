package session

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/store"
)

// ReportObjects returns the results of a run as objects of a report, and the rejected objects, which have no results.
func (w *Worker) ReportObjects(in *load.Input, results []*reconcile.Result) []report.Object {
	var objects []report.Object
	for _, r := range results {
		objects = append(objects, w.ResultObject(r))
	}
	return append(objects, RejectedObjects(in)...)
}

// RejectedObjects returns the objects that the API server would refuse: those of the input, and further ones that it needs.
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

// NewReportObject returns an object of a report without a result.
func NewReportObject(obj *manifest.Object) report.Object {
	return report.Object{
		APIVersion: obj.APIVersion, Kind: obj.Kind, Namespace: obj.Namespace, Name: obj.Name, Pos: obj.Pos, State: report.StateReady,
	}
}

// ResultObject returns an object of a report with its result.
func (w *Worker) ResultObject(r *reconcile.Result) report.Object {
	o := NewReportObject(r.Object.Object)
	o.Cluster, o.State = r.Cluster, w.StateOf(r)
	o.Message = r.Message()
	o.Duration = w.took[r.Object.Object]
	if o.State == report.StateBlocked {
		o.BlockedBy = w.blocked[r.Object.Object]
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

// Conceal removes secrets from an object of a report.
func (w *Worker) Conceal(o *report.Object) {
	shown := w.Console.Called(console.Subject{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name})
	o.Kind, o.Namespace, o.Name = shown.Kind, shown.Namespace, shown.Name
	w.Console.ConcealObject(&o.BlockedBy)
	for _, text := range []*string{
		&o.APIVersion, &o.Kind, &o.Namespace, &o.Name, &o.Reason, &o.Message, &o.Version, &o.Revision, &o.Path,
	} {
		*text = w.Console.Secrets().Text(*text)
	}
}

// Report describes a finished run: the findings that the console reported, and the objects. Objects that are unusable, because
// several have the same name, are only counted. A failure of the same object for the same reason in several clusters counts
// once.
func (w *Worker) Report(objects []report.Object) *report.Run {
	reported, silenced := w.Console.Findings()
	run := &report.Run{Findings: reported, Silenced: silenced, Objects: objects, Count: map[string]int{}, Validates: w.Purpose.Judges}
	first := firstErrors(run.Findings)
	type failure struct{ kind, namespace, name, message string }
	failed := map[failure]bool{}
	for i := range objects {
		o := &objects[i]
		o.Message = auth.RedactText(o.Message)
		w.Conceal(o)
		run.Count[o.State]++
		if o.State == report.StateFailed {
			o.Message = cmp.Or(o.Message, first[store.Key{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}])
			failed[failure{o.Kind, o.Namespace, o.Name, o.Message}] = true
		}
	}
	run.Count[report.StateFailed] = w.Unusable + w.Unselected + len(failed)
	return run
}

// firstErrors returns the message of the first error of each object, for objects whose status has no message.
func firstErrors(findings []finding.Finding) map[store.Key]string {
	first := map[store.Key]string{}
	for _, f := range findings {
		key := store.Key{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name}
		if _, ok := first[key]; !ok && f.Severity == finding.Error {
			first[key] = f.Message
		}
	}
	return first
}

// ObjectsOf returns the results of one cluster as the objects of a report.
func (w *Worker) ObjectsOf(in *load.Input, results []*reconcile.Result) []report.Object {
	var found []report.Object
	for _, r := range results {
		if r.Cluster == in.Cluster {
			found = append(found, w.ResultObject(r))
		}
	}
	return found
}

// Summary returns the last line of a run: the numbers of objects by state.
func (w *Worker) Summary(run *report.Run) string {
	resolved := "resolved"
	if w.Purpose.Lists {
		resolved = "read"
	}
	of, chooses := run.Count, w.Purpose.Chooses
	return report.Sum(
		report.Part{Count: of[report.StateReady], Word: "ready", Always: !chooses},
		report.Part{Count: of[report.StateVerified], Word: "verified", Always: w.Purpose.Verifies},
		report.Part{Count: of[report.StateResolved], Word: resolved, Always: chooses && !w.Purpose.Verifies},
		report.Part{Count: of[report.StateFailed], Word: "failed", Always: true},
		report.Part{Count: of[report.StateBlocked], Word: "blocked"},
		report.Part{Count: of[report.StateSuspended], Word: "skipped", Always: true},
		report.Part{Count: of[report.StateInterrupted], Word: "not finished"},
		report.Part{Count: w.Unreadable, Word: "unreadable"},
	)
}
