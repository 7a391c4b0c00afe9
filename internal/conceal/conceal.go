// Package conceal keeps what came from Secrets out of texts. It does not know where a value comes from: the code that
// reads one adds it, and everything that is printed or remembered goes through it.
package conceal

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	// Hidden stands for what is not shown.
	Hidden = "REDACTED"

	// minText is the shortest text that is looked for everywhere. A shorter one would be found in every second word: it
	// is concealed in the fields that it was put into, and in messages about their objects.
	minText = 6

	// minSolid is the length from which on letters and digits alone are looked for inside of words, too.
	minSolid = 10

	// minNumber is the same for digits alone, which digests are full of.
	minNumber = 16
)

// Values are what a run does not show. All methods are safe for many goroutines; of a nil pointer they do nothing.
type Values struct {
	mu     sync.RWMutex
	known  map[string]bool
	heads  map[[minText]byte][]string // texts by how they begin, the longest first
	public map[string]bool
}

// New knows no values yet.
func New() *Values {
	return &Values{known: map[string]bool{}, heads: map[[minText]byte][]string{}, public: map[string]bool{}}
}

// Add adds values, and what encodings make of them.
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

// Publish says that these texts are no secrets, although a Secret may hold the same: names of objects, for example.
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

// Text is a text without the values.
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

// match returns the length of the longest value that stands there.
func (v *Values) match(text string, at int) int {
	for _, value := range v.heads[[minText]byte([]byte(text[at:at+minText]))] {
		if strings.HasPrefix(text[at:], value) && !v.public[value] && (solid(value) || alone(text, at, len(value))) {
			return len(value)
		}
	}
	return 0
}

// Tree copies a value in the types of JSON, its keys included, without the values.
func (v *Values) Tree(value any) any {
	if v == nil {
		return value
	}
	return Mapped(value, v.Text)
}

// Mapped copies a value in the types of JSON with every text in it replaced, keys included.
func Mapped(value any, text func(string) string) any {
	return mapped(value, "", text, func(_, value string) string { return text(value) })
}

// Fields copies a value in the types of JSON with every text in it replaced by its key, which ends in [] for one in a list. Keys stay.
func Fields(value any, text func(key, value string) string) any {
	return mapped(value, "", func(key string) string { return key }, text)
}

func mapped(value any, key string, keys func(string) string, text func(key, value string) string) any {
	switch value := value.(type) {
	case string:
		return text(key, value)
	case []any:
		key += "[]"
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = mapped(item, key, keys, text)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(value))
		for k, item := range value {
			m[keys(k)] = mapped(item, k, keys, text)
		}
		return m
	}
	return value
}

// solid reports whether a value is looked for inside of words.
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

// alone reports whether a part of a text is no part of a longer word.
func alone(text string, at, length int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at+length:])
	return !isWord(before) && !isWord(after)
}

func isWord(c rune) bool { return c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsDigit(c)) }
