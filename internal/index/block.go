package index

import "math"

// maxDepth is the depth to which collections are recognised. The full parser goes deeper.
const maxDepth = 64

// mode is the state in which the scanner reads the next line.
type mode uint8

const (
	modeStructure mode = iota // a key, a list item, a comment …
	modePlain                 // may continue a plain scalar
	modeQuoted                // inside a quoted scalar
	modeBlock                 // may continue a literal or folded scalar
	modeStrange               // inside a region that is left to the full parser
	modeEnded                 // after the end of the document
)

// pending is the kind of node that the scanner expects next. If the node is missing, its value is null.
type pending uint8

const (
	pendNothing pending = iota
	pendDocument
	pendValue // after a key
	pendItem  // after a dash
)

// role is the role of a collection in an index.
type role uint8

const (
	roleOther   role = iota
	roleRoot         // the index itself
	roleEntries      // the mapping of charts
	roleList         // the list of a chart's versions
)

// A frame is a block collection that is open.
type frame struct {
	indent   int
	list     bool // else a mapping
	indented bool // a mapping whose last key has a list that is not indented
	role     role
	inTree   bool // the collection is part of an entry that is being read
	keys     keySet
}

// A scanner reads the lines of a YAML index. It marks lines of which it is not sure as strange, and reads all other lines
// exactly as the full YAML parser does.
type scanner struct {
	frames []frame
	keys   *keyStack
	mode   mode
	pend   pending
	lines  int
	at     int64 // offset of the line
	begun  bool  // the document has begun

	quote  byte // of the scalar that is open
	blanks int  // widest blank line before the first line of a block scalar
	indent int  // of the block scalar or strange region; 0 if not known yet

	field  string // top-level key, if it is apiVersion or entries
	start  int64  // of the top-level key's line
	layout layout
	record *recorder // nil while only looking for charts
	fatal  error
}

// listed is the kind of a chart's value.
type listed uint8

const (
	listedNull listed = iota
	listedItems
	listedNot // neither, so this is no chart
)

// A chart is the position of a chart in an index. An index may have a million charts.
type chart struct {
	start, end int64  // YAML: of the lines from the key on; JSON: from the end of the key on
	name       int64  // the end of the name in layout.names; see layout.name
	length     uint32 // of the name
	items      uint32
	listed     listed
	strange    bool // to be read by the full parser
}

// layout is the result of a scan.
type layout struct {
	apiVersion bool
	charts     []chart
	names      []byte // of the charts
	strange    []region
	whole      bool // the whole file is left to the full parser
	json       bool
}

// add adds a chart.
func (l *layout) add(name []byte, c chart) {
	l.names = append(l.names, name...)
	c.name, c.length = int64(len(l.names)), uint32(len(name))
	l.charts = append(l.charts, c)
}

// name returns the name of a chart.
func (l *layout) name(c *chart) []byte { return l.names[c.name-int64(c.length) : c.name] }

func newScanner() *scanner {
	return &scanner{keys: newKeyStack(), pend: pendDocument}
}

func (s *scanner) top() *frame { return &s.frames[len(s.frames)-1] }

// line reads one line without its line feed. It reports whether it needs more lines.
func (s *scanner) line(line []byte, long bool) bool {
	s.lines++
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	switch {
	case s.mode == modeStrange && !s.leaveRegion(line):
	case long || !cleanLine(line):
		s.strange(indentOf(line))
	default:
		s.read(line)
	}
	return s.fatal == nil && !s.layout.whole
}

func (s *scanner) read(line []byte) {
	col := indentOf(line)
	switch s.mode {
	case modeStructure, modeStrange:
		s.structure(line, col)
	case modePlain:
		s.continuePlain(line, col)
	case modeQuoted:
		s.continueQuoted(line)
	case modeBlock:
		s.continueBlock(line, col)
	case modeEnded:
		if col < len(line) && line[col] != '#' {
			s.giveUp()
		}
	}
}

func indentOf(line []byte) int { return skipSpaces(line, 0) }

func skipSpaces(line []byte, i int) int {
	for i < len(line) && line[i] == ' ' {
		i++
	}
	return i
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// blankAt reports whether a token ends before line[i].
func blankAt(line []byte, i int) bool { return i >= len(line) || isBlank(line[i]) }

// structure reads a line that begins with a token.
func (s *scanner) structure(line []byte, col int) {
	s.mode = modeStructure
	switch {
	case col == len(line) || line[col] == '#':
		return
	case line[col] == '\t':
		s.strange(col)
		return
	case col == 0 && s.marker(line):
		return
	}
	s.unroll(col)
	for line[col] == '-' && blankAt(line, col+1) {
		if !s.dash(col) {
			s.strange(col)
			return
		}
		next := skipSpaces(line, col+1)
		if next == len(line) || line[next] == '#' {
			return
		}
		col = next
	}
	s.node(line, col)
}

// marker handles directives and document markers, and reports whether the line is one.
func (s *scanner) marker(line []byte) bool {
	if line[0] == '%' {
		s.giveUp()
		return true
	}
	if len(line) < 3 || !blankAt(line, 3) {
		return false
	}
	rest := line[3:]
	bare := indentOf(rest) == len(rest)
	switch string(line[:3]) {
	case "---":
		if s.begun || !bare {
			s.giveUp()
		}
		s.begun = true
		return true
	case "...":
		if !s.begun || !bare {
			s.giveUp()
		}
		s.close()
		s.mode = modeEnded
		return true
	}
	return false
}

// unroll closes the collections that are indented more than the line.
func (s *scanner) unroll(col int) {
	for len(s.frames) > 0 && s.top().indent > col {
		s.null()
		s.pop()
	}
}

// close closes all collections.
func (s *scanner) close() {
	s.null()
	for len(s.frames) > 0 {
		s.pop()
	}
}

// null records a null for a pending value.
func (s *scanner) null() {
	if s.pend != pendNothing && s.inEntry() {
		s.record.scalar(kindNull, nil)
	}
	s.pend = pendNothing
}

func (s *scanner) inEntry() bool { return s.record != nil && s.record.inside }

// dash begins an item of a list.
func (s *scanner) dash(col int) bool {
	if len(s.frames) == 0 || len(s.frames) >= maxDepth {
		return false // no index is a list
	}
	top := s.top()
	switch {
	case col > top.indent:
		if s.pend == pendNothing || !s.pushList(col) {
			return false
		}
	case top.list || top.indented:
		s.null()
	case s.pend == pendValue:
		if !s.beginList(top) {
			return false
		}
		top.indented = true
	default:
		return false
	}
	s.item()
	s.pend = pendItem
	return true
}

func (s *scanner) pushList(col int) bool {
	if !s.beginList(s.top()) {
		return false
	}
	f := frame{indent: col, list: true, inTree: s.inEntry(), keys: s.keys.open()}
	if s.chartLevel() {
		f.role = roleList
	}
	s.frames = append(s.frames, f)
	return true
}

// beginList notes that the value of the innermost key, or an item, is a list.
func (s *scanner) beginList(top *frame) bool {
	switch {
	case s.inEntry():
		s.record.begin(kindList)
	case s.chartLevel():
		s.chart().listed = listedItems
	case top.role == roleRoot && s.field == fieldEntries:
		return false
	}
	return true
}

// chartLevel reports whether the next value is a chart's.
func (s *scanner) chartLevel() bool {
	top := s.top()
	return top.role == roleEntries && !top.indented
}

func (s *scanner) chart() *chart { return &s.layout.charts[len(s.layout.charts)-1] }

// item notes that an item begins, which may be an entry of a chart.
func (s *scanner) item() {
	if top := s.top(); top.role != roleList && top.role != roleEntries {
		return
	}
	s.chart().items++
	if s.record != nil {
		s.record.next()
	}
}

// pop closes the innermost collection.
func (s *scanner) pop() {
	top := s.top()
	s.endIndented(top)
	switch {
	case top.inTree:
		s.record.end()
	case top.role == roleList && s.record != nil:
		s.record.finish()
	case top.role == roleEntries:
		s.endChart()
	}
	s.keys.close(&top.keys)
	s.frames = s.frames[:len(s.frames)-1]
}

// endIndented closes the list of the last key that is not indented, if there is one.
func (s *scanner) endIndented(top *frame) {
	if !top.indented {
		return
	}
	top.indented = false
	switch {
	case top.inTree:
		s.record.end()
	case top.role == roleEntries && s.record != nil:
		s.record.finish()
	}
}

func (s *scanner) endChart() {
	if n := len(s.layout.charts); n > 0 && s.chart().end == 0 {
		s.chart().end = s.at
	}
}

const (
	fieldAPIVersion = "apiVersion"
	fieldEntries    = "entries"
)

// key begins a pair of a mapping.
func (s *scanner) key(col int, key []byte) bool {
	switch {
	case len(s.frames) == 0 && s.pend == pendDocument:
		s.push(col, roleRoot)
	case len(s.frames) == 0 || len(s.frames) >= maxDepth:
		return false
	case col > s.top().indent:
		if s.pend == pendNothing || !s.pushMapping(col) {
			return false
		}
	case s.top().list:
		return false
	}
	top := s.top()
	s.null()
	s.endIndented(top)
	if !s.keys.add(&top.keys, key) {
		s.fail(duplicateKey(string(key), s.lines))
		return true
	}
	if top.keys.count > maxKeys {
		s.fail(errTooManyKeys)
		return true
	}
	s.named(top, key)
	s.pend = pendValue
	return true
}

func (s *scanner) pushMapping(col int) bool {
	r := roleOther
	switch top := s.top(); {
	case s.inEntry():
		s.record.begin(kindMap)
	case top.role == roleRoot && s.pend == pendValue && s.field == fieldEntries:
		r = roleEntries
	case s.chartLevel():
		s.chart().listed = listedNot
	}
	s.push(col, r)
	return true
}

func (s *scanner) push(col int, r role) {
	if r == roleRoot && s.record != nil {
		r = roleEntries // a recorder is given the lines of one chart
	}
	s.begun, s.pend = true, pendNothing
	s.frames = append(s.frames, frame{indent: col, role: r, inTree: s.inEntry(), keys: s.keys.open()})
}

// named records a key if it is a field of an entry, a chart or a top-level key.
func (s *scanner) named(top *frame, key []byte) {
	switch {
	case s.inEntry():
		s.record.setKey(key)
	case top.role == roleEntries:
		s.endChart()
		s.layout.add(key, chart{start: s.at})
	case top.role == roleRoot:
		s.start, s.field = s.at, ""
		switch {
		case string(key) == fieldAPIVersion:
			s.field = fieldAPIVersion
		case string(key) == fieldEntries:
			s.field = fieldEntries
		}
	}
}

// finish ends the stream at an offset.
func (s *scanner) finish(end int64) {
	s.at = end
	if s.mode == modeQuoted {
		s.strange(math.MaxInt)
	}
	if s.mode == modeStrange {
		s.endRegion()
	}
	s.close()
}

// fail ends the scan with an error, unless a strange region makes the error uncertain.
func (s *scanner) fail(err error) {
	if len(s.layout.strange) > 0 {
		s.giveUp() // it may be text in a string of a strange region
		return
	}
	s.fatal = err
}

// giveUp leaves the whole file to the full parser.
func (s *scanner) giveUp() { s.layout.whole = true }

// trimBlanks cuts off blanks at the end.
func trimBlanks(text []byte) []byte {
	n := len(text)
	for n > 0 && isBlank(text[n-1]) {
		n--
	}
	return text[:n]
}
