package console

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/table"
)

const (
	// tabColumns is the width of a tab. YAML has no tabs in its indentation.
	tabColumns = 4
	// plainColumns is the width of lines without a terminal.
	plainColumns = 120
	// minColumns is the least width of an excerpt, even in a narrower terminal.
	minColumns = 20
)

// excerpt returns the line of a finding with the wrong part underlined, as compilers
// do. It is empty if the line is not known.
func (c *Console) excerpt(f finding.Finding, level Level) string {
	if f.Line == "" || f.Pos.Line == 0 {
		return ""
	}
	number := strconv.Itoa(f.Pos.Line)
	gutter := "  " + strings.Repeat(" ", len(number)) + " | "
	text, marks := cutOut(f, max(minColumns, c.columns()-len(gutter)))
	if c.options.Color {
		marks = strings.Replace(marks, "^", "\x1b["+colorOf(level)+"m^", 1) + "\x1b[0m"
	}
	return fmt.Sprintf("  %s | %s\n%s%s\n", number, text, gutter, marks)
}

// columns returns the width that lines may have.
func (c *Console) columns() int {
	if c.options.Terminal != nil {
		if width, _, ok := c.options.Terminal(); ok {
			return width
		}
	}
	return plainColumns
}

// cell is a character as the terminal shows it.
type cell struct {
	text   string
	width  int
	marked bool
}

// cutOut returns the line of a finding in at most the given number of columns, and
// the marks below it.
func cutOut(f finding.Finding, columns int) (text, marks string) {
	cells := cellsOf(f)
	first := 0
	for first < len(cells) && !cells[first].marked {
		first++
	}
	from, to := window(cells, first, columns)
	var line, below strings.Builder
	put := func(s string, width int, mark byte) {
		line.WriteString(s)
		below.WriteString(strings.Repeat(string(mark), width))
	}
	if from > 0 {
		put("…", 1, ' ')
	}
	caret := false
	for _, c := range cells[from:to] {
		mark := byte(' ')
		if c.marked {
			mark = '~'
		}
		if c.marked && !caret && c.width > 0 {
			caret = true
			put(c.text, 1, '^')
			below.WriteString(strings.Repeat("~", c.width-1))
			continue
		}
		put(c.text, c.width, mark)
	}
	if to < len(cells) {
		put("…", 1, ' ')
	}
	if !caret {
		below.WriteByte('^')
	}
	return strings.TrimRight(line.String(), " "), strings.TrimRight(below.String(), " ")
}

// window chooses which cells are shown: all, or those around the first marked one.
func window(cells []cell, first, columns int) (from, to int) {
	total := 0
	for _, c := range cells {
		total += c.width
	}
	if total <= columns {
		return 0, len(cells)
	}
	columns -= 2 // for the ellipses at both ends
	before := 0
	for i := 0; i < min(first, len(cells)); i++ {
		before += cells[i].width
	}
	for from = 0; from < first && before > columns/3; from++ {
		before -= cells[from].width
	}
	shown := 0
	for to = from; to < len(cells) && shown+cells[to].width <= columns; to++ {
		shown += cells[to].width
	}
	for from > 0 && shown+cells[from-1].width <= columns {
		from--
		shown += cells[from].width
	}
	return from, to
}

// cellsOf returns the cells of a line. Characters that a terminal would not show
// are replaced: a tab by spaces, a control character by U+FFFD.
func cellsOf(f finding.Finding) []cell {
	start := startOf(f)
	var cells []cell
	for i, r := range f.Line {
		c := cell{text: string(r), width: table.ColumnsOf(r), marked: i >= start && i < start+max(1, f.Length)}
		switch {
		case r == '\t':
			c.text, c.width = strings.Repeat(" ", tabColumns), tabColumns
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == utf8.RuneError:
			c.text, c.width = "\uFFFD", 1
		}
		cells = append(cells, c)
	}
	return cells
}

// startOf returns the byte offset of the column of a finding.
func startOf(f finding.Finding) int {
	column := 1
	for i := range f.Line {
		if column == f.Pos.Column {
			return i
		}
		column++
	}
	return len(f.Line)
}
