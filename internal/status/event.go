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

// An Event is an event that source-controller would report about an object.
type Event struct {
	Warning     bool // else Normal
	Reason      Reason
	Message     string
	Annotations map[string]string
}

// Events returns the events of an outcome, in chronological order.
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

// failureEvent returns a warning with the reason that stalls the object, if it stalls. It is not a warning if a chart waits
// for its source, which has its own.
func failureEvent(f *Failure) Event {
	reason := f.Reason
	if f.Stalled != "" {
		reason = f.Stalled
	}
	return Event{Warning: !f.Requeue, Reason: reason, Message: f.Message}
}

// successEvents returns the events for a new artifact, for the recovery from a failure of the last run, and for an artifact
// that is still up to date.
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

// newReason returns the reason of the event for a new artifact: that of the condition for charts, NewArtifact for other kinds,
// whose conditions have the reason Succeeded.
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

// Altered returns a warning about a stored artifact that was altered.
func Altered(err error) Event {
	return Event{
		Warning: true,
		Reason:  "ArtifactVerificationFailed",
		Message: fmt.Sprintf("failed to verify integrity of artifact: %v", err),
	}
}

// Collected returns an event about removed earlier artifacts.
func Collected(n int) Event {
	return Event{Reason: "GarbageCollectionSucceeded", Message: fmt.Sprintf("garbage collected %d artifacts", n)}
}

// ResolvedDependencies returns an event about dependencies that were added to a chart.
func ResolvedDependencies(n int) Event {
	return Event{Reason: "ResolvedDependencies", Message: fmt.Sprintf("resolved %d chart dependencies", n)}
}

// SymlinkUpdateFailed returns an event about a link to the artifact that still points to an earlier one.
func SymlinkUpdateFailed(err error) Event {
	return Event{
		Reason:  Reason(sourcev1.SymlinkUpdateFailedReason),
		Message: fmt.Sprintf("failed to update status URL symlink: %v", err),
	}
}

const (
	// component is the reporter of events. It is not source-controller, which has not run.
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

// involvedObject returns a reference to the object. The default namespace is default, as in the API server.
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
