package console

import (
	"strings"
	"testing"
)

func TestFew(t *testing.T) {
	five := []string{"a", "b", "c", "d", "e"}
	for want, texts := range map[string][]string{"": nil, "a, b, c, d, e": five, "a, b, c, d, e and 2 more": append(five, "f", "g")} {
		if got := Few(texts); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestDefuse looks for workflow commands in lines that quote something.
func TestDefuse(t *testing.T) {
	for _, text := range []string{
		"::error::x", "  ::set-output name=a::b", "a\n::stop-commands::x\n\t::x", "before ##[add-mask]x", "##[##[x", ":: ::",
	} {
		for line := range strings.Lines(defuse(text)) {
			if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") {
				t.Errorf("%q becomes %q", text, line)
			}
		}
	}
	for _, text := range []string{"HelmChart a::b", "#[x]", "plain\n  lines: :\n"} {
		if got := defuse(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}
