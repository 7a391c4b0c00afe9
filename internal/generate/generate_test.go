package generate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"sigs.k8s.io/yaml"
)

// These are cases G7, G8, G9, G11, G12, G13, G15 and G16 of docs/coverage.md.

func treeOf(t *testing.T, files ...string) *Tree {
	t.Helper()
	tree := NewTree()
	for _, f := range files {
		name, content, _ := strings.Cut(f, "=")
		if err := tree.Add(name, File{Content: text(content)}); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func specOf(t *testing.T, text string) *swv1.ArtifactGeneratorSpec {
	t.Helper()
	spec := &swv1.ArtifactGeneratorSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// copying is a spec of one artifact, called out, of one source, called a.
func copying(operations string) string {
	return "sources: [{alias: a, kind: GitRepository, name: s}]\nartifacts:\n- name: out\n  copy:\n" + operations
}

func op(from, to string, more ...string) string {
	line := fmt.Sprintf("  - {from: %q, to: %q", from, to)
	for _, m := range more {
		line += ", " + m
	}
	return line + "}\n"
}

func made(t *testing.T, spec string, a *Tree) (map[string]string, []string, error) {
	t.Helper()
	s := specOf(t, spec)
	if err := Validate(s); err != nil {
		return nil, nil, err
	}
	artifacts, doubts, err := Build(t.Context(), s, map[string]*Tree{"a": a})
	if err != nil {
		return nil, nil, err
	}
	files := map[string]string{}
	for _, artifact := range artifacts {
		for _, name := range artifact.Tree.Names() {
			f, _ := artifact.Tree.File(name)
			data, err := f.Content.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			files[artifact.Spec.Name+"/"+name] = string(data)
		}
	}
	var said []string
	for _, d := range append(Doubts(s), doubts...) {
		said = append(said, d.Text)
	}
	return files, said, nil
}

func names(files map[string]string) string {
	var list []string
	for name := range files {
		list = append(list, strings.TrimPrefix(name, "out/"))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestCopy(t *testing.T) {
	source := []string{"top.yaml=1", "configs/x.yaml=2", "configs/sub/y.yaml=3", "d/x.yaml=4", "d/e/y.yaml=5", "d/e/z.md=6"}
	tests := []struct {
		name, operations, want string
		doubt                  string
	}{
		{"a directory keeps its name", op("@a/configs", "@artifact/"), "configs/sub/y.yaml configs/x.yaml", ""},
		{"with a slash too", op("@a/configs/", "@artifact/to"), "to/configs/sub/y.yaml to/configs/x.yaml", ""},
		{"all of the source", op("@a/", "@artifact/all/", "exclude: [configs, d]"), "all/top.yaml", ""},
		{"a file gets a name", op("@a/top.yaml", "@artifact/new.yaml"), "new.yaml", ""},
		{"or a directory", op("@a/top.yaml", "@artifact/new/"), "new/top.yaml", ""},
		{"or one that is there", op("@a/configs", "@artifact/") + op("@a/top.yaml", "@artifact/configs"), "configs/sub/y.yaml configs/top.yaml configs/x.yaml", ""},
		{"G7 a pattern keeps the path", op("@a/configs/*.yaml", "@artifact/apps/"), "apps/configs/x.yaml", "keeps the whole path"},
		{"G7 but not with two asterisks at its end", op("@a/configs/**", "@artifact/apps/"), "apps/sub/y.yaml apps/x.yaml", ""},
		{"G8 two asterisks are one directory", op("@a/**/*.yaml", "@artifact/"), "configs/x.yaml d/x.yaml", "matches one directory"},
		{"exclude by name", op("@a/d/**", "@artifact/", `exclude: ["*.md"]`), "e/y.yaml x.yaml", ""},
		{"exclude by path", op("@a/d/**", "@artifact/", `exclude: ["d/e/**"]`), "x.yaml", ""},
		{"exclude below the pattern", op("@a/d/**", "@artifact/", `exclude: ["e"]`), "x.yaml", ""},
		{"exclude a directory", op("@a/d", "@artifact/", `exclude: ["e/"]`, `strategy: Overwrite`), "d/e/y.yaml d/e/z.md d/x.yaml", "matches exclude"},
		{"exclude that file", op("@a/top.yaml", "@artifact/", `exclude: ["top.yaml"]`), "", ""},
		{"exclude is not held against what is above a match", op("@a/*/x.yaml", "@artifact/", `exclude: ["d", "configs/**"]`), "d/x.yaml", ""},
		{"nor against what is above a file", op("@a/d/e/y.yaml", "@artifact/", `exclude: ["e", "e/*"]`), "y.yaml", "matches exclude"},
		{"nor against the directory itself", op("@a/d", "@artifact/", `exclude: ["d"]`), "d/e/y.yaml d/e/z.md d/x.yaml", "matches exclude"},
		{"later operations win", op("@a/top.yaml", "@artifact/f") + op("@a/d/x.yaml", "@artifact/f"), "f", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files, said, err := made(t, copying(tt.operations), treeOf(t, source...))
			if err != nil {
				t.Fatal(err)
			}
			if names(files) != tt.want {
				t.Errorf("%s, want %s", names(files), tt.want)
			}
			if all := strings.Join(said, "; "); (tt.doubt == "") != (all == "") || !strings.Contains(all, tt.doubt) {
				t.Errorf("it says %q, want %q", all, tt.doubt)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	source := []string{"top.yaml=a: 1", "list.yaml=[1]", "charts/c.tgz=x", "charts/readme.md=x", "archives/dir.tgz/x=", "d/x.yaml=a: 1"}
	long := strings.Repeat("**/", maxDoublestars+1)
	tests := []struct{ name, spec, want, reason string }{
		{"missing", copying(op("@a/nowhere", "@artifact/")), "source 'nowhere' does not exist", BuildFailed},
		{"climbing", copying(op("@a/../x", "@artifact/")), "path escapes from parent", BuildFailed},
		{"climbing destination", copying(op("@a/top.yaml", "@artifact/../x")), "path escapes from parent", BuildFailed},
		{"no match", copying(op("@a/*.json", "@artifact/")), "no files match pattern '*.json' in source 'a'", BuildFailed},
		{"all excluded", copying(op("@a/d/*", "@artifact/", `exclude: ["*.yaml"]`)), "all files matching pattern 'd/*' in source 'a' were excluded", BuildFailed},
		{"a bad exclude", copying(op("@a/d", "@artifact/", `exclude: ["["]`)), "invalid exclude pattern '['", BuildFailed},
		{"a long exclude", copying(op("@a/d", "@artifact/", fmt.Sprintf("exclude: [%q]", long))), "more than 10 times '**'", BuildFailed},
		{"a file for a directory", copying(op("@a/top.yaml", "@artifact/d") + op("@a/d/**", "@artifact/d")), "not a directory", BuildFailed},
		{"G11 a list is not merged", copying(op("@a/top.yaml", "@artifact/v.yaml") + op("@a/list.yaml", "@artifact/v.yaml", "strategy: Merge")), "cannot unmarshal YAML document: ", BuildFailed},
		{"G12 a directory is no archive", copying(op("@a/charts", "@artifact/", "strategy: Extract")), "extract strategy is not supported for directories, got 'charts'", BuildFailed},
		{"G12 nor is any file", copying(op("@a/top.yaml", "@artifact/", "strategy: Extract")), "extract strategy requires tarball file (.tar.gz or .tgz), got 'top.yaml'", BuildFailed},
		{"G12 out of the artifact", copying(op("@a/charts/**/*.tgz", "@artifact/../x", "strategy: Extract")), "path escapes from parent", BuildFailed},
		{"G12 no match", copying(op("@a/*.tgz", "@artifact/", "strategy: Extract")), "no files match pattern '*.tgz' in source 'a'", BuildFailed},
		{"G12 all excluded", copying(op("@a/charts/*.tgz", "@artifact/", "strategy: Extract", `exclude: ["c.*"]`)), "all files matching pattern 'charts/*.tgz' in source 'a' were excluded", BuildFailed},
		{"G12 a directory that is called like one", copying(op("@a/archives/*", "@artifact/", "strategy: Extract")), "failed to extract tarball 'archives/dir.tgz': is a directory", BuildFailed},
		{"G12 no gzip", copying(op("@a/charts/*.tgz", "@artifact/", "strategy: Extract")), "requires gzip-compressed body", BuildFailed},
		{"G13 duplicate alias", "sources: [{alias: a, kind: Bucket, name: s}, {alias: a, kind: Bucket, name: t}]\nartifacts: []\n", "duplicate source alias 'a' found", ValidationFailed},
		{"G13 duplicate artifact", copying(op("@a/d", "@artifact/")) + "- {name: out, copy: []}\n", "duplicate artifact name 'out' found", ValidationFailed},
		{"G13 revision", copying(op("@a/d", "@artifact/")) + "  revision: \"@x\"\n", "artifact out revision source alias 'x' not found", ValidationFailed},
		{"G13 unknown alias", copying(op("@x/d", "@artifact/")), "source alias 'x' not found", BuildFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := made(t, tt.spec, treeOf(t, source...))
			refused, ok := errors.AsType[*Error](err)
			if !ok || !strings.Contains(err.Error(), tt.want) || refused.Reason != tt.reason || refused.Stalled != (tt.reason == ValidationFailed) {
				t.Errorf("%v, want %s: %s", err, tt.reason, tt.want)
			}
		})
	}
}

// G9: files that no artifact holds, whatever a .sourceignore contains.
func TestG9Dropped(t *testing.T) {
	source := treeOf(t, "logo.png=", "x.zip=", ".gitignore=", ".sops.yaml=", "y.tgz=", ".sourceignore=*.tgz", "z.tar.gz=", ".github/w.yaml=", ".helmignore=")
	files, said, err := made(t, copying(op("@a/", "@artifact/")), source)
	if err != nil || names(files) != ".helmignore .sourceignore y.tgz" {
		t.Errorf("%s, %v", names(files), err)
	}
	if len(said) != 1 || !strings.Contains(said[0], "and 5 more") {
		t.Errorf("it says %q", said)
	}
}

// A directory that becomes empty stays, as in the archives of source-watcher; an excluded directory does not.
func TestG9EmptyDirectories(t *testing.T) {
	source := treeOf(t, "img/logo.png=", "docs/a/readme.md=", ".github/w.yaml=", "x.yaml=")
	if err := source.AddDir("was/empty"); err != nil {
		t.Fatal(err)
	}
	spec := specOf(t, copying(op("@a/", "@artifact/", `exclude: ["*.md"]`)))
	artifacts, _, err := Build(t.Context(), spec, map[string]*Tree{"a": source})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(artifacts[0].Tree.Dirs(), artifacts[0].Tree.Names()); got != "[docs docs/a img was was/empty] [x.yaml]" {
		t.Error(got)
	}
}

// G11: Merge is for files that from itself names.
func TestG11Merge(t *testing.T) {
	source := treeOf(t, "base.yaml=# comment\na: {x: 1, y: [1, 2]}\nb: 1\n---\nc: 1", "over/base.yaml=a: {y: [3]}\nb: 2", "prod.yaml=a: {y: [3]}\nb: 2")
	files, said, err := made(t, copying(op("@a/base.yaml", "@artifact/")+op("@a/prod.yaml", "@artifact/base.yaml", "strategy: Merge")), source)
	const want = "a:\n  \"true\":\n  - 3\n  x: 1\nb: 2\nc: 1\n" // y is true in YAML 1.1
	if err != nil || files["out/base.yaml"] != want || len(said) > 0 {
		t.Errorf("%q, %q, %v", files["out/base.yaml"], said, err)
	}
	files, _, err = made(t, copying(op("@a/base.yaml", "@artifact/")+op("@a/over/**", "@artifact/", "strategy: Merge")), source)
	if err != nil || !strings.HasSuffix(files["out/base.yaml"], "b: 2\nc: 1\n") {
		t.Errorf("what a pattern matches: %q, %v", files["out/base.yaml"], err)
	}
	source = treeOf(t, "in/base.yaml=a: 1", "over/in/base.yaml=b: 2")
	files, said, err = made(t, copying(op("@a/in", "@artifact/")+op("@a/over/**", "@artifact/", "strategy: Merge")), source)
	if err != nil || files["out/in/base.yaml"] != "b: 2" || len(said) != 1 {
		t.Errorf("in a directory: %q, %q, %v", files["out/in/base.yaml"], said, err)
	}
}

func archive(t *testing.T, entries ...*tar.Header) string {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for _, h := range entries {
		content := h.Linkname
		if h.Typeflag == 0 {
			h.Typeflag, h.Size, h.Linkname = tar.TypeReg, int64(len(content)), ""
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := tw.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// G12: all archives that match are unpacked; hostile ones are refused.
func TestG12Extract(t *testing.T) {
	one := archive(t, &tar.Header{Name: "one/Chart.yaml", Linkname: "name: one", Mode: 0o644})
	two := archive(t, &tar.Header{Name: "two/run", Linkname: "#!/bin/sh", Mode: 0o755})
	source := treeOf(t, "charts/a/one.tgz="+one, "charts/two.TAR.GZ="+two, "charts/readme.md=x")
	files, _, err := made(t, copying(op("@a/charts/**", "@artifact/", "strategy: Extract")), source)
	if err != nil || names(files) != "one/Chart.yaml two/run" || files["out/one/Chart.yaml"] != "name: one" {
		t.Errorf("%v, %v", files, err)
	}
	files, _, err = made(t, copying(op("@a/charts/*.md", "@artifact/", "strategy: Extract")), source)
	if err != nil || len(files) > 0 {
		t.Errorf("no archive among what matches is fine: %v, %v", files, err)
	}
}

// G15: one artifact for each directory that matches.
func TestG15PathPattern(t *testing.T) {
	spec := func(pattern, name string) string {
		return fmt.Sprintf("sources: [{alias: a, kind: GitRepository, name: s}]\npathPattern: %q\nartifacts:\n- name: %q\n  copy: [{from: \"@a/apps/{app}/envs/{env}/**\", to: \"@artifact/{app}/\"}]\n", pattern, name)
	}
	const pattern = "@a/apps/{app}/envs/{env}"
	source := treeOf(t, "apps/Auth/envs/prod/x.yaml=", "apps/web/envs/dev/y.yaml=", "apps/web/readme.md=")
	artifacts, _, err := Build(t.Context(), specOf(t, spec(pattern, "{app}-{env}")), map[string]*Tree{"a": source})
	if err != nil || len(artifacts) != 2 {
		t.Fatalf("%v, %v", artifacts, err)
	}
	for i, want := range []string{"auth-prod map[app:auth env:prod] [Auth/x.yaml]", "web-dev map[app:web env:dev] [web/y.yaml]"} {
		if got := fmt.Sprint(artifacts[i].Spec.Name, " ", artifacts[i].Labels, " ", artifacts[i].Tree.Names()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	var captures strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&captures, "{c%d}", i)
	}
	for _, tt := range []struct{ pattern, name, file, want string }{
		{pattern, "{app}-{env}", "apps/Web/envs/dev/y=", `directories "apps/Web/envs/dev" and "apps/web/envs/dev" both resolve to artifact name "web-dev"`},
		{pattern, "{app}-{env}", "apps/.hid/envs/dev/y=", "is not a valid label value"},
		{pattern, "{app}-{env}", "apps/web_2/envs/dev/y=", "is not a valid Kubernetes object name"},
		{"@x/{app}", "{app}", "", `pathPattern "@x/{app}": source alias x not found in local sources`},
		{"@a/{app}/{app}", "{app}", "", `duplicate capture "app"`},
		{"@a/{}", "x", "", `invalid capture ""`},
		{"@a/{app", "x", "", "unbalanced braces"},
		{"@a/" + captures.String(), "x", strings.Repeat("x/", 500) + "y=", "may take more than"},
	} {
		tree := source.clone()
		if tt.file != "" {
			if err := tree.Add(strings.TrimSuffix(tt.file, "="), File{Content: text("")}); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := Build(t.Context(), specOf(t, spec(tt.pattern, tt.name)), map[string]*Tree{"a": tree})
		refused, ok := errors.AsType[*Error](err)
		if !ok || !refused.Stalled || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.pattern, err, tt.want)
		}
	}
	artifacts, doubts, err := Build(t.Context(), specOf(t, spec("@a/teams/{app}/{env}", "{app}-{env}")), map[string]*Tree{"a": source})
	if err != nil || len(artifacts) > 0 || len(doubts) != 1 || !strings.Contains(doubts[0].Text, "match") {
		t.Errorf("no match: %v, %v, %v", artifacts, doubts, err)
	}
}

// G16: an artifact with the name of an alias holds the whole source, and later artifacts see the added files.
func TestG16Alias(t *testing.T) {
	spec := "sources: [{alias: a, kind: GitRepository, name: s}]\nartifacts:\n" +
		"- {name: a, copy: [{from: \"@a/x.yaml\", to: \"@artifact/copy.yaml\"}]}\n- {name: b, copy: [{from: \"@a/copy.yaml\", to: \"@artifact/\"}]}\n"
	files, said, err := made(t, spec, treeOf(t, "x.yaml=1", "y.yaml=2"))
	if err != nil || names(files) != "a/copy.yaml a/x.yaml a/y.yaml b/copy.yaml" || len(said) != 1 {
		t.Errorf("%s, %q, %v", names(files), said, err)
	}
}

// Long work is limited: many files with many patterns, and a context that ends.
func TestBounded(t *testing.T) {
	tree := NewTree()
	for i := range maxFiles {
		if err := tree.Add(fmt.Sprintf("d%d/f%d", i%1000, i), File{Content: text("")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tree.Add("one/more", File{}); err == nil {
		t.Error("a tree without a limit")
	}
	patterns := make([]string, 100)
	for i := range patterns {
		patterns[i] = fmt.Sprintf("%q", fmt.Sprintf("x%d/**/*", i))
	}
	spec := copying(op("@a/**", "@artifact/", "exclude: ["+strings.Join(patterns, ", ")+"]"))
	if _, _, err := made(t, spec, tree); err == nil || !strings.Contains(err.Error(), "comparisons of files and patterns") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("it is over")
	cancel(ended)
	if _, _, err := Build(ctx, specOf(t, copying(op("@a/**", "@artifact/", `exclude: ["*.md"]`))), map[string]*Tree{"a": tree}); !errors.Is(err, ended) {
		t.Errorf("%v", err)
	}
}
