// Package table formats text for terminals: rows in columns that fit, colours, and texts that are cut to a width. It does no I/O
// except writing.
package table

import (
	"io"
	"strings"
	"unicode"
)

// Style describes the terminal of a text.
type Style struct {
	Columns int // of a line, 0 for no limit
	ASCII   bool
	Color   bool
	Wrap    bool // the last column of a table continues on further lines, and is not cut
}

// Color is a colour of a cell.
type Color string

// The colours. Plain is the terminal's default.
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

// Cut shortens a text to a number of terminal columns, and marks the cut. With columns 0, it returns the text.
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

// The columns between cells, and the least width of a column with its padding, as in kubectl. A table that is too wide has
// tightPadding.
const (
	padding, tightPadding = 3, 2
	narrowest             = 6
	// legible is the least width of a column that is cut.
	legible = 8
)

// Write writes rows under a header, and replaces control characters in cells. If the table is wider than the style, it cuts the
// widest columns. Color returns the colour of a cell by its title and text; nil means no colours.
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

// wrap splits the last cells of rows that are too wide. The additional lines have no other cells.
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

// fit makes the widest columns narrower until the table fits. It returns the padding between columns.
func (s Style) fit(widths []int) int {
	if s.Columns <= 0 || total(widths, padding) <= s.Columns {
		return padding
	}
	for total(widths, tightPadding) > s.Columns {
		widest := 0
		for i, width := range widths {
			if width >= widths[widest] { // the last of equal columns: names come first
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

// Printable returns the first line of a text without unprintable characters. If there are more lines, it adds "...", like kubectl.
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

// Width returns the number of terminal columns of a text.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += ColumnsOf(r)
	}
	return n
}

// Head returns the beginning of a text that fits into a number of terminal columns.
func Head(text string, columns int) string {
	for i, r := range text {
		if columns -= ColumnsOf(r); columns < 0 {
			return text[:i]
		}
	}
	return text
}

const (
	// digits is the number of digits of a digest or commit that are shown.
	digits = 12
	// shortest is the length of a commit: fewer digits are a version or a name.
	shortest = 40
)

// Short shortens the digests and commits in a revision.
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

// hexadecimals returns the number of hexadecimal digits at the beginning of a text.
func hexadecimals(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789abcdef"))
}

// OrNone returns the text of a cell, "<none>" for an empty one, as in kubectl.
func OrNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
