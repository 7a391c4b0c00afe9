package manifest

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/edit"
)

// Masked returns the excerpt without the values of fields with the name of a password. It is empty if such a value
// precedes the marked part, because the columns would be wrong, and if the line may have content of a Secret.
func (e Excerpt) Masked() Excerpt {
	line := e.Before + e.Marked + e.After
	if hasSecret(line) {
		return Excerpt{Pos: e.Pos}
	}
	start, end := len(e.Before), len(e.Before)+len(e.Marked)
	for _, value := range sensitiveValues(line) {
		if value.From < start {
			return Excerpt{Pos: e.Pos}
		}
	}
	return Excerpt{e.Pos, e.Before, maskPart(line, start, end), maskPart(line, end, len(line))}
}

var (
	ofSecret = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bkind["']?:\s*["']?Secret\b`) })
	assigned = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(patch|value|data)["']?:`) })
)

// hasSecret reports whether a line may have content of a Secret, or a value for a field with the name of a password: in a
// generator, or in a patch that is written on one line.
func hasSecret(line string) bool {
	literals := strings.Contains(line, "literals")
	return strings.Contains(line, "stringData") || ofSecret().MatchString(line) && assigned().MatchString(line) ||
		literals && (strings.Contains(line, "secretGenerator") || len(conceal.Assigned([]byte(line))) > 0) ||
		strings.Contains(line, "path") && assigned().MatchString(line) && conceal.Sensitive(line)
}

// MaskedLine returns a line without the values of fields with the name of a password.
func MaskedLine(line string) string { return maskPart(line, 0, len(line)) }

// Sensitive reports whether a field has the name of a password, and is not the reference to one.
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

// maskPart returns a part of a line in which the values that begin there are masked.
func maskPart(line string, from, to int) string {
	var b strings.Builder
	at := from
	for _, value := range sensitiveValues(line) {
		if value.To <= from || value.From >= to {
			continue
		}
		if value.From >= from {
			b.WriteString(line[at:value.From])
			b.WriteString(conceal.Hidden)
		}
		at = min(value.To, to)
	}
	return b.String() + line[at:to]
}

// sensitiveKey matches a key with the name of a password, and the colon after it.
var sensitiveKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)["']?([\w./-]*(?:password|passwd|passphrase|token|secret|key)[\w-]*)["']?\s*:[ \t]+`)
})

// sensitiveValues returns the values of such keys in a line. A reference to a Secret does not count.
func sensitiveValues(line string) []edit.Span {
	var list []edit.Span
	for _, at := range sensitiveKey().FindAllStringSubmatchIndex(line, -1) {
		rest := line[at[1]:]
		if rest == "" || strings.HasPrefix(rest, "#") || len(list) > 0 && at[0] < list[len(list)-1].To || reference(line[at[2]:at[3]], rest) {
			continue
		}
		value := edit.Span{From: at[1], To: at[1] + valueLength(rest, strings.ContainsAny(line[:at[0]], "{["))}
		if word := line[value.From:value.To]; word != "true" && word != "false" && word != "null" {
			list = append(list, value)
		}
	}
	return list
}

// reference reports whether a key names the location of a secret, and not the secret.
func reference(key, value string) bool {
	key = strings.ToLower(key)
	if strings.HasSuffix(key, "refs") || strings.HasSuffix(key, "ref") {
		return strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[{")
	}
	return strings.HasSuffix(key, "name") || strings.HasSuffix(key, "generator") || key == "valueskey" || key == "valuekey" || key == "key" && strings.HasPrefix(value, "{")
}

func valueLength(text string, flow bool) int {
	switch text[0] {
	case '"', '\'':
		return edit.QuotedLength(text, text[0])
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

// concealsLine reports whether a line of a document that cannot be parsed may contain a password: the document has a
// Secret, or the line belongs to the value of a field with the name of a password.
func concealsLine(text []byte, line int) bool {
	if holdsSecret(text) {
		return true
	}
	own := string(lineText(text, line))
	if len(sensitiveValues(own)) > 0 {
		return true
	}
	depth := len(own) - len(strings.TrimLeft(own, " "))
	item := strings.HasPrefix(own[depth:], "-")
	for line--; line > 0 && depth >= 0; line-- {
		above := string(lineText(text, line))
		content := strings.TrimLeft(above, " ")
		at := len(above) - len(content)
		if content == "" || content[0] == '#' || at > depth || at == depth && (!item || content[0] == '-') {
			continue
		}
		depth, item = at, content[0] == '-'
		if len(sensitiveValues(strings.TrimRight(content, " \t\r")+" x")) > 0 {
			return true
		}
	}
	return false
}

// holdsSecret reports whether a document that may be invalid contains a Secret, or an object that generates or
// patches one. References to Secrets do not count.
func holdsSecret(text []byte) bool {
	return secretGenerator().Match(text) || mentionsSecret(text) && (bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) || secretText().Match(text))
}

// secretGenerator matches the field of a kustomization in upper and lower case: kustomize accepts both.
var secretGenerator = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?i:secretGenerator)") })

// secretText matches the head of a Secret, and the fields of a Secret and of its generators and patches.
var secretText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^["']?kind["']?\s*:\s*["']?Secret|(?i:^|[\s,{-])["']?(?i:(?:string)?data|patch|patches\w*|sops|items)["']?\s*:`)
})

// unquoted removes the quotes of the text from the message of a library, except the names of keys.
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

// libraryQuotes matches the quotes in a message, except the missing signs that a message names: ',' or '}'.
var libraryQuotes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("`[^`\n]*`|'[^\\s',\\[\\]{}][^'\n]+'|\"[^\"\n]{2,}\"")
})
