// Package plan predicts the actions of helm-controller on each HelmRelease when manifests change, and those of the Helm Operator
// for Flux 1. It follows the rows of their decisions that need no cluster. It reads no files and prints no values.
package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Action is the action of helm-controller on a release.
type Action string

// The actions.
const (
	Install   Action = "install"
	Upgrade   Action = "upgrade"
	None      Action = "none"
	Uninstall Action = "uninstall"
	// Blocked releases have a problem, and helm-controller waits until it is solved.
	Blocked Action = "blocked"
)

// Actions lists the actions in the order in which they are counted.
func Actions() []Action { return []Action{Install, Upgrade, None, Uninstall, Blocked} }

// Reason is a reason for an action, or for no action.
type Reason struct {
	// Code is one of the constants below.
	Code string `json:"code"`
	Text string `json:"text"`
	// Note is a consequence or a restriction of the reason.
	Note   string `json:"note,omitempty"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Fields are paths of values, or fields of the spec.
	Fields []Field `json:"fields,omitempty"`
	// Omitted is the number of fields that are not listed.
	Omitted int `json:"omitted,omitempty"`
}

// Field is a field that differs.
type Field struct {
	Path string `json:"path"`
	// Change is added, removed or changed.
	Change string `json:"change"`
	// Secret is set if the value comes from a Secret.
	Secret bool `json:"secret,omitempty"`
}

// Kinds of changes of a field.
const (
	changeAdded   = "added"
	changeRemoved = "removed"
	changeChanged = "changed"
)

// TheLastFetch is the value of against for releases that an earlier run recorded.
const TheLastFetch = "the last fetch"

// Codes of reasons.
const (
	ReasonNew            = "new"
	ReasonRemoved        = "removed"
	ReasonTarget         = "target"
	ReasonChartName      = "chart-name"
	ReasonChart          = "chart"
	ReasonChartBytes     = "chart-bytes"
	ReasonSource         = "source"
	ReasonValues         = "values"
	ReasonPostRenderers  = "post-renderers"
	ReasonCommonMetadata = "common-metadata"
	ReasonForced         = "forced"
	ReasonFields         = "fields"
	ReasonSuspended      = "suspended"
	ReasonUnchanged      = "unchanged"
	ReasonBlocked        = "blocked"
	ReasonBlockedBefore  = "blocked-before"
	ReasonDependency     = "dependency"
	ReasonTaken          = "taken"
	ReasonAssumed        = "assumed"
	ReasonKept           = "kept"
	ReasonNotRendered    = "not-rendered"
	ReasonSpec           = "spec"
	ReasonRevision       = "revision"
	ReasonDryRun         = "dry-run"
	ReasonRetried        = "retried"
)

// Change is the action for a release, and its reasons.
type Change struct {
	ID
	File    string   `json:"file,omitempty"`
	Action  Action   `json:"action"`
	Reasons []Reason `json:"reasons"`
	// Release is the Helm release of the HelmRelease; Replaces is the release that is uninstalled first.
	Release  *Target `json:"release,omitempty"`
	Replaces *Target `json:"replaces,omitempty"`
	// Chart is the chart of the manifest, Before and After are the charts that it resolves to, if they were looked up.
	Chart  string `json:"chart,omitempty"`
	Before *Chart `json:"before,omitempty"`
	After  *Chart `json:"after,omitempty"`
	// ValuesBefore and ValuesAfter are digests of the composed values.
	ValuesBefore string `json:"valuesBefore,omitempty"`
	ValuesAfter  string `json:"valuesAfter,omitempty"`
	// Manifests summarizes the changes of the objects, if they were rendered.
	Manifests *Manifests `json:"manifests,omitempty"`
	// Diffs are unified diffs, if an option requests them.
	Diffs []Diff `json:"diffs,omitempty"`
}

// Pair is a HelmRelease before and after; one of them may be nil.
type Pair struct {
	Before, After *Release
	// Values are the paths of values that differ, Omitted is the number of further paths.
	Values  []Field
	Omitted int
	// Partial is set if only the values of the release itself were compared one by one, without those of valuesFrom.
	Partial bool
	// Unrecorded are the sources of values that could not be compared.
	Unrecorded []string
}

// Differs reports whether the two sides may use different charts.
func (p Pair) Differs() bool {
	return p.After != nil && !p.After.Suspended && (p.Before == nil || p.Before.Origin != p.After.Origin)
}

// operated reports whether the release is a release of Flux 1 on all its sides.
func (p Pair) operated() bool {
	return !slices.ContainsFunc([]*Release{p.Before, p.After}, func(r *Release) bool { return r != nil && r.Operated == nil })
}

// Match pairs equal HelmReleases, in the order of after, followed by those that are only in before.
func Match(before, after []*Release) []Pair {
	old := map[ID]*Release{}
	for _, r := range before {
		old[r.ID] = r
	}
	var pairs []Pair
	for _, r := range after {
		pairs = append(pairs, Pair{Before: old[r.ID], After: r})
		delete(old, r.ID)
	}
	for _, r := range before {
		if old[r.ID] == r {
			pairs = append(pairs, Pair{Before: r})
		}
	}
	return pairs
}

// Decide returns the change for each pair. Against names the state that the releases are compared with.
func Decide(pairs []Pair, against string) []Change {
	changes := make([]Change, len(pairs))
	for i, p := range pairs {
		changes[i] = decide(p, against)
	}
	clashing(pairs, changes)
	takenOver(pairs, changes)
	blockDependents(pairs, changes)
	for i, p := range pairs {
		if p.After == nil || changes[i].Action == Blocked {
			continue
		}
		for _, text := range p.After.Assumed {
			changes[i].add(Reason{Code: ReasonAssumed, Text: text})
		}
	}
	return changes
}

// AddDiff adds a diff unless it is empty.
func (c *Change) AddDiff(of, text string) {
	if text != "" {
		c.Diffs = append(c.Diffs, Diff{Of: of, Text: text})
	}
}

// NotRendered adds a reason why there is no diff of manifests.
func (c *Change) NotRendered(text string) { c.add(Reason{Code: ReasonNotRendered, Text: text}) }

func (c *Change) add(r Reason) { c.Reasons = append(c.Reasons, r) }

func decide(p Pair, against string) Change {
	before, after, w := p.Before, p.After, p.wording()
	switch {
	case after == nil:
		return removed(before, against, w)
	case before == nil:
		return added(after, against, w)
	}
	c := begun(after)
	c.Before, c.ValuesBefore = before.Chart, before.Values
	switch {
	case after.Suspended:
		c.add(Reason{Code: ReasonSuspended, Text: w.suspended})
		return c
	case after.Blocked != "":
		c.Action = Blocked
		c.add(Reason{Code: ReasonBlocked, Text: after.Blocked})
		return c
	}
	if p.operated() {
		c.operatedReasons(p)
	} else {
		c.reasons(p)
	}
	if before.Blocked != "" {
		c.upgrade(Reason{Code: ReasonBlockedBefore, Text: "was blocked", After: before.Blocked, Note: "an install if it was never installed"})
	}
	if !p.operated() {
		c.fields(before, after)
	}
	if before.Suspended {
		c.add(Reason{Code: ReasonSuspended, Text: w.resumed + ": the installed release may be older than " + against})
	}
	if len(c.Reasons) == 0 {
		c.add(Reason{Code: ReasonUnchanged, Text: w.unchanged})
	}
	return c
}

// reasons follows helm-controller's list.
func (c *Change) reasons(p Pair) {
	before, after := p.Before, p.After
	c.target(before, after)
	c.chart(before, after)
	c.values(p, "release config values changed")
	if before.PostRenderers != after.PostRenderers {
		c.upgrade(Reason{Code: ReasonPostRenderers, Text: "postrenderers digest has changed"})
	}
	if before.CommonMetadata != after.CommonMetadata {
		c.upgrade(Reason{Code: ReasonCommonMetadata, Text: "common metadata digest has changed"})
	}
	if after.Forced != "" && after.Forced != before.Forced {
		c.upgrade(Reason{Code: ReasonForced, Text: "forced by reconcile.fluxcd.io/forceAt"})
	}
}

// wording holds the terms that differ between Flux 1 and Flux 2.
type wording struct{ suspended, notInstalled, left, resumed, unchanged, unrecorded string }

func (p Pair) wording() wording {
	if p.operated() {
		return wording{
			"ignored by Flux 1: nothing happens until the annotation is removed", "ignored by Flux 1: it is not applied until the annotation is removed",
			"removed while Flux 1 ignored it: the HelmRelease stays in the cluster as it is", "not ignored any more", "no change",
			"install or upgrade (no earlier run is recorded)",
		}
	}
	return wording{
		"suspended: nothing happens until it is resumed", "suspended: it is not installed until it is resumed",
		"removed while it is suspended: helm-controller leaves the release installed", "resumed", "neither chart nor values nor spec changed", "",
	}
}

func begun(r *Release) Change {
	target := r.Target
	return Change{ID: r.ID, File: r.File, Action: None, Release: &target, Chart: r.Asked, After: r.Chart, ValuesAfter: r.Values}
}

func added(r *Release, against string, w wording) Change {
	c := begun(r)
	switch {
	case r.Suspended:
		c.add(Reason{Code: ReasonSuspended, Text: w.notInstalled})
	case r.Blocked != "":
		c.Action = Blocked
		c.add(Reason{Code: ReasonBlocked, Text: r.Blocked})
	default:
		c.Action = Install
		text := "not in " + against
		if w.unrecorded != "" && against == TheLastFetch {
			text = w.unrecorded
		}
		c.add(Reason{Code: ReasonNew, Text: text})
	}
	return c
}

func removed(r *Release, against string, w wording) Change {
	c := begun(r)
	c.Before, c.After, c.ValuesBefore, c.ValuesAfter = r.Chart, nil, r.Values, ""
	switch {
	case r.Suspended:
		c.add(Reason{Code: ReasonSuspended, Text: w.left})
	case r.Kept:
		c.add(Reason{Code: ReasonKept, Text: "removed, but its Kustomization does not prune: the HelmRelease stays in the cluster"})
	default:
		c.Action = Uninstall
		c.add(Reason{Code: ReasonRemoved, Text: "only in " + against})
	}
	return c
}

// upgrade adds a reason for an upgrade. It does not change the action of a release that is replaced.
func (c *Change) upgrade(r Reason) {
	if c.Action == None {
		c.Action = Upgrade
	}
	c.add(r)
}

// replace adds a reason to uninstall the release and to install it again.
func (c *Change) replace(old Target, r Reason) {
	c.Action, c.Replaces = Install, &old
	c.add(r)
}

// target compares the Helm releases: row 0 of helm-controller's decision.
func (c *Change) target(before, after *Release) {
	for _, f := range []struct{ what, old, now string }{
		{"storage namespace", before.Target.StorageNamespace, after.Target.StorageNamespace},
		{"release namespace", before.Target.Namespace, after.Target.Namespace},
		{"release name", before.Target.Name, after.Target.Name},
	} {
		if f.old != f.now {
			c.replace(before.Target, Reason{
				Code: ReasonTarget, Before: f.old, After: f.now,
				Text: f.what + " changed", Note: fmt.Sprintf("uninstalled as %s/%s, then installed again", before.Target.Namespace, before.Target.Name),
			})
		}
	}
}

// chart compares the names and versions of the charts, as rows 0 and 6 do.
func (c *Change) chart(before, after *Release) {
	old, now := before.Chart, after.Chart
	if before.Suspended && before.Origin != after.Origin && now != nil {
		c.upgrade(Reason{Code: ReasonChart, Text: "release chart changed", After: now.String()})
		return
	}
	if old == nil || now == nil {
		return
	}
	renamed, other := old.Name != now.Name, old.Version != now.Version || old.Made != now.Made
	switch {
	case renamed && !after.InPlace:
		c.replace(before.Target, Reason{Code: ReasonChartName, Text: "chart name changed", Note: "uninstalled, then installed again", Before: old.String(), After: now.String()})
	case renamed, other:
		c.upgrade(chartReason(old, now))
	case old.differs(now):
		c.bytes(old, now)
	}
	if old.Source != now.Source && old.Source != "" && now.Source != "" {
		c.add(Reason{Code: ReasonSource, Text: "source changed", Before: old.Source, After: now.Source})
	}
}

func chartReason(old, now *Chart) Reason {
	r := Reason{Code: ReasonChart, Text: "release chart changed", Before: old.String(), After: now.String()}
	if r.Before == r.After { // the generation of the HelmChart is not known here, but it changes
		r.Note = "its version gets the generation of another HelmChart spec"
	}
	return r
}

// bytes adds a reason for charts of one version whose digests differ.
func (c *Change) bytes(old, now *Chart) {
	r := Reason{Code: ReasonChartBytes, Before: old.Digest, After: now.Digest}
	if now.Moving {
		r.Text, r.Note = "release chart changed", "the digest in its version differs"
		c.upgrade(r)
		return
	}
	r.Text, r.Note = "the chart changed and its version did not", "no upgrade for a HelmChart; one for an OCIRepository"
	c.add(r)
}

// values compares the digests of the values: row 7.
func (c *Change) values(p Pair, text string) {
	if p.Before.ValuesKey == p.After.ValuesKey || p.Before.ValuesKey == "" || p.After.ValuesKey == "" {
		return
	}
	r := Reason{Code: ReasonValues, Text: text, Fields: p.Values, Omitted: p.Omitted}
	from := strings.Join(p.Unrecorded, " or ")
	switch {
	case p.Partial:
		r.Note = "changed values from valuesFrom are not recorded"
	case from != "" && len(p.Values) == 0:
		r.Note = "from " + from
	case from != "":
		r.Note = "values from " + from + " are not recorded"
	}
	c.upgrade(r)
}

// fields adds the other fields that changed. They do not lead to an upgrade.
func (c *Change) fields(before, after *Release) {
	fields := differences(before.Fields, after.Fields)
	if len(fields) == 0 {
		return
	}
	for i := range fields {
		fields[i].Path = "spec." + fields[i].Path
	}
	text := "no upgrade by itself"
	if c.Action != None {
		text = "also changed"
	}
	c.add(Reason{Code: ReasonFields, Text: text, Fields: fields})
}
