package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Operated holds the fields by which the Helm Operator of Flux 1 decides, in addition to those of all releases.
type Operated struct {
	// Spec is the spec of the HelmRelease: any change of it is another generation.
	Spec map[string]any
	// FromStatus is set before if only the status of the release is known. Then Unobserved is set if the spec has changed since.
	FromStatus, Unobserved bool
	// Retried is set before if the release was rolled back, and the operator is to upgrade it again.
	Retried bool
	// Git is set for a chart of a Git repository.
	Git bool
	// Revision is status.lastAttemptedRevision: the commit, or the version of the chart.
	Revision string
	// Files are the digests of the commit's files below the chart's path, by name. They are nil if they are not known.
	Files map[string]string
	// Sources are the parts of the chart that a dry run compares, nil if they are not known.
	Sources *Sources
}

// operatedReasons follows the operator's own list, as far as it needs no cluster: the spec changed, the chart changed, the dry
// run differs.
func (c *Change) operatedReasons(p Pair) {
	c.operatedTarget(p.Before, p.After)
	c.spec(p.Before.Operated, p.After.Operated)
	upgraded := c.revision(p.Before, p.After)
	c.values(p, "values changed")
	if !upgraded {
		c.dryRun(p.Before, p.After)
	}
}

// operatedTarget compares the Helm releases. Under a new name, the operator finds no release, and it ignores the former one.
func (c *Change) operatedTarget(before, after *Release) {
	if before.Target == after.Target {
		return
	}
	old, now := before.Target, after.Target
	c.Action = Install
	c.add(Reason{
		Code: ReasonTarget, Text: "Helm release changed", Before: old.Namespace + "/" + old.Name, After: now.Namespace + "/" + now.Name,
		Note: "the former release stays installed",
	})
}

// spec compares the generations: row 6 of the operator's list.
func (c *Change) spec(before, after *Operated) {
	if before.Unobserved {
		c.upgrade(Reason{Code: ReasonSpec, Text: "spec changed", Note: "its generation is newer than the observed generation of its status"})
	}
	if before.Retried {
		c.upgrade(Reason{Code: ReasonRetried, Text: "was rolled back", Note: "spec.rollback.retry has the operator try again"})
	}
	if before.FromStatus {
		return
	}
	fields, omitted := Values(before.Spec, after.Spec, nil)
	if len(fields) > 0 {
		c.upgrade(Reason{Code: ReasonSpec, Text: "spec changed", Fields: fields, Omitted: omitted})
	}
}

// revision compares the charts by their version or commit: row 8. It reports whether a difference leads to an upgrade.
func (c *Change) revision(before, after *Release) bool {
	old, now := before.Operated, after.Operated
	if !now.Git || !old.Git {
		if before.Chart == nil || after.Chart == nil || before.Chart.Version == after.Chart.Version {
			return false
		}
		c.upgrade(Reason{Code: ReasonChart, Text: "chart changed", Before: before.Chart.String(), After: after.Chart.String()})
		return true
	}
	if old.Revision == "" || now.Revision == "" || old.Revision == now.Revision {
		return false
	}
	r := Reason{Code: ReasonChart, Text: "chart changed", Before: old.Revision, After: now.Revision}
	switch {
	case old.Files != nil && now.Files != nil:
		r.Fields, r.Omitted = addedOrChanged(old.Files, now.Files)
	case old.Sources == nil || now.Sources == nil:
		r.Text, r.Note = mayBe+"another commit", "its changes are not known"
		c.upgrade(r)
		return true
	}
	if len(r.Fields) > 0 {
		c.upgrade(r)
		return true
	}
	r.Code, r.Text, r.Note = ReasonRevision, "another commit", "it adds or changes no file in the chart's directory"
	if old.Files == nil || now.Files == nil {
		r.Note = "the changed files are not known"
	}
	c.add(r)
	return false
}

// addedOrChanged returns the changes that the operator detects: it does not detect deleted files.
func addedOrChanged(before, after map[string]string) (fields []Field, omitted int) {
	for _, f := range differences(before, after) {
		switch {
		case f.Change == changeRemoved:
		case len(fields) >= maxFields:
			omitted++
		default:
			fields = append(fields, f)
		}
	}
	return fields, omitted
}

// dryRun compares the stored release with the dry run of an upgrade: row 9. A separate row is about the values.
func (c *Change) dryRun(before, after *Release) {
	old, now := before.Operated.Sources, after.Operated.Sources
	if old == nil || now == nil {
		c.mayDiffer(before, after)
		return
	}
	fields, subcharts := old.differences(now)
	bytes := before.Chart.differs(after.Chart)
	note := ""
	if bytes && !after.Operated.Git && before.Asked == after.Asked {
		note = "a running operator keeps the archive that it has"
	}
	switch {
	case len(fields) > 0:
		text := "the dry run differs"
		if !slices.ContainsFunc(fields, func(f Field) bool { return !strings.HasPrefix(f.Path, templatesDir) }) {
			text = "templates changed"
		}
		c.upgrade(Reason{Code: ReasonDryRun, Text: text, Fields: fields, Note: note})
	case len(subcharts) > 0:
		c.upgrade(Reason{
			Code: ReasonDryRun, Text: mayBe + "default values of subcharts changed", Fields: subcharts,
			Note: "not if the subchart is disabled",
		})
	case bytes:
		c.add(Reason{
			Code: ReasonChartBytes, Text: "the chart changed", Before: before.Chart.Digest, After: after.Chart.Digest,
			Note: "no upgrade: its version, values and templates are the same",
		})
	}
}

// mayBe begins the text of a reason that is not certain.
const mayBe = "may be upgraded: "

// Rendered records whether the upgrade would render other manifests than the installed ones. If they differ, an upgrade that may
// happen is certain: the rendered parts of the chart have changed.
func (c *Change) Rendered(differs bool) {
	for i := range c.Reasons {
		r := &c.Reasons[i]
		text, ok := strings.CutPrefix(r.Text, mayBe)
		switch {
		case !ok:
		case differs:
			r.Text, r.Note = text, "and the rendered objects"
		default:
			r.Note = "it renders the same objects"
		}
	}
}

// mayDiffer compares the digests of charts of one version whose files are not known on both sides.
func (c *Change) mayDiffer(before, after *Release) {
	if !before.Chart.differs(after.Chart) {
		return
	}
	c.upgrade(Reason{
		Code: ReasonDryRun, Text: mayBe + "the chart differs, but not its version", Before: before.Chart.Digest, After: after.Chart.Digest,
		Note: "its files are not known on both sides",
	})
}

// clashing blocks releases of Flux 1 with the same Helm release: the operator refuses a release of another HelmRelease.
func clashing(pairs []Pair, changes []Change) {
	type managed struct {
		clusterTarget
		kind string // each operator looks for its own annotation
	}
	of := func(r *Release) managed { return managed{clusterTarget{r.Cluster, r.Target}, r.Kind} }
	taken := map[managed][]int{}
	for i, p := range pairs {
		if p.After != nil && p.After.Operated != nil && !p.After.Suspended && p.After.Blocked == "" {
			taken[of(p.After)] = append(taken[of(p.After)], i)
		}
	}
	for i, p := range pairs {
		if p.After == nil {
			continue
		}
		same := taken[of(p.After)]
		if len(same) < 2 || !slices.Contains(same, i) {
			continue
		}
		var others []string
		for _, j := range same {
			if j != i {
				others = append(others, "HelmRelease "+pairs[j].After.ID.String())
			}
		}
		changes[i].Action = Blocked
		changes[i].Reasons = []Reason{{Code: ReasonBlocked, Text: fmt.Sprintf("release '%s' in namespace '%s' is that of %s, too: the operator refuses a release that another HelmRelease manages",
			p.After.Target.Name, p.After.Target.Namespace, strings.Join(others, " and "))}}
	}
}

// differences returns the names whose digests differ, sorted.
func differences(before, after map[string]string) []Field {
	var fields []Field
	eachKey(before, after, func(name, change string) {
		if change != changeChanged || before[name] != after[name] {
			fields = append(fields, Field{Path: name, Change: change})
		}
	})
	return fields
}
