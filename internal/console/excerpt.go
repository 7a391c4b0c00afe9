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
	// tabColumns is what a tab is shown as. YAML has none in its indentation.
	tabColumns = 4
	// plainColumns is the width that is written where there is no terminal.
	plainColumns = 120
	// minColumns leaves something to see of a line in the narrowest terminal.
	minColumns = 20
)

// excerpt shows the line of a finding with what is wrong underlined, as compilers
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

// columns is the width that lines may have.
func (c *Console) columns() int {
	if c.options.Terminal != nil {
		if width, _, ok := c.options.Terminal(); ok {
			return width
		}
	}
	return plainColumns
}

// cell is a character as it is shown.
type cell struct {
	text   string
	width  int
	marked bool
}

// cutOut is the line of a finding in at most so many columns, and what stands
// below it.
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
	columns -= 2 // for the signs that something is missing
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

// cellsOf makes characters of a line that a terminal would not show as they are
// into ones that it does.
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

// startOf is the byte at which the column of a finding begins.
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
