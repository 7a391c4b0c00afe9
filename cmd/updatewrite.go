package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/status"
)

func failureOf(err error) *status.Failure { return status.AsFailure(err) }

// finish writes the files and prints what became of them.
func (u *updateRun) finish(ctx context.Context) error {
	var diffs []byte
	files := 0
	for _, p := range u.files() {
		if len(p.edited) == 0 || ctx.Err() != nil {
			continue
		}
		text, edits, refusals := p.Apply()
		for _, c := range p.edited {
			if err := refusals[c.node]; err != nil {
				u.refused(c, err)
			}
		}
		if edits == 0 {
			continue
		}
		if u.o.dryRun {
			diffs = append(diffs, u.a.worker.Diff(p.file, p.File, text)...)
		} else if !u.o.check {
			if err := p.file.Replace(text); err != nil {
				u.report(finding.NotEdited, "", "", "", p.file.Name, 0, unnamed(err).Error())
				u.fail(exit.Failed)
				continue
			}
		}
		files++
		slices.SortStableFunc(p.edited, func(a, b *change) int { return cmp.Compare(a.Line, b.Line) })
		for _, c := range p.edited {
			if refusals[c.node] == nil {
				u.changes = append(u.changes, *c)
			}
		}
	}
	u.changed = len(u.changes) > 0
	u.conclude(files)
	return u.print(diffs)
}

// unnamed leaves out the name of the file, which the message begins with.
func unnamed(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// conclude prints the last line.
func (u *updateRun) conclude(files int) {
	verb := "set"
	if u.o.dryRun || u.o.check {
		verb = "to be set"
	}
	u.a.console.Info(console.Subject{}, fmt.Sprintf("%d %s in %d %s", len(u.changes), plural(len(u.changes), "field", "fields")+" "+verb, files, plural(files, "file", "files")))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func (u *updateRun) print(diffs []byte) error {
	hide := u.a.console.Secrets().Text
	for i := range u.changes {
		c := &u.changes[i]
		for _, text := range []*string{&c.From, &c.To, &c.By, &c.Chart, &c.Object, &c.was, &c.now} {
			*text = hide(*text)
		}
	}
	switch {
	case u.o.dryRun:
		_, err := u.a.env.Stdout.Write(diffs)
		return err
	case u.o.group:
		_, err := u.a.env.Stdout.Write([]byte(messages(u.changes)))
		return err
	}
	list := u.changes
	if list == nil {
		list = []change{}
	}
	return changeColumns().Print(u.a.env.Stdout, u.o.format.format, u.a.paper, list)
}

func changeColumns() *records.Columns[change] {
	return &records.Columns[change]{
		Header: []string{"FILE", "LINE", "FROM", "TO", "BY"},
		Wide:   []string{"CHART", "OBJECT"},
		Row: func(c change) []string {
			return []string{c.File, fmt.Sprint(c.Line), cmp.Or(c.From, "-"), c.To, c.By, cmp.Or(c.Chart, "-"), cmp.Or(c.Object, "-")}
		},
	}
}

// messages are those of one commit for each chart, in the order of the changes.
func messages(changes []change) string {
	var charts []string
	by := map[string][]change{}
	for _, c := range changes {
		if by[c.Chart] == nil {
			charts = append(charts, c.Chart)
		}
		by[c.Chart] = append(by[c.Chart], c)
	}
	var parts []string
	for _, chart := range charts {
		parts = append(parts, message(chart, by[chart]))
	}
	return strings.Join(parts, "---\n")
}

func message(chart string, changes []change) string {
	var from, to, lines []string
	for _, c := range changes {
		if c.was != "" && c.was != c.now && !slices.Contains(from, c.was) {
			from = append(from, c.was)
		}
		if !slices.Contains(to, c.now) {
			to = append(to, c.now)
		}
		lines = append(lines, fmt.Sprintf("- %s:%d: %s -> %s (%s)\n", console.OneLine(c.File), c.Line, console.OneLine(c.From), console.OneLine(c.To), c.By))
	}
	subject := console.OneLine(chart) + ": "
	if len(from) == 1 {
		subject += "update from " + console.OneLine(from[0]) + " to "
	} else {
		subject += "update to "
	}
	return subject + console.OneLine(strings.Join(to, ", ")) + "\n\n" + strings.Join(lines, "")
}
