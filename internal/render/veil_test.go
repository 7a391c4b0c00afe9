package render

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/conceal"
)

// The hidden input of a build contains no value of a Secret, and is otherwise unchanged.
func TestHiddenDocuments(t *testing.T) {
	for name, text := range map[string]string{
		"data":                   "kind: Secret\ndata:\n  k: CANARY\n  l: [CANARYLIST]\nplain: seen\n",
		"string data":            "kind: Secret\nstringData:\n  k: CANARY\nplain: seen\n",
		"a number":               "kind: Secret\nstringData: {k: 7777777}\nplain: seen\n",
		"an anchor":              "kind: Secret\nstringData: {k: &a CANARY, l: *a}\nplain: seen\n",
		"the second document":    "kind: ConfigMap\ndata: {k: seen}\n---\nkind: Secret\ndata: {k: CANARY}\n",
		"an item of a list":      "kind: List\nitems:\n- kind: Secret\n  data: {k: CANARY}\n- {kind: ConfigMap, data: {k: seen}}\n",
		"a generator's file":     "kind: SecretGenerator\nliterals: [k=CANARY]\nplain: seen\n",
		"a generator's field":    "kind: Kustomization\nsecretGenerator:\n- {name: s, literals: ['k=CANARY']}\nplain: seen\n",
		"a patch of a Secret":    "patches:\n- target: {kind: Secret}\n  patch: |\n    - {op: add, path: /data/k, value: CANARY}\n    - {op: add, path: /stringData, value: {k: CANARY}}\nplain: seen\n",
		"a patch that is a text": "patches:\n- patch: |\n    kind: Secret\n    stringData: {k: CANARY}\nplain: seen\n",
	} {
		t.Run(name, func(t *testing.T) {
			shown := string(hiddenDocuments([]byte(text)))
			for _, secret := range []string{"CANARY\n", "CANARY\"", "CANARY,", "CANARY}", "=CANARY", "7777777"} {
				if strings.Contains(shown+"\n", secret) {
					t.Errorf("shows a value of a Secret:\n%s", shown)
				}
			}
			if !strings.Contains(shown, "seen") {
				t.Errorf("does not show what is no value of a Secret:\n%s", shown)
			}
		})
	}
}

// The value that a JSON patch puts into data can still be decoded: the API accepts only base64 there.
func TestHiddenPatch(t *testing.T) {
	shown := string(hiddenDocuments([]byte("patches:\n- target: {kind: Secret}\n  patch: '[{op: add, path: /data/k, value: CANARY}, {op: add, path: /stringData/k, value: CANARY}]'\n")))
	for _, want := range []string{"value: \"" + conceal.Hidden + "\"", "path: /data/k"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is missing in:\n%s", want, shown)
		}
	}
	if n := strings.Count(shown, conceal.Hidden); n != 1 {
		t.Errorf("%d values stand as they are for people, want the one of stringData:\n%s", n, shown)
	}
}

func TestHiddenEnv(t *testing.T) {
	got := string(hiddenEnv([]byte("# a=comment\nKEY=CANARY\nOTHER\n")))
	if want := "# a=comment\nKEY=" + conceal.Hidden + "\nOTHER\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Each field that copies values between objects requires a second build with hidden values.
func TestCarries(t *testing.T) {
	for name, test := range map[string]struct {
		k    types.Kustomization
		want bool
	}{
		"nothing":      {types.Kustomization{Resources: []string{"a.yaml"}}, false},
		"replacements": {types.Kustomization{Replacements: make([]types.ReplacementField, 1)}, true},
		"vars":         {types.Kustomization{Vars: make([]types.Var, 1)}, true}, //nolint:staticcheck // people still write vars
		"generators":   {types.Kustomization{Generators: []string{"g.yaml"}}, true},
		"transformers": {types.Kustomization{Transformers: []string{"t.yaml"}}, true},
		"two of them":  {types.Kustomization{Generators: []string{"g.yaml"}, Transformers: []string{"t.yaml"}}, true},
	} {
		c := newClosure()
		c.dirs = append(c.dirs, &directory{kustomization: &test.k})
		if got := c.carries(); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// A hash at the end of a name does not reveal the Secret, and references to the name must stay valid.
func TestUnhashed(t *testing.T) {
	for _, test := range []struct{ content, veiled, want string }{
		{"secret-2m5f9hkgt8", "secret-7kc94g4ffb", "secret-2m5f9hkgt8"},
		{"secret-2m5f9hkgt8", "hidden-7kc94g4ffb", "hidden-7kc94g4ffb"},
		{"secret-2m5f9HKGT8", "secret-7kc94g4ffb", "secret-7kc94g4ffb"},
		{"secret_2m5f9hkgt8", "secret_7kc94g4ffb", "secret_7kc94g4ffb"},
		{"-2m5f9hkgt8", "-7kc94g4ffb", "-7kc94g4ffb"},
		{"CANARY", conceal.Hidden, conceal.Hidden},
	} {
		got := unhashed(map[string]any{"list": []any{test.content}}, map[string]any{"list": []any{test.veiled}})
		if list, _ := got.(map[string]any)["list"].([]any); len(list) != 1 || list[0] != test.want {
			t.Errorf("%s, hidden %s: got %v, want %s", test.content, test.veiled, got, test.want)
		}
	}
	if got := unhashed([]any{"a", "b"}, []any{"c"}).([]any); len(got) != 1 || got[0] != "c" {
		t.Errorf("lists of two lengths: got %v", got)
	}
}

func TestAllHidden(t *testing.T) {
	got := allHidden(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "CANARY", "n": []any{int64(7), nil}},
		"metadata": map[string]any{"name": "n", "namespace": "ns", "labels": map[string]any{"l": "CANARY"}},
	})
	meta := got["metadata"].(map[string]any)
	if got["apiVersion"] != "v1" || got["kind"] != "ConfigMap" || meta["name"] != "n" || meta["namespace"] != "ns" {
		t.Errorf("does not say what object it is: %v", got)
	}
	data := got["data"].(map[string]any)
	list := data["n"].([]any)
	if data["k"] != conceal.Hidden || list[0] != conceal.Hidden || list[1] != nil || meta["labels"].(map[string]any)["l"] != conceal.Hidden {
		t.Errorf("shows what it holds: %v", got)
	}
}

// TestSecretFiles keeps the names in a file that one generator reads by lines, even if another generator reads it as a whole.
func TestSecretFiles(t *testing.T) {
	of := func(files, envs []string) types.SecretArgs {
		return types.SecretArgs{GeneratorArgs: types.GeneratorArgs{KvPairSources: types.KvPairSources{FileSources: files, EnvSources: envs}}}
	}
	lines, whole := of(nil, []string{"a.env"}), of([]string{"a.env", "key=b"}, nil)
	for _, list := range [][]types.SecretArgs{{lines, whole}, {whole, lines}} {
		got := map[string]bool{}
		secretFiles("dir", &types.Kustomization{SecretGenerator: list}, got)
		isLines, found := got[filepath.Join("dir", "b")]
		if !got[filepath.Join("dir", "a.env")] || isLines || !found {
			t.Errorf("%v", got)
		}
	}
}
