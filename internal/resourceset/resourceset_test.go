package resourceset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func setOf(t *testing.T, spec string, providers ...string) Set {
	t.Helper()
	content := func(text string) map[string]any {
		var m map[string]any
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	s := Set{Namespace: "apps", Name: "My-Set"}
	if err := Decode(map[string]any{"spec": content(spec)}, &s.Spec); err != nil {
		t.Fatal(err)
	}
	for _, text := range providers {
		m := content(text)
		p := Provider{Namespace: "apps", Name: m["name"].(string), Labels: map[string]string{"app": fmt.Sprint(m["app"])}}
		if err := Decode(m, &p.Spec); err != nil {
			t.Fatal(err)
		}
		s.Providers = append(s.Providers, p)
	}
	return s
}

func expand(t *testing.T, s Set) ([]string, error) {
	t.Helper()
	made, err := Expand(t.Context(), s)
	var list []string
	for _, o := range made {
		text, err := json.Marshal(o.Content)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(string(text), " ", o.Path))
	}
	return list, err
}

const (
	static = "name: one\napp: web\nspec: {type: Static, defaultValues: {tag: v1}}\n"
	asking = "name: prs\napp: web\nspec: {type: GitHubPullRequest}\n"
)

// resource is one whose data is a text.
func resource(text string) string {
	return fmt.Sprintf("resources:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: %q}}\n", text)
}

// data returns the data of the only object.
func data(t *testing.T, list []string) string {
	t.Helper()
	if len(list) != 1 {
		t.Fatalf("%d objects: %v", len(list), list)
	}
	_, after, _ := strings.Cut(list[0], `"data":{"a":`)
	before, _, _ := strings.Cut(after, `},"kind"`)
	return before
}

// This is case G18: types follow the text, and a missing field is an error.
func TestTemplates(t *testing.T) {
	tests := []struct{ inputs, text, want string }{
		{"v: \"1.10\"", "<< inputs.v >>", "1.1"},
		{"v: \"1.10\"", "<< inputs.v | quote >>", `"1.10"`},
		{"v: true", "<< inputs.v >>", "true"},
		{"v: 12345678901", "<< inputs.v >>", "12345678901"},
		{"v: {a: [1, b]}", "<< inputs.v | toJson >>", `{"a":[1,"b"]}`},
		{"v: Feature/Some_Thing", "<< inputs.v | slugify >>", `"feature-some_thing"`},
		{"v: x", `<< get inputs "w" | default "d" >>`, `"d"`},
		{"v: x", "<< inputs.provider.name >>", `"My-Set"`},
		{"v: {b: 1, a: 2}", "<< keys inputs.v | join \"-\" >>", `"a-b"`},
	}
	for _, tt := range tests {
		list, err := expand(t, setOf(t, "inputs: [{"+tt.inputs+"}]\n"+resource(tt.text)))
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
		} else if got := data(t, list); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.text, got, tt.want)
		}
	}
	for text, want := range map[string]string{
		"<< inputs.x >>":     `map has no entry for key "x"`,
		"<< .inputs.v >>":    "build failed: failed to build resources[0]: failed to execute template: ",
		"<< nosuch >>":       `function "nosuch" not defined`,
		"<< now >>":          `function "now" not defined`,
		"<< env \"HOME\" >>": `function "env" not defined`,
	} {
		_, err := expand(t, setOf(t, "inputs: [{v: 1}]\n"+resource(text)))
		wrong, ok := errors.AsType[*Error](err)
		if !ok || !strings.Contains(err.Error(), want) || !strings.HasPrefix(fmt.Sprint(wrong.Path), "[spec resources 0") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestExpressions counts the steps of a regular expression before it is run.
func TestExpressions(t *testing.T) {
	for _, text := range []string{
		`<< regexFind "(((x?){10}){10}){10}y" (repeat 10000 "xxxxxxxxxx") >>`,
		`<< regexSplit "x*y|x" (repeat 10000 "x") -1 >>`,
		`<< mustRegexFindAll "x*y|x" (repeat 10000 "x") -1 >>`,
		`<< regexReplaceAll "x*y|x" (repeat 5000 "x") "z" >>`,
		`<< range until 5000 >><< regexMatch "(x?){50}y" (repeat 1000 "x") >><< end >>`,
	} {
		if _, err := expand(t, setOf(t, resource(text))); err == nil || !strings.Contains(err.Error(), "more than 200000 steps") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		`<< regexReplaceAll "[^a-z0-9]+" (repeat 3000 "Ab") "-" >>`,
		`<< range until 500 >><< regexFind "^v?([0-9]+)[.]([0-9]+)" "v1.2.3" >><< end >>`,
		`<< regexSplit " *, *" "a, b, c" -1 | len >>`,
		`<< regexQuoteMeta "((x?){10})" >>`,
	} {
		if _, err := expand(t, setOf(t, resource(text))); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Endless templates, and those that make gigabytes of text, are an error after a short time.
func TestBombs(t *testing.T) {
	for name, text := range map[string]string{
		"loops":       "<< range until 1000 >><< range until 1000 >><< range until 1000 >><< end >><< end >><< end >>",
		"recursion":   `<< define "a" >><< template "a" >><< template "a" >><< end >><< template "a" >>`,
		"repeat":      "<< repeat 1000000000 \"x\" >>",
		"many":        "<< until 1000000000 >>",
		"doubling":    "<< $s := repeat 1000 \"x\" >>" + strings.Repeat("<< $s = printf \"%s%s\" $s $s >>", 40),
		"lists":       "<< $l := list 1 >>" + strings.Repeat("<< $l = list $l $l >>", 40) + "<< toYaml $l >>",
		"replacing":   "<< $s := repeat 10000 \"x\" >><< replace \"x\" $s $s >>",
		"joining":     "<< $s := repeat 10000 \"x\" >><< join $s (until 9000) >>",
		"a circle":    "<< $d := dict >><< $_ := set $d \"d\" $d >><< toYaml $d >>",
		"long output": "<< range until 9000 >><< repeat 1000 \"x\" >><< end >>",
		"indenting":   "<< indent 1000000000 \"x\" >>",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := expand(t, setOf(t, resource(text))); err == nil {
				t.Error("no error")
			}
		})
	}
	many := "inputs: [" + strings.Repeat("{a: b}, ", 3000) + "]\n"
	for name, spec := range map[string]string{
		"loops of many inputs":            many + resource("<< range until 5000 >><< end >>"),
		"a long template for many inputs": many + resource(strings.Repeat("x", maxText/2)),
		"heavy values of many inputs":     many + resource("<< range until 300 >><< $_ := repeat 10000 \"x\" >><< end >>"),
		"too many permutations":           "inputs: [" + strings.Repeat("{a: b}, ", maxPermutations+1) + "]\ninputStrategy: {name: Permute}\n" + resource("x"),
		"endless templates":               resource(`<< define "a" >>x<< template "a" >><< end >><< template "a" >>`),
		"a template of two that call":     resource(`<< define "a" >><< template "b" >><< end >><< define "b" >><< template "a" >><< end >><< template "b" >>`),
	} {
		t.Run(name, func(t *testing.T) {
			if list, err := expand(t, setOf(t, spec)); err == nil {
				t.Errorf("%d objects and no error", len(list))
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("it is over")
	cancel(over)
	if _, err := Expand(ctx, setOf(t, resource("x"))); !errors.Is(err, over) {
		t.Errorf("%v", err)
	}
}

// All sets of a cluster share a budget: many small ones are no way around it.
func TestBudget(t *testing.T) {
	s := setOf(t, resource("<< range until 500 >><< repeat 1000 \"x\" >><< end >>"))
	s.Budget = &Budget{}
	made := 0
	for ; made < 1000; made++ {
		if _, err := Expand(t.Context(), s); err != nil {
			if !strings.Contains(err.Error(), "more than 32 MiB of text in all ResourceSets") {
				t.Error(err)
			}
			break
		}
	}
	if made < 50 || made == 1000 {
		t.Errorf("%d sets", made)
	}
}

// Functions that use the machine, a clock or a server do not exist.
func TestNoSuchFunction(t *testing.T) {
	for _, call := range []string{
		"env \"HOME\"", "expandenv \"$HOME\"", "now", "date \"2006\" 0", "ago 0", "randAlpha 3", "randInt 1 2", "uuidv4", "getHostByName \"localhost\"",
		"include \"a\" .", "tpl \"x\" .", "lookup \"v1\" \"Secret\" \"a\" \"b\"", "readFile \"/etc/passwd\"", "genPrivateKey \"rsa\"", "htpasswd \"a\" \"b\"",
	} {
		if list, err := expand(t, setOf(t, resource("<< "+call+" >>"))); err == nil || !strings.Contains(err.Error(), "not defined") {
			t.Errorf("%s: %v, %v", call, list, err)
		}
	}
}

func TestInputs(t *testing.T) {
	const spec = "resources:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: \"c-<< inputs.provider.name | lower >>\"}, data: {a: x}}\n"
	const tagged = "resources:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: \"c-<< inputs.tag >>\"}, data: {a: x}}\n"
	count := func(s Set) string {
		list, err := expand(t, s)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(len(list))
	}
	for _, tt := range []struct {
		name, spec string
		providers  []string
		want       string
	}{
		{"none at all", resource("x"), nil, "1"},
		{"one", "inputs: [{}]\n" + spec, nil, "1"},
		{"the same name twice", "inputs: [{}, {}]\n" + spec, nil, "1"},
		{"a provider", "inputs: [{}]\ninputsFrom: [{name: one}]\n" + spec, []string{static}, "2"},
		{"by labels", "inputsFrom: [{selector: {matchLabels: {app: web}}}]\n" + spec, []string{static}, "1"},
		{"by expressions", "inputsFrom: [{selector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}}]\n" + spec, []string{static}, "0"},
		{"a server", "inputsFrom: [{name: prs}]\n" + spec, []string{asking}, "ResourceSetInputProvider apps/prs of type GitHubPullRequest requests its inputs from a server"},
		{"nowhere", "inputsFrom: [{name: two}]\n" + spec, []string{static}, "ResourceSetInputProvider apps/two is not in the input"},
		{"permuted", "inputs: [{a: 1}, {a: 2}]\ninputsFrom: [{name: one}]\ninputStrategy: {name: Permute}\nresources:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: \"c-<< inputs.my_set.a >>-<< inputs.one.tag >>-<< inputs.id >>\"}}\n", []string{static}, "2"},
		{"by an expression that matches", "inputsFrom: [{selector: {matchExpressions: [{key: app, operator: In, values: [web]}]}}]\n" + spec, []string{static}, "1"},
		{"a label that is there", "inputsFrom: [{selector: {matchExpressions: [{key: app, operator: Exists}]}}]\n" + spec, []string{static}, "1"},
		{"a provider twice", "inputsFrom: [{name: one}, {selector: {matchLabels: {app: web}}}]\n" + tagged, []string{static}, "1"},
		{"permuted with an empty provider", "inputsFrom: [{name: one}]\ninputStrategy: {name: Permute, includeEmptyProviders: true}\n" + spec, []string{static}, "0"},
		{"permuted without inline inputs", "inputsFrom: [{name: one}]\ninputStrategy: {name: Permute}\n" + resource("x"), []string{static}, "1"},
		{"one object in two steps", "steps: [{name: one, resources: [{apiVersion: v1, kind: A, metadata: {name: a, namespace: ns}}]}, {name: two, resources: [{apiVersion: v1, kind: A, metadata: {name: a, namespace: ns}}]}]\n", nil, `duplicate resource A/ns/a in step "two", already defined in step "one"`},
		{"a document without a kind", "resourcesTemplate: \"apiVersion: v1\\nmetadata: {name: a}\\n\"\n", nil, `build failed: failed to build resources template: Object 'Kind' is missing in '{"apiVersion":"v1","metadata":{"name":"a"}}'`},
		{"a document that is a text", "resourcesTemplate: \"nothing\\n\"\n", nil, `build failed: failed to build resources template: Object 'Kind' is missing in '"nothing"'`},
		{"a list", "resourcesTemplate: \"apiVersion: v1\\nkind: List\\nitems: [{apiVersion: v1, kind: A, metadata: {name: a}}, {apiVersion: v1, kind: A, metadata: {name: b}}]\\n\"\n", nil, "2"},
		{"a copy of nothing", "resources: [{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {fluxcd.controlplane.io/copyFrom: no-slash}}}]\n", nil, "invalid fluxcd.controlplane.io/copyFrom annotation value 'no-slash', must be in the format 'namespace/name'"},
		{"disabled, with a mistake", "resources: [{apiVersion: v1, kind: A, metadata: {name: << inputs.x >>, annotations: {fluxcd.controlplane.io/reconcile: disabled}}}]\ninputs: [{}]\n", nil, `build failed: failed to build resources[0]: failed to execute template: 6:11: executing "" at <inputs>: map has no entry for key "x"`},
		{"steps", "steps: [{name: one, resources: [{apiVersion: v1, kind: A, metadata: {name: a}}]}, {name: two, resourcesTemplate: \"apiVersion: v1\\nkind: B\\nmetadata: {name: b}\\n---\\n# nothing\\n\"}]\n", nil, "2"},
	} {
		if got := count(setOf(t, tt.spec, tt.providers...)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// This is a part of case G20: an object that is not reconciled is not made.
func TestAnnotations(t *testing.T) {
	s := setOf(t, "inputs: [{}]\ncommonMetadata: {labels: {team: a}}\nresources:\n"+
		"- {apiVersion: v1, kind: Secret, metadata: {name: copy, annotations: {fluxcd.controlplane.io/copyFrom: a/b}}}\n"+
		"- {apiVersion: v1, kind: Secret, metadata: {name: off, annotations: {fluxcd.controlplane.io/reconcile: disabled}}}\n")
	made, err := Expand(t.Context(), s)
	if err != nil || len(made) != 1 || !made[0].Copied {
		t.Fatalf("%v, %v", made, err)
	}
	if labels := made[0].Content["metadata"].(map[string]any)["labels"]; fmt.Sprint(labels) != "map[team:a]" {
		t.Errorf("labels %v", labels)
	}
}

// TestPermutations: the inputs of the set come first, then its providers by name; the id is made of their normalized names.
func TestPermutations(t *testing.T) {
	s := setOf(t, "inputs: [{a: 1}, {a: 2}]\ninputsFrom: [{name: z-one}, {name: b.two}]\ninputStrategy: {name: Permute}\n"+resource("<< inputs.id >>"),
		"name: z-one\nspec: {type: Static, defaultValues: {tag: v1}}\n", "name: b.two\nspec: {type: Static, defaultValues: {tag: v2}}\n")
	list, _, err := s.inputs()
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if got, want := list[1]["id"], checksum("my_set=1/btwo=0/z_one=0"); got != want {
		t.Errorf("id %s, want %s", got, want)
	}
}

// TestMade: nulls of inputs, labels that are no texts, and objects that come twice without inputs.
func TestMade(t *testing.T) {
	for _, tt := range []struct{ name, spec, want string }{
		{"a null is pruned", "inputs: [{a: null, b: 1}]\n" + resource("<< hasKey inputs `a` >><< hasKey inputs `b` >>"), `[{"apiVersion":"v1","data":{"a":"falsetrue"},"kind":"ConfigMap","metadata":{"name":"c"}} [spec resources 0]]`},
		{"own labels", "commonMetadata: {labels: {team: a}, annotations: {note: a}}\nresources: [{apiVersion: v1, kind: A, metadata: {name: a, labels: {own: o, team: b}, annotations: {note: b}}}]\n",
			`[{"apiVersion":"v1","kind":"A","metadata":{"annotations":{"note":"a"},"labels":{"own":"o","team":"a"},"name":"a"}} [spec resources 0]]`},
		{"labels", "commonMetadata: {labels: {team: a}}\nresources: [{apiVersion: v1, kind: A, metadata: {name: a, labels: {v: 1}}}]\n", `[{"apiVersion":"v1","kind":"A","metadata":{"labels":{"team":"a"},"name":"a"}} [spec resources 0]]`},
		{"labels alone", "resources: [{apiVersion: v1, kind: A, metadata: {name: a, labels: {v: 1}}}]\n", `[{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}} [spec resources 0]]`},
		{"no inputs", resource("<< inputs | toJson >>"), `[{"apiVersion":"v1","data":{"a":null},"kind":"ConfigMap","metadata":{"name":"c"}} [spec resources 0]]`},
		{"the last counts", "resources: [{apiVersion: v1, kind: A, metadata: {name: a}, x: 1}, {apiVersion: v1, kind: A, metadata: {name: a}, x: 2}]\n", `[{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"x":2} [spec resources 1]]`},
		{"the first counts", "inputs: [{}]\nresources: [{apiVersion: v1, kind: A, metadata: {name: a}, x: 1}, {apiVersion: v1, kind: A, metadata: {name: a}, x: 2}]\n", `[{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"x":1} [spec resources 0]]`},
	} {
		list, err := expand(t, setOf(t, tt.spec))
		if got := fmt.Sprint(list); err != nil || got != tt.want {
			t.Errorf("%s: %v, %v\nwant %s", tt.name, got, err, tt.want)
		}
	}
}

func TestSlugify(t *testing.T) {
	for text, want := range map[string]string{
		"fix & go": "fix-and-go", "a@b": "aatb", "it's \"so\"": "its-so", " Feature/Some_Thing! ": "feature-some_thing", "_a_": "a", "": "",
		strings.Repeat("a", 60) + "-" + strings.Repeat("b", 9): strings.Repeat("a", 60), strings.Repeat("a", 70): strings.Repeat("a", 63),
		strings.Repeat("a", 63) + "-b": strings.Repeat("a", 63),
	} {
		if got := slugify(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
