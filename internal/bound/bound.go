// Package bound judges what a text in YAML or JSON comes to before anything decodes it. It decodes nothing itself.
package bound

import "fmt"

// MaxValues bounds the values of a text that is decoded at once. A parser needs up to 350 bytes for a value that has two
// in the text, so that is less than 400 MiB.
const MaxValues = 1 << 20

// ErrValues is a text with more values than a program should decode.
var ErrValues = fmt.Errorf("too many values: more than %d", MaxValues)

// Check returns [ErrValues] for a text that may have more than [MaxValues] values. Smaller texts are not read.
func Check(text []byte) error {
	if len(text) <= MaxValues || Values(text) <= MaxValues {
		return nil
	}
	return ErrValues
}

// Values counts what separates values in YAML and in JSON: the ends of lines, brackets, commas, colons and dashes, also
// inside of strings. A line that ends with one of them counts once.
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
