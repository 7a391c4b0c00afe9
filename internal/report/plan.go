package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/plan"
)

// planSchema is the URL of the schema of plans in JSON.
const planSchema = "https://raw.githubusercontent.com/helmsrc/helmsrc/main/schema/plan.schema.json"

// PlanMark is in the first line of a plan in Markdown, to find the comment of an earlier run.
const PlanMark = "<!-- helmsrc plan -->"

// unseen lists the facts about a cluster that a plan cannot know.
const unseen = "The state of the cluster is not known: failed or pending releases, manual changes, drift and tests are not considered."

type jsonPlan struct {
	Against  string              `json:"against"`
	Summary  map[plan.Action]int `json:"summary"`
	Releases []plan.Change       `json:"releases"`
}

func newJSONPlan(p *plan.Plan) *jsonPlan {
	if p == nil {
		return nil
	}
	out := &jsonPlan{Against: p.Against, Summary: map[plan.Action]int{}, Releases: p.Changes}
	for _, a := range plan.Actions() {
		out.Summary[a] = p.Count(a)
	}
	if out.Releases == nil {
		out.Releases = []plan.Change{}
	}
	return out
}

// planList is a plan as a List, as kubectl prints objects.
type planList struct {
	Schema     string              `json:"$schema"`
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Against    string              `json:"against"`
	Summary    map[plan.Action]int `json:"summary"`
	Items      []plan.Change       `json:"items"`
}

// WritePlan writes a plan as one JSON List.
func WritePlan(w io.Writer, p *plan.Plan) error {
	of := newJSONPlan(p)
	return Encode(w, &planList{planSchema, "v1", "List", of.Against, of.Summary, of.Releases})
}

// maxComment is the limit of GitHub for a comment, in characters. GitLab accepts longer ones.
const maxComment = 65_000

// PlanMarkdown returns a plan as a comment on a pull request. It counts the releases that do not fit.
func PlanMarkdown(p *plan.Plan) string {
	page := &page{most: maxComment - reserve}
	addPlan(page, p, func() {})
	return page.text.String()
}

// addPlan adds a plan to a page. It calls addFailures between the summary and the releases.
func addPlan(page *page, p *plan.Plan, addFailures func()) {
	page.add(PlanMark + "\n## helmsrc plan\n\n")
	page.add(fmt.Sprintf("%s, compared with %s\n", p.Summary(), escapeMarkdown(p.Against)))
	addFailures()
	var rows []string
	for i := range p.Changes {
		if c := &p.Changes[i]; !unchanged(c) {
			rows = append(rows, planRow(c))
		}
	}
	page.table("Releases", "| | Release | Chart | Why |\n|---|---|---|---|\n", rows, 0)
	if texts := p.ManifestTexts(); len(texts) > 0 {
		for i, text := range texts {
			texts[i] = "- " + escapeMarkdown(clean(text)) + "\n"
		}
		page.add("\n" + strings.Join(texts, ""))
	}
	left := 0
	for i := range p.Changes {
		for _, d := range p.Changes[i].Diffs {
			if !page.add(planDiff(&p.Changes[i], &d)) {
				left++
			}
		}
	}
	if left > 0 {
		page.add(fmt.Sprintf(finding.MoreDiffs, left))
	}
	page.add("\n" + unseen + "\n")
}

func unchanged(c *plan.Change) bool {
	return c.Action == plan.None && len(c.Reasons) == 1 && c.Reasons[0].Code == plan.ReasonUnchanged
}

func planRow(c *plan.Change) string {
	var texts []string
	for _, text := range c.ShortTexts() {
		texts = append(texts, escapeMarkdown(text))
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", actionSign(c.Action), escapeMarkdown(clean(changedName(c))), escapeMarkdown(clean(PlanChart(c))), clean(strings.Join(texts, "<br>")))
}

// changedName returns the name of the release that changes, with its cluster if there are several.
func changedName(c *plan.Change) string {
	if c.Cluster != "" {
		return c.Cluster + ": " + c.ID.String()
	}
	return c.ID.String()
}

// PlanChart returns the chart of a release, or the change of its chart.
func PlanChart(c *plan.Change) string {
	switch {
	case c.Before == nil && c.After == nil:
		return c.Chart
	case c.Before == nil:
		return c.After.String()
	case c.After == nil && c.Action == plan.Uninstall:
		return c.Before.String()
	case c.After == nil:
		return c.Chart
	case c.Before.String() == c.After.String():
		return c.After.String()
	case c.Before.Name == c.After.Name:
		return c.After.Name + " " + c.Before.Version + " -> " + c.After.Version
	}
	return c.Before.String() + " -> " + c.After.String()
}

// actionSign returns a sign and a word, because not all readers see colours.
func actionSign(a plan.Action) string {
	return map[plan.Action]string{
		plan.Install: "🆕 install", plan.Upgrade: "⬆️ upgrade", plan.None: "➖ none", plan.Uninstall: "🗑️ uninstall", plan.Blocked: "❌ blocked",
	}[a]
}

// planDiff returns a folded diff below its name. The fence is longer than any fence in the diff.
func planDiff(c *plan.Change, d *plan.Diff) string {
	text, fence := strings.TrimRight(printableDiff(d.Text), "\n"), "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fmt.Sprintf("\n<details><summary>%s of %s</summary>\n\n%sdiff\n%s\n%s\n\n</details>\n",
		d.Of, escapeMarkdown(clean(changedName(c))), fence, text, fence)
}

// printableDiff drops the control characters except line breaks and tabs.
func printableDiff(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r >= 0x20 && (r < 0x7f || r >= 0xa0) && r != 0xfffe && r != 0xffff {
			return r
		}
		return -1
	}, s)
}
