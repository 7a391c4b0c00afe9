package marked

import (
	"fmt"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/edit"
)

// Aliases are not followed, so a document that would expand to millions of values costs nothing; and thousands of markers
// are found in one walk.
func TestFieldsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x]\n")
	for i := range 50 {
		fmt.Fprintf(&b, "a%d: &a%[1]d [*a%d, *a%[2]d, *a%[2]d]\n", i+1, i)
	}
	for i := range 5000 {
		fmt.Fprintf(&b, "k%d: 1.0.0 # {\"$imagepolicy\": \"default:app:tag\"}\n", i)
	}
	f := edit.Parse([]byte(b.String()))
	if got := len(Fields(f.Documents()[0])); got != 5000 {
		t.Errorf("%d fields", got)
	}
}

func TestAt(t *testing.T) {
	f := edit.Parse([]byte("version: 1.0.0\nspec:\n  version: 1.0.0\n---\na: {version: 1, b: {version: 1}}\nc:\n  version:\n    1.0.0\n"))
	for line, want := range map[int]bool{1: true, 2: false, 3: true, 8: true} {
		if _, n := At(f.Documents(), line, "version", "1.0.0"); (n != nil) != want {
			t.Errorf("line %d: %v", line, n)
		}
	}
	if _, n := At(f.Documents(), 5, "version", "1"); n != nil {
		t.Error("one of two was taken")
	}
}

func TestSealed(t *testing.T) {
	for text, want := range map[string]bool{
		"a: 1\n": false, "sops: {mac: x}\n": true, "sops: {mac: x, mac_only_encrypted: true}\n": false, "sops: x\n": false, "- sops\n": false,
	} {
		if got := Sealed(edit.Parse([]byte(text)).Documents()[0].Root); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
