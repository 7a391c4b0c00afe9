package console

import (
	"strconv"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/table"
)

// vt is a terminal that understands only the escape sequences of this program. Like most terminals it wraps long
// lines, and wraps them again when it gets another width.
type vt struct {
	t             *testing.T
	width, height int
	rows          []vtRow // all rows so far; the last ones are on the screen
	top           int     // the first row on the screen
	row, col      int
	hidden        bool // the cursor
	rest          string
	writes, bytes int
}

// vtRow is one line of the screen. The second half of a wide character is an empty string.
type vtRow struct {
	cells   []string
	wrapped bool // continues in the next row
}

func newVT(t *testing.T, width, height int) *vt {
	return &vt{t: t, width: width, height: height, rows: make([]vtRow, 1)}
}

func (v *vt) size() (int, int, bool) { return v.width, v.height, true }

func (v *vt) Write(b []byte) (int, error) {
	v.writes++
	v.bytes += len(b)
	text := v.rest + string(b)
	v.rest = ""
	for text != "" {
		if strings.HasPrefix(text, "\x1b") {
			end := strings.IndexFunc(text[1:], func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' })
			if end < 0 { // cut in two by a pipe
				v.rest = text
				break
			}
			v.escape(text[:end+2])
			text = text[end+2:]
			continue
		}
		for _, r := range text {
			v.put(r)
			text = text[len(string(r)):]
			break
		}
	}
	return len(b), nil
}

func (v *vt) escape(sequence string) {
	switch sequence {
	case "\x1b[K":
		row := &v.rows[v.row]
		row.cells, row.wrapped = row.cells[:min(v.col, len(row.cells))], false
	case "\x1b[J":
		v.escape("\x1b[K")
		v.rows = v.rows[:v.row+1]
	case "\x1b[?25l", "\x1b[?25h":
		hide := strings.HasSuffix(sequence, "l")
		if hide == v.hidden {
			v.t.Errorf("%q twice", sequence)
		}
		v.hidden = hide
	default:
		argument := strings.TrimPrefix(sequence[:len(sequence)-1], "\x1b[")
		switch n, err := strconv.Atoi(argument); {
		case strings.HasSuffix(sequence, "A") && err == nil && n > 0:
			v.row = max(v.row-n, v.top)
		case strings.HasSuffix(sequence, "m"): // colours are not looked at
		default:
			v.t.Fatalf("unknown sequence %q", sequence)
		}
	}
}

func (v *vt) put(r rune) {
	switch {
	case r == '\r':
		v.col = 0
	case r == '\n':
		v.down()
		v.col = 0
	case r < ' ' || r >= 0x7f && r < 0xa0:
		v.t.Fatalf("control character %q", r)
	default:
		n := table.ColumnsOf(r)
		if v.col+n > v.width {
			v.rows[v.row].wrapped = true
			v.down()
			v.col = 0
		}
		row := &v.rows[v.row]
		for len(row.cells) < v.col+n {
			row.cells = append(row.cells, " ")
		}
		for i := range n {
			row.cells[v.col+i] = ""
		}
		if n > 0 {
			row.cells[v.col] = string(r)
		}
		v.col += n
	}
}

func (v *vt) down() {
	if v.row++; v.row == len(v.rows) {
		v.rows = append(v.rows, vtRow{})
	}
	v.top = max(v.top, len(v.rows)-v.height)
}

// resize wraps all lines again.
func (v *vt) resize(width, height int) {
	old := v.rows
	v.rows, v.width, v.height = nil, width, height
	var line []string
	for i, row := range old {
		line = append(line, row.cells...)
		if row.wrapped {
			continue
		}
		for len(line) > width {
			v.rows = append(v.rows, vtRow{line[:width:width], true})
			line = line[width:]
		}
		v.rows = append(v.rows, vtRow{cells: line})
		line = nil
		if i == v.row {
			v.row = len(v.rows) - 1
		}
	}
	v.top = max(0, len(v.rows)-height)
}

// text returns the shown text from a row on.
func (v *vt) text(from int) string {
	var b strings.Builder
	for _, row := range v.rows[from:] {
		line := strings.Join(row.cells, "")
		if !row.wrapped {
			line = strings.TrimRight(line, " ") + "\n"
		}
		b.WriteString(line)
	}
	return strings.TrimRight(b.String(), "\n")
}

func (v *vt) screen() string     { return v.text(v.top) }
func (v *vt) everything() string { return v.text(0) }
