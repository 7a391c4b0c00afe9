// Package bound limits the size of YAML and JSON texts before another package decodes them. It decodes nothing itself.
package bound

import "fmt"

// MaxValues is the limit of the values of a text that is decoded at once. A parser needs up to 350 bytes for a value that has
// two in the text, so that is less than 400 MiB.
const MaxValues = 1 << 20

// ErrValues reports a text with more than [MaxValues] values.
var ErrValues = fmt.Errorf("too many values: more than %d", MaxValues)

// Check returns [ErrValues] for a text that may have more than [MaxValues] values. Smaller texts are not read.
func Check(text []byte) error {
	if len(text) <= MaxValues || Values(text) <= MaxValues {
		return nil
	}
	return ErrValues
}

// Values counts the separators of values in YAML and in JSON: line ends, brackets, commas, colons and dashes, also inside
// strings. A line end after another separator is not counted.
func Values(text []byte) int {
	n := 0
	var last byte
	for i, c := range text {
		switch c {
		case ',', '[', '{':
			n++
		case '\n':
			if last != ',' && last != '[' && last != '{' && last != '\r' {
				n++
			}
		case '\r', 0x85, 0xA8, 0xA9: // YAML 1.1 ends lines with U+0085, U+2028 and U+2029, too
			if c == '\r' || c == 0x85 && last == 0xC2 || c != 0x85 && last == 0x80 {
				n++
			}
		case ':', '-', '?':
			// A colon after a quote separates without a blank.
			if i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\t' || last == '"' || last == '\'' {
				n++
			}
		}
		last = c
	}
	return n
}
