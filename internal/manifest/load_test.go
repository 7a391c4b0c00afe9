package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/finding"
	"golang.org/x/tools/txtar"
)

// write unpacks a txtar into a directory and makes that the working directory, so that positions are short.
func write(t *testing.T, archive string) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

func names(s *Set) string {
	var list []string
	for _, o := range s.Objects() {
		list = append(list, o.Name)
	}
	return strings.Join(list, " ")
}

func load(t *testing.T, o Options) (*Set, []error) {
	t.Helper()
	return Load(t.Context(), o)
}

func tree() string {
	return "-- a.yaml --\n" + named("a") +
		"-- b.yml --\n" + named("b") +
		"-- c.json --\n" + jsonNamed("c") + "\n" +
		"-- d.txt --\n" + named("d") +
		"-- README.md --\n# hello: {\n" +
		"-- sub/e.yaml --\n" + named("e") +
		"-- sub/deep/f.yaml --\n" + named("f") +
		"-- dir.yaml/g.yaml --\n" + named("g") +
		"-- .git/h.yaml --\n" + named("h") +
		"-- .hidden/i.yaml --\n" + named("i") +
		"-- artifacts/j.yaml --\n" + named("j")
}

func TestLoad(t *testing.T) {
	tests := []struct {
		name    string
		options Options
		want    string
	}{
		{"a file", Options{Files: []string{"a.yaml"}}, "a"},
		{"any extension when named", Options{Files: []string{"d.txt"}}, "d"},
		{"files in the order given", Options{Files: []string{"b.yml", "a.yaml"}}, "b a"},
		{"the same file twice", Options{Files: []string{"a.yaml", "./a.yaml", "sub/../a.yaml", "."}}, "a b c"},
		{"a directory", Options{Files: []string{"."}}, "a b c"},
		{"a directory and below", Options{Files: []string{"."}, Recursive: true}, "a j b c g f e"},
		{"without the artifacts", Options{Files: []string{"."}, Recursive: true, SkipDirs: []string{"./artifacts/", "nowhere"}}, "a b c g f e"},
		{"a skipped directory that is named", Options{Files: []string{"artifacts"}, Recursive: true, SkipDirs: []string{"artifacts"}}, "j"},
		{"a dot-directory that is named", Options{Files: []string{".hidden"}, Recursive: true}, "i"},
		{"a glob", Options{Files: []string{"[ab].y*ml"}}, "a b"},
		{"a glob over directories", Options{Files: []string{"su*"}}, "e"},
		{"standard input", Options{Files: []string{"-", "-"}, Stdin: strings.NewReader(named("x"))}, "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, tree())
			s, errs := load(t, tt.options)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := names(s); got != tt.want {
				t.Errorf("objects %s, want %s", got, tt.want)
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	broken := tree() +
		"-- broken/flux.yaml --\n# toolkit.fluxcd.io\na: b: c\n" +
		"-- broken/template.yaml --\na: {{ b }\n" +
		"-- broken/two.yaml --\n" + named("k") + "---\na: b: c\n" +
		"-- broken/z.yaml --\n" + named("z")
	tests := []struct {
		name  string
		files []string
		want  string
		errs  []string
	}{
		{"missing file", []string{"nope.yaml", "a.yaml"}, "a", []string{"nope.yaml: no such file or directory"}},
		{"glob without a match", []string{"nope*.yaml"}, "", []string{"nope*.yaml: no match: file does not exist"}},
		{"bad glob", []string{"[a"}, "", []string{"[a: no match: syntax error in pattern"}},
		{"double star", []string{"**/*.yaml"}, "", []string{"**/*.yaml: ** is not supported: name the directory and use --recursive"}},
		{"URL", []string{"https://u:secret@h/*.yaml"}, "", []string{"a URL cannot be read: download it and name the file, or pipe it into -f -"}},
		{"a file that was named is always judged", []string{"broken/template.yaml"}, "", []string{"broken/template.yaml:1:1: did not find expected ',' or '}'"}},
		{"no standard input", []string{"-"}, "", []string{"no standard input"}},
		// A file that cannot be parsed has no objects, and a template without a mention of Flux is skipped.
		{"a directory", []string{"broken"}, "z", []string{"broken/flux.yaml:2:4: a colon before a space begins a value in YAML", "broken/two.yaml:6:4: a colon before a space begins a value in YAML"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(t, broken)
			s, errs := load(t, Options{Files: tt.files})
			if got := names(s); got != tt.want {
				t.Errorf("objects %s, want %s", got, tt.want)
			}
			if len(errs) != len(tt.errs) {
				t.Fatalf("errors %v, want %v", errs, tt.errs)
			}
			for i, err := range errs {
				if filepath.ToSlash(err.Error()) != tt.errs[i] && runtime.GOOS != "windows" {
					t.Errorf("error %s\n want %s", err, tt.errs[i])
				}
			}
			if tt.name == "a directory" && (len(s.Skips()) != 1 || s.Skips()[0].File != filepath.Join("broken", "template.yaml")) {
				t.Errorf("skipped %v, want the template", s.Skips())
			}
		})
	}
}

func TestSameFileUnderAnotherName(t *testing.T) {
	write(t, tree())
	if err := os.Symlink("a.yaml", "link.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sub", "linked"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", "dangling.yaml"); err != nil {
		t.Fatal(err)
	}
	s, errs := load(t, Options{Files: []string{"a.yaml", "link.yaml", ".", "linked/e.yaml", "sub"}})
	if len(errs) > 0 || names(s) != "a b c e" {
		t.Errorf("objects %s, errors %v", names(s), errs)
	}
	// A walk does not follow links to directories: they may lead in circles.
	s, errs = load(t, Options{Files: []string{"."}, Recursive: true})
	if len(errs) > 0 || strings.Count(names(s), "e") != 1 {
		t.Errorf("objects %s, errors %v", names(s), errs)
	}
}

func TestLargeFile(t *testing.T) {
	write(t, tree())
	f, err := os.Create("large.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(maxFileSize+1), f.Close()); err != nil {
		t.Fatal(err)
	}
	_, errs := load(t, Options{Files: []string{"large.yaml"}})
	if len(errs) != 1 || errs[0].Error() != "large.yaml: larger than 32 MiB" {
		t.Errorf("errors %v", errs)
	}
	_, errs = load(t, Options{Files: []string{"-"}, Stdin: endless{}})
	if len(errs) != 1 || errs[0].Error() != "<stdin>: larger than 32 MiB" {
		t.Errorf("errors %v", errs)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}

// Reading a terminal or a pipe may never end.
func TestStdinIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reading := make(chan struct{})
	go func() {
		<-reading
		cancel()
	}()
	_, errs := Load(ctx, Options{Files: []string{"-"}, Stdin: silent{reading}})
	if len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("errors %v, want the context's", errs)
	}
}

type silent struct{ reading chan struct{} }

func (s silent) Read([]byte) (int, error) {
	close(s.reading)
	select {}
}

func TestUnreadable(t *testing.T) {
	if os.Getuid() <= 0 {
		// Root ignores permissions, and Windows does not have them: a directory in the place of a file serves there.
		write(t, tree())
		_, err := read(t.Context(), "sub")
		if err == nil {
			t.Error("a directory was read as a file")
		}
		return
	}
	write(t, tree())
	if err := os.Chmod("a.yaml", 0); err != nil {
		t.Fatal(err)
	}
	s, errs := load(t, Options{Files: []string{"."}})
	if len(errs) != 1 || !errors.Is(errs[0], fs.ErrPermission) || names(s) != "b c" {
		t.Errorf("objects %s, errors %v", names(s), errs)
	}
}

func TestNamespaces(t *testing.T) {
	write(t, "-- f.yaml --\n"+named("a")+"---\n"+named("b")+"  namespace: apps\n")
	for _, tt := range []struct{ option, want string }{{"", "default"}, {"flux-system", "flux-system"}} {
		s, errs := load(t, Options{Files: []string{"f.yaml"}, DefaultNamespace: tt.option})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if got := s.Objects()[0].Namespace; got != tt.want {
			t.Errorf("namespace %s, want %s", got, tt.want)
		}
		if got := s.Objects()[1].Namespace; got != "apps" {
			t.Errorf("namespace %s, want apps", got)
		}
	}
}

func TestDuplicates(t *testing.T) {
	write(t, "-- a.yaml --\n"+named("a")+"---\n"+named("b")+
		"-- b.yaml --\n"+strings.Replace(named("a"), "/v1", "/v1beta2", 1)+"  namespace: default\n---\n"+named("a")+"  namespace: other\n"+
		"---\n"+strings.Replace(named("a"), "HelmChart", "HelmRepository", 1))
	s, errs := load(t, Options{Files: []string{"."}})
	if want := "HelmChart default/a is defined 2 times: a.yaml:1:1 and b.yaml:1:1"; len(errs) != 1 || errs[0].Error() != want {
		t.Errorf("errors %v, want %s", errs, want)
	}
	if names(s) != "b a a" {
		t.Errorf("objects %s", names(s))
	}
	var dup *DuplicateError
	if _, err := s.Lookup(SourceGroup, "HelmChart", "default", "a"); !errors.As(err, &dup) || len(dup.Places) != 2 {
		t.Errorf("lookup: %v", err)
	}
}

func TestOtherKinds(t *testing.T) {
	doc := func(apiVersion, kind string) string {
		return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: x}\n", apiVersion, kind)
	}
	write(t, "-- f.yaml --\n"+
		doc("source.toolkit.fluxcd.io/v1", "OCIRepository")+doc("source.toolkit.fluxcd.io/v1", "ExternalArtifact")+
		doc("helm.toolkit.fluxcd.io/v2", "HelmRelease")+doc("kustomize.toolkit.fluxcd.io/v1beta2", "Kustomization")+
		doc("kustomize.toolkit.fluxcd.io/v1", "Kustomization")+doc("kustomize.config.k8s.io/v1beta1", "Kustomization")+
		doc("helm.cattle.io/v1", "HelmChart")+doc("v1", "Secret")+doc("apps/v1", "Deployment")+
		doc("source.toolkit.fluxcd.io/v1", "HelmChrt")+doc("source.toolkit.fluxcd.io/v1", "Whatever")+
		"---\nkind: HelmChart\nmetadata: {name: x}\n---\napiVersion: source.toolkit.fluxcd.io/v1\nmetadata: {name: x}\n"+
		doc("source.toolkit.fluxcd.io", "Bucket")+doc("helm.integrations.flux.weave.works/v1alpha2", "FluxHelmRelease")+doc("example.com/v1", "AllowList")+"items: 5\n")
	s, errs := load(t, Options{Files: []string{"f.yaml"}})
	want := []KindCount{{"helm.integrations.flux.weave.works", "FluxHelmRelease", 1}}
	if got := s.Skipped(); !slices.Equal(got, want) {
		t.Errorf("skipped %v, want %v", got, want)
	}
	if got := s.Objects(); len(got) != 4 || got[0].Kind != "OCIRepository" || got[1].Kind != "ExternalArtifact" || got[2].Kind != "HelmRelease" || got[3].Kind != "Bucket" {
		t.Errorf("objects %v", got)
	}
	if !slices.Contains(s.Kinds(), KindCount{"apps", "Deployment", 1}) || !slices.Contains(s.Kinds(), KindCount{"", "Secret", 1}) {
		t.Errorf("kinds %v", s.Kinds())
	}
	wantErrs := []string{
		`f.yaml:39:1: no matches for kind "HelmChrt" in version "source.toolkit.fluxcd.io/v1"`,
		`f.yaml:43:1: no matches for kind "Whatever" in version "source.toolkit.fluxcd.io/v1"`,
		"f.yaml:46:1: apiVersion not set", "f.yaml:49:1: kind not set",
	}
	if fmt.Sprint(errs) != fmt.Sprint(wantErrs) {
		t.Errorf("errors %v\n want %v", errs, wantErrs)
	}
	var kind *ParseError
	if !errors.As(errs[0], &kind) || kind.Hint() != "did you mean HelmChart?" || kind.Finding() != finding.UnknownKind {
		t.Errorf("hint %q", kind.Hint())
	}
}

func TestUTF16(t *testing.T) {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		text := []byte(mark)
		for _, r := range named("ä") {
			low, high := byte(r), byte(r>>8)
			if mark == "\xff\xfe" {
				text = append(text, low, high)
			} else {
				text = append(text, high, low)
			}
		}
		s := NewSet("")
		if err := s.Add("f", text); err != nil || names(s) != "ä" {
			t.Errorf("%x: objects %s, error %v", mark, names(s), err)
		}
	}
}
