package console

import (
	"strings"
	"testing"
	"unicode"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/table"
)

func TestCutOut(t *testing.T) {
	tests := []struct {
		name, line     string
		column, length int
		columns        int
		text, marks    string
	}{
		{"a word", "  chart: x", 3, 8, 80, "  chart: x", "  ^~~~~~~~"},
		{"unknown length", "a: b", 1, 0, 80, "a: b", "^"},
		{"tabs", "a:\tb", 4, 1, 80, "a:    b", "      ^"},
		{"a marked tab", "a\tb", 1, 3, 80, "a    b", "^~~~~~"},
		{"wide", "図: 表 x", 4, 3, 80, "図: 表 x", "    ^~"},
		{"wide and unmarked", "図: 表 x", 6, 1, 80, "図: 表 x", "       ^"},
		{"combining", "e\u0301x", 3, 1, 80, "e\u0301x", " ^"},
		{"behind the end", "ab", 9, 3, 80, "ab", "  ^"},
		{"longer than the line", "ab", 2, 100, 80, "ab", " ^"},
		{"cut behind", strings.Repeat("a", 50), 1, 3, 20, strings.Repeat("a", 18) + "…", "^~~"},
		{"cut before", strings.Repeat("a", 50), 49, 2, 20, "…" + strings.Repeat("a", 18), strings.Repeat(" ", 17) + "^~"},
		{"cut twice", strings.Repeat("a", 50), 26, 2, 20, "…" + strings.Repeat("a", 18) + "…", "       ^~"},
		{"controls", "a\x1b[31mb\u202Ec", 1, 1, 80, "a\uFFFD[31mb\uFFFDc", "^"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := finding.Finding{Line: tt.line, Length: tt.length, Pos: manifest.Pos{File: "f", Line: 1, Column: tt.column}}
			text, marks := cutOut(f, tt.columns)
			if text != tt.text || marks != tt.marks {
				t.Errorf("got\n%q\n%q, want\n%q\n%q", text, marks, tt.text, tt.marks)
			}
		})
	}
}

// FuzzCutOut checks that no line is too long for the terminal, controls it, or lacks its mark.
func FuzzCutOut(f *testing.F) {
	f.Add("spec: {url: \"http://example.org\"}\t図", 7, 10, 40)
	f.Add("", 0, 0, 20)
	f.Add("\xff\x1b[2J", 2, -1, 20)
	f.Fuzz(func(t *testing.T, line string, column, length, columns int) {
		if columns < minColumns || columns > 1000 || len(line) > 1<<16 {
			return
		}
		text, marks := cutOut(finding.Finding{Line: line, Length: length, Pos: manifest.Pos{Line: 1, Column: column}}, columns)
		if strings.Count(marks, "^") != 1 || strings.Trim(marks, " ^~") != "" {
			t.Errorf("marks %q", marks)
		}
		width := 0
		for _, r := range text {
			width += table.ColumnsOf(r)
			if unicode.IsControl(r) {
				t.Errorf("control character in %q", text)
			}
		}
		if width > columns {
			t.Errorf("%d columns in %d: %q", width, columns, text)
		}
	})
}
