package rewrite

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// around is how many unchanged lines stand around a change.
const around = 3

// Diff describes the way from one text of a file to another as `git apply` and `patch -p1` take it, byte for byte. It is
// empty if they are equal. Lines of the old text that hidden is true of, counted from 1, are not shown unless they change.
func Diff(name string, before, after []byte, hidden func(line int) bool) []byte {
	if bytes.Equal(before, after) {
		return nil
	}
	name = strings.TrimPrefix(filepath.ToSlash(name), "/")
	var out bytes.Buffer
	fmt.Fprintf(&out, "--- a/%s\n+++ b/%s\n", name, name)
	steps := compare(lines(before), lines(after))
	line := 0
	for i := range steps {
		line += one(steps[i].op != '+')
		steps[i].line = line
	}
	for at := 0; at < len(steps); {
		from, to := hunk(steps, at, hidden)
		if from == to {
			break
		}
		writeHunk(&out, steps, from, to)
		at = to
	}
	return out.Bytes()
}

// step is a line that stays, goes or comes.
type step struct {
	op   byte // ' ', '-' or '+'
	text []byte
	line int // in the old text, counted from 1
}

func lines(data []byte) [][]byte { return bytes.SplitAfter(data, []byte("\n")) }

// maxTable bounds the work for the lines between the first and the last that differ. What is larger is replaced as a whole.
const maxTable = 4_000_000

// compare finds out which lines stay.
func compare(a, b [][]byte) []step {
	var steps []step
	start := 0
	for start < len(a) && start < len(b) && bytes.Equal(a[start], b[start]) {
		steps = append(steps, step{op: ' ', text: a[start]})
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && bytes.Equal(a[endA-1], b[endB-1]) {
		endA, endB = endA-1, endB-1
	}
	steps = append(steps, middle(a[start:endA], b[start:endB])...)
	for _, line := range a[endA:] {
		steps = append(steps, step{op: ' ', text: line})
	}
	return steps
}

func byLine(a, b [][]byte) []step {
	var steps []step
	for i := 0; i < len(a); {
		if bytes.Equal(a[i], b[i]) {
			steps = append(steps, step{op: ' ', text: a[i]})
			i++
			continue
		}
		end := i
		for end < len(a) && !bytes.Equal(a[end], b[end]) {
			end++
		}
		steps = append(steps, replaced(a[i:end], b[i:end])...)
		i = end
	}
	return steps
}

func replaced(a, b [][]byte) []step {
	var steps []step
	for _, line := range a {
		steps = append(steps, step{op: '-', text: line})
	}
	for _, line := range b {
		steps = append(steps, step{op: '+', text: line})
	}
	return steps
}

// middle finds a longest common sequence of lines. Long texts of equally many lines are compared line by line: that is what
// replacing scalars makes of a file.
func middle(a, b [][]byte) []step {
	if (len(a)+1)*(len(b)+1) > maxTable {
		if len(a) == len(b) {
			return byLine(a, b)
		}
		return replaced(a, b)
	}
	table := make([][]int32, len(a)+1)
	for i := range table {
		table[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if bytes.Equal(a[i], b[j]) {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	var steps []step
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && bytes.Equal(a[i], b[j]):
			steps = append(steps, step{op: ' ', text: a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && table[i+1][j] >= table[i][j+1]:
			steps = append(steps, step{op: '-', text: a[i]})
			i++
		default:
			steps = append(steps, step{op: '+', text: b[j]})
			j++
		}
	}
	return steps
}

// hunk is where the next changes are, with the lines around them.
func hunk(steps []step, at int, hidden func(line int) bool) (from, to int) {
	from = at
	for from < len(steps) && steps[from].op == ' ' {
		from++
	}
	if from == len(steps) {
		return 0, 0
	}
	shown := func(i int) bool { return steps[i].op != ' ' || !hidden(steps[i].line) }
	to = from
	for i := from; i < len(steps) && i <= to+2*around && shown(i); i++ {
		if steps[i].op != ' ' {
			to = i
		}
	}
	to++
	for range around {
		if from > at && shown(from-1) {
			from--
		}
		if to < len(steps) && shown(to) {
			to++
		}
	}
	return from, to
}

func writeHunk(out *bytes.Buffer, steps []step, from, to int) {
	oldLine, newLine := 1, 1
	for _, s := range steps[:from] {
		oldLine, newLine = oldLine+one(s.op != '+'), newLine+one(s.op != '-')
	}
	oldCount, newCount := 0, 0
	for _, s := range steps[from:to] {
		if len(s.text) > 0 {
			oldCount, newCount = oldCount+one(s.op != '+'), newCount+one(s.op != '-')
		}
	}
	fmt.Fprintf(out, "@@ -%d,%d +%d,%d @@\n", oldLine-one(oldCount == 0), oldCount, newLine-one(newCount == 0), newCount)
	for _, s := range steps[from:to] {
		if len(s.text) == 0 {
			continue // what follows the last line break
		}
		out.WriteByte(s.op)
		out.Write(s.text)
		if s.text[len(s.text)-1] != '\n' {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
