package judging

import (
	"cmp"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/session"
)

// blocked returns the objects whose findings are effects of other findings, each with the object that it refers to.
func (v *Verdict) blocked() map[console.Subject]finding.Object {
	blocked := map[console.Subject]finding.Object{}
	for i, cause := range finding.Causes(v.reported) {
		if f := v.reported[i]; cause != i {
			blocked[console.SubjectOf(f)] = cmp.Or(f.BlockedBy, v.reported[cause].Object())
		}
	}
	return blocked
}

// state returns the state of an object of a cluster.
func (j *judged) state(s console.Subject, blocked map[console.Subject]finding.Object) (state string, by finding.Object) {
	by, ok := blocked[s]
	switch {
	case j.invalid[s], j.affected[s] && !ok:
		return report.StateFailed, finding.Object{}
	case j.affected[s]:
		return report.StateBlocked, by
	}
	return report.StateReady, finding.Object{}
}

// judgedCounts are numbers of documents.
type judgedCounts struct{ valid, invalid, blocked int }

func (n *judgedCounts) add(state string) {
	switch state {
	case report.StateFailed:
		n.invalid++
	case report.StateBlocked:
		n.blocked++
	default:
		n.valid++
	}
}

// objects returns the judged objects of each cluster, and the numbers of documents by state.
func (v *Verdict) objects() (objects []report.Object, n judgedCounts) {
	blocked := v.blocked()
	plain := map[string]int{} // unchanged objects, by the first cluster that has them
	for i, j := range v.judged {
		counts := func(obj *manifest.Object) bool {
			key := inFile(console.ObjectSubject(obj), obj.Pos.String())
			if _, known := plain[key]; !known {
				plain[key] = i
			}
			return obj.Built != "" || plain[key] == i
		}
		charts := map[*manifest.Object]string{} // states of HelmCharts, by the HelmReleases that they count with
		for _, adm := range j.targets {
			if !counts(adm.Object) {
				continue
			}
			o := session.NewReportObject(adm.Object)
			o.State, o.BlockedBy = j.state(console.ObjectSubject(adm.Object), blocked)
			if o.State == report.StateFailed {
				o.Reason = "Invalid"
			}
			switch {
			case isMadeChart(adm.Object):
				charts[adm.Object.Origin] = o.State
			case o.State == report.StateReady:
				n.add(charts[adm.Object])
			default:
				n.add(o.State)
			}
			objects = append(objects, o)
		}
		for obj := range j.in.Reported {
			state, _ := j.state(console.ObjectSubject(obj), blocked)
			if counts(obj) {
				n.add(state)
			}
			// A rejection whose causes are all silenced does not count.
			if state == report.StateReady || !counts(obj) {
				delete(j.in.Reported, obj)
			}
		}
		for _, o := range session.RejectedObjects(j.in) {
			if o.State, o.BlockedBy = j.state(console.Subject{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}, blocked); o.State == report.StateBlocked {
				o.Reason = ""
			}
			objects = append(objects, o)
		}
	}
	return objects, n
}

// isMadeChart reports whether an object is the HelmChart of a HelmRelease, which is in no file.
func isMadeChart(obj *manifest.Object) bool {
	return obj.Kind == sourcev1.HelmChartKind && obj.Origin != nil && obj.Origin.Kind == helmv2.HelmReleaseKind
}

func (v *Verdict) summary(n judgedCounts) string {
	text := fmt.Sprintf("%d valid, %d invalid, ", n.valid, n.invalid)
	if n.blocked > 0 {
		text += fmt.Sprintf("%d blocked, ", n.blocked)
	}
	text += fmt.Sprintf("%d warnings", v.warnings)
	if v.warnings == 1 {
		text = strings.TrimSuffix(text, "s")
	}
	if v.w.Unreadable > 0 {
		text += fmt.Sprintf(", %d unreadable", v.w.Unreadable)
	}
	if silenced := len(finding.Fold(v.silenced)); silenced > 0 {
		text += fmt.Sprintf(", %d silenced", silenced)
	}
	return text
}
