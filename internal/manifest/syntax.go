package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxBisected is the length in bytes of the longest document that is parsed several times to find the line of an error.
const maxBisected = 1 << 20

// CheckSyntax returns the line and the error of the first document of a text that cannot be read, or nil. It quotes
// no text that may be a password.
func CheckSyntax(text []byte) (line int, err error) {
	for c := range split(text) {
		for d := range documents("", c) {
			_, err := d.parse()
			if parse, ok := errors.AsType[*ParseError](err); ok {
				return parse.Pos.Line, errors.New(parse.Msg)
			} else if err != nil {
				return c.Line + 1, err
			}
		}
	}
	return 0, nil
}

func (d *document) syntaxError(err error) error {
	var syntax *json.SyntaxError
	if jsonErr := jsonSyntax(d.text); errors.As(jsonErr, &syntax) {
		p := offsetPos(d.file, d.text, int(syntax.Offset)-1)
		return &ParseError{Pos: Pos{File: d.file, Line: d.line + p.Line, Column: p.Column}, Msg: syntax.Error(), hint: templateHint(d.text), syntax: true}
	}
	line := failingLine(d.text, plainMessage(err))
	text := lineText(d.text, line)
	indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
	e := &ParseError{
		Pos:  Pos{File: d.file, Line: d.line + line, Column: 1 + len(indent)},
		Msg:  plainMessage(err),
		hint: templateHint(d.text), syntax: true,
	}
	if !concealsLine(d.text, line) {
		e.Msg = trimmedMessage(err.Error())
	}
	if i := controlCharacter(d.text); i >= 0 {
		p := offsetPos(d.file, d.text, i)
		e.Pos, e.hint = Pos{File: d.file, Line: d.line + p.Line, Column: p.Column}, ""
		return e
	}
	if first, last := d.conflict(); first > 0 {
		e.Pos.Line, e.Pos.Column = d.line+first, 1
		e.Msg, e.hint = "unresolved merge conflict", "choose between the two sides, and remove the lines that begin with <<<<<<<, ======= and >>>>>>>"
		if last > 0 {
			e.Msg += fmt.Sprintf(", which ends on line %d", d.line+last)
		}
		return e
	}
	if tab := bytes.IndexByte(indent, '\t'); tab >= 0 {
		e.Pos.Column, e.hint = 1+tab, "indent with spaces: YAML does not allow tabs"
		return e
	}
	if e.hint != "" { // a template
		return e
	}
	if s, ok := d.misread(line, plainMessage(err)); ok {
		e.Pos.Line, e.Pos.Column, e.Msg, e.hint = d.line+s.line, s.column, s.message, s.hint
	}
	return e
}

// failingLine returns the last line of the shortest text that fails in the same way. The YAML library reports the line
// where the surrounding block begins, which may be a hundred lines earlier, and sometimes one line less than that.
func failingLine(text []byte, msg string) int {
	fails := func(lines int) bool { return failure(text, lines) == msg }
	r := &oneByOne{text: text}
	if err := scan(r); err == nil {
		return 1
	}
	last := offsetPos("", text, r.at).Line
	if len(text) > maxBisected {
		return last
	}
	for total := 1 + bytes.Count(text, []byte("\n")); last < total && !fails(last); {
		last++
	}
	return firstFailing(last, fails)
}

// failure returns the message with which the first lines of a text fail, "" if they do not.
func failure(text []byte, lines int) string {
	err := scan(bytes.NewReader(text[:lineOffset(text, lines)]))
	if err == nil {
		return ""
	}
	return plainMessage(err)
}

// firstFailing returns the first line, of those up to last, from which on every text fails.
func firstFailing(last int, fails func(lines int) bool) int {
	// The text up to line ok does not fail, the text up to last does. Usually they are neighbours.
	ok := last
	for step := 1; ok > 0 && fails(ok); step *= 2 {
		last, ok = ok, max(0, ok-step)
	}
	return ok + 1 + sort.Search(last-ok-1, func(i int) bool { return fails(ok + 1 + i) })
}

// scan parses a text without keeping the result.
func scan(r io.Reader) error {
	dec := yaml.NewDecoder(r)
	for {
		if err := dec.Decode(new(yaml.Node)); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// oneByOne returns single bytes, so that the parser reads no further than it needs.
type oneByOne struct {
	text []byte
	at   int
}

func (r *oneByOne) Read(p []byte) (int, error) {
	if r.at == len(r.text) {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	p[0] = r.text[r.at]
	r.at++
	return 1, nil
}

// lineOffset returns the offset of the end of a line, including its break. Lines count from 1.
func lineOffset(text []byte, line int) int {
	at := 0
	for ; line > 0; line-- {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	return at
}

func lineText(text []byte, line int) []byte {
	return bytes.TrimRight(text[lineOffset(text, line-1):lineOffset(text, line)], "\r\n")
}

// controlCharacter returns the index of the first character that YAML does not allow anywhere, or -1.
func controlCharacter(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7F && r < 0xA0 && r != 0x85 {
			return i
		}
		i += n
	}
	return -1
}

func templateHint(text []byte) string {
	if bytes.Contains(text, []byte("{{")) {
		return "this looks like a template: render it first"
	}
	return ""
}
