package report

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // of the template
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/outline"
	"github.com/helmsrc/helmsrc/internal/plan"
	"github.com/helmsrc/helmsrc/internal/table"
)

var (
	//go:embed page.html
	pageTemplate string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
)

// htmlPage is what the template shows. What comes from manifests and charts is in strings, which the template escapes.
type htmlPage struct {
	Title, Summary, Version, Started string

	Style  template.CSS
	Script template.JS
	Policy string // which style and script may take effect: those of this program

	Clusters []*htmlNode
	Findings []htmlFinding
	Omission string
	Chunks   [][]htmlObject
	Plan     *htmlPlan
	Timeline []htmlTimeline
}

// openNodes is up to how many nodes of a tree are shown at first.
const openNodes = 300

// chunk is how many rows are laid out together: a browser leaves out those that are not in sight.
const chunk = 100

// writeHTML writes one page that needs nothing else: no network, and no script but its own.
func writeHTML(w io.Writer, run *Run) error {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return err
	}
	page := &htmlPage{
		Title: "helmsrc " + run.Command, Summary: sums(run), Version: run.Version, Started: run.Started.UTC().Format(time.RFC3339),
		Style: template.CSS(pageStyle), Script: template.JS(pageScript),
		Policy:   fmt.Sprintf("default-src 'none'; base-uri 'none'; form-action 'none'; style-src '%s'; script-src '%s'", hashOf(pageStyle), hashOf(pageScript)),
		Omission: run.omission(),
	}
	anchors := map[objectKey]string{}
	var rows []htmlObject
	for i := range run.Objects {
		rows = append(rows, newHTMLObject(run, &run.Objects[i], fmt.Sprintf("o%d", i)))
		anchors[keyOf(&run.Objects[i])] = rows[i].ID
	}
	page.Chunks = slices.Collect(slices.Chunk(rows, chunk))
	tree := &htmlTree{run: run, anchors: anchors, left: openNodes}
	page.Clusters = tree.nodes(outline.Unfold(run.Outline), "")
	for i := range run.Findings {
		page.Findings = append(page.Findings, newHTMLFinding(&run.Findings[i]))
	}
	if run.Plan != nil {
		page.Plan = newHTMLPlan(run.Plan)
	}
	for i := range run.Outdated {
		page.Timeline = append(page.Timeline, newHTMLTimeline(&run.Outdated[i]))
	}
	var b strings.Builder
	if err := t.Execute(&b, page); err != nil {
		return err
	}
	_, err = io.WriteString(w, shapely(b.String()))
	return err
}

// shapely drops what has no shape from a page, or turns the direction of writing.
func shapely(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, printableDiff(strings.ToValidUTF8(text, "\uFFFD")))
}

// hashOf is how a policy names a text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

type objectKey struct{ cluster, kind, namespace, name string }

func keyOf(o *Object) objectKey { return objectKey{clean(o.Cluster), o.Kind, o.Namespace, o.Name} }

// htmlNode is a node of the tree on the left.
type htmlNode struct {
	Title, Detail, State string
	Target               string // the row of the object, "" for none
	Open                 bool
	Children             []*htmlNode
}

// htmlTree makes nodes. Large trees are closed at first.
type htmlTree struct {
	run     *Run
	anchors map[objectKey]string
	left    int
}

func (t *htmlTree) nodes(list []*outline.Node, cluster string) []*htmlNode {
	var nodes []*htmlNode
	for _, n := range list {
		t.left--
		made := &htmlNode{Title: clean(n.Name), Detail: clean(n.Kind), State: clean(t.run.called(n.State)), Open: t.left > 0}
		if n.Kind == outline.Cluster {
			cluster = n.Name
		}
		if n.Namespace != "" {
			made.Title = clean(n.Namespace + "/" + n.Name)
		}
		for _, in := range []string{cluster, ""} { // objects do not name the only cluster
			if made.Target == "" {
				made.Target = t.anchors[objectKey{clean(in), clean(n.Kind), clean(n.Namespace), clean(n.Name)}]
			}
		}
		if version := table.Short(cmp.Or(n.Version, n.Constraint)); version != "" {
			made.Detail += " · " + clean(strings.TrimSpace(n.Chart+" "+version))
		}
		made.Children = t.nodes(n.Children, cluster)
		nodes = append(nodes, made)
	}
	return nodes
}

type htmlObject struct {
	ID, State, Cluster, Name, Version, Digest, Whole, Message, File string
}

func newHTMLObject(run *Run, o *Object, id string) htmlObject {
	digest := cmp.Or(o.Digest, o.Revision)
	return htmlObject{
		ID: id, State: run.called(o.State), Cluster: o.Cluster, Name: objectName(o.Kind, o.Namespace, o.Name),
		Version: table.Short(cmp.Or(o.Version, o.Revision)), Digest: table.Short(digest), Whole: digest, Message: o.Message, File: o.Pos.String(),
	}
}

// htmlFinding is a finding with the line that it is about: what is before the mistake, the mistake, and what is behind.
type htmlFinding struct {
	Severity                string
	Code, Rule, URL         string
	Headline, Where, Fix    string
	Before, Mistake, Behind string
	Line                    int
	Related                 []string
}

func newHTMLFinding(f *finding.Finding) htmlFinding {
	out := htmlFinding{
		Severity: string(f.Severity), Code: string(f.Code), URL: ruleURL(f.Code), Headline: headline(f), Where: f.Pos.String(),
		Fix: f.Fix, Before: f.Line, Line: f.Pos.Line,
	}
	if r, ok := finding.Lookup(out.Code); ok {
		out.Rule = r.Name
	}
	if end := endColumn(f); end > f.Pos.Column {
		line := []rune(f.Line)
		from, to := min(f.Pos.Column-1, len(line)), min(end-1, len(line))
		out.Before, out.Mistake, out.Behind = string(line[:from]), string(line[from:to]), string(line[to:])
	}
	for _, pos := range f.Related {
		out.Related = append(out.Related, pos.String())
	}
	return out
}

type htmlPlan struct {
	Summary, Against, Unseen string
	Manifests                []string // what rendering found, summed up
	Changes                  []htmlChange
}

type htmlChange struct {
	Action, Name, Chart string
	Reasons             []string
	Diffs               []htmlDiff
}

type htmlDiff struct {
	Of   string
	Rows []diffRow
}

func newHTMLPlan(p *plan.Plan) *htmlPlan {
	out := &htmlPlan{Summary: p.Summary(), Against: clean(p.Against), Unseen: unseen}
	for _, text := range p.ManifestTexts() {
		out.Manifests = append(out.Manifests, clean(text))
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		name := c.ID.String()
		if c.Cluster != "" {
			name = c.Cluster + ": " + name
		}
		change := htmlChange{Action: string(c.Action), Name: clean(name), Chart: clean(PlanChart(c))}
		for _, text := range c.ShortTexts() {
			change.Reasons = append(change.Reasons, clean(text))
		}
		for _, d := range c.Diffs {
			change.Diffs = append(change.Diffs, htmlDiff{d.Of, sideBySide(printableDiff(d.Text))})
		}
		out.Changes = append(out.Changes, change)
	}
	return out
}

// diffRow is a line on both sides, or a heading.
type diffRow struct {
	Heading     string
	Left, Right string
	Removed     bool // the left line
	Added       bool // the right line
}

// sideBySide puts the removed and the added lines of a unified diff beside each other.
func sideBySide(diff string) []diffRow {
	var rows []diffRow
	var removed, added []string
	flush := func() {
		for i := range max(len(removed), len(added)) {
			row := diffRow{Removed: i < len(removed), Added: i < len(added)}
			if row.Removed {
				row.Left = removed[i]
			}
			if row.Added {
				row.Right = added[i]
			}
			rows = append(rows, row)
		}
		removed, added = nil, nil
	}
	inHunk := false
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "@@"):
			flush()
			inHunk = true
			rows = append(rows, diffRow{Heading: line})
		case !inHunk || strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "--- ") && len(removed)+len(added) == 0 && strings.Contains(line, "/"):
			flush()
			inHunk = false
			rows = append(rows, diffRow{Heading: line})
		case strings.HasPrefix(line, "-"):
			removed = append(removed, line[1:])
		case strings.HasPrefix(line, "+"):
			added = append(added, line[1:])
		default:
			flush()
			line = strings.TrimPrefix(line, " ")
			rows = append(rows, diffRow{Left: line, Right: line})
		}
	}
	flush()
	return rows
}

// htmlTimeline is when the versions of a chart were published.
type htmlTimeline struct {
	Name, Chart, Current, Wanted, Latest string
	First, Last, Label                   string
	Points                               []htmlPoint
}

type htmlPoint struct {
	X, R        int
	Class, Text string
}

// The timeline is drawn between these, and shows so many versions: the newest.
const (
	timelineFrom, timelineTo = 10, 990
	timelineMost             = 60
)

func newHTMLTimeline(o *Outdated) htmlTimeline {
	versions := o.Versions[:min(len(o.Versions), timelineMost)]
	out := htmlTimeline{
		Name: clean(objectName(o.Kind, o.Namespace, o.Name)), Chart: clean(o.Chart),
		Current: clean(cmp.Or(o.Current, "-")), Wanted: clean(cmp.Or(o.Wanted, "-")), Latest: clean(cmp.Or(o.Latest, "-")),
	}
	out.Label = "versions of " + out.Chart + ", the oldest first"
	for i := len(versions) - 1; i >= 0; i-- {
		v := versions[i]
		p := htmlPoint{X: positionOf(versions, i), R: 4, Text: clean(strings.TrimSpace(v.Version + " " + dayOf(v.Created)))}
		switch v.Version {
		case o.Current:
			p.Class, p.R = "current", 7
		case o.Wanted:
			p.Class, p.R = "wanted", 7
		case o.Latest:
			p.Class, p.R = "latest", 7
		}
		out.Points = append(out.Points, p)
	}
	if len(out.Points) > 0 {
		out.First, out.Last = out.Points[0].Text, out.Points[len(out.Points)-1].Text
	}
	return out
}

// positionOf is where a version is drawn, of those from the newest to the oldest: by its date, or by its rank where a date is not known.
func positionOf(versions []PublishedVersion, i int) int {
	newest, oldest := versions[0].Created, versions[0].Created
	for _, v := range versions {
		if v.Created.IsZero() {
			return timelineTo - (timelineTo-timelineFrom)*i/max(1, len(versions)-1)
		}
		if v.Created.After(newest) {
			newest = v.Created
		}
		if v.Created.Before(oldest) {
			oldest = v.Created
		}
	}
	whole := max(newest.Sub(oldest), 1)
	return timelineFrom + int(float64(timelineTo-timelineFrom)*float64(versions[i].Created.Sub(oldest))/float64(whole))
}

func dayOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}
