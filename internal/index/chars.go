package index

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// cleanLine reports whether a line has only characters that YAML allows and that do not break the line: no control
// characters except tabs, no byte order mark, and no line breaks that only YAML knows. Every line of an index is tested, so that
// it takes eight characters at a time: in a word, the top bit of a byte is set for a character that is not printable ASCII.
func cleanLine(line []byte) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	found, rest := uint64(0), line
	for ; len(rest) >= 8; rest = rest[8:] {
		w := binary.LittleEndian.Uint64(rest)
		found |= w | (w - ' '*ones) | (w + ones)
	}
	for _, c := range rest {
		found |= uint64(c) | (uint64(c) - ' ') | (uint64(c) + 1)
	}
	return found&tops == 0 || utf8.Valid(line) && bytes.IndexFunc(line, forbidden) < 0
}

// forbidden reports whether a line may not have a character.
func forbidden(r rune) bool {
	return r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
}
