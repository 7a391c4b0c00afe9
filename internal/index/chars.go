package index

import (
	"bytes"
	"unicode/utf8"
)

// cleanLine reports whether a line has only characters that YAML allows and that do not break the line: no control
// characters except tabs, no byte order mark, and no line breaks that only YAML knows.
func cleanLine(line []byte) bool {
	ascii := true
	for _, c := range line {
		switch {
		case c < ' ' && c != '\t', c == 0x7f:
			return false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return ascii || cleanRunes(line)
}

func cleanRunes(line []byte) bool {
	if !utf8.Valid(line) {
		return false
	}
	return bytes.IndexFunc(line, forbidden) < 0
}

// forbidden reports whether a line may not have a character beyond ASCII.
func forbidden(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
}
