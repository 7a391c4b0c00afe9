package manifest

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// maxAnchors is the limit of anchors that a hint considers.
const maxAnchors = 16

// misreading is a character with a meaning in YAML that its author did not intend.
type misreading struct {
	line, column  int // in the document
	message, hint string
}

// misread finds such a character on the line that cannot be parsed, or the quote that opens above it.
func (d *document) misread(line int, msg string) (misreading, bool) {
	if len(d.text) > maxBisected {
		return misreading{}, false
	}
	if s, ok := d.openQuote(line, msg); ok {
		return s, true
	}
	if s, ok := d.unknownAlias(line, msg); ok {
		return s, true
	}
	text := string(lineText(d.text, line))
	key, value := keyAndValue(text)
	if value == "" {
		return misreading{}, false
	}
	s := misreading{line: line, column: 1 + len([]rune(text[:len(text)-len(value)]))}
	bare := withoutComment(value)
	s.hint = "put the value in quotes: " + key + quotedValue(bare)
	quotable := !concealsLine(d.text, line)
	if !quotable {
		s.hint = "put the value in quotes"
	}
	switch sign := value[0]; sign {
	case '>', '|':
		if blockHeader().MatchString(value) {
			return misreading{}, false
		}
		s.message = fmt.Sprintf("%c begins a block of text in YAML", sign)
	case '@', '`', '%':
		s.message = fmt.Sprintf("%c cannot begin a value in YAML", sign)
	case '"', '\'':
		length := edit.QuotedLength(bare, sign)
		if length == len(bare) {
			return misreading{}, false
		}
		s.column += len([]rune(bare[:length]))
		s.message, s.hint = "the value ends with its closing quote, and more text follows", "put all of the value in quotes, or none of it"
	default:
		if strings.ContainsRune("[{!&*?#,-]}", rune(sign)) || !strings.Contains(bare, ": ") {
			return misreading{}, false
		}
		s.message = "a colon before a space begins a value in YAML"
	}
	return s, true
}

// unknownAlias explains an asterisk, in block or in flow style, that is not an alias of an anchor before it.
func (d *document) unknownAlias(line int, msg string) (misreading, bool) {
	text, start := string(lineText(d.text, line)), lineOffset(d.text, line-1)
	for _, at := range aliasOf().FindAllStringSubmatchIndex(text, -1) {
		alias, before := text[at[2]:at[3]], d.text[:start+at[2]]
		name := alias[1:]
		if msg != failure([]byte(alias), 1) || hasAnchor(before, name) {
			continue
		}
		s := misreading{line: line, column: 1 + len([]rune(text[:at[2]])), message: "* begins an alias in YAML", hint: "put the value in quotes"}
		if concealsLine(d.text, line) {
			return s, true
		}
		if key, value := keyAndValue(text); len(value) == len(text)-at[2] && !strings.ContainsAny(value, ",]}") {
			s.hint += ": " + key + quotedValue(withoutComment(value))
		} else {
			s.hint += ": " + quotedValue(alias)
		}
		if !wordOf().MatchString(name) {
			return s, true
		}
		s.message += ", and there is no anchor &" + name + " before it"
		if strings.HasSuffix(strings.TrimRight(text[:at[2]], " \t"), "<<:") {
			s.hint = "write the anchor before the value to merge, in this document"
		}
		anchors := anchorsOf(before)
		near, ok := finding.Nearest(name, anchors)
		switch {
		case hasAnchor(d.text, name):
			s.message, s.hint = "the anchor &"+name+" is after this alias, not before it", "move the anchor above the alias"
		case hasAnchor(d.whole, name):
			s.message, s.hint = "the anchor that this alias names is in another document: anchors end at ---", "write the anchor or the value in this document"
		case ok:
			s.hint = "did you mean *" + near + "? Else " + s.hint
		case len(anchors) > 0:
			s.hint = "the anchors before it: &" + strings.Join(anchors, ", &") + "; else " + s.hint
		}
		return s, true
	}
	return misreading{}, false
}

// anchorsOf returns the first anchors of a text, without those on lines that may contain a password.
func anchorsOf(text []byte) []string {
	var names []string
	for _, at := range anchorOf().FindAllSubmatchIndex(text, maxAnchors) {
		name := string(text[at[2]:at[3]])
		if !slices.Contains(names, name) && !concealsLine(text, 1+bytes.Count(text[:at[2]], []byte("\n"))) {
			names = append(names, name)
		}
	}
	return names
}

// openQuote finds a quote that is not closed on its line, so that the text fails up to the line of the next quote.
func (d *document) openQuote(line int, msg string) (misreading, bool) {
	unclosed := failure([]byte("\""), 1)
	opens, closes := line, 0
	if msg != unclosed {
		if line == 1 || failure(d.text, line-1) != unclosed {
			return misreading{}, false
		}
		opens, closes = firstFailing(line-1, func(lines int) bool { return failure(d.text, lines) == unclosed }), line
	}
	text := string(lineText(d.text, opens))
	at := unclosedQuote(text)
	if at < 0 {
		return misreading{}, false
	}
	s := misreading{opens, 1 + len([]rune(text[:at])), "this quote opens here and is never closed", "close it at the end of its value"}
	if closes > 0 {
		s.hint += fmt.Sprintf("; the next such quote is on line %d", d.line+closes)
	}
	return s, true
}

// unclosedQuote returns the index of the quote of a line that is not closed, or -1.
func unclosedQuote(line string) int {
	for i := 0; i < len(line); i++ {
		c := line[i]
		if c == '#' && (i == 0 || line[i-1] == ' ') {
			return -1
		}
		if c != '"' && c != '\'' || i > 0 && !strings.ContainsRune(" \t[{,(:", rune(line[i-1])) {
			continue
		}
		length := edit.QuotedLength(line[i:], c)
		if end := i + length; length < 2 || line[end-1] != c || closesNot(line[i:end], c) {
			return i
		}
		i += length - 1
	}
	return -1
}

// closesNot reports whether the last character of a quoted text is an escaped quote, and not its end.
func closesNot(text string, quote byte) bool {
	if quote == '"' {
		slashes := len(text) - 1 - len(strings.TrimRight(text[:len(text)-1], "\\"))
		return slashes%2 == 1
	}
	return false
}

// keyAndValue splits a line into its value and the text before it, without indentation.
func keyAndValue(line string) (key, value string) {
	rest := strings.TrimLeft(line, " ")
	start := rest
	for strings.HasPrefix(rest, "- ") {
		rest = strings.TrimLeft(rest[2:], " ")
	}
	if m := plainKeyOf().FindString(rest); m != "" {
		rest = rest[len(m):]
	}
	return strings.TrimPrefix(start[:len(start)-len(rest)], "- "), rest
}

var (
	aliasOf     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s\[{,:])(\*[^\s,\[\]{}]*)`) })
	wordOf      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w-]+$`) })
	anchorOf    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s\[{,:])&([\w-]+)(?:[\s,\]}]|$)`) })
	plainKeyOf  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:[\w./-]+|<<|"[^"]*"|'[^']*')\s*:[ \t]+`) })
	blockHeader = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[>|][0-9+-]{0,2}\s*(#.*)?$`) })
)

func withoutComment(value string) string {
	if i := strings.Index(value, " #"); i >= 0 {
		value = value[:i]
	}
	return strings.TrimRight(value, " \t")
}

func quotedValue(value string) string {
	if strings.ContainsAny(value, "\"\\") {
		return "'" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	return `"` + value + `"`
}

func hasAnchor(text []byte, name string) bool {
	for {
		i := bytes.Index(text, []byte("&"+name))
		if i < 0 {
			return false
		}
		text = text[i+1+len(name):]
		if len(text) == 0 || bytes.IndexByte([]byte(" \t\r\n,]}"), text[0]) >= 0 {
			return true
		}
	}
}

// conflict returns the lines of an unresolved merge conflict of Git, counted from 1; 0 is not found.
func (d *document) conflict() (first, last int) {
	line := 0
	for text := range bytes.Lines(d.text) {
		line++
		switch {
		case first == 0 && bytes.HasPrefix(text, []byte("<<<<<<< ")):
			first = line
		case first > 0 && bytes.HasPrefix(text, []byte(">>>>>>> ")):
			return first, line
		}
	}
	return first, 0
}
