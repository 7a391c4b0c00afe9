package listing

import (
	"cmp"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// Published is a record of outdated's output. Its fields are part of the contract.
type Published struct {
	report.Outdated
	Constraint string       `json:"constraint"`
	IsOutdated bool         `json:"outdated"`
	Released   releaseDates `json:"released"`
	Deprecated []string     `json:"deprecated"` // of the versions above
	Removed    []string     `json:"removed"`

	marks map[string]string
}

// releaseDates are the dates of versions, if the repository has them.
type releaseDates struct {
	Current string `json:"current,omitempty"`
	Wanted  string `json:"wanted,omitempty"`
	Latest  string `json:"latest,omitempty"`
}

// PublishedColumns returns the columns of a table of published versions.
func PublishedColumns() *records.Columns[Published] {
	return &records.Columns[Published]{
		Header: []string{"NAMESPACE", "NAME", "CHART", "CURRENT", "WANTED", "LATEST"},
		Wide:   []string{"RELEASED", "KIND", "CONSTRAINT"},

		Cluster: func(r Published) string { return r.Cluster },
		Row: func(r Published) []string {
			day, _, _ := strings.Cut(r.Released.Latest, "T")
			return []string{
				r.Namespace, r.Name, r.Chart, r.marked(r.Current), r.marked(r.Wanted), r.marked(r.Latest), cmp.Or(day, "-"), r.Kind, cmp.Or(r.Constraint, "-"),
			}
		},
	}
}

func (r *Published) marked(version string) string {
	return cmp.Or(version, "-") + r.marks[version]
}

// Withdrawn reports whether the current or the wanted version is deprecated or removed: it is listed even without a newer version.
func Withdrawn(p *reconcile.Published) bool {
	for _, text := range []string{p.Current, p.Wanted} {
		if c, ok := p.Find(text); ok && (c.Deprecated || c.Removed) {
			return true
		}
	}
	return false
}

// Outdated returns the charts of a run with their published versions.
func (l Lister) Outdated(results []*reconcile.Result) []report.Outdated {
	var list []report.Outdated
	for _, r := range results {
		if r.Published != nil {
			list = append(list, l.outdated(r))
		}
	}
	return list
}

func (l Lister) outdated(r *reconcile.Result) report.Outdated {
	named, p, hide := r.Object.Object, r.Published, r.Object.Object.VeilField
	if named.Origin != nil { // the HelmChart of a release: the release has the version
		named = named.Origin
	}
	called := l.Console.Called(console.ObjectSubject(named))
	latest, _ := p.Latest()
	o := report.Outdated{
		Cluster: r.Cluster, Kind: called.Kind, Namespace: called.Namespace, Name: called.Name, Chart: hide(p.Chart),
		Current: hide(p.Current), Wanted: hide(p.Wanted), Latest: hide(latest.Version),
	}
	for _, c := range p.Versions {
		if !c.Removed {
			o.Versions = append(o.Versions, report.PublishedVersion{Version: hide(c.Version), Created: c.Created})
		}
	}
	return o
}

// Published returns the published versions of a chart in use. The result must have a list of versions.
func (l Lister) Published(r *reconcile.Result) Published {
	p, hide := r.Published, r.Object.Object.VeilField
	record := Published{
		Outdated: l.outdated(r), Constraint: hide(p.Constraint), IsOutdated: p.Outdated(),
		Deprecated: []string{}, Removed: []string{}, marks: map[string]string{},
	}
	mark := func(text string) string {
		c, ok := p.Find(text)
		shown := hide(text)
		switch {
		case !ok:
			return ""
		case record.marks[shown] != "":
		case c.Removed:
			record.Removed, record.marks[shown] = append(record.Removed, shown), " (removed)"
		case c.Deprecated:
			record.Deprecated, record.marks[shown] = append(record.Deprecated, shown), " (deprecated)"
		}
		return dateOf(c)
	}
	latest, _ := p.Latest()
	record.Released = releaseDates{mark(p.Current), mark(p.Wanted), mark(latest.Version)}
	return record
}

// dateOf returns the date of a version, "" if its repository does not have it.
func dateOf(c resolve.Candidate) string {
	if c.Created.IsZero() {
		return ""
	}
	return c.Created.UTC().Format(time.RFC3339)
}

// Version is a record of versions' output. Its fields are part of the contract.
type Version struct {
	Cluster    string `json:"cluster,omitempty"`
	Version    string `json:"version"`
	AppVersion string `json:"appVersion"`
	Created    string `json:"created"`
	InRange    bool   `json:"inRange"`
	Chosen     bool   `json:"chosen"`
	Deprecated bool   `json:"deprecated"`
	Removed    bool   `json:"removed"`
}

// Versions returns the published versions of a chart, the newest first. The result must have a list of versions.
func Versions(r *reconcile.Result) []Version {
	list := []Version{}
	hide, p := r.Object.Object.ConcealText, r.Published
	chosen := false
	for _, c := range p.Versions {
		v := Version{
			Cluster: r.Cluster,
			Version: hide(c.Version), AppVersion: hide(c.AppVersion), Created: dateOf(c),
			InRange: p.Takes(c), Chosen: !chosen && c.Version == p.Wanted, Deprecated: c.Deprecated, Removed: c.Removed,
		}
		chosen = chosen || v.Chosen
		list = append(list, v)
	}
	return list
}

// VersionColumns returns the columns of a table of versions.
func VersionColumns() *records.Columns[Version] {
	return &records.Columns[Version]{
		Header:  []string{"VERSION", "APP VERSION", "CREATED", "IN RANGE"},
		Cluster: func(r Version) string { return r.Cluster },
		Row: func(r Version) []string {
			day, _, _ := strings.Cut(r.Created, "T")
			version, within := r.Version, "no"
			switch {
			case r.Removed:
				version += " (removed)"
			case r.Deprecated:
				version += " (deprecated)"
			}
			switch {
			case r.Chosen:
				within = "chosen"
			case r.InRange:
				within = "yes"
			}
			return []string{version, cmp.Or(r.AppVersion, "-"), cmp.Or(day, "-"), within}
		},
	}
}
