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

// maxMessage is what the API server accepts as a condition's message, in bytes.
const maxMessage = 32768

// conditions are the conditions of one object while they are being worked on. Those that are set get the object's
// generation, those that are left alone keep theirs.
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

// progress says what is going on. Readiness becomes unknown when there is drift, or when nothing is known about it.
func (c *conditions) progress(drift bool, message string) {
	c.remove(meta.StalledCondition)
	c.setTrue(meta.ReconcilingCondition, Progressing, message)
	ready := c.get(meta.ReadyCondition)
	if drift || ready == nil || ready.Status == metav1.ConditionUnknown {
		c.set(meta.ReadyCondition, metav1.ConditionUnknown, Progressing, message)
	}
}

// cut shortens a message to what the API server accepts, without breaking a character.
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

// finish puts the conditions in Flux's order and dates them. A condition that says the same as in the previous run
// keeps its time, whatever it said in between: that was not visible.
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

// compare orders the kstatus conditions first, the others by newest generation and name.
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

// summaryOrder lists the conditions that Ready is a summary of, the most important first.
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

// summarise makes Ready of the other conditions. With nothing to summarise Ready stays as it is.
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
	// A failed check is the cause of everything else that there is to report.
	if c.is(sourceVerified, metav1.ConditionFalse) {
		top = c.get(sourceVerified)
	}
	c.set(meta.ReadyCondition, readiness(top), Reason(top.Reason), top.Message)
}

// priority ranks how much a condition says about readiness, the lowest most: something is wrong, something good is
// missing, something good is there, nothing is wrong, who knows.
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

// readiness is what Ready is when c decides about it.
func readiness(c *metav1.Condition) metav1.ConditionStatus {
	switch {
	case c.Status != metav1.ConditionTrue && c.Status != metav1.ConditionFalse:
		return metav1.ConditionUnknown
	case (c.Status == metav1.ConditionTrue) != abnormal(c.Type):
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// abnormal reports whether a condition of the type is there only while something is not as it should be.
func abnormal(typ string) bool {
	switch typ {
	case storageFailed, fetchFailed, buildFailed, includeUnavailable, artifactOutdated, meta.StalledCondition,
		meta.ReconcilingCondition:
		return true
	}
	return false
}
