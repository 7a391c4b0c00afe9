package index

import "bytes"

// quick reads the lines that most lines are, once the innermost collection is the one that they belong to: a pair of a
// simple key and a plain scalar, a quoted one or nothing, and a list item that is such a scalar, none with any meaning for
// an index. It takes no line that needs more thought than that, so what it does is what node and dash would do.
func (s *scanner) quick(line []byte, col int) bool {
	if s.record != nil || len(s.frames) == 0 {
		return false
	}
	top := s.top()
	if col != top.indent || top.role != roleOther {
		return false
	}
	if line[col] == '-' {
		return (top.list || top.indented) && s.quickValue(line, col+1)
	}
	end := simpleKey(line, col)
	if end == 0 || top.list || s.keys.count(&top.keys) >= maxKeys {
		return false
	}
	pend, mode := s.pend, s.mode
	if end+1 == len(line) {
		s.pend, s.mode = pendValue, modeStructure
	} else if !s.quickValue(line, end+1) {
		return false
	}
	if !s.keys.add(&top.keys, line[col:end]) {
		s.pend, s.mode = pend, mode
		return false
	}
	top.indented = false
	return true
}

// quickValue reads a space and a scalar, if they are the rest of the line.
func (s *scanner) quickValue(line []byte, i int) bool {
	if i+1 >= len(line) || line[i] != ' ' {
		return false
	}
	next := modePlain
	if line[i+1] == '"' {
		next = modeStructure
		text := line[i+2:]
		if n := bytes.IndexByte(text, '"'); n < 0 || n+1 != len(text) || bytes.IndexByte(text, '\\') >= 0 {
			return false
		}
	} else if end, colon := plainEnd(line, i+1); !isWord(line[i+1]) || colon || end != len(line) {
		return false
	}
	s.pend, s.mode = pendNothing, next
	return true
}
