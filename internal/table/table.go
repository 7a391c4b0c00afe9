// Package table lays out what people read on a terminal: rows in columns that fit it, colours, and texts that are cut to a width.
// It is pure.
package table

import (
	"io"
	"strings"
	"unicode"
)

// Style is what the reader of a text has.
type Style struct {
	Columns int // of a line, 0 for as many as it takes
	ASCII   bool
	Color   bool
	Wrap    bool // the last column of a table goes on in further lines, and is not cut
}

// Color is a colour of a cell.
type Color string

// The colours. Plain is that of the terminal.
const (
	Plain  Color = ""
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
	Cyan   Color = "36"
)

// Paint colours a text, if the style has colours.
func (s Style) Paint(text string, c Color) string {
	if !s.Color || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// PaintDiff colours the lines of a unified diff.
func (s Style) PaintDiff(text string) string {
	if !s.Color {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		b.WriteString(s.Paint(body, diffColor(body)) + line[len(body):])
	}
	return b.String()
}

func diffColor(line string) Color {
	switch {
	case strings.HasPrefix(line, "+"):
		return Green
	case strings.HasPrefix(line, "-"):
		return Red
	case strings.HasPrefix(line, "@@"):
		return Cyan
	}
	return Plain
}

// Cut shortens a text to so many columns of a terminal, 0 for any number, and marks that it did.
func (s Style) Cut(text string, columns int) string {
	if columns <= 0 || Width(text) <= columns {
		return text
	}
	mark := "…"
	if s.ASCII {
		mark = "..."
	}
	return strings.TrimRight(Head(text, columns-Width(mark)), " ") + mark
}

// Columns between cells, and the narrowest column with what follows it: kubectl's. Where a table is too wide, there is less
// between cells.
const (
	padding, tightPadding = 3, 2
	narrowest             = 6
	// legible is what a column that is cut has at least.
	legible = 8
)

// Write writes rows under a header, with nothing in a cell that could move a cursor. If the table is wider than the style, the
// widest columns are cut. The colour of a cell is that of its text under its title, nil for none.
func (s Style) Write(w io.Writer, header []string, rows [][]string, color func(title, cell string) Color) error {
	all := make([][]string, 0, len(rows)+1)
	widths := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Printable(cell)
			widths[i] = max(widths[i], Width(cells[i]))
		}
		all = append(all, cells)
	}
	between := s.fit(widths)
	if s.Wrap {
		all = s.wrap(all, widths)
	}
	var b strings.Builder
	for n, cells := range all {
		blank := 0
		for i, cell := range cells {
			cell = s.Cut(cell, widths[i])
			shown := cell
			if n > 0 && color != nil {
				shown = s.Paint(cell, color(header[i], cells[i]))
			}
			if cell != "" {
				b.WriteString(strings.Repeat(" ", blank) + shown)
				blank = 0
			}
			blank += max(widths[i]+between, narrowest) - Width(cell)
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wrap divides the last cells of rows that are too wide, each into lines that have nothing in front.
func (s Style) wrap(rows [][]string, widths []int) [][]string {
	last := len(widths) - 1
	var all [][]string
	for _, cells := range rows {
		all = append(all, cells)
		for Width(cells[last]) > widths[last] {
			line := Head(cells[last], widths[last]+1)
			if at := strings.LastIndexByte(line, ' '); at > 0 {
				line = line[:at]
			} else {
				line = Head(line, widths[last])
			}
			rest := make([]string, len(cells))
			rest[last] = strings.TrimLeft(cells[last][len(line):], " ")
			cells[last] = line
			all, cells = append(all, rest), rest
		}
	}
	return all
}

// fit makes the widest columns narrower until all have a place. It returns how many columns are between two.
func (s Style) fit(widths []int) int {
	if s.Columns <= 0 || total(widths, padding) <= s.Columns {
		return padding
	}
	for total(widths, tightPadding) > s.Columns {
		widest := 0
		for i, width := range widths {
			if width >= widths[widest] { // of equal ones the last: names are in front
				widest = i
			}
		}
		if widths[widest] <= legible {
			break
		}
		widths[widest]--
	}
	return tightPadding
}

func total(widths []int, between int) int {
	sum := 0
	for i, width := range widths {
		if i == len(widths)-1 {
			return sum + width
		}
		sum += max(width+between, narrowest)
	}
	return sum
}

// Printable returns the first line of a text without anything that has no shape. More lines are hinted at, as kubectl does.
func Printable(s string) string {
	if end := strings.IndexAny(s, "\r\n\f"); end >= 0 {
		s = s[:end] + "..."
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// Width is how many columns of a terminal a text takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += ColumnsOf(r)
	}
	return n
}

// Head is the beginning of a text that fits in so many columns of a terminal.
func Head(text string, columns int) string {
	for i, r := range text {
		if columns -= ColumnsOf(r); columns < 0 {
			return text[:i]
		}
	}
	return text
}

const (
	// digits are so many of a digest or commit that it is distinguished from others.
	digits = 12
	// shortest is a commit: what has fewer digits is a version or a name.
	shortest = 40
)

// Short cuts the digests and commits in a revision.
func Short(revision string) string {
	var b strings.Builder
	for rest := revision; rest != ""; {
		n := hexadecimals(rest)
		kept := n
		if n >= shortest {
			kept = digits
		}
		n, kept = max(n, 1), max(kept, 1)
		b.WriteString(rest[:kept])
		rest = rest[n:]
	}
	return b.String()
}

// hexadecimals counts the hexadecimal digits that a text begins with.
func hexadecimals(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789abcdef"))
}

// OrNone is a cell, as kubectl has an empty one.
func OrNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
