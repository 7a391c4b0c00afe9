package console

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/table"
)

// ShowCursor is the escape sequence that shows the cursor again, after an unfinished run has hidden it.
const ShowCursor = "\x1b[?25h"

const (
	hideCursor = "\x1b[?25l"
	clearLine  = "\x1b[K" // from the cursor on
	clearBelow = "\x1b[J"
)

// screen repaints the last lines of a terminal. The cursor is below them, so that
// the next prompt follows the picture, however the program ends.
type screen struct {
	w io.Writer

	lines  []string // the lines on the terminal now
	width  int      // of the terminal when they were painted
	hidden bool     // the cursor
}

// paint shows the lines, each of less columns than the terminal has, and above
// them text that stays. It writes the differences in one write, so that no
// half-painted picture shows, and writes nothing if the picture is the same.
func (s *screen) paint(stays string, lines []string, width int) {
	var b strings.Builder
	hide := len(lines) > 0
	if hide && !s.hidden {
		b.WriteString(hideCursor)
	}
	switch {
	case width != s.width && len(s.lines) > 0:
		up(&b, s.wrapped(width))
		b.WriteString("\r" + clearBelow + stays)
		s.change(&b, nil, lines)
	case stays != "":
		up(&b, len(s.lines))
		b.WriteString("\r" + strings.ReplaceAll(stays, "\n", clearLine+"\n"))
		// The old lines have moved: all of them are painted again.
		s.change(&b, make([]string, max(0, len(s.lines)-strings.Count(stays, "\n"))), lines)
	default:
		same := 0
		for same < min(len(s.lines), len(lines)) && s.lines[same] == lines[same] {
			same++
		}
		if same == len(s.lines) && same == len(lines) {
			break
		}
		up(&b, len(s.lines)-same)
		b.WriteString("\r")
		s.change(&b, s.lines[same:], lines[same:])
	}
	if !hide && s.hidden {
		b.WriteString(ShowCursor)
	}
	s.lines, s.width, s.hidden = slices.Clone(lines), width, hide
	if b.Len() > 0 {
		_, _ = io.WriteString(s.w, b.String())
	}
}

// change replaces the old lines below the cursor by the new ones.
func (s *screen) change(b *strings.Builder, old, lines []string) {
	for i, line := range lines {
		if i >= len(old) || old[i] != line || line == "" {
			b.WriteString(line + clearLine)
		}
		b.WriteByte('\n')
	}
	if len(old) > len(lines) {
		b.WriteString(clearBelow)
	}
}

// wrapped returns how many lines the painted lines take at another width: most
// terminals wrap lines that no longer fit when their window is made narrower.
func (s *screen) wrapped(width int) int {
	n := 0
	for _, line := range s.lines {
		n += max(1, (table.Width(plain(line))+width-1)/max(1, width))
	}
	return n
}

func up(b *strings.Builder, n int) {
	if n > 0 {
		fmt.Fprintf(b, "\x1b[%dA", n)
	}
}

// plain returns text without the colours that this program writes.
func plain(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(after, "m")
	}
}
