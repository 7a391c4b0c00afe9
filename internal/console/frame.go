package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/table"
)

// The content of a row depends on the columns of the terminal. States have a fixed
// place, so that they do not move, and are never cut: names are.
const (
	fullColumns = 60  // below this width, only the most important part of a state
	wideColumns = 100 // from this width on, a bar, too

	shortState = 18 // columns of the longest short state
	fullState  = 40
	barColumns = 20
	gap        = 2 // columns between a name, a bar and a state
)

// stateColumns returns the columns of a state in a terminal of a width.
func stateColumns(width int) int {
	switch {
	case width >= wideColumns:
		return barColumns + gap + fullState
	case width >= fullColumns:
		return fullState
	}
	return shortState
}

// frame returns the lines that the terminal shows now: a line for each object in
// flight, as far as they fit, and a summary. Two lines are left free, for a line
// that stays and the cursor.
func (l *liveRows) frame(width, height int) []string {
	if len(l.rows) == 0 {
		return nil
	}
	now := l.Now()
	width-- // some terminals wrap a line that fills all columns
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

// plainDrawing replaces each character that a frame is drawn with by an ASCII character of the same width.
var plainDrawing = strings.NewReplacer("…", "~", "━", "#", "─", "-")

// shown returns the rows for which there is room. If not all fit, active rows come
// first.
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

// sumUp returns the summary of the run: the most important part first, and as much as fits.
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

// state is the text of a row after its name.
type state struct {
	text    string
	waiting bool
	bar     bool
	percent int64
}

// state returns the state of an object, in the words for which there is room.
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

// countdown returns the time until the next attempt, rounded up: 0 would look as
// if the wait was over.
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

// elapsed returns the time since the row began, as long as nothing has been transferred.
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

// nameOf returns an object's name for a row: in one line, without characters that
// would move the cursor or change the direction of writing. In a narrow terminal
// the kind is left out.
func nameOf(s Subject, width int) string {
	text := s.String()
	if width < fullColumns {
		text = strings.TrimPrefix(text, s.Kind+" ")
	}
	return strings.NewReplacer("\n", "", "\t", "").Replace(Printable(text))
}

// cut shortens a text to a number of columns, with an ellipsis.
func cut(text string, columns int) string {
	if table.Width(text) <= columns {
		return text
	}
	return table.Head(text, columns-1) + strings.Repeat("…", max(0, min(1, columns)))
}

// cutMiddle shortens a text in its middle to a number of columns. Names differ most at their ends.
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
