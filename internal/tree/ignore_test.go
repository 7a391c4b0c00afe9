package tree

import (
	"slices"
	"strings"
	"testing"
)

// kept lists the files of an archive of the tree, without directories.
func kept(t *testing.T, files map[string]string, spec string, o Options) []string {
	t.Helper()
	root := planted(t, files)
	rules, err := SourceRules(t.Context(), root, spec, o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries(t, archive(t, root, Options{Filter: All(rules.Choose, o.Filter)})) {
		if e[0] == '0' {
			names = append(names, strings.Fields(e)[3])
		}
	}
	return names
}

func tree(names ...string) map[string]string {
	files := map[string]string{}
	for _, n := range names {
		name, content, _ := strings.Cut(n, "=")
		files[name] = content
	}
	return files
}

func TestSourceRules(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []string
		spec  string
		want  []string
	}{
		{
			name: "version control and defaults",
			files: []string{".git/config", "sub/.git/config", ".gitignore", ".gitmodules", "sub/.gitattributes",
				"logo.png", "a/b/photo.JPG", "a/photo.jpeg", "charts/x.tar.gz", "charts/x.tgz", "x.zip",
				".github/workflows/ci.yaml", "sub/.github/x", ".travis.yml", "cloudbuild.yaml", "sub/.sops.yaml",
				".flux.yaml", "chart/Chart.yaml", ".helmignore"},
			want: []string{".helmignore", "a/b/photo.JPG", "chart/Chart.yaml", "charts/x.tgz"},
		},
		{
			name:  "patterns replace the defaults, but not version control",
			files: []string{".sourceignore=*.md", "README.md", "logo.png", ".gitignore", ".git/config", "x.tar.gz"},
			want:  []string{".sourceignore", "logo.png", "x.tar.gz"},
		},
		{
			name:  "so do those of the spec",
			files: []string{"README.md", "logo.png", ".gitignore"},
			spec:  "# no readme\n*.md\n",
			want:  []string{"logo.png"},
		},
		{
			name:  "a spec that says nothing",
			files: []string{"README.md", "logo.png"},
			spec:  "# nothing\n\n  \n",
			want:  []string{"README.md"},
		},
		{
			name:  "the spec wins over the file",
			files: []string{".sourceignore=*.md", "README.md", "other.md"},
			spec:  "!README.md",
			want:  []string{".sourceignore", "README.md"},
		},
		{
			name: "a file in a directory holds below it",
			files: []string{"a/.sourceignore=x.txt\n/y.txt", "a/x.txt", "a/b/x.txt", "a/y.txt", "a/b/y.txt", "x.txt",
				"c/x.txt", "logo.png"},
			want: []string{"a/.sourceignore", "a/b/y.txt", "c/x.txt", "logo.png", "x.txt"},
		},
		{
			name:  "a directory below wins over one above",
			files: []string{".sourceignore=*.txt", "a/.sourceignore=!keep.txt", "keep.txt", "a/keep.txt", "a/x.txt"},
			want:  []string{".sourceignore", "a/.sourceignore", "a/keep.txt"},
		},
		{
			name:  "all but one directory",
			files: []string{"chart/Chart.yaml", "chart/templates/a.yaml", "docs/a.md", "x.txt"},
			spec:  "/*\n!/chart/\n",
			want:  []string{"chart/Chart.yaml", "chart/templates/a.yaml"},
		},
		{
			name:  "a file of an ignored directory is taken back, other than with git",
			files: []string{"docs/a.md", "docs/keep.md", "docs/sub/b.md"},
			spec:  "docs/\n!docs/keep.md\n",
			want:  []string{"docs/keep.md"},
		},
		{
			name:  "version control taken back, but never the repository itself",
			files: []string{".gitignore", ".git/config", "a"},
			spec:  "!.gitignore\n!.git/\n!.git/config",
			want:  []string{".gitignore", "a"},
		},
		{
			name:  "carriage returns",
			files: []string{".sourceignore=*.md\r\n*.txt\r\n", "a.md", "a.txt", "a"},
			want:  []string{".sourceignore", "a"},
		},
		{
			name:  "stars",
			files: []string{"a/x/c", "a/x/y/c", "a/c", "b/x/c", "d/e/f"},
			spec:  "a/**/c\nd/**\n",
			want:  []string{"b/x/c"},
		},
		{
			name:  "a linked file",
			files: []string{"shared/ignore=*.md", ".sourceignore=-> shared/ignore", "a.md", "logo.png"},
			want:  []string{"logo.png", "shared/ignore"},
		},
		{
			name:  "a dangling link and a directory are no files",
			files: []string{".sourceignore=-> nowhere", "a/.sourceignore/b", "logo.png"},
			want:  []string{"a/.sourceignore/b"},
		},
		{
			name:  "patterns in the repository itself",
			files: []string{".git/.sourceignore=*", "a"},
			want:  []string{"a"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := kept(t, tree(tt.files...), tt.spec, Options{}); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// Files that the caller drops from the tree do not contribute patterns.
func TestSourceRulesFilter(t *testing.T) {
	drop := func(name string, dir bool) Choice {
		if name == "artifacts" {
			return DropAll
		}
		return Keep
	}
	got := kept(t, tree("artifacts/.sourceignore=*", "artifacts/a", "a", "logo.png"), "", Options{Filter: drop})
	if want := []string{"a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSourceRulesRefuse(t *testing.T) {
	for _, tt := range []struct {
		name, file, spec, want string
	}{
		{name: "too large", file: strings.Repeat("#", maxIgnoreFile+1), want: "ignore patterns have more than 1048576 bytes"},
		{name: "too many", file: strings.Repeat("a\n", maxPatterns+1), want: "there are more than 10000 ignore patterns"},
		{name: "too many together", file: strings.Repeat("a\n", maxPatterns), spec: "b", want: "there are more than 10000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := SourceRules(t.Context(), planted(t, tree(IgnoreFile+"="+tt.file)), tt.spec, Options{})
			wantLimit(t, err, tt.want)
		})
	}
	t.Run("link out of the root", func(t *testing.T) {
		top := t.TempDir()
		plant(t, top, tree("in/.sourceignore=-> ../outside", "outside=*"))
		if _, err := SourceRules(t.Context(), rootOf(t, top+"/in"), "", Options{}); err == nil {
			t.Error("it is followed")
		}
	})
	t.Run("too many files", func(t *testing.T) {
		_, err := SourceRules(t.Context(), planted(t, tree("a", "b", "c")), "", Options{Limits: Limits{Entries: 2}})
		wantLimit(t, err, "too many files and directories")
	})
}

func TestNewRules(t *testing.T) {
	rules, err := NewRules("*.md\n", "!README.md\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"a.md": true, "sub/a.md": true, "README.md": false, ".gitignore": false, "logo.png": false,
	} {
		if got := rules.Ignored(name, false); got != want {
			t.Errorf("Ignored(%q) = %v", name, got)
		}
	}
	if _, err := NewRules(strings.Repeat("x\n", maxPatterns+1)); err == nil {
		t.Error("too many patterns are accepted")
	}
}

// A directory that is ignored is not walked when no pattern takes anything back. That is only right if everything below
// it would be ignored.
func FuzzRules(f *testing.F) {
	for _, seed := range [][2]string{
		{"a/\nb", "a/b/c"},
		{"/a/b\n**/c/", "x/c/d"},
		{"a/**/b", "a/x/b/c"},
		{"a/**", "a/b"},
		{"[", "a/b"},
		{"\\", "\\/b"},
		{"//", "a/b"},
		{"!", "a/b"},
		{"a**b/c", "aab/c/d"},
		{"*/", "a/b"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, patterns, name string) {
		rules, err := NewRules(patterns)
		if err != nil || rules.takeBack {
			return
		}
		parts := strings.Split(name, "/")
		for i := 1; i < len(parts); i++ {
			dir := strings.Join(parts[:i], "/")
			if rules.Ignored(dir, true) && (!rules.Ignored(name, false) || !rules.Ignored(name, true)) {
				t.Errorf("%q ignores %q, but not %q", patterns, dir, name)
			}
		}
	})
}
