package finding

import (
	"strings"
	"unicode"
)

// OneLine makes a text from outside printable: one line, no control characters, at most limit characters.
func OneLine(text string, limit int) string {
	var b strings.Builder
	count := 0
	for _, word := range strings.Fields(strings.ToValidUTF8(text, "")) {
		for _, c := range " " + word {
			if count == 0 && c == ' ' || !unicode.IsPrint(c) {
				continue
			}
			if count == limit {
				return b.String() + "…"
			}
			b.WriteRune(c)
			count++
		}
	}
	return b.String()
}
