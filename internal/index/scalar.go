package index

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// maxKey is the longest key that is recognised; YAML itself allows 1024 characters.
const maxKey = 1000

// node reads the key or the scalar at a column.
func (s *scanner) node(line []byte, col int) {
	key, after, found := findKey(line, col)
	switch {
	case !found:
		if s.pend == pendNothing || len(s.frames) == 0 || col <= s.top().indent {
			s.strange(col)
			return
		}
		if after > 0 {
			s.plainTo(line, col, after)
			return
		}
		s.value(line, col)
		return
	case key == nil || !s.key(col, key):
		s.strange(col)
		return
	}
	next := skipSpaces(line, after)
	if next < len(line) && line[next] != '#' {
		s.value(line, next)
	}
}

// findKey looks for a key at a column, and returns the position after its colon. A key that is found but not recognised
// is nil. If there is a plain scalar instead, after is its end.
func findKey(line []byte, col int) (key []byte, after int, found bool) {
	end := 0
	switch c := line[col]; c {
	case '"', '\'':
		closing := closeQuote(line, col+1, c)
		if closing < 0 {
			return nil, 0, false
		}
		colon := closing + 1
		for colon < len(line) && isBlank(line[colon]) {
			colon++
		}
		if colon == len(line) || line[colon] != ':' || !blankAt(line, colon+1) {
			return nil, 0, false
		}
		key, end = line[col+1:closing], colon
		if bytes.IndexByte(key, '\\') >= 0 && c == '"' || bytes.IndexByte(key, '\'') >= 0 && c == '\'' {
			return nil, 0, true
		}
		if key == nil {
			key = []byte{}
		}
	case '[', '{', '|', '>':
		return nil, 0, false
	default:
		if !startsPlain(line, col) {
			return nil, 0, true
		}
		colon, isKey := plainEnd(line, col)
		if !isKey {
			return nil, colon, false
		}
		key, end = trimBlanks(line[col:colon]), colon
		if string(key) == "<<" {
			return nil, 0, true
		}
	}
	if end-col > maxKey {
		return nil, 0, true
	}
	return key, end + 1, true
}

// startsPlain reports whether a plain scalar begins at i with an ordinary character.
func startsPlain(line []byte, i int) bool {
	switch line[i] {
	case '-':
		return !blankAt(line, i+1)
	case '?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', ' ', '\t':
		return false
	}
	return true
}

// plainEnd returns the position of the colon or the comment that ends the plain scalar at i, or the end of the line.
func plainEnd(line []byte, i int) (end int, colon bool) {
	for j := i; ; j++ {
		k := bytes.IndexByte(line[j:], ':')
		if k < 0 {
			return commentStart(line, i), false
		}
		j += k
		if blankAt(line, j+1) {
			if end = commentStart(line[:j], i); end < j {
				return end, false
			}
			return j, true
		}
	}
}

// commentStart returns the position of the comment that begins after i, or the end of the line.
func commentStart(line []byte, i int) int {
	for j := i; ; j++ {
		k := bytes.IndexByte(line[j:], '#')
		if k < 0 {
			return len(line)
		}
		j += k
		if j > 0 && isBlank(line[j-1]) {
			return j
		}
	}
}

// value reads the scalar, or the list or mapping in flow style, that begins on this line.
func (s *scanner) value(line []byte, i int) {
	switch c := line[i]; {
	case c == '"' || c == '\'':
		s.quoted(line, i)
	case c == '|' || c == '>':
		s.header(line, i)
	case c == '[' || c == '{':
		if !s.flow(line, i) {
			s.strange(i)
		}
	case startsPlain(line, i):
		s.plain(line, i)
	default:
		s.strange(i)
	}
}

func (s *scanner) plain(line []byte, i int) {
	end, colon := plainEnd(line, i)
	if colon {
		s.strange(i)
		return
	}
	s.plainTo(line, i, end)
}

func (s *scanner) plainTo(line []byte, i, end int) {
	text := trimBlanks(line[i:end])
	if !s.scalar(plainKind, text) {
		s.strange(i)
		return
	}
	if s.mode = modePlain; end < len(line) {
		s.mode = modeStructure // a comment ends it
	}
}

// continuePlain reads a line after one with a plain scalar.
func (s *scanner) continuePlain(line []byte, col int) {
	switch {
	case col == len(line):
		return
	case line[col] == '\t':
		s.strange(col)
		return
	case line[col] == '#' || col <= s.top().indent:
		s.structure(line, col)
		return
	}
	end, colon := plainEnd(line, col)
	if colon || !s.continued(len(line)) {
		s.strange(col)
		return
	}
	if end < len(line) {
		s.mode = modeStructure
	}
}

// scalar records a scalar. It returns false for a scalar other than null as the value of entries.
func (s *scanner) scalar(kindOf func([]byte) kind, text []byte) bool {
	s.pend = pendNothing
	top := s.top()
	switch {
	case s.inEntry():
		s.record.scalar(kindOf(text), text)
	case s.chartLevel():
		if kindOf(text) != kindNull {
			s.chart().listed = listedNot
		}
	case top.role == roleRoot && s.field == fieldAPIVersion && !top.indented:
		s.layout.apiVersion = kindOf(text) == kindString && len(text) > 0
	case top.role == roleRoot && s.field == fieldEntries:
		return kindOf(text) == kindNull
	}
	return true
}

func quotedKind([]byte) kind { return kindString }

// continued records that the last scalar has another line, of size bytes. It returns false for apiVersion and entries.
func (s *scanner) continued(size int) bool {
	top := s.top()
	switch {
	case s.inEntry():
		s.record.roughen(size)
	case s.chartLevel():
		s.chart().listed = listedNot
	case top.role == roleRoot && s.field != "":
		return false
	}
	return true
}

// closeQuote returns the position of the quote that ends a scalar, from i on. It returns notClosed if the quote is not on
// this line, and badEscape for an invalid escape.
func closeQuote(line []byte, i int, quote byte) int {
	if quote == '\'' {
		return closeSingle(line, i)
	}
	for {
		k := bytes.IndexByte(line[i:], '"')
		if k < 0 {
			k = len(line) - i
		}
		escape := bytes.IndexByte(line[i:i+k], '\\')
		if escape < 0 {
			if i+k == len(line) {
				return notClosed
			}
			return i + k
		}
		n := escapeLen(line[i+escape:])
		if n == 0 {
			return badEscape
		}
		i += escape + n
	}
}

const (
	notClosed = -1
	badEscape = -2
)

func closeSingle(line []byte, i int) int {
	for {
		k := bytes.IndexByte(line[i:], '\'')
		if k < 0 {
			return notClosed
		}
		i += k
		if i+1 == len(line) || line[i+1] != '\'' {
			return i
		}
		i += 2
	}
}

// escapeLen returns the length of the escape sequence at the beginning of text, 0 if text begins otherwise.
func escapeLen(text []byte) int {
	if len(text) == 1 {
		return 1 // the line goes on in the next one
	}
	digits := 0
	switch text[1] {
	case '0', 'a', 'b', 't', '\t', 'n', 'v', 'f', 'r', 'e', ' ', '"', '\'', '\\', 'N', '_', 'L', 'P':
		return 2
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	}
	if digits == 0 || len(text) < 2+digits {
		return 0
	}
	value, err := strconv.ParseUint(string(text[2:2+digits]), 16, 32)
	if err != nil || value > utf8.MaxRune || !utf8.ValidRune(rune(value)) {
		return 0
	}
	return 2 + digits
}

// quoted reads the scalar that begins with the quote at i.
func (s *scanner) quoted(line []byte, i int) {
	s.quote = line[i]
	closing := closeQuote(line, i+1, s.quote)
	if closing == badEscape || closing >= 0 && !endsLine(line, closing+1) {
		s.strange(i)
		return
	}
	text := line[i+1:]
	if closing >= 0 {
		text = line[i+1 : closing]
	}
	if !s.scalar(quotedKind, text) {
		s.strange(i)
		return
	}
	special := byte('\\')
	if s.quote == '\'' {
		special = '\''
	}
	if closing < 0 {
		s.mode = modeQuoted
	}
	if (closing < 0 || bytes.IndexByte(text, special) >= 0) && !s.continued(0) {
		s.strange(i)
	}
}

// endsLine reports whether only a comment, or no text, comes after a value.
func endsLine(line []byte, i int) bool {
	rest := line[i:]
	n := indentOf(rest)
	return n == len(rest) || n > 0 && rest[n] == '#'
}

func (s *scanner) continueQuoted(line []byte) {
	closing := closeQuote(line, 0, s.quote)
	marker := len(line) >= 3 && blankAt(line, 3) && (string(line[:3]) == "---" || string(line[:3]) == "...")
	switch {
	case marker || closing == badEscape || closing >= 0 && !endsLine(line, closing+1) || !s.continued(len(line)):
		s.strange(indentOf(line))
	case closing >= 0:
		s.mode = modeStructure
	}
}
