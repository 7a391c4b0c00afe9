package index

import "bytes"

// header reads the first line of a literal or folded scalar, whose indicator is at i.
func (s *scanner) header(line []byte, i int) {
	j := i + 1
	s.indent = 0
	for chomped := false; j < len(line); j++ {
		if c := line[j]; !chomped && (c == '+' || c == '-') {
			chomped = true
		} else if c >= '1' && c <= '9' && s.indent == 0 {
			s.indent = s.top().indent + int(c-'0')
		} else {
			break
		}
	}
	if !endsLine(line, j) || !s.scalar(quotedKind, nil) || !s.continued(0) {
		s.strange(i)
		return
	}
	s.mode, s.blanks = modeBlock, 0
}

// continueBlock reads a line that belongs to a literal or folded scalar, or comes after it.
func (s *scanner) continueBlock(line []byte, col int) {
	if col == len(line) {
		s.blanks = max(s.blanks, col)
		return
	}
	if s.indent == 0 {
		if line[col] == '\t' {
			s.strange(col)
			return
		}
		s.indent = max(col, s.blanks, s.top().indent+1)
	}
	switch {
	case col >= s.indent:
		s.continued(len(line))
	case line[col] == '\t':
		s.strange(col)
	default:
		s.structure(line, col)
	}
}

// flow reads an empty list or mapping in flow style, or a short list of simple scalars. It returns false for other values.
func (s *scanner) flow(line []byte, i int) bool {
	opening, k := line[i], kindMap
	if opening == '[' {
		k = kindList
	}
	items, end, ok := flowItems(line, i+1, opening)
	top := s.top()
	switch {
	case !ok || !endsLine(line, end):
		return false
	case s.inEntry():
		s.record.flow(k, items)
	case s.chartLevel() && len(items) > 0:
		return false
	case s.chartLevel() && k == kindList:
		s.chart().listed = listedItems
	case s.chartLevel():
		s.chart().listed = listedNot
	case top.role == roleRoot && s.field == fieldEntries:
		if k == kindList {
			return false
		}
	}
	s.pend = pendNothing
	return true
}

// maxFlow is the number of items up to which a list in flow style is recognised.
const maxFlow = 16

// flowItems returns the items inside the brackets as written, quotes included, and the position after the closing bracket.
func flowItems(line []byte, i int, opening byte) (items [][]byte, end int, ok bool) {
	i = skipSpaces(line, i)
	if i < len(line) && line[i] == opening+2 { // "[" and "]", "{" and "}" are two apart
		return nil, i + 1, true
	}
	if opening == '{' {
		return nil, 0, false
	}
	for len(items) < maxFlow {
		to := flowItem(line, i)
		if to < 0 {
			return nil, 0, false
		}
		items = append(items, line[i:to])
		i = skipSpaces(line, to)
		if i == len(line) || line[i] != ',' && line[i] != ']' {
			return nil, 0, false
		}
		i++
		if line[i-1] == ']' {
			return items, i, true
		}
		i = skipSpaces(line, i)
	}
	return nil, 0, false
}

// flowItem returns the end of the simple scalar at i, or a negative number if the scalar is not simple.
func flowItem(line []byte, i int) int {
	if i == len(line) {
		return -1
	}
	if c := line[i]; c == '"' || c == '\'' {
		closing := closeQuote(line, i+1, c)
		if closing < 0 || bytes.ContainsAny(line[i+1:closing], `\'"`) {
			return -1
		}
		return closing + 1
	}
	if !isWord(line[i]) {
		return -1
	}
	last := i + 1
	for j := i + 1; j < len(line); j++ {
		switch c := line[j]; {
		case isWord(c), c == '.', c == '-', c == '_', c == '/', c == '+':
			last = j + 1
		case c == ':' && j+1 < len(line) && (isWord(line[j+1]) || line[j+1] == '/'):
		case c == ' ':
		case c == ',' || c == ']':
			return last
		default:
			return -1
		}
	}
	return -1
}
