// Package diff compares texts line by line.
package diff

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxEdits is the number of differing lines from which on all of them count as replaced: the comparison takes as many
	// steps as its square.
	maxEdits = 1500
	// context is the number of equal lines around a change.
	context = 3
)

// Unified returns the unified diff of two texts for git apply and patch, "" if they are equal. It writes the text that show
// returns for each line. Show gets the number of the line in the old text, from 1; a new line has the number of the line that
// it replaces, or of the line before it. An unchanged line is omitted if show returns "". A nil show changes no line.
func Unified(from, to string, old, now []byte, show func(line int, text string, edited bool) string) string {
	if bytes.Equal(old, now) {
		return ""
	}
	list := edits(slices.Collect(strings.Lines(string(old))), slices.Collect(strings.Lines(string(now))))
	for i, line, replaced := 0, 0, 0; i < len(list) && show != nil; i++ {
		number := line - max(0, replaced-1)
		switch list[i].op {
		case '-':
			line, replaced = line+1, replaced+1
			number = line
		case '+':
			replaced--
		default:
			line, replaced = line+1, 0
			number = line
		}
		list[i].line = show(number, list[i].line, list[i].op != ' ')
	}
	shown := shownOf(list)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", from, to)
	oldLine, newLine := 1, 1
	for i := 0; i < len(list); {
		j, olds, news := i, 0, 0
		for ; j < len(list) && shown[j] == shown[i]; j++ {
			if list[j].op != '+' {
				olds++
			}
			if list[j].op != '-' {
				news++
			}
		}
		if shown[i] {
			fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(oldLine, olds), span(newLine, news))
			for _, e := range list[i:j] {
				out.WriteByte(e.op)
				out.WriteString(e.line)
				if !strings.HasSuffix(e.line, "\n") {
					out.WriteString("\n\\ No newline at end of file\n")
				}
			}
		}
		oldLine, newLine, i = oldLine+olds, newLine+news, j
	}
	return out.String()
}

// edit is a line that is kept (' '), removed ('-') or added ('+').
type edit struct {
	op   byte
	line string
}

// shownOf marks the changed lines, and the lines around them up to an omitted line.
func shownOf(list []edit) []bool {
	shown := make([]bool, len(list))
	for i := range list {
		if list[i].op == ' ' {
			continue
		}
		shown[i] = true
		for j := i - 1; j >= max(0, i-context) && list[j].op == ' ' && list[j].line != ""; j-- {
			shown[j] = true
		}
		for j := i + 1; j <= min(len(list)-1, i+context) && list[j].op == ' ' && list[j].line != ""; j++ {
			shown[j] = true
		}
	}
	return shown
}

// edits returns the steps from a to b, as few as possible.
func edits(a, b []string) []edit {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var list []edit
	for _, line := range a[:start] {
		list = append(list, edit{' ', line})
	}
	a, b, rest := a[start:len(a)-end], b[start:len(b)-end], a[len(a)-end:]
	middle := shortest(a, b)
	if len(a) == len(b) {
		if lined := byLine(a, b); len(lined) <= len(middle) {
			middle = lined
		}
	}
	list = append(list, middle...)
	for _, line := range rest {
		list = append(list, edit{' ', line})
	}
	return list
}

// shortest implements the algorithm of Myers: it computes the furthest points that a growing number of edits can reach.
func shortest(a, b []string) []edit {
	most := min(len(a)+len(b), maxEdits)
	reached := make([]int, 2*most+3)
	at := func(k int) *int { return &reached[k+most+1] }
	var trace [][]int
	for d := 0; d <= most; d++ {
		trace = append(trace, slices.Clone(reached[most+1-d:most+2+d]))
		for k := -d; k <= d; k += 2 {
			x := 0
			if k == -d || k != d && *at(k - 1) < *at(k + 1) {
				x = *at(k + 1)
			} else {
				x = *at(k - 1) + 1
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			*at(k) = x
			if x >= len(a) && x-k >= len(b) {
				return back(a, b, trace, d)
			}
		}
	}
	return replaced(a, b)
}

// back follows the trace from the end to the beginning. trace[d] holds the points reached with fewer than d edits, for the
// diagonals from -d to d.
func back(a, b []string, trace [][]int, d int) []edit {
	var list []edit
	x, y := len(a), len(b)
	for ; d > 0; d-- {
		before := func(k int) int {
			if i := k + d; i >= 0 && i < len(trace[d]) {
				return trace[d][i]
			}
			return 0
		}
		k := x - y
		from := k - 1
		if k == -d || k != d && before(k-1) < before(k+1) {
			from = k + 1
		}
		px := before(from)
		py := px - from
		for x > px && y > py {
			x, y = x-1, y-1
			list = append(list, edit{' ', a[x]})
		}
		if x == px {
			y--
			list = append(list, edit{'+', b[y]})
		} else {
			x--
			list = append(list, edit{'-', a[x]})
		}
	}
	for x > 0 && y > 0 {
		x, y = x-1, y-1
		list = append(list, edit{' ', a[x]})
	}
	slices.Reverse(list)
	return list
}

// byLine compares texts with equally many lines one by one, which is the result of replacing scalars in a file.
func byLine(a, b []string) []edit {
	var list []edit
	for i := 0; i < len(a); {
		end := i
		for end < len(a) && a[end] != b[end] {
			end++
		}
		list = append(list, replaced(a[i:end], b[i:end])...)
		for i = end; i < len(a) && a[i] == b[i]; i++ {
			list = append(list, edit{' ', a[i]})
		}
	}
	return list
}

func replaced(a, b []string) []edit {
	var list []edit
	for _, line := range a {
		list = append(list, edit{'-', line})
	}
	for _, line := range b {
		list = append(list, edit{'+', line})
	}
	return list
}

func span(from, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", from-1)
	case 1:
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d,%d", from, count)
}
