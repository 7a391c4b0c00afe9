package console

import (
	"bytes"
	"strings"
	"testing"
)

// TestConsoleShortensNames gives the console a name that no object can have: 200 characters of it are shown, once.
func TestConsoleShortensNames(t *testing.T) {
	var out bytes.Buffer
	name := strings.Repeat("a", 100_000)
	New(&out).Warn(`"` + name + `" is not valid, and "` + name + `" is long`)
	want := `warning: "` + name[:200] + `…" is not valid, and "` + name[:20] + "…\" is long\n"
	if out.String() != want {
		t.Errorf("got %d bytes, want %q", out.Len(), want)
	}
	legal := strings.Repeat("b", 253)
	if got := shortened(legal); got != legal {
		t.Errorf("a legal name became %q", got)
	}
}
