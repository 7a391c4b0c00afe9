package status

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// An Event is something that source-controller reports about an object.
type Event struct {
	Warning     bool // else Normal
	Reason      Reason
	Message     string
	Annotations map[string]string
}

// Events lists what there is to report about an outcome, in the order in which it happened.
func Events(prev Previous, o Outcome) []Event {
	events := append([]Event(nil), o.Events...)
	switch {
	case o.Failure != nil:
		events = append(events, failureEvent(o.Failure))
	case o.Stored != nil:
		events = append(events, successEvents(prev, o)...)
	}
	return events
}

// failureEvent warns with the reason that stalls the object, if one does. A chart that waits for its source is no
// reason to warn: the source does.
func failureEvent(f *Failure) Event {
	reason := f.Reason
	if f.Stalled != "" {
		reason = f.Stalled
	}
	return Event{Warning: !f.Requeue, Reason: reason, Message: f.Message}
}

// successEvents announces a new artifact, and the recovery from a failure of the last run. It says so, too, when
// nothing had to be done.
func successEvents(prev Previous, o Outcome) []Event {
	var events []Event
	revision := revisionOf(o.Artifact)
	if o.Reused {
		events = append(events, Event{
			Reason:  ArtifactUpToDate,
			Message: "artifact up-to-date with remote revision: '" + revision + "'",
		})
	}
	announce := Event{Message: o.Announce, Annotations: annotations(o.Artifact)}
	announce.Message = cmp.Or(announce.Message, o.Stored.Message)
	switch changed := !prev.stored() || !prev.Artifact.HasDigest(digestOf(o.Artifact)); {
	case changed:
		announce.Reason = newReason(o.Stored.Reason)
	case failedBefore(prev):
		announce.Reason = o.Stored.Reason
	default:
		return events
	}
	return append(events, announce)
}

// newReason is the reason of the event for a new artifact: charts have the same one in their conditions, everything
// else says Succeeded there.
func newReason(stored Reason) Reason {
	if stored == Succeeded {
		return NewArtifact
	}
	return stored
}

func failedBefore(prev Previous) bool {
	before := conditions{list: prev.Conditions}
	return slices.ContainsFunc([]string{fetchFailed, buildFailed, storageFailed, includeUnavailable}, func(typ string) bool { return before.get(typ) != nil })
}

func revisionOf(a *meta.Artifact) string {
	if a == nil {
		return ""
	}
	return a.Revision
}

func digestOf(a *meta.Artifact) string {
	if a == nil {
		return ""
	}
	return a.Digest
}

func annotations(a *meta.Artifact) map[string]string {
	if a == nil {
		return nil
	}
	return map[string]string{
		sourcev1.GroupVersion.Group + "/revision": a.Revision,
		sourcev1.GroupVersion.Group + "/digest":   a.Digest,
	}
}

// Altered warns of a stored artifact that is not what it was.
func Altered(err error) Event {
	return Event{
		Warning: true,
		Reason:  "ArtifactVerificationFailed",
		Message: fmt.Sprintf("failed to verify integrity of artifact: %v", err),
	}
}

// Collected reports that earlier artifacts were removed.
func Collected(n int) Event {
	return Event{Reason: "GarbageCollectionSucceeded", Message: fmt.Sprintf("garbage collected %d artifacts", n)}
}

// ResolvedDependencies reports that dependencies were added to a chart.
func ResolvedDependencies(n int) Event {
	return Event{Reason: "ResolvedDependencies", Message: fmt.Sprintf("resolved %d chart dependencies", n)}
}

// SymlinkUpdateFailed reports that the link to the artifact still points to an earlier one.
func SymlinkUpdateFailed(err error) Event {
	return Event{
		Reason:  Reason(sourcev1.SymlinkUpdateFailedReason),
		Message: fmt.Sprintf("failed to update status URL symlink: %v", err),
	}
}

const (
	// component is who says so. It is not source-controller: nothing of it has run.
	component = "helmsrc"
	// eventAnnotations is the prefix of the object's annotations that its events carry, too.
	eventAnnotations = "event.toolkit.fluxcd.io/"
	// maxName is the API server's limit for an object's name.
	maxName = 253
)

// Document returns the event as a v1 Event about the object. The same event at the same time has the same name, so
// that applying it twice does not double it.
func (e Event) Document(object map[string]any, now time.Time) map[string]any {
	typ := "Normal"
	if e.Warning {
		typ = "Warning"
	}
	at := now.UTC().Format(time.RFC3339)
	involved := involvedObject(object)
	metadata := map[string]any{
		"name":      e.name(involved, typ, at),
		"namespace": involved["namespace"],
	}
	if all := e.allAnnotations(object); len(all) > 0 {
		metadata["annotations"] = all
	}
	return map[string]any{
		"apiVersion":     "v1",
		"kind":           "Event",
		"metadata":       metadata,
		"involvedObject": involved,
		"type":           typ,
		"reason":         string(e.Reason),
		"message":        e.Message,
		"source":         map[string]any{"component": component},
		"count":          int64(1),
		"firstTimestamp": at,
		"lastTimestamp":  at,
	}
}

// involvedObject refers to the object. It has a namespace even if the object says none, as in the API server.
func involvedObject(object map[string]any) map[string]any {
	ref := map[string]any{
		"apiVersion": Text(object, "apiVersion"),
		"kind":       Text(object, "kind"),
		"namespace":  Text(object, "metadata", "namespace"),
		"name":       Text(object, "metadata", "name"),
	}
	if ref["namespace"] == "" {
		ref["namespace"] = "default"
	}
	for _, field := range []string{"uid", "resourceVersion"} {
		if value := Text(object, "metadata", field); value != "" {
			ref[field] = value
		}
	}
	return ref
}

func (e Event) name(involved map[string]any, typ, at string) string {
	h := sha256.New()
	for _, part := range []any{involved["kind"], involved["namespace"], involved["name"], typ, e.Reason, e.Message, at} {
		_, _ = fmt.Fprintf(h, "%v\x00", part)
	}
	suffix := "." + hex.EncodeToString(h.Sum(nil)[:8])
	name, _ := involved["name"].(string)
	if len(name)+len(suffix) > maxName {
		name = strings.TrimRight(name[:maxName-len(suffix)], ".-")
	}
	return name + suffix
}

func (e Event) allAnnotations(object map[string]any) map[string]any {
	all := map[string]any{}
	for key, value := range e.Annotations {
		all[key] = value
	}
	given, _ := at(object, "metadata", "annotations").(map[string]any)
	for key, value := range given {
		if strings.HasPrefix(key, eventAnnotations) {
			all[key] = value
		}
	}
	return all
}
