package console

import "testing"

func TestFew(t *testing.T) {
	five := []string{"a", "b", "c", "d", "e"}
	for want, texts := range map[string][]string{"": nil, "a, b, c, d, e": five, "a, b, c, d, e and 2 more": append(five, "f", "g")} {
		if got := Few(texts); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
