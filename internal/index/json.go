package index

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/helmsrc/helmsrc/internal/resolve"
)

// maxJSONDepth is how deep Go's JSON decoder goes. What is deeper is no JSON to it.
const maxJSONDepth = 10000

// A jsonReader reads a JSON index. What is not JSON may still be YAML, so that is no error here.
type jsonReader struct {
	w      *window
	keys   *keyStack
	text   []byte // of the string or number that is read, if it crosses the window
	layout layout
	wrong  bool // entries is no object
	fatal  error
	tree   *tree // of the entry that is read, or nil
}

// scanJSON reads an index. It leaves the whole file to the YAML parser if it is not JSON.
func scanJSON(w *window) (*layout, error) {
	j := &jsonReader{w: w, keys: newKeyStack(), layout: layout{json: true}}
	ok := j.index()
	if ok {
		_, more := j.token()
		ok = !more
	}
	if j.fatal != nil {
		return nil, j.fatal
	}
	switch {
	case !ok:
		return &layout{whole: true}, nil
	case j.wrong:
		return nil, errEntries
	}
	return &j.layout, nil
}

// index reads the outermost object.
func (j *jsonReader) index() bool {
	if c, ok := j.token(); !ok || c != '{' {
		return false
	}
	return j.object(1, func(key []byte) bool {
		switch string(key) {
		case fieldAPIVersion:
			return j.apiVersion()
		case fieldEntries:
			return j.entries()
		}
		return j.value(2)
	})
}

func (j *jsonReader) apiVersion() bool {
	c, ok := j.token()
	if !ok || c != '"' {
		return ok && j.value(2)
	}
	text, ok := j.quoted(true)
	j.layout.apiVersion = len(text) > 0
	return ok
}

func (j *jsonReader) entries() bool {
	switch c, ok := j.token(); {
	case !ok:
		return false
	case c != '{':
		j.wrong = c != 'n'
		return j.value(2)
	}
	return j.object(2, func(key []byte) bool {
		name := bytes.Clone(key)
		c, ok := j.token()
		if !ok {
			return false
		}
		found := chart{start: j.w.offset(), listed: listedNot}
		switch c {
		case '[':
			found.listed = listedItems
			ok = j.array(3, func() bool { found.items++; return j.value(4) })
		case 'n':
			found.listed = listedNull
			ok = j.value(3)
		default:
			ok = j.value(3)
		}
		found.end = j.w.offset()
		j.layout.add(name, found)
		return ok
	})
}

// jsonCandidates reads a chart.
func jsonCandidates(r io.ReaderAt, c *chart) ([]resolve.Candidate, int, error) {
	rec := &recorder{out: make([]resolve.Candidate, 0, c.items)}
	w := newWindow(io.NewSectionReader(r, c.start, c.end-c.start), int(min(c.end-c.start, windowSize))+1)
	j := &jsonReader{w: w, keys: newKeyStack(), tree: &rec.tree}
	first, ok := j.token()
	ok = ok && first == '[' && j.array(3, func() bool {
		rec.next(0)
		return j.value(4)
	})
	rec.finish(0)
	switch {
	case w.failure() != nil:
		return nil, 0, w.failure()
	case !ok || j.fatal != nil:
		return nil, 0, errChanged
	}
	return rec.out, rec.lost, nil
}

// token finds the next byte that is no white space, and leaves it there.
func (j *jsonReader) token() (c byte, ok bool) {
	for {
		for w := j.w; w.pos < w.end; w.pos++ {
			switch c := w.buf[w.pos]; c {
			case ' ', '\t', '\r', '\n':
			default:
				return c, true
			}
		}
		if !j.w.fill() {
			return 0, false
		}
	}
}

// peek returns the next byte.
func (j *jsonReader) peek() (c byte, ok bool) {
	if j.w.pos == j.w.end && !j.w.fill() {
		return 0, false
	}
	return j.w.buf[j.w.pos], true
}

// value reads any value, at a depth that counts if it is a collection.
func (j *jsonReader) value(depth int) bool {
	c, ok := j.token()
	if !ok {
		return false
	}
	switch c {
	case '{':
		return j.collect(kindMap, func() bool { return j.object(depth, func([]byte) bool { return j.value(depth + 1) }) })
	case '[':
		return j.collect(kindList, func() bool { return j.array(depth, func() bool { return j.value(depth + 1) }) })
	case '"':
		text, ok := j.quoted(j.tree != nil)
		return ok && j.scalar(kindString, text)
	case 'n':
		return j.word("null") && j.scalar(kindNull, nil)
	case 't':
		return j.word("true") && j.scalar(kindBool, []byte("true"))
	case 'f':
		return j.word("false") && j.scalar(kindBool, []byte("false"))
	}
	return j.number() && j.scalar(kindNumber, j.text)
}

func (j *jsonReader) collect(k kind, read func() bool) bool {
	if j.tree == nil {
		return read()
	}
	j.tree.begin(k)
	ok := read()
	j.tree.end()
	return ok
}

func (j *jsonReader) scalar(k kind, text []byte) bool {
	if j.tree != nil {
		j.tree.scalar(k, text)
	}
	return true
}

// object reads from the opening brace to the closing one.
func (j *jsonReader) object(depth int, value func(key []byte) bool) bool {
	if depth > maxJSONDepth {
		return false
	}
	set := j.keys.open()
	defer j.keys.close(&set)
	return j.items('}', func() bool {
		if c, ok := j.token(); !ok || c != '"' {
			return false
		}
		key, ok := j.quoted(true)
		if !ok {
			return false
		}
		switch {
		case !j.keys.add(&set, key):
			j.fatal = duplicateKey(string(key), 0)
			return false
		case j.keys.count(&set) > maxKeys:
			j.fatal = errTooManyKeys
			return false
		case j.tree != nil:
			j.tree.setKey(key)
		}
		key = j.keys.textOf(len(j.keys.refs) - 1) // the window may move
		if c, ok := j.token(); !ok || c != ':' {
			return false
		}
		j.w.pos++
		return value(key)
	})
}

func (j *jsonReader) array(depth int, value func() bool) bool {
	return depth <= maxJSONDepth && j.items(']', value)
}

// items reads a collection of items that are separated by commas.
func (j *jsonReader) items(closing byte, item func() bool) bool {
	j.w.pos++
	c, ok := j.token()
	if ok && c == closing {
		j.w.pos++
		return true
	}
	for ok && item() {
		c, ok = j.token()
		if !ok || c != ',' && c != closing {
			return false
		}
		j.w.pos++
		if c == closing {
			return true
		}
	}
	return false
}

func (j *jsonReader) word(word string) bool {
	for i := range len(word) {
		if c, ok := j.peek(); !ok || c != word[i] {
			return false
		}
		j.w.pos++
	}
	return true
}

// number reads a number into text.
func (j *jsonReader) number() bool {
	j.text = j.text[:0]
	j.skipOne('-')
	if !j.skipOne('0') && !j.digits() {
		return false
	}
	if j.skipOne('.') && !j.digits() {
		return false
	}
	if j.skipOne('e') || j.skipOne('E') {
		_ = j.skipOne('+') || j.skipOne('-')
		return j.digits()
	}
	return true
}

func (j *jsonReader) skipOne(want byte) bool {
	c, ok := j.peek()
	if !ok || c != want {
		return false
	}
	j.next(c)
	return true
}

func (j *jsonReader) digits() (some bool) {
	for {
		c, ok := j.peek()
		if !ok || c < '0' || c > '9' {
			return some
		}
		j.next(c)
		some = true
	}
}

// next consumes a byte of a number.
func (j *jsonReader) next(c byte) {
	if j.tree != nil {
		j.text = append(j.text, c)
	}
	j.w.pos++
}

// quoted reads a string. Its text is only valid until more is read, and only there if it is wanted.
func (j *jsonReader) quoted(wanted bool) (text []byte, ok bool) {
	w, escaped := j.w, false
	w.pos++
	j.text = j.text[:0]
	for {
		chunk := w.buf[w.pos:w.end]
		n := simpleText(chunk)
		if n < len(chunk) && chunk[n] == '"' {
			w.pos += n + 1
			return j.decode(chunk[:n], escaped, wanted)
		}
		if wanted {
			j.text = append(j.text, chunk[:n]...)
		}
		w.pos += n
		switch {
		case n == len(chunk):
			ok = w.fill()
		case chunk[n] == '\\':
			escaped = true
			ok = j.escape(wanted)
		default:
			return nil, false // a control character
		}
		if !ok {
			return nil, false
		}
	}
}

// decode returns the text of a string, given its last part.
func (j *jsonReader) decode(last []byte, escaped, wanted bool) (text []byte, ok bool) {
	if !wanted {
		return nil, true
	}
	if len(j.text) == 0 && !escaped && utf8.Valid(last) {
		return last, true
	}
	j.text = append(j.text, last...)
	if !escaped && utf8.Valid(j.text) {
		return j.text, true
	}
	var s string
	if json.Unmarshal([]byte(`"`+string(j.text)+`"`), &s) != nil {
		return nil, false
	}
	return []byte(s), true
}

// escape reads an escape sequence.
func (j *jsonReader) escape(wanted bool) bool {
	digits := 0
	for n := 0; n < 2+digits; n++ {
		c, ok := j.peek()
		switch {
		case !ok || n > 1 && hexDigit(c) < 0 || n == 1 && bytes.IndexByte([]byte(`"\/bfnrtu`), c) < 0:
			return false
		case n == 1 && c == 'u':
			digits = 4
		}
		if wanted {
			j.text = append(j.text, c)
		}
		j.w.pos++
	}
	return true
}

// simpleText returns how many bytes of a string come before one that is special.
func simpleText(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^ones*'"', w^ones*'\\'
		if ((w-ones*' ')&^w|(quote-ones)&^quote|(slash-ones)&^slash)&highs != 0 {
			break
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return i
}
