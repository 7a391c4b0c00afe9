package status

import (
	"cmp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	fetchFailed        = sourcev1.FetchFailedCondition
	buildFailed        = sourcev1.BuildFailedCondition
	storageFailed      = sourcev1.StorageOperationFailedCondition
	includeUnavailable = sourcev1.IncludeUnavailableCondition
	artifactOutdated   = sourcev1.ArtifactOutdatedCondition
	artifactInStorage  = sourcev1.ArtifactInStorageCondition
	sourceVerified     = sourcev1.SourceVerifiedCondition
)

// maxMessage is the limit of the API server for a condition's message, in bytes.
const maxMessage = 32768

// conditions are the conditions of one object during a reconciliation. Conditions that are set get the generation of the
// object; unchanged ones keep theirs.
type conditions struct {
	generation int64
	list       []metav1.Condition
}

func (c *conditions) get(typ string) *metav1.Condition {
	for i := range c.list {
		if c.list[i].Type == typ {
			return &c.list[i]
		}
	}
	return nil
}

func (c *conditions) is(typ string, status metav1.ConditionStatus) bool {
	found := c.get(typ)
	return found != nil && found.Status == status
}

func (c *conditions) set(typ string, status metav1.ConditionStatus, reason Reason, message string) {
	condition := metav1.Condition{
		Type:               typ,
		Status:             status,
		Reason:             string(reason),
		Message:            cut(message),
		ObservedGeneration: c.generation,
	}
	if found := c.get(typ); found != nil {
		*found = condition
		return
	}
	c.list = append(c.list, condition)
}

func (c *conditions) setTrue(typ string, reason Reason, message string) {
	c.set(typ, metav1.ConditionTrue, reason, message)
}

func (c *conditions) remove(types ...string) {
	c.list = slices.DeleteFunc(c.list, func(condition metav1.Condition) bool {
		return slices.Contains(types, condition.Type)
	})
}

// progress sets Reconciling. Readiness becomes unknown after drift, or if it was unknown before.
func (c *conditions) progress(drift bool, message string) {
	c.remove(meta.StalledCondition)
	c.setTrue(meta.ReconcilingCondition, Progressing, message)
	ready := c.get(meta.ReadyCondition)
	if drift || ready == nil || ready.Status == metav1.ConditionUnknown {
		c.set(meta.ReadyCondition, metav1.ConditionUnknown, Progressing, message)
	}
}

// cut shortens a message to the limit of the API server, without breaking a character.
func cut(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	const suffix = "..."
	end := maxMessage - len(suffix)
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + suffix
}

// finish sorts the conditions as Flux does and sets their times. A condition with the same content as after the previous run
// keeps its time, whatever it was in between: that was not visible.
func (c *conditions) finish(prev []metav1.Condition, now time.Time) []metav1.Condition {
	before := conditions{list: prev}
	date := metav1.NewTime(now.UTC().Truncate(time.Second))
	for i := range c.list {
		condition := &c.list[i]
		condition.LastTransitionTime = date
		if old := before.get(condition.Type); old != nil && sameState(old, condition) {
			condition.LastTransitionTime = old.LastTransitionTime
		}
	}
	slices.SortStableFunc(c.list, compare)
	return c.list
}

func sameState(a, b *metav1.Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// compare orders the kstatus conditions first, then the rest by newest generation and name.
func compare(a, b metav1.Condition) int {
	return cmp.Or(
		cmp.Compare(weight(a.Type), weight(b.Type)),
		cmp.Compare(b.ObservedGeneration, a.ObservedGeneration),
		cmp.Compare(a.Type, b.Type),
	)
}

func weight(typ string) int {
	switch typ {
	case meta.StalledCondition:
		return 0
	case meta.ReconcilingCondition:
		return 1
	case meta.ReadyCondition:
		return 2
	}
	return 3
}

// summaryOrder returns the conditions that Ready summarises, the most important first.
func summaryOrder(kind string) []string {
	order := []string{storageFailed, fetchFailed}
	switch kind {
	case sourcev1.HelmChartKind:
		order = append(order, buildFailed)
	case sourcev1.GitRepositoryKind:
		order = append(order, includeUnavailable)
	}
	order = append(order, artifactOutdated, artifactInStorage)
	if verifiable(kind) {
		order = append(order, sourceVerified)
	}
	return append(order, meta.StalledCondition, meta.ReconcilingCondition)
}

func verifiable(kind string) bool {
	switch kind {
	case sourcev1.HelmChartKind, sourcev1.GitRepositoryKind, sourcev1.OCIRepositoryKind:
		return true
	}
	return false
}

// summarise sets Ready from the other conditions. Without such conditions Ready does not change.
func (c *conditions) summarise(kind string) {
	var top *metav1.Condition
	for _, typ := range summaryOrder(kind) {
		found := c.get(typ)
		if found != nil && (top == nil || priority(found) < priority(top)) {
			top = found
		}
	}
	if top == nil {
		return
	}
	// A failed verification is the cause of all other failures.
	if c.is(sourceVerified, metav1.ConditionFalse) {
		top = c.get(sourceVerified)
	}
	c.set(meta.ReadyCondition, readiness(top), Reason(top.Reason), top.Message)
}

// priority ranks the importance of a condition for readiness, the most important lowest: an abnormal condition is true, a
// normal one is false, a normal one is true, an abnormal one is false, unknown.
func priority(c *metav1.Condition) int {
	switch {
	case c.Status == metav1.ConditionTrue && abnormal(c.Type):
		return 0
	case c.Status == metav1.ConditionFalse && !abnormal(c.Type):
		return 1
	case c.Status == metav1.ConditionTrue:
		return 2
	case c.Status == metav1.ConditionFalse:
		return 3
	}
	return 4
}

// readiness returns the status of Ready if c decides about it.
func readiness(c *metav1.Condition) metav1.ConditionStatus {
	switch {
	case c.Status != metav1.ConditionTrue && c.Status != metav1.ConditionFalse:
		return metav1.ConditionUnknown
	case (c.Status == metav1.ConditionTrue) != abnormal(c.Type):
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// abnormal reports whether conditions of the type exist only during a failure or a change.
func abnormal(typ string) bool {
	switch typ {
	case storageFailed, fetchFailed, buildFailed, includeUnavailable, artifactOutdated, meta.StalledCondition,
		meta.ReconcilingCondition:
		return true
	}
	return false
}
