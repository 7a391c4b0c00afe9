// Package conceal removes the values of Secrets from texts. It does not know where a value comes from: the code that
// reads a value adds it, and everything that is printed or recorded passes through this package.
package conceal

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	// Hidden replaces a value that is not shown.
	Hidden = "REDACTED"

	// minText is the length of the shortest value that is replaced everywhere. A shorter value would occur in every second
	// word: it is replaced in the fields that it was put into, and in messages about their objects.
	minText = 6

	// minSolid is the least length of a value of letters and digits that is also replaced inside of words.
	minSolid = 10

	// minNumber is the same for digits only, which occur in digests.
	minNumber = 16
)

// Values are the values that a run does not show. They are safe for concurrent use; with a nil receiver, methods do nothing.
type Values struct {
	mu     sync.RWMutex
	known  map[string]bool
	heads  map[[minText]byte][]string // texts by their beginning, the longest first
	public map[string]bool
}

// New returns Values without values.
func New() *Values {
	return &Values{known: map[string]bool{}, heads: map[[minText]byte][]string{}, public: map[string]bool{}}
}

// Add adds values, and their encodings.
func (v *Values) Add(values ...string) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, value := range values {
		if len(value) < minText || v.known[value] {
			continue
		}
		for _, form := range forms(value) {
			v.add(form)
		}
	}
}

func (v *Values) add(text string) {
	if len(text) < minText || v.known[text] || common(text) || strings.Contains(Hidden, text) {
		return
	}
	v.known[text] = true
	head := [minText]byte([]byte(text[:minText]))
	list := v.heads[head]
	at := 0
	for at < len(list) && len(list[at]) >= len(text) {
		at++
	}
	list = append(list, "")
	copy(list[at+1:], list[at:])
	list[at] = text
	v.heads[head] = list
}

// Publish excludes texts that are not secret although a Secret may hold the same text, such as names of objects.
func (v *Values) Publish(texts ...string) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, text := range texts {
		v.public[text] = true
	}
}

// Text returns a text with the values replaced by Hidden.
func (v *Values) Text(text string) string {
	if v == nil {
		return text
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	if len(v.heads) == 0 {
		return text
	}
	var b strings.Builder
	from := 0
	for i := 0; i+minText <= len(text); {
		n := v.match(text, i)
		if n == 0 {
			i++
			continue
		}
		b.WriteString(text[from:i])
		b.WriteString(Hidden)
		i += n
		from = i
	}
	if from == 0 {
		return text
	}
	return b.String() + text[from:]
}

// match returns the length of the longest value at a position of a text, 0 without a value.
func (v *Values) match(text string, at int) int {
	for _, value := range v.heads[[minText]byte([]byte(text[at:at+minText]))] {
		if strings.HasPrefix(text[at:], value) && !v.public[value] && (solid(value) || alone(text, at, len(value))) {
			return len(value)
		}
	}
	return 0
}

// Tree copies a JSON value, including its keys, with the values replaced by Hidden.
func (v *Values) Tree(value any) any {
	if v == nil {
		return value
	}
	return Mapped(value, v.Text)
}

// Mapped copies a JSON value and replaces all its texts, including keys.
func Mapped(value any, text func(string) string) any {
	return mapped(value, "", text, inTexts(func(_, value string) string { return text(value) }))
}

// Fields copies a JSON value and replaces its texts by their key, which ends in [] for an item of a list. Keys stay.
func Fields(value any, text func(key, value string) string) any { return Rebuilt(value, inTexts(text)) }

// Rebuilt copies a JSON value and replaces its parts by their key, as Fields does. For a part without a replacement, part
// returns false, and gets the parts of it.
func Rebuilt(value any, part func(key string, value any) (any, bool)) any {
	return mapped(value, "", func(key string) string { return key }, part)
}

func inTexts(text func(key, value string) string) func(key string, value any) (any, bool) {
	return func(key string, value any) (any, bool) {
		if value, ok := value.(string); ok {
			return text(key, value), true
		}
		return nil, false
	}
}

func mapped(value any, key string, keys func(string) string, part func(key string, value any) (any, bool)) any {
	if other, ok := part(key, value); ok {
		return other
	}
	switch value := value.(type) {
	case []any:
		key += "[]"
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = mapped(item, key, keys, part)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(value))
		for k, item := range value {
			m[keys(k)] = mapped(item, k, keys, part)
		}
		return m
	}
	return value
}

// solid reports whether a value is also replaced inside of words.
func solid(value string) bool {
	number := true
	for _, c := range value {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return true
		}
		number = number && unicode.IsDigit(c)
	}
	if number {
		return len(value) >= minNumber
	}
	return len(value) >= minSolid
}

// alone reports whether a part of a text is not a part of a longer word.
func alone(text string, at, length int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at+length:])
	return !isWord(before) && !isWord(after)
}

func isWord(c rune) bool { return c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsDigit(c)) }
