package report

import (
	"io"
	"strings"
)

// MarkdownTable writes a table for an issue, a pull request or a wiki. What the cells hold is shown as text.
func MarkdownTable(w io.Writer, header []string, rows [][]string) error {
	var b strings.Builder
	b.WriteString("| " + strings.Join(header, " | ") + " |\n|" + strings.Repeat(" --- |", len(header)) + "\n")
	for _, row := range rows {
		for _, cell := range row {
			b.WriteString("| " + escapeMarkdown(cell) + " ")
		}
		b.WriteString("|\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
