package chart

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/tree"
	"sigs.k8s.io/yaml"
)

// source makes a tree of files from name, data pairs.
func source(t testing.TB, pairs ...string) Source {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(pairs); i += 2 {
		name := filepath.Join(dir, filepath.FromSlash(pairs[i]))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(pairs[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return Source{Root: root}
}

// without is a filter that leaves out some files, and of a directory called .git everything.
func without(names ...string) tree.Filter {
	return func(name string, dir bool) tree.Choice {
		switch {
		case !slices.Contains(names, name):
			return tree.Keep
		case path.Base(name) == ".git":
			return tree.DropAll
		}
		return tree.Drop
	}
}

func TestEffectiveValuesFiles(t *testing.T) {
	for _, files := range [][]string{{"values.yaml"}, {"./values.yaml"}, {"a/../values.yaml"}} {
		if got := EffectiveValuesFiles(files); got != nil {
			t.Errorf("%q: got %q", files, got)
		}
	}
	for _, files := range [][]string{nil, {"a.yaml"}, {"values.yaml", "values.yaml"}, {"values.yml"}, {"charts/a/values.yaml"}} {
		if got := EffectiveValuesFiles(files); len(got) != len(files) {
			t.Errorf("%q: got %q", files, got)
		}
	}
}

// valuesCase is one merge. The result is YAML; used are the files that went into it.
type valuesCase struct {
	name   string
	files  []string
	ignore bool
	want   string
	used   []string
	err    string
	hint   string
}

func (tt valuesCase) run(t *testing.T, merge func([]string, bool) (map[string]any, []string, error)) {
	got, used, err := merge(tt.files, tt.ignore)
	if tt.err != "" {
		if err == nil || !strings.HasPrefix(err.Error(), tt.err) {
			t.Fatalf("got error %v, want %q", err, tt.err)
		}
		var missing *finding.Problem
		if errors.As(err, &missing) && missing.Hint() != tt.hint {
			t.Errorf("got hint %q, want %q", missing.Hint(), tt.hint)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	data, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != tt.want {
		t.Errorf("got %s, want %s", data, tt.want)
	}
	if fmt.Sprint(used) != fmt.Sprint(tt.used) || used == nil {
		t.Errorf("used %q, want %q", used, tt.used)
	}
}

func TestMergeValues(t *testing.T) {
	c := load(t, filesOf("podinfo", "Chart.yaml", minimal,
		"values.yaml", "c: d\nreplicas: 1\n---\nreplicas: 2\n",
		"a.yaml", "a: b\n", "b.yaml", "b: c\n", "c.yaml", "b: d\n",
		"maps.yaml", "m: {x: 1, k: {z: 1}, l: [1, 2]}\n", "over.yaml", "m: {k: {w: 2}, l: [3]}\n", "null.yaml", "m: {x: null}\n", "scalar-over.yaml", "m: 1\n",
		"exact.yaml", "id: 123456789012345678\nf: 1e3\n", "bom.yaml", "\xef\xbb\xbfa: b\n",
		"scalar.yaml", "scalar", "broken.yaml", "a: [", "empty.yaml", "", "values-production.yaml", "p: 1\n", "config/values.yaml", "k: 1\n",
		"templates/a.yaml", "a: b\n", "values.schema.json", "{}")...)
	for _, tt := range []valuesCase{
		{name: "case 29: in order", files: []string{"a.yaml", "b.yaml", "c.yaml"}, want: "a: b\nb: d\n", used: []string{"a.yaml", "b.yaml", "c.yaml"}},
		{name: "case 32: values.yaml means the defaults, all documents", files: []string{"values.yaml", "a.yaml"}, want: "a: b\nc: d\nreplicas: 2\n", used: []string{"values.yaml", "a.yaml"}},
		{name: "the same file twice", files: []string{"a.yaml", "a.yaml"}, want: "a: b\n", used: []string{"a.yaml", "a.yaml"}},
		{name: "names are cleaned", files: []string{"./a.yaml", "config/../b.yaml"}, want: "a: b\nb: c\n", used: []string{"./a.yaml", "config/../b.yaml"}},
		{name: "values.yaml elsewhere is another file", files: []string{"config/values.yaml"}, want: "k: 1\n", used: []string{"config/values.yaml"}},
		{name: "maps merge, lists do not", files: []string{"maps.yaml", "over.yaml"}, want: "m:\n  k:\n    w: 2\n    z: 1\n  l:\n  - 3\n  x: 1\n", used: []string{"maps.yaml", "over.yaml"}},
		{name: "null stays", files: []string{"maps.yaml", "null.yaml"}, want: "m:\n  k:\n    z: 1\n  l:\n  - 1\n  - 2\n  x: null\n", used: []string{"maps.yaml", "null.yaml"}},
		{name: "scalar over map over scalar", files: []string{"maps.yaml", "scalar-over.yaml", "null.yaml"}, want: "m:\n  x: null\n", used: []string{"maps.yaml", "scalar-over.yaml", "null.yaml"}},
		{name: "numbers keep their digits", files: []string{"exact.yaml"}, want: "f: 1000\nid: 123456789012345678\n", used: []string{"exact.yaml"}},
		{name: "byte order mark", files: []string{"bom.yaml"}, want: "a: b\n", used: []string{"bom.yaml"}},
		{name: "empty file", files: []string{"empty.yaml"}, want: "{}\n", used: []string{"empty.yaml"}},
		{name: "case 32: scalar file", files: []string{"scalar.yaml"}, err: "unmarshaling values from 'scalar.yaml' failed: "},
		{name: "broken file", files: []string{"broken.yaml"}, ignore: true, err: "unmarshaling values from 'broken.yaml' failed: "},
		{name: "case 32: missing", files: []string{"x.yaml"}, err: "no values file found at path 'x.yaml'"},
		{name: "missing, with a similar one", files: []string{"values-prodution.yaml"}, err: "no values file found at path 'values-prodution.yaml'", hint: "the chart contains 'values-production.yaml'"},
		{name: "missing, nothing like it", files: []string{"staging/overrides.yaml"}, err: "no values file found at path 'staging/overrides.yaml'"},
		{name: "templates are no values files", files: []string{"templates/a.yaml"}, err: "no values file found at path 'templates/a.yaml'", hint: "the chart contains 'a.yaml'"},
		{name: "climbing", files: []string{"../podinfo/a.yaml"}, err: "no values file found at path '../podinfo/a.yaml'", hint: "the chart contains 'a.yaml'"},
		{name: "case 32: some missing, ignored", files: []string{"a.yaml", "x.yaml", "b.yaml"}, ignore: true, want: "a: b\nb: c\n", used: []string{"a.yaml", "b.yaml"}},
		{name: "case 32: all missing, ignored", files: []string{"x.yaml", "y.yaml"}, ignore: true, want: "{}\n", used: []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.run(t, func(files []string, ignore bool) (map[string]any, []string, error) {
				return MergeValues(c, files, ignore)
			})
		})
	}
}

func TestSourceMergeValues(t *testing.T) {
	s := source(t, "charts/podinfo/Chart.yaml", minimal, "charts/podinfo/values-prod.yaml", "x: 1\n",
		"custom-values1.yaml", "replicaCount: 10\nnameOverride: first\n", "custom-values2.yaml", "replicaCount: 20\nfullnameOverride: second\n",
		"values.yaml", "root: true\n---\nsecond: document\n", "dir/a.yaml", "a: b\n", "scalar.yaml", "scalar", "large.yaml", strings.Repeat("#", 101), "hidden.yaml", "a: b\n")
	s.Limits.File = 100
	s.Filter = without("hidden.yaml")
	for _, tt := range []valuesCase{
		{name: "case 35: from the root of the source", files: []string{"custom-values1.yaml", "custom-values2.yaml"},
			want: "fullnameOverride: second\nnameOverride: first\nreplicaCount: 20\n", used: []string{"custom-values1.yaml", "custom-values2.yaml"}},
		{name: "values.yaml is that of the root, its first document", files: []string{"values.yaml", "dir/a.yaml"}, want: "a: b\nroot: true\n", used: []string{"values.yaml", "dir/a.yaml"}},
		{name: "clamped to the root", files: []string{"../../dir/a.yaml", "/dir/a.yaml"}, want: "a: b\n", used: []string{"../../dir/a.yaml", "/dir/a.yaml"}},
		{name: "case 36: traversal", files: []string{"../../../traversing/illegally/a/p/a/b"},
			err: "no values file found at path '/traversing/illegally/a/p/a/b' (reference '../../../traversing/illegally/a/p/a/b')"},
		{name: "missing, but below the chart", files: []string{"values-prod.yaml"}, err: "no values file found at path '/values-prod.yaml' (reference 'values-prod.yaml')",
			hint: "the source contains 'charts/podinfo/values-prod.yaml'; values files are looked up from its root"},
		{name: "missing, with a similar one", files: []string{"./custom-value1.yaml"}, err: "no values file found at path '/custom-value1.yaml' (reference './custom-value1.yaml')",
			hint: "the source contains 'custom-values1.yaml'; values files are looked up from its root"},
		{name: "hidden", files: []string{"hidden.yaml"}, err: "no values file found at path '/hidden.yaml'"},
		{name: "directory", files: []string{"dir"}, ignore: true, err: "no values file found at path '/dir' (reference 'dir')", hint: ""},
		{name: "the root", files: []string{"."}, err: "no values file found at path '/' (reference '.')"},
		{name: "scalar file", files: []string{"scalar.yaml"}, err: "unmarshaling values from 'scalar.yaml' failed: "},
		{name: "too large", files: []string{"large.yaml"}, err: "size of 'large.yaml' exceeds '100' bytes limit"},
		{name: "some missing, ignored", files: []string{"x.yaml", "dir/a.yaml", "hidden.yaml"}, ignore: true, want: "a: b\n", used: []string{"dir/a.yaml"}},
		{name: "all missing, ignored", files: []string{"x.yaml"}, ignore: true, want: "{}\n", used: []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.run(t, func(files []string, ignore bool) (map[string]any, []string, error) {
				return s.MergeValues("charts/podinfo", files, ignore)
			})
		})
	}
}

func TestOverwriteValues(t *testing.T) {
	for _, tt := range []struct {
		name, before, after string
		merged              map[string]any
		changed             bool
	}{
		{"case 42: identical bytes", "a: b\n", "a: b\n", map[string]any{"a": "b"}, false},
		{"case 42: new values", "a: b\n", "a: c\n", map[string]any{"a": "c"}, true},
		{"the same values, written otherwise", "# hi\na: b\n", "a: b\n", map[string]any{"a": "b"}, true},
		{"case 42: nothing merged empties it", "a: b\n", "", map[string]any{}, true},
		{"nothing merged, nothing there", "", "", map[string]any{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := load(t, filesOf("podinfo", "Chart.yaml", minimal, "values.yaml", tt.before)...)
			changed, err := OverwriteValues(c, tt.merged)
			if err != nil {
				t.Fatal(err)
			}
			if changed != tt.changed {
				t.Errorf("changed: %t", changed)
			}
			if got := string(rawValues(c)); got != tt.after {
				t.Errorf("got %q, want %q", got, tt.after)
			}
		})
	}
	t.Run("case 42: no values.yaml in the chart", func(t *testing.T) {
		c := load(t, filesOf("podinfo", "Chart.yaml", minimal)...)
		_, err := OverwriteValues(c, map[string]any{"a": "b"})
		if err == nil || err.Error() != "failed to locate values file: values.yaml" {
			t.Errorf("got error %v", err)
		}
	})
}
