package index

// A region is a part of the file that is left to the full parser: the line of a key and the lines of its value.
type region struct {
	start, end int64
	indent     int
	chart      int // index into layout.charts, or -1
}

// strange leaves the chart around a column of the line, or the top-level key, or the whole file, to the full parser.
func (s *scanner) strange(col int) {
	switch {
	case s.record != nil || len(s.frames) == 0:
		s.giveUp()
	case len(s.frames) > 1 && s.frames[1].role == roleEntries && col > s.frames[1].indent && len(s.layout.charts) > 0:
		s.chart().strange = true
		s.openRegion(2, region{start: s.chart().start, chart: len(s.layout.charts) - 1})
	case col > s.frames[0].indent && s.field == "":
		s.openRegion(1, region{start: s.start, chart: -1})
	default:
		s.giveUp()
	}
}

func (s *scanner) openRegion(depth int, r region) {
	for len(s.frames) > depth {
		s.keys.close(&s.top().keys)
		s.frames = s.frames[:len(s.frames)-1]
	}
	s.mode, s.pend, s.indent = modeStrange, pendNothing, s.top().indent
	r.indent = s.indent
	s.layout.strange = append(s.layout.strange, r)
}

// leaveRegion ends a strange region at a line outside of it, and reports whether it did. The full parser has to agree later.
func (s *scanner) leaveRegion(line []byte) bool {
	col := indentOf(line)
	if col > s.indent || col == len(line) || line[col] == '#' ||
		col == s.indent && line[col] == '-' && blankAt(line, col+1) {
		return false
	}
	s.endRegion()
	return true
}

func (s *scanner) endRegion() {
	s.layout.strange[len(s.layout.strange)-1].end = s.at
	s.top().indented = false
	s.mode = modeStructure
}
