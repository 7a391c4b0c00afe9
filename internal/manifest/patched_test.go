package manifest

import "testing"

func TestPatchSets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		path       []any
		line       int // 0 if the patch does not set it
	}{
		{"a field", "spec:\n  a:\n    b: 1\n", []any{"spec", "a", "b"}, 3},
		{"what it does not name", "spec:\n  a:\n    b: 1\n", []any{"spec", "a", "c"}, 0},
		{"a list is set as a whole", "spec:\n  list: [x]\n", []any{"spec", "list", 3, "name"}, 2},
		{"an operation", "- op: add\n  path: /spec/a\n  value:\n    b: 1\n", []any{"spec", "a", "b"}, 4},
		{"one on a parent", "- op: add\n  path: /spec/a\n  value: {c: 1}\n", []any{"spec", "a", "b"}, 3},
		{"one without a value", "- op: remove\n  path: /spec/a~1b\n", []any{"spec", "a/b"}, 2},
		{"one at the end of a list", "- op: add\n  path: /spec/list/-\n  value: x\n", []any{"spec", "list", 2}, 3},
		{"one on another field", "- op: add\n  path: /spec/ab\n  value: x\n", []any{"spec", "a"}, 0},
		{"the last of two", "- {op: add, path: /a, value: 1}\n- {op: add, path: /a, value: 2}\n", []any{"a"}, 2},
		{"no YAML", "spec: [", []any{"spec"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			line := 0
			if n := (Patch{Text: test.text}).Sets(test.path...); n != nil {
				line = n.Line
			}
			if line != test.line {
				t.Errorf("line %d, want %d", line, test.line)
			}
		})
	}
}
