package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/outline"
)

func writeMarkdown(w io.Writer, run *Run) error {
	most := math.MaxInt
	if run.Plan != nil {
		most = maxComment
	}
	_, err := io.WriteString(w, markdown(run, most))
	return err
}

// Summary returns the Markdown page of a run, limited to most bytes. It counts the entries that do not fit.
func Summary(run *Run, most int) string { return markdown(run.bounded(), most) }

// reserve is the space, in bytes, that a page keeps for a note about missing rows.
const reserve = 200

func markdown(run *Run, most int) string {
	p := &page{most: most - reserve}
	if run.Plan != nil {
		addPlan(p, run.Plan, func() { p.errors(run) })
		p.drawing(run)
		p.warnings(run)
		return p.whole(most)
	}
	p.add(fmt.Sprintf("## helmsrc %s\n\n", escapeMarkdown(run.Command)))
	p.add(sums(run) + "\n")
	p.errors(run)
	p.drawing(run)
	p.warnings(run)
	var rows []string
	for i, o := range run.Objects {
		if o.State == StateReady && o.Version+o.Message == "" {
			continue // valid, without a detail to add
		}
		rows = append(rows, objectRow(run, &run.Objects[i]))
	}
	p.folded("Objects", "| | Object | Version | Message |\n|---|---|---|---|\n", rows, 0)
	return p.whole(most)
}

// sums returns the numbers of objects and findings in one line.
func sums(run *Run) string {
	n, of := Counts(run.Findings), run.Count
	objects := Sum(
		Part{of[StateReady], run.called(StateReady), true}, Part{of[StateResolved], "resolved", false}, Part{of[StateVerified], "verified", false},
		Part{of[StateFailed], run.called(StateFailed), true}, Part{of[StateBlocked], "blocked", false}, Part{of[StateSuspended], "skipped", true},
		Part{of[StateInterrupted], "not finished", false},
	)
	findings := fmt.Sprintf("%s, %s, %s", counted(n[finding.Error], "error"), counted(n[finding.Warning], "warning"), counted(n[finding.Note], "note"))
	if run.silenced > 0 {
		findings += fmt.Sprintf(", %d silenced", run.silenced)
	}
	return fmt.Sprintf("%s; %s; %.1fs", objects, findings, run.Duration.Seconds())
}

const findingHeader = "| | Code | Where | What |\n|---|---|---|---|\n"

// called returns the word for a state on a page.
func (r *Run) called(state string) string {
	if r.Validates {
		switch state {
		case StateReady:
			return "valid"
		case StateFailed:
			return "invalid"
		}
	}
	return state
}

// errors adds the errors and the number of findings that no report lists.
func (p *page) errors(run *Run) {
	p.table("Errors", findingHeader, findingRows(run, true), run.omitted)
}

// warnings adds the other findings, folded.
func (p *page) warnings(run *Run) {
	missing := run.omitted
	if Counts(run.Findings)[finding.Error] > 0 {
		missing = 0 // they are counted below the errors
	}
	p.folded("Warnings and notes", findingHeader, findingRows(run, false), missing)
}

func findingRows(run *Run, errors bool) []string {
	var rows []string
	for i := range run.Findings {
		if f := &run.Findings[i]; (f.Severity == finding.Error) == errors {
			rows = append(rows, findingRow(f))
		}
	}
	return rows
}

// maxDrawn is the largest size, in bytes, of a chart that is drawn. GitHub draws no larger ones, and people do not read them.
const maxDrawn = 20_000

// drawing adds a chart of the clusters: only of failed objects, if there are any.
func (p *page) drawing(run *Run) {
	shown := outline.Failing(run.Outline)
	if len(shown) == 0 {
		shown = run.Outline
	}
	var chart strings.Builder
	if len(shown) == 0 || outline.Mermaid(&chart, shown) != nil || chart.Len() > maxDrawn {
		return
	}
	p.add("\n```mermaid\n" + chart.String() + "```\n")
}

// whole returns the page, or "" if it does not fit.
func (p *page) whole(most int) string {
	text := p.text.String()
	if len(text) > most {
		return ""
	}
	return text
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// page is a text with a limit, in bytes.
type page struct {
	text strings.Builder
	most int
}

func (p *page) add(s string) bool {
	if p.text.Len()+len(s) > p.most {
		return false
	}
	p.text.WriteString(s)
	return true
}

// table adds rows below a title.
func (p *page) table(title, header string, rows []string, missing int) {
	if len(rows) == 0 || !p.add("\n### "+title+"\n\n"+header) {
		return
	}
	p.rows(rows, missing)
}

// rows adds the rows that fit, and the number of missing rows.
func (p *page) rows(rows []string, missing int) {
	for i, row := range rows {
		if !p.add(row) {
			missing += len(rows) - i
			break
		}
	}
	if missing > 0 {
		fmt.Fprintf(&p.text, "\n… and %d more\n", missing)
	}
}

// folded adds a table that the reader can open.
func (p *page) folded(title, header string, rows []string, missing int) {
	if len(rows) == 0 || !p.add(fmt.Sprintf("\n<details><summary>%s: %d</summary>\n\n%s", title, len(rows)+missing, header)) {
		return
	}
	p.rows(rows, missing)
	p.text.WriteString("\n</details>\n") // within the reserve
}

func findingRow(f *finding.Finding) string {
	where := escapeMarkdown(f.Pos.String())
	if s := subject(f); s != "" {
		where += "<br>" + escapeMarkdown(s)
	}
	what := escapeMarkdown(f.Message)
	if len(f.Blocks) > 0 {
		what += "<br>blocks " + escapeMarkdown(blockedNames(f))
	}
	if f.Fix != "" {
		what += "<br>" + escapeMarkdown(f.Fix)
	}
	return fmt.Sprintf("| %s | [%s](%s) | %s | %s |\n", severitySign(f.Severity), escapeMarkdown(string(f.Code)), ruleURL(f.Code), where, what)
}

// severitySign returns a sign and a word, because not all readers see colours.
func severitySign(s finding.Severity) string {
	return cmp.Or(map[finding.Severity]string{finding.Warning: "⚠️ warning", finding.Note: "ℹ️ note"}[s], "❌ error")
}

func objectRow(run *Run, o *Object) string {
	sign := map[string]string{StateReady: "✅", StateResolved: "✅", StateVerified: "✅", StateFailed: "❌", StateBlocked: "⛔", StateSuspended: "⏸️", StateInterrupted: "⏹️"}[o.State]
	return fmt.Sprintf("| %s %s | %s | %s | %s |\n", sign, run.called(o.State),
		escapeMarkdown(objectName(o.Kind, o.Namespace, o.Name)), escapeMarkdown(o.Version), escapeMarkdown(o.Message))
}

// escapeMarkdown escapes a text for a cell of a table: it is shown literally, without markup, links, images that a browser
// would load, or new rows.
func escapeMarkdown(s string) string {
	return markdownEscapes().Replace(strings.TrimSpace(s))
}

var markdownEscapes = sync.OnceValue(func() *strings.Replacer {
	// "\r" would end the row, and removing it would join two words. "www." would begin a link, as "://" would.
	pairs := []string{"\n", "<br>", "\r", " ", "<", "&lt;", ">", "&gt;", "&", "&amp;", "www.", "www\\."}
	for _, r := range "\\`*_{}[]()#+!|~$@:" {
		pairs = append(pairs, string(r), "\\"+string(r))
	}
	return strings.NewReplacer(pairs...)
})

// MarkdownTable writes a table for an issue, a pull request or a wiki. Markup in cells is escaped.
func MarkdownTable(w io.Writer, header []string, rows [][]string) error {
	var b strings.Builder
	b.WriteString("| " + strings.Join(header, " | ") + " |\n|" + strings.Repeat(" --- |", len(header)) + "\n")
	for _, row := range rows {
		for _, cell := range row {
			b.WriteString("| " + escapeMarkdown(cell) + " ")
		}
		b.WriteString("|\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
