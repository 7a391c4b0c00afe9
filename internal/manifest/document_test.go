package manifest

import (
	"runtime"
	"strings"
	"testing"
)

// TestTreeIsKept checks that a small document drops its tree after use, and a large one keeps it: there, each finding
// would cost a parse.
func TestTreeIsKept(t *testing.T) {
	for name, kept := range map[string]bool{"small": false, "large": true} {
		t.Run(name, func(t *testing.T) {
			text := "kind: A\nspec:\n  b: " + strings.Repeat("x", 100) + "\n"
			if kept {
				text += "  c: " + strings.Repeat("y", smallDocument) + "\n"
			}
			d := newDocument("a.yaml", []byte(text), 0, 0, false)
			for range 2 {
				root, err := d.root()
				if err != nil || scalar(root, "kind") != "A" || d.pos(locate(root, []any{"spec", "b"})).Line != 3 {
					t.Fatalf("tree %v, error %v", root, err)
				}
				runtime.GC()
				if got := d.read.Value() != nil; got != kept {
					t.Errorf("the tree is kept: %v, want %v", got, kept)
				}
			}
		})
	}
}
