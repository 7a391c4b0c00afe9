package plan

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxDiff bounds all diffs of one release, in bytes.
	maxDiff = 256 << 10
	// maxLines bounds the lines of a text that is compared line by line.
	maxLines = 50_000
	// maxEdits bounds how many lines may differ before all of them count as replaced: comparing takes as many steps as
	// its square.
	maxEdits = 1500
	// context is how many equal lines are shown around a change.
	context = 3
)

// Diff is a unified diff of what has a name.
type Diff struct {
	// Of is values, chart or manifests.
	Of string `json:"of"`
	// Text has the files one after the other.
	Text string `json:"text"`
}

// Files compares two sets of files, sorted by name, in at most maxDiff bytes. It returns "" if nothing differs.
func Files(before, after map[string][]byte) string {
	names := maps.Clone(before)
	if names == nil {
		names = map[string][]byte{}
	}
	maps.Copy(names, after)
	var b strings.Builder
	left := 0
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, was := before[name]
		now, is := after[name]
		if was && is && bytes.Equal(old, now) {
			continue
		}
		text := file(name, old, now, was, is)
		if b.Len()+len(text) > maxDiff {
			left++
			continue
		}
		b.WriteString(text)
	}
	if left > 0 {
		fmt.Fprintf(&b, "%d more files differ\n", left)
	}
	return b.String()
}

func file(name string, old, now []byte, was, is bool) string {
	from, to := "a/"+name, "b/"+name
	if !was {
		from = "/dev/null"
	}
	if !is {
		to = "/dev/null"
	}
	if !isText(old) || !isText(now) {
		return fmt.Sprintf("Binary files %s and %s differ\n", from, to)
	}
	return Unified(from, to, old, now)
}

func isText(data []byte) bool {
	return !bytes.ContainsRune(data, 0) && utf8.Valid(data)
}

// Unified is the unified diff of two texts, "" if they are equal.
func Unified(from, to string, old, now []byte) string {
	if bytes.Equal(old, now) {
		return ""
	}
	a, b := lines(old), lines(now)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", from, to)
	if len(a) > maxLines || len(b) > maxLines {
		fmt.Fprintf(&out, "@@ too long to be compared: %d and %d lines @@\n", len(a), len(b))
		return out.String()
	}
	hunks(&out, edits(a, b))
	return out.String()
}

func lines(text []byte) []string {
	var list []string
	for line := range strings.Lines(string(text)) {
		list = append(list, line)
	}
	return list
}

// edit is a line that stays (' '), goes ('-') or comes ('+').
type edit struct {
	op   byte
	line string
}

// edits are the steps from a to b, as few as there can be.
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
	list = append(list, shortest(a[start:len(a)-end], b[start:len(b)-end])...)
	for _, line := range a[len(a)-end:] {
		list = append(list, edit{' ', line})
	}
	return list
}

// shortest is the algorithm of Myers: the furthest points that can be reached with more and more edits.
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

// back follows the trace from the end to the beginning. trace[d] has what was reached with fewer than d edits, for the
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

func hunks(out *strings.Builder, list []edit) {
	oldLine, newLine := 1, 1
	for i := 0; i < len(list); {
		if list[i].op == ' ' && !near(list, i) {
			oldLine, newLine, i = oldLine+1, newLine+1, i+1
			continue
		}
		j := i
		olds, news := 0, 0
		for ; j < len(list) && (list[j].op != ' ' || near(list, j)); j++ {
			if list[j].op != '+' {
				olds++
			}
			if list[j].op != '-' {
				news++
			}
		}
		fmt.Fprintf(out, "@@ -%s +%s @@\n", span(oldLine, olds), span(newLine, news))
		for _, e := range list[i:j] {
			out.WriteByte(e.op)
			out.WriteString(e.line)
			if !strings.HasSuffix(e.line, "\n") {
				out.WriteString("\n\\ No newline at end of file\n")
			}
		}
		oldLine, newLine, i = oldLine+olds, newLine+news, j
	}
}

// near reports whether a line is close to one that changes.
func near(list []edit, i int) bool {
	for j := max(0, i-context); j <= min(len(list)-1, i+context); j++ {
		if list[j].op != ' ' {
			return true
		}
	}
	return false
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
