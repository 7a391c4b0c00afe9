package table

import "unicode"

// ColumnsOf returns the number of terminal columns that a character fills.
func ColumnsOf(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case isWide(r):
		return 2
	}
	return 1
}

// isWide reports whether a character is as wide as two letters: characters of East
// Asia, and pictures.
func isWide(r rune) bool {
	for _, w := range [...][2]rune{
		{0x1100, 0x115F}, {0x2E80, 0x303E}, {0x3041, 0x4DBF}, {0x4E00, 0xA4CF}, {0xA960, 0xA97F}, {0xAC00, 0xD7A3},
		{0xF900, 0xFAFF}, {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF},
		{0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
	} {
		if r >= w[0] && r <= w[1] {
			return true
		}
	}
	return false
}
