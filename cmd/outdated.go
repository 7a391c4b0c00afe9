package cmd

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

func newOutdatedCommand(a *app) *cobra.Command {
	o := listing()
	var format recordOptions
	var all, fail bool
	c := &cobra.Command{
		GroupID: groupCharts,
		Use:     "outdated -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		Short:   "List charts with newer versions",
		Long: `Compare the charts of HelmReleases and HelmCharts, and OCIRepositories, with what
their repositories publish. Each index and each list of tags is fetched once.

CURRENT is the version in use: the one that the manifest names, or, of a range, the
one in the lock file, else in the artifacts directory; - if there is none. WANTED is
what the manifest chooses now, LATEST the newest version that was not removed; a
pre-release only counts where one is in use. Versions that are deprecated or removed
are marked.

Charts from Git and buckets have no list of versions, and are left out. Nothing is
downloaded but indexes and lists of tags, and nothing is written.

Exit codes: 0 also if something is outdated, 1 an object cannot be compared, 2 wrong
usage or unreadable input, 4 something is outdated, with --exit-code, 5 only failures that
a retry may help, 130 interrupted.`,
		Example: `  helmsrc outdated -R -f clusters/ -o table
  helmsrc outdated -f helmchart.yaml -o markdown
  helmsrc outdated -R -f clusters/ --exit-code`,
	}
	o.addListing(c)
	addLockFile(&o.Lock, c.Flags())
	o.Lock.Current = true
	format.add(c.Flags())
	c.Flags().BoolVar(&all, "all", false, "list what is up to date, too")
	addExitCode(c.Flags(), &fail, "something is outdated", "fail")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := format.check(a.env); err != nil {
			return exit.Usage, err
		}
		outdated := false
		code, err := a.runReconciliation(ctx, o, args, func(results []*reconcile.Result) error {
			list := []outdatedRecord{}
			for _, r := range results {
				if r.Published == nil {
					continue
				}
				outdated = outdated || r.Published.Outdated()
				if all || r.Published.Outdated() || withdrawn(r.Published) {
					list = append(list, a.newOutdated(r))
				}
			}
			return outdatedColumns().Print(a.env.Stdout, format.format, a.paper, list)
		})
		if outdated && fail && !o.input.exitZero {
			code = exit.Worst(code, exit.Drift)
		}
		return code, err
	})
	return c
}

// choosing are the flags of a command that stops once versions are known.
func choosing() *runOptions {
	o := &runOptions{}
	o.Reconcile.Until = reconcile.Choose
	return o
}

// listing are those of a command that asks what is published.
func listing() *runOptions {
	o := choosing()
	o.Reconcile.List = true
	return o
}

// addListing declares the flags of the commands that ask what is published.
func (o *runOptions) addListing(c *cobra.Command) {
	o.input.add(c.Flags())
	o.input.addLookup(c.Flags())
	o.report.add(c.Flags())
	o.store.addDir(c.Flags())
	o.addFetch(c.Flags())
}

// outdatedRecord is a record of outdated's output. Its fields are part of the contract.
type outdatedRecord struct {
	Cluster    string       `json:"cluster,omitempty"`
	Kind       string       `json:"kind"`
	Namespace  string       `json:"namespace"`
	Name       string       `json:"name"`
	Chart      string       `json:"chart"`
	Current    string       `json:"current"`
	Wanted     string       `json:"wanted"`
	Latest     string       `json:"latest"`
	Constraint string       `json:"constraint"`
	Outdated   bool         `json:"outdated"`
	Released   releaseDates `json:"released"`
	Deprecated []string     `json:"deprecated"` // of the versions above
	Removed    []string     `json:"removed"`

	marks map[string]string
}

// releaseDates are when versions were published, as far as a repository says.
type releaseDates struct {
	Current string `json:"current,omitempty"`
	Wanted  string `json:"wanted,omitempty"`
	Latest  string `json:"latest,omitempty"`
}

func outdatedColumns() *records.Columns[outdatedRecord] {
	return &records.Columns[outdatedRecord]{
		Header: []string{"NAMESPACE", "NAME", "CHART", "CURRENT", "WANTED", "LATEST"},
		Wide:   []string{"RELEASED", "KIND", "CONSTRAINT"},

		Cluster: func(r outdatedRecord) string { return r.Cluster },
		Row: func(r outdatedRecord) []string {
			day, _, _ := strings.Cut(r.Released.Latest, "T")
			return []string{
				r.Namespace, r.Name, r.Chart, r.marked(r.Current), r.marked(r.Wanted), r.marked(r.Latest), cmp.Or(day, "-"), r.Kind, cmp.Or(r.Constraint, "-"),
			}
		},
	}
}

func (r *outdatedRecord) marked(version string) string {
	return cmp.Or(version, "-") + r.marks[version]
}

// withdrawn reports whether what is in use or wanted should not be: that is worth a line although nothing newer is there.
func withdrawn(p *reconcile.Published) bool {
	for _, text := range []string{p.Current, p.Wanted} {
		if c, ok := p.Find(text); ok && (c.Deprecated || c.Removed) {
			return true
		}
	}
	return false
}

func (a *app) newOutdated(r *reconcile.Result) outdatedRecord {
	obj, p := r.Object.Object, r.Published
	hide := obj.VeilField
	called := console.ObjectSubject(obj)
	if obj.Origin != nil { // the HelmChart of a release, where the version stands
		called = console.ObjectSubject(obj.Origin)
	}
	called = a.console.Called(called)
	record := outdatedRecord{
		Cluster: r.Cluster,
		Kind:    called.Kind, Namespace: called.Namespace, Name: called.Name, Chart: hide(p.Chart), Constraint: hide(p.Constraint),
		Current: hide(p.Current), Wanted: hide(p.Wanted), Outdated: p.Outdated(),
		Deprecated: []string{}, Removed: []string{}, marks: map[string]string{},
	}
	latest, _ := p.Latest()
	record.Latest = hide(latest.Version)
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
	record.Released = releaseDates{mark(p.Current), mark(p.Wanted), mark(latest.Version)}
	return record
}

// dateOf is when a version was published, "" if its repository does not say.
func dateOf(c resolve.Candidate) string {
	if c.Created.IsZero() {
		return ""
	}
	return c.Created.UTC().Format(time.RFC3339)
}
