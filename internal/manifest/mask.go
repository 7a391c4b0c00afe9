package manifest

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/conceal"
)

// Masked is the excerpt without the values of fields that are called as a password is. It is empty if one of them stands
// in front of what is marked: the columns would be wrong.
func (e Excerpt) Masked() Excerpt {
	line := e.Before + e.Marked + e.After
	start, end := len(e.Before), len(e.Before)+len(e.Marked)
	for _, value := range sensitiveValues(line) {
		if value.from < start {
			return Excerpt{Pos: e.Pos}
		}
	}
	return Excerpt{e.Pos, e.Before, maskPart(line, start, end), maskPart(line, end, len(line))}
}

// MaskedLine returns a line without the values of fields that are called as a password is.
func MaskedLine(line string) string { return maskPart(line, 0, len(line)) }

// Sensitive reports whether a field is called as a password is, and does not say where one is.
func Sensitive(key string, value *yaml.Node) bool {
	sample := "x"
	switch value.Kind {
	case yaml.MappingNode:
		sample = "{"
	case yaml.SequenceNode:
		sample = "[{"
	}
	return len(sensitiveValues(key+": "+sample)) > 0
}

// maskPart is a part of a line with the values in it masked, that is with those that begin there.
func maskPart(line string, from, to int) string {
	var b strings.Builder
	at := from
	for _, value := range sensitiveValues(line) {
		if value.to <= from || value.from >= to {
			continue
		}
		if value.from >= from {
			b.WriteString(line[at:value.from])
			b.WriteString(conceal.Hidden)
		}
		at = min(value.to, to)
	}
	return b.String() + line[at:to]
}

// sensitiveKey finds a key that is called as a password is, and the colon after it.
var sensitiveKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)["']?([\w./-]*(?:password|passwd|passphrase|token|secret|key)[\w-]*)["']?\s*:[ \t]+`)
})

// sensitiveValues are the values of such keys in a line. A reference to a Secret is none.
func sensitiveValues(line string) []span {
	var list []span
	for _, at := range sensitiveKey().FindAllStringSubmatchIndex(line, -1) {
		rest := line[at[1]:]
		if rest == "" || strings.HasPrefix(rest, "#") || len(list) > 0 && at[0] < list[len(list)-1].to || reference(line[at[2]:at[3]], rest) {
			continue
		}
		value := span{at[1], at[1] + valueLength(rest, strings.ContainsAny(line[:at[0]], "{["))}
		if word := line[value.from:value.to]; word != "true" && word != "false" && word != "null" {
			list = append(list, value)
		}
	}
	return list
}

// reference reports whether a key names where a secret is, and not the secret.
func reference(key, value string) bool {
	key = strings.ToLower(key)
	if strings.HasSuffix(key, "refs") || strings.HasSuffix(key, "ref") {
		return strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[{")
	}
	return strings.HasSuffix(key, "name") || strings.HasSuffix(key, "generator") || key == "valueskey" || key == "key" && strings.HasPrefix(value, "{")
}

func valueLength(text string, flow bool) int {
	switch text[0] {
	case '"':
		return quotedLength(text, '"', '\\')
	case '\'':
		return quotedLength(text, '\'', '\'')
	case '{', '[':
		return len(text)
	}
	end := len(text)
	if i := strings.Index(text, " #"); i >= 0 {
		end = i
	}
	if i := strings.IndexAny(text[:end], ",}]"); flow && i >= 0 {
		end = i
	}
	return len(strings.TrimRight(text[:end], " \t"))
}

// maskBroken masks the line of a text that cannot be parsed: all of a value, where a tag, an alias or a field nearby says
// that it may be a password.
func maskBroken(e Excerpt, data []byte) Excerpt {
	line := e.Before + e.Marked
	if !strings.ContainsAny(line, "*&!") && !sensitiveKey().Match(around(data, e.Pos.Line)) {
		return e
	}
	from := len(line) - len(strings.TrimLeft(line, " \t-"))
	if i := strings.Index(line[from:], ": "); i >= 0 {
		from += i + len(": ")
	}
	if from >= len(line) {
		return e
	}
	line = line[:from] + conceal.Hidden
	at := min(len(e.Before), from)
	return Excerpt{Pos: e.Pos, Before: line[:at], Marked: line[at:]}
}

// nearby is how many lines around one that cannot be parsed are looked at.
const nearby = 3

func around(data []byte, line int) []byte {
	var text []byte
	number := 0
	for l := range bytes.Lines(data) {
		if number++; number > line+nearby {
			break
		}
		if number >= line-nearby {
			text = append(text, l...)
		}
	}
	return text
}

// unquoted takes what a library quotes of a text out of its message, but the names of keys.
func unquoted(err error) error {
	msg := err.Error()
	if strings.Contains(msg, "mapping key") {
		return err
	}
	masked := libraryQuotes().ReplaceAllString(msg, conceal.Hidden)
	if masked == msg {
		return err
	}
	return errors.New(masked)
}

// libraryQuotes leaves the signs alone that a message says are missing: ',' or '}'.
var libraryQuotes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("`[^`\n]*`|'[^\\s',\\[\\]{}][^'\n]+'|\"[^\"\n]{2,}\"")
})
