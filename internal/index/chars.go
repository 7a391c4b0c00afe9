package index

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// cleanLine says whether a line has only characters that YAML allows and that do not break it: none of the control
// characters but tabs, no byte order mark, and none of the line breaks that only YAML knows.
func cleanLine(line []byte) bool {
	i, found := 0, uint64(0)
	for ; i+8 <= len(line); i += 8 {
		found |= special(binary.LittleEndian.Uint64(line[i:]))
	}
	switch {
	case i == len(line):
	case i > 0:
		found |= special(binary.LittleEndian.Uint64(line[len(line)-8:]))
	default:
		found |= special(tail(line))
	}
	return found&highs == 0 || cleanText(line)
}

// special marks the bytes of a word that are no printable ASCII. It may mark more when it marks one.
func special(w uint64) uint64 {
	del := w ^ ones*0x7f
	return w | (w-ones*' ')&^w | (del-ones)&^del
}

// tail makes a word of less than eight bytes.
func tail(b []byte) uint64 {
	w := uint64(ones * ' ')
	for _, c := range b {
		w = w<<8 | uint64(c)
	}
	return w
}

func cleanText(line []byte) bool {
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

// forbidden are the characters beyond ASCII that a line may not have.
func forbidden(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
}
