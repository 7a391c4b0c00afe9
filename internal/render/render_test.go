package render

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// write puts files below a directory.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// load reads a directory as a run with one cluster does.
func load(ctx context.Context, dir string, o Options) (*manifest.Set, *Result, []error) {
	o.Getenv = func(string) string { return "" }
	return loadWith(ctx, dir, o)
}

func loadWith(ctx context.Context, dir string, o Options) (*manifest.Set, *Result, []error) {
	o.Namespace = "default"
	in := manifest.Read(ctx, manifest.Options{Files: []string{dir}, Recursive: true})
	result := New(ctx, in, o).Clusters()[0].Build()
	set, errs := in.Set(result.Build)
	return set, result, errs
}

const (
	head        = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
	fromBoot    = "  interval: 1h\n  prune: true\n  sourceRef: {kind: GitRepository, name: flux-system}\n"
	aRepository = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: %s, namespace: apps}\nspec: {url: \"http://repo.test\"}\n"
)

func fluxOf(name, path, more string) string {
	return head + "metadata: {name: " + name + ", namespace: flux-system}\nspec:\n" + fromBoot + "  path: " + path + "\n" + more
}

func names(set *manifest.Set) []string {
	var list []string
	for _, o := range set.Objects() {
		list = append(list, o.Namespace+"/"+o.Name)
	}
	return list
}

func TestOrigins(t *testing.T) {
	for _, test := range []struct {
		name  string
		edges [][]int
		want  []int
	}{
		{"none", nil, nil},
		{"alone", [][]int{{}, {}}, []int{0, 1}},
		{"a chain", [][]int{{}, {0}, {1}}, []int{2}},
		{"a circle", [][]int{{1}, {2}, {0}}, []int{0}},
		{"what a circle leads to", [][]int{{}, {2, 0}, {1}}, []int{1}},
		{"a circle that something leads into", [][]int{{1}, {0}, {0}}, []int{2}},
		{"two circles", [][]int{{1}, {0}, {3}, {2}}, []int{0, 2}},
		{"one into itself", [][]int{{0}}, []int{0}},
	} {
		if got := origins(test.edges); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

// TestSubstitute checks the expressions of the reference: §C.4.
func TestSubstitute(t *testing.T) {
	v := newVariables(UnsetFails, kustomize.NewBudget(func(error) {}))
	v.set(map[string]string{"a": "Hello", "e": "", "p": "one.two.three", "n": "x\ny\n"}, public)
	for _, test := range []struct{ text, want string }{
		{"${a}", "Hello"}, {"$a", "$a"}, {"$${a}", "${a}"}, {"a $$ b", "a $ b"}, {"$$$${a}", "$${a}"},
		{"${u:=d}", "d"}, {"${u:-d}", "d"}, {"${u=d}", "d"}, {"${e=d}", "d"}, {"${u:?d}", "d"}, {"${u:+d}", "d"},
		{"${a:+d}", "Hello"}, {"${u:=}", ""}, {"${u:=${a}}", "Hello"}, {"${u:=pre${a}-x}", "preHello-x"},
		{"${u:=http://x/y}", "http://x/y"}, {"${#a}", "5"}, {"${a^^}", "HELLO"}, {"${a,,}", "hello"},
		{"${a:1}", "ello"}, {"${a:1:2}", "el"}, {"${a/l/L}", "HeLlo"}, {"${a//l/L}", "HeLLo"},
		{"${p#*.}", "two.three"}, {"${p##*.}", "three"}, {"${p%.*}", "one.two"}, {"${p%%.*}", "one"}, {"${n}", "xy"}, {"${1:-x}", "x"},
	} {
		if got, _, err := v.text(t.Context(), test.text); err != nil || got != test.want {
			t.Errorf("%s: got %q, %v, want %q", test.text, got, err, test.want)
		}
	}
	for _, test := range []struct{ text, want string }{
		{"${u}", `variable not set (strict mode): "u"`}, {"${a", "missing closing brace"}, {"${a-d}", "missing closing brace"},
		{"${a.b}", "missing closing brace"}, {"${{ x }}", "unable to parse variable name"}, {"${}", "unable to parse variable name"},
		{"${a/l}", "bad substitution"}, {strings.Repeat("${u:=", 200) + strings.Repeat("}", 200), "too deeply nested"},
		{strings.Repeat("${a}", maxExpressions+1), "too many variables"},
	} {
		if _, _, err := v.text(t.Context(), test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40s: got %v, want %s", test.text, err, test.want)
		}
	}
	v.set(map[string]string{"big": strings.Repeat("x", 1<<20)}, public)
	for _, text := range []string{strings.Repeat("${big}", 1000), "${big//x/" + strings.Repeat("y", 1<<20) + "}"} {
		if _, _, err := v.text(t.Context(), text); err == nil {
			t.Errorf("%.20s…: accepted", text)
		}
	}
}

// TestCircles builds Kustomizations that lead to themselves, once.
func TestCircles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a/flux.yaml": fluxOf("a", "./b", ""),
		"a/repo.yaml": fmt.Sprintf(aRepository, "a"),
		"b/flux.yaml": fluxOf("b", "./a", ""),
		"b/repo.yaml": fmt.Sprintf(aRepository, "b"),
		"c/self.yaml": fluxOf("c", "./c", ""),
	})
	set, _, errs := load(t.Context(), dir, Options{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if got := names(set); !slices.Equal(got, []string{"apps/b", "apps/a"}) {
		t.Errorf("got %v", got)
	}
}

// TestDepth refuses chains and towers of kustomizations that would never end.
func TestDepth(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("d%03d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../d%03d]\n", i+1)
	}
	files["d300/kustomization.yaml"] = "resources: [repo.yaml]\n"
	files["d300/repo.yaml"] = fmt.Sprintf(aRepository, "deep")
	write(t, dir, files)
	if _, _, errs := load(t.Context(), dir, Options{}); len(errs) == 0 || !strings.Contains(errs[0].Error(), "more than 100 kustomizations include each other") {
		t.Errorf("got %v", errs)
	}
	// Each level includes the next one twice, under other names.
	tower := t.TempDir()
	files = map[string]string{"e30/kustomization.yaml": "resources: [repo.yaml]\n", "e30/repo.yaml": fmt.Sprintf(aRepository, "x")}
	for i := range 30 {
		files[fmt.Sprintf("e%02d/kustomization.yaml", i)] = "resources: [a, b]\n"
		files[fmt.Sprintf("e%02d/a/kustomization.yaml", i)] = fmt.Sprintf("namePrefix: a\nresources: [../../e%02d]\n", i+1)
		files[fmt.Sprintf("e%02d/b/kustomization.yaml", i)] = fmt.Sprintf("namePrefix: b\nresources: [../../e%02d]\n", i+1)
	}
	write(t, tower, files)
	set, _, errs := load(t.Context(), tower, Options{})
	if len(errs) == 0 || len(set.Objects()) != 0 || !strings.Contains(errs[0].Error(), "more than 5000 kustomizations") {
		t.Errorf("%d objects, errors %v", len(set.Objects()), errs)
	}
}

// TestPluginBudget reads a file repeatedly for the configuration of plugins. All reads count for one build.
func TestPluginBudget(t *testing.T) {
	dir := t.TempDir()
	var plugins strings.Builder
	plugins.WriteString("configMapGenerator:\n")
	for i := range 100 {
		fmt.Fprintf(&plugins, "- {name: big%d, files: [big.txt]}\n", i)
	}
	write(t, dir, map[string]string{
		"kustomization.yaml":         "# toolkit.fluxcd.io\nresources: [repo.yaml]\ngenerators: [plugins]\n",
		"repo.yaml":                  fmt.Sprintf(aRepository, "a"),
		"plugins/kustomization.yaml": plugins.String(),
		"plugins/big.txt":            strings.Repeat("x", 30<<20),
	})
	_, _, errs := load(t.Context(), dir, Options{})
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "a build reads more than 128 MiB") {
		t.Errorf("errors %.300v", errs)
	}
}

// TestStopped ends with its context.
func TestStopped(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"kustomization.yaml": "resources: [repo.yaml]\n", "repo.yaml": fmt.Sprintf(aRepository, "x")})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, _, errs := load(ctx, dir, Options{}); len(errs) == 0 {
		t.Error("no error")
	}
}

// TestConfined looks at the file system that kustomize gets.
func TestConfined(t *testing.T) {
	outer := t.TempDir()
	write(t, outer, map[string]string{"secret": "x", "repo/in/file": "x"})
	root, err := absolute(filepath.Join(outer, "repo"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outer, "secret"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	r := &repository{ctx: t.Context(), root: root, display: func(p string) string { return p }, disk: newDisk(), dirs: map[string]*directory{}, budget: kustomize.NewBudget(func(error) {})}
	fs := &confined{ctx: t.Context(), repo: r, replace: map[string][]byte{filepath.Join(root, "made.yaml"): []byte("made")}, what: "repo"}
	for _, path := range []string{"link", "../secret", "in/../../secret", "nowhere"} {
		path := filepath.Join(root, path)
		if data, err := fs.ReadFile(path); err == nil {
			t.Errorf("%s: read %q", path, data)
		}
		if dir, err := fs.Directory(path); err == nil {
			t.Errorf("%s is %s", path, dir)
		}
	}
	if data, err := fs.ReadFile(filepath.Join(root, "made.yaml")); err != nil || string(data) != "made" {
		t.Errorf("got %q, %v", data, err)
	}
}

// TestPlainPath does not build anything where there is nothing to build.
func TestPlainPath(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"repo.yaml": fmt.Sprintf(aRepository, "x")})
	in := manifest.Read(t.Context(), manifest.Options{Files: []string{dir}, Recursive: true})
	r := New(t.Context(), in, Options{})
	result := r.Clusters()[0].Build()
	if r.plan != nil || len(result.Objects) > 0 || len(result.Claimed) > 0 || len(result.Errors) > 0 {
		t.Errorf("built %+v", result)
	}
}

// BenchmarkLoad reads 300 apps: each by itself, in one kustomization each, and each with a Kustomization of its own.
func BenchmarkLoad(b *testing.B) {
	for _, shape := range []string{"plain", "kustomized", "flux"} {
		b.Run(shape, func(b *testing.B) {
			dir := b.TempDir()
			files := map[string]string{}
			for i := range 300 {
				app := fmt.Sprintf("apps/a%03d/", i)
				files[app+"app/repo.yaml"] = fmt.Sprintf(aRepository, fmt.Sprintf("a%03d", i))
				if shape != "plain" {
					files[app+"app/kustomization.yaml"] = "namespace: apps\nresources: [repo.yaml]\n"
				}
				if shape == "flux" {
					files[app+"ks.yaml"] = fluxOf(fmt.Sprintf("a%03d", i), "./"+app+"app", "  postBuild: {substitute: {A: b}}\n")
					files[app+"kustomization.yaml"] = "resources: [ks.yaml]\n"
				}
			}
			if shape == "flux" {
				files["cluster/apps.yaml"] = fluxOf("apps", "./apps", "")
			}
			write(b, dir, files)
			for b.Loop() {
				set, _, errs := load(b.Context(), dir, Options{})
				if len(errs) > 0 || len(set.Objects()) != 300 {
					b.Fatal(len(set.Objects()), errs)
				}
			}
		})
	}
}

// FuzzBuild builds arbitrary input. Nothing may panic, or take longer than its limits allow.
func FuzzBuild(f *testing.F) {
	for _, seed := range []string{
		"resources: [repo.yaml]\nnamespace: a\n", "resources: [flux.yaml, repo.yaml]\npatches: [{path: repo.yaml}]\n",
		"configMapGenerator: [{name: a, literals: [a=b]}]\nvars: [{name: A, objref: {kind: ConfigMap, name: a, apiVersion: v1}}]\n",
		"replacements: [{source: {kind: HelmRepository}, targets: [{select: {kind: HelmRepository}, fieldPaths: [spec.url]}]}]\nresources: [repo.yaml]\n",
		"components: [.]\n", "resources: [.]\n", "bases: [..]\n", "images: [{name: a, newTag: b}]\nresources: [repo.yaml]\n",
	} {
		f.Add(seed, fluxOf("a", ".", "  postBuild: {substitute: {A: b}}\n"))
	}
	f.Fuzz(func(t *testing.T, kustomization, flux string) {
		dir := t.TempDir()
		write(t, dir, map[string]string{"kustomization.yaml": kustomization, "flux.yaml": flux, "repo.yaml": fmt.Sprintf(aRepository, "${A}")})
		_, _, errs := load(t.Context(), dir, Options{})
		for _, err := range errs {
			if strings.Contains(err.Error(), "internal error") {
				t.Errorf("%v", err)
			}
		}
	})
}
