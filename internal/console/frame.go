package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/table"
)

// How much a row says depends on the columns that there are. States have a place
// of their own, so that they stay where they are and are never cut: names are.
const (
	fullColumns = 60  // else only what matters most
	wideColumns = 100 // a bar, too

	shortState = 18 // columns of the longest
	fullState  = 40
	barColumns = 20
	gap        = 2 // columns between a name, a bar and a state
)

// stateColumns is what states take of a width.
func stateColumns(width int) int {
	switch {
	case width >= wideColumns:
		return barColumns + gap + fullState
	case width >= fullColumns:
		return fullState
	}
	return shortState
}

// frame is what the terminal shows now: a line for each object in flight, as far
// as they fit on it, and one for all of them. A line that stays and the cursor
// have their place on it, too.
func (l *liveRows) frame(width, height int) []string {
	if len(l.rows) == 0 {
		return nil
	}
	now := l.Now()
	width-- // a full line would make some terminals go on in the next one
	room := max(1, height-2)
	var last []string
	if l.sum.all > 1 && room > 1 {
		last = []string{l.paint("2", l.sumUp(width, now))}
		room--
	}
	if width != l.width {
		l.width, l.names = width, 0
	}
	rows := l.shown(room, now)
	lines := make([]string, 0, len(rows)+1)
	for _, r := range rows {
		l.names = max(l.names, table.Width(nameOf(r.subject, width)))
	}
	names := max(0, min(l.names, width-gap-stateColumns(width)))
	for _, r := range rows {
		name := cutMiddle(nameOf(r.subject, width), names)
		name += strings.Repeat(" ", min(names-table.Width(name)+gap, width))
		lines = append(lines, name+l.paintState(r.state(width, now), max(0, width-names-gap)))
	}
	lines = append(lines, last...)
	if l.ASCII {
		for i := range lines {
			lines[i] = plainDrawing.Replace(lines[i])
		}
	}
	return lines
}

// plainDrawing has a character of ASCII, as wide, for each that a frame is drawn with.
var plainDrawing = strings.NewReplacer("…", "~", "━", "#", "─", "-")

// shown picks the rows for which there is room: if need be, those where something
// happens.
func (l *liveRows) shown(room int, now time.Time) []*liveRow {
	if len(l.rows) <= room {
		return l.rows
	}
	active := 0
	for _, r := range l.rows {
		if r.active(now) {
			active++
		}
	}
	others := max(0, room-active)
	var shown []*liveRow
	for _, r := range l.rows {
		switch {
		case len(shown) == room:
			return shown
		case r.active(now):
			shown = append(shown, r)
		case others > 0:
			shown = append(shown, r)
			others--
		}
	}
	return shown
}

// sumUp says how the run gets on: the most important first, and as much as fits.
func (l *liveRows) sumUp(width int, now time.Time) string {
	bytes, speed := l.sum.transferred, int64(0)
	for _, r := range l.rows {
		bytes += r.done
		if r.done > 0 && !r.waitUntil.After(now) {
			speed += r.speed(now)
		}
	}
	parts := []string{fmt.Sprintf("%d of %d done", l.sum.done, l.sum.all)}
	if l.sum.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", l.sum.failed))
	}
	parts = append(parts, fmt.Sprintf("%d in progress", len(l.rows)))
	if elapsed := now.Sub(l.sum.began).Truncate(time.Second); elapsed > 0 {
		parts = append(parts, elapsed.String())
	}
	if bytes > 0 {
		parts = append(parts, humanBytes(bytes), humanBytes(speed)+"/s")
	}
	text := cut(parts[0], width)
	for _, part := range parts[1:] {
		if table.Width(text+", "+part) > width {
			break
		}
		text += ", " + part
	}
	return text
}

// state is what a row says after its name.
type state struct {
	text    string
	waiting bool
	bar     bool
	percent int64
}

// state says how an object gets on, in the words for which there is room.
func (r *liveRow) state(width int, now time.Time) state {
	if r.waitUntil.After(now) {
		return state{text: r.countdown(width, now), waiting: true}
	}
	full := width >= fullColumns
	switch {
	case r.locked && full:
		return state{text: Waiting, waiting: true}
	case r.locked:
		return state{text: "another helmsrc", waiting: true}
	}
	switch speed := humanBytes(r.speed(now)) + "/s"; {
	case r.done == 0:
		return state{text: r.elapsed(now)}
	case r.total > 0 && full:
		s := state{text: fmt.Sprintf("%s of %s, %s", humanBytes(r.done), humanBytes(r.total), speed)}
		if width >= wideColumns {
			s.bar, s.percent = true, percent(r.done, r.total)
		}
		return s
	case r.total > 0:
		return state{text: fmt.Sprintf("%d%%, %s", percent(r.done, r.total), speed)}
	case full:
		return state{text: humanBytes(r.done) + ", " + speed}
	default:
		return state{text: humanBytes(r.done)}
	}
}

// countdown is the time until the next attempt. It never says 0, which would look
// as if it was over.
func (r *liveRow) countdown(width int, now time.Time) string {
	left := (r.waitUntil.Sub(now) + time.Second - 1).Truncate(time.Second)
	switch {
	case r.rateLimited && width >= fullColumns:
		return fmt.Sprintf("rate limited by the server, again in %s", left)
	case r.rateLimited:
		return fmt.Sprintf("rate limited, %s", left)
	case width >= fullColumns:
		return fmt.Sprintf("failed, again in %s", left)
	default:
		return fmt.Sprintf("again in %s", left)
	}
}

// elapsed is how long nothing has been transferred.
func (r *liveRow) elapsed(now time.Time) string {
	if d := now.Sub(r.began).Truncate(time.Second); d > 0 {
		return "… " + d.String()
	}
	return "…"
}

func percent(done, total int64) int64 { return min(100, int64(float64(done)*100/float64(total))) }

func (l *liveRows) bar(percent int64) string {
	filled := int(percent) * barColumns / 100
	return l.paint("36", strings.Repeat("━", filled)) + l.paint("2", strings.Repeat("─", barColumns-filled))
}

func (l *liveRows) paintState(s state, columns int) string {
	switch {
	case s.waiting:
		return l.paint("33", cut(s.text, columns))
	case s.bar:
		columns -= barColumns + gap
		return l.bar(s.percent) + strings.Repeat(" ", gap) + l.paint("2", cut(s.text, columns))
	}
	return l.paint("2", cut(s.text, columns))
}

func (l *liveRows) paint(code, text string) string {
	if !l.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// nameOf is an object's name as a row has it: in one line, with nothing that would
// move the cursor or turn the direction of writing. Where there is little room it
// goes without the kind.
func nameOf(s Subject, width int) string {
	text := s.String()
	if width < fullColumns {
		text = strings.TrimPrefix(text, s.Kind+" ")
	}
	return strings.NewReplacer("\n", "", "\t", "").Replace(Printable(text))
}

// cut cuts a text to a number of columns, with an ellipsis.
func cut(text string, columns int) string {
	if table.Width(text) <= columns {
		return text
	}
	return table.Head(text, columns-1) + strings.Repeat("…", max(0, min(1, columns)))
}

// cutMiddle cuts a text to a number of columns. Names differ most at their ends.
func cutMiddle(text string, columns int) string {
	if table.Width(text) <= columns || columns < 3 {
		return cut(text, columns)
	}
	front := table.Head(text, (columns-1)/2)
	left := columns - 1 - table.Width(front)
	runes := []rune(text)
	from := len(runes)
	for from > 0 && table.ColumnsOf(runes[from-1]) <= left {
		from--
		left -= table.ColumnsOf(runes[from])
	}
	return front + "…" + string(runes[from:])
}

func humanBytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, exponent := float64(n)/unit, 0
	for value >= unit && exponent < 3 {
		value /= unit
		exponent++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGT"[exponent])
}
