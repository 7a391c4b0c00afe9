package console

import (
	"strings"
	"testing"
	"unicode"
)

// FuzzPrintable: nothing that is left moves the cursor or turns the direction of writing, and all else is left.
func FuzzPrintable(f *testing.F) {
	for _, text := range []string{"a\tb\n", "\x1b[31mred", "\u009b31m", "a\u202eb", "\r\x00\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		obeyed := func(r rune) bool {
			return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
		}
		got := Printable(text)
		if strings.ContainsFunc(got, obeyed) {
			t.Errorf("%q becomes %q", text, got)
		}
		if !strings.ContainsFunc(text, obeyed) && got != strings.ToValidUTF8(text, "\uFFFD") && got != text && strings.ToValidUTF8(text, "") == text {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
