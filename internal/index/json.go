package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/helmsrc/helmsrc/internal/resolve"
)

const (
	// maxJSONDepth is the depth to which Go's JSON decoder reads. It refuses deeper input.
	maxJSONDepth = 10000
	// maxToken is the limit, in bytes, of a string in a JSON index: the decoder keeps one at a time.
	maxToken = 2 * maxEntryText
)

var errLongToken = fmt.Errorf("a string in the index has more than %d bytes", maxToken)

// A jsonReader reads a JSON index, a token at a time. Invalid JSON is not an error, as it may still be YAML.
type jsonReader struct {
	*json.Decoder
	from   io.Reader
	read   int64
	keys   *keyStack
	layout layout
	fatal  error
	tree   *tree // of the entry that is read, or nil
}

func newJSONReader(from io.Reader) *jsonReader {
	j := &jsonReader{from: from, keys: newKeyStack(), layout: layout{json: true}}
	j.Decoder = json.NewDecoder(j)
	j.UseNumber()
	return j
}

// Read implements io.Reader, for the decoder. It refuses strings longer than maxToken.
func (j *jsonReader) Read(p []byte) (int, error) {
	if j.read-j.InputOffset() > maxToken {
		j.fatal = errLongToken
		return 0, errLongToken
	}
	n, err := j.from.Read(p)
	j.read += int64(n)
	return n, err
}

// scanJSON reads an index. It leaves the whole file to the YAML parser if it is not JSON.
func scanJSON(w *window) (*layout, error) {
	j := newJSONReader(w)
	ok := j.index()
	_, err := j.Token()
	switch {
	case j.fatal != nil:
		return nil, j.fatal
	case !ok || !errors.Is(err, io.EOF):
		return &layout{whole: true}, nil
	}
	return &j.layout, nil
}

// index reads the outermost object.
func (j *jsonReader) index() bool {
	wrong := false
	token, err := j.Token()
	ok := err == nil && token == json.Delim('{') && j.object(1, func(key string) bool {
		token, err := j.Token()
		switch {
		case err != nil:
			return false
		case key == fieldAPIVersion:
			text, isText := token.(string)
			j.layout.apiVersion = isText && text != ""
		case key == fieldEntries && token == json.Delim('{'):
			return j.object(2, j.chart)
		case key == fieldEntries:
			wrong = token != nil
		}
		return j.rest(token, 2)
	})
	if ok && wrong {
		j.fatal = errEntries
	}
	return ok
}

// chart reads the value of a chart, and notes where it is: from the end of its key on.
func (j *jsonReader) chart(name string) (ok bool) {
	c := chart{start: j.InputOffset(), listed: listedNot}
	token, err := j.Token()
	switch {
	case err != nil:
		return false
	case token == json.Delim('['):
		c.listed = listedItems
		ok = j.array(3, func() bool { c.items++; return j.value(4) })
	default:
		if token == nil {
			c.listed = listedNull
		}
		ok = j.rest(token, 3)
	}
	c.end = j.InputOffset()
	j.layout.add([]byte(name), c)
	return ok
}

// jsonCandidates reads the versions of a chart, and returns how many were dropped.
func jsonCandidates(r io.ReaderAt, c *chart) ([]resolve.Candidate, int, error) {
	rec := &recorder{out: make([]resolve.Candidate, 0, c.items)}
	w := newWindow(io.NewSectionReader(r, c.start, c.end-c.start), c.end-c.start+1)
	j := newJSONReader(io.MultiReader(strings.NewReader(`{""`), w))
	j.tree = &rec.tree
	var token json.Token
	var err error
	for range 3 { // the brace and the key before the value, and its bracket
		if token, err = j.Token(); err != nil {
			break
		}
	}
	ok := token == json.Delim('[') && j.array(3, func() bool {
		rec.next()
		return j.value(4)
	})
	rec.finish()
	switch {
	case w.stream.err != nil:
		return nil, 0, w.stream.err
	case !ok || j.fatal != nil:
		return nil, 0, errChanged
	}
	return rec.out, rec.lost, nil
}

// value reads any value, at a depth that counts if it is a collection.
func (j *jsonReader) value(depth int) bool {
	token, err := j.Token()
	return err == nil && j.rest(token, depth)
}

// rest reads the rest of the value that a token begins.
func (j *jsonReader) rest(token json.Token, depth int) bool {
	switch token := token.(type) {
	case json.Delim:
		return j.collection(token, depth)
	case string:
		j.scalar(kindString, token)
	case nil:
		j.scalar(kindNull, "")
	case bool:
		j.scalar(kindBool, strconv.FormatBool(token))
	case json.Number:
		j.scalar(kindNumber, string(token))
	}
	return true
}

func (j *jsonReader) scalar(k kind, text string) {
	if j.tree != nil {
		j.tree.scalar(k, []byte(text))
	}
}

func (j *jsonReader) collection(opening json.Delim, depth int) (ok bool) {
	k := kindMap
	if opening == '[' {
		k = kindList
	}
	if j.tree != nil {
		j.tree.begin(k)
		defer j.tree.end()
	}
	if k == kindList {
		return j.array(depth, func() bool { return j.value(depth + 1) })
	}
	return j.object(depth, func(string) bool { return j.value(depth + 1) })
}

// object reads from after the opening brace to the closing one.
func (j *jsonReader) object(depth int, value func(key string) bool) bool {
	set := j.keys.open()
	defer j.keys.close(&set)
	return j.array(depth, func() bool {
		token, err := j.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			return false
		}
		switch {
		case !j.keys.add(&set, []byte(key)):
			j.fatal = duplicateKey(key, 0)
			return false
		case set.count > maxKeys:
			j.fatal = errTooManyKeys
			return false
		case j.tree != nil:
			j.tree.setKey([]byte(key))
		}
		return value(key)
	})
}

// array reads from after the opening bracket to the closing one.
func (j *jsonReader) array(depth int, item func() bool) bool {
	if depth > maxJSONDepth {
		return false
	}
	for j.More() {
		if !item() {
			return false
		}
	}
	_, err := j.Token()
	return err == nil
}
