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

// htmlPage holds the values of the template. Text from manifests and charts is in strings, which the template escapes.
type htmlPage struct {
	*Run
	Summary, Omission, Begun string

	Style  template.CSS
	Script template.JS
	Policy string // the content security policy, which allows only this style and script

	Clusters []*htmlNode
	Chunks   [][]htmlObject
}

// openNodes is the number of nodes of a tree that are shown at first.
const openNodes = 300

// chunk is the number of rows that are laid out together: a browser skips chunks that are not visible.
const chunk = 100

// writeHTML writes a self-contained page: it needs no network, and runs no script except its own.
func writeHTML(w io.Writer, run *Run) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"called": run.called, "clean": clean, "short": table.Short, "name": objectName,
		"headline": headline, "ruleName": ruleName, "ruleURL": ruleURL, "marked": markedLine,
		"changed": changedName, "chart": PlanChart, "rows": sideBySide, "unseen": func() string { return unseen },
		"points": timeline,
	}).Parse(pageTemplate)
	if err != nil {
		return err
	}
	page := &htmlPage{
		Run: run, Summary: sums(run), Omission: run.omission(), Begun: run.Started.UTC().Format(time.RFC3339),
		Style: template.CSS(pageStyle), Script: template.JS(pageScript),
		Policy: fmt.Sprintf("default-src 'none'; base-uri 'none'; form-action 'none'; style-src '%s'; script-src '%s'", hashOf(pageStyle), hashOf(pageScript)),
	}
	tree := &htmlTree{run: run, anchors: map[objectKey]string{}, left: openNodes}
	var rows []htmlObject
	for i := range run.Objects {
		rows = append(rows, htmlObject{fmt.Sprintf("o%d", i), &run.Objects[i]})
		tree.anchors[keyOf(&run.Objects[i])] = rows[i].ID
	}
	page.Chunks = slices.Collect(slices.Chunk(rows, chunk))
	page.Clusters = tree.nodes(outline.Unfold(run.Outline), "")
	var b strings.Builder
	if err := t.Execute(&b, page); err != nil {
		return err
	}
	_, err = io.WriteString(w, shapely(b.String()))
	return err
}

// shapely drops control characters from a page, and those that change the direction of writing.
func shapely(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, printableDiff(strings.ToValidUTF8(text, "\uFFFD")))
}

// hashOf returns the hash of a text, as a content security policy writes it.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

type objectKey struct{ cluster, kind, namespace, name string }

func keyOf(o *Object) objectKey { return objectKey{clean(o.Cluster), o.Kind, o.Namespace, o.Name} }

// htmlNode is a node of the tree on the left.
type htmlNode struct {
	Title, Detail, State string
	Target               string // the row of the object, or ""
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

// htmlObject is a row, with its name in links.
type htmlObject struct {
	ID string
	*Object
}

// markedLine returns the line of a finding in three parts: before the mistake, the mistake, and after it.
func markedLine(f *finding.Finding) []string {
	line, end := []rune(f.Line), endColumn(f)
	if end <= f.Pos.Column {
		return []string{f.Line, "", ""}
	}
	from, to := min(f.Pos.Column-1, len(line)), min(end-1, len(line))
	return []string{string(line[:from]), string(line[from:to]), string(line[to:])}
}

// diffRow is a line on both sides, or a heading.
type diffRow struct {
	Heading     string
	Left, Right string
	Removed     bool // the left line
	Added       bool // the right line
}

// sideBySide arranges the removed and the added lines of a unified diff side by side.
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
	for line := range strings.Lines(printableDiff(diff)) {
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

// htmlPoint is a published version of a chart in the timeline.
type htmlPoint struct {
	X, R        int
	Class, Text string
}

// The bounds of the timeline, and the limit of its versions, the newest.
const (
	timelineFrom, timelineTo = 10, 990
	timelineMost             = 60
)

// timeline returns the published versions of a chart, the oldest first.
func timeline(o *Outdated) []htmlPoint {
	versions := o.Versions[:min(len(o.Versions), timelineMost)]
	var points []htmlPoint
	for i, v := range slices.Backward(versions) {
		p := htmlPoint{X: positionOf(versions, i), R: 4, Text: clean(strings.TrimSpace(v.Version + " " + dayOf(v.Created)))}
		switch v.Version {
		case o.Current:
			p.Class, p.R = "current", 7
		case o.Wanted:
			p.Class, p.R = "wanted", 7
		case o.Latest:
			p.Class, p.R = "latest", 7
		}
		points = append(points, p)
	}
	return points
}

// positionOf returns the position of a version, of a list with the newest first: by date, or by rank if a date is unknown.
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
