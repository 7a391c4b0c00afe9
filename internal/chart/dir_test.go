package chart

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// link makes a symbolic link in a source.
func link(t *testing.T, s Source, target, name string) {
	t.Helper()
	if err := s.Root.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// rawNames are the files of a chart and its subcharts.
func rawNames(c *helmchart.Chart) string {
	var names []string
	for _, f := range c.Raw {
		names = append(names, f.Name)
	}
	for _, sub := range c.Dependencies() {
		names = append(names, "["+sub.Name()+": "+rawNames(sub)+"]")
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestLoadDir(t *testing.T) {
	packed := string(archive(t, filesOf("b", "Chart.yaml", subchart("b"))...))
	for _, tt := range []struct {
		name  string
		files []string
		links []string // target, name
		dir   string
		want  string
	}{
		{name: "plain", files: []string{"c/Chart.yaml", minimal, "c/templates/a.yaml", "a", "other/x", ""}, dir: "c", want: "Chart.yaml templates/a.yaml"},
		{name: "the root", files: []string{"Chart.yaml", minimal, "values.yaml", ""}, dir: ".", want: "Chart.yaml values.yaml"},
		{name: "climbing stops at the root", files: []string{"Chart.yaml", minimal}, dir: "../../..", want: "Chart.yaml"},
		{name: "climbing into the source", files: []string{"c/Chart.yaml", minimal}, dir: "/../c/./", want: "Chart.yaml"},
		{name: "subcharts", files: []string{"c/Chart.yaml", minimal, "c/charts/b.tgz", packed, "c/charts/d/Chart.yaml", subchart("d"), "c/charts/_x/y", ""}, dir: "c",
			want: "Chart.yaml [b: Chart.yaml] [d: Chart.yaml]"},
		{name: "case 40: .helmignore drops file.txt", files: []string{"c/Chart.yaml", minimal, "c/.helmignore", "file.txt\n", "c/file.txt", ""}, dir: "c", want: ".helmignore Chart.yaml"},
		{name: "case 40: .helmignore through a link", files: []string{"c/Chart.yaml", minimal, "rules", "file.txt\n", "c/file.txt", ""}, links: []string{"../rules", "c/.helmignore"}, dir: "c", want: ".helmignore Chart.yaml"},
		{name: "case 41: defaults", files: []string{"c/Chart.yaml", minimal, "c/templates/.dotfile", "", "c/templates/a", "", "c/.dotfile", ""}, dir: "c", want: ".dotfile Chart.yaml templates/a"},
		{name: "case 41: by extension, at any depth", files: []string{"c/Chart.yaml", minimal, "c/.helmignore", "*.txt", "c/cargo/a.txt", "", "c/cargo/b", ""}, dir: "c", want: ".helmignore Chart.yaml cargo/b"},
		{name: "case 41: with a slash", files: []string{"c/Chart.yaml", minimal, "c/.helmignore", "cargo/*.txt", "c/cargo/a.txt", "", "c/mast/a.txt", ""}, dir: "c", want: ".helmignore Chart.yaml mast/a.txt"},
		{name: "case 41: anchored", files: []string{"c/Chart.yaml", minimal, "c/.helmignore", "/a.txt", "c/cargo/a.txt", "", "c/a.txt", ""}, dir: "c", want: ".helmignore Chart.yaml cargo/a.txt"},
		{name: "case 41: directories only", files: []string{"c/Chart.yaml", minimal, "c/.helmignore", "cargo/", "c/cargo/a", "", "c/x/cargo", ""}, dir: "c", want: ".helmignore Chart.yaml x/cargo"},
		{name: "case 41: negation leaves only what it names", files: []string{"c/Chart.yaml", minimal, "c/.helmignore", "!*.yaml", "c/tiller.txt", ""}, dir: "c", want: "Chart.yaml"},
		{name: "case 41: dots, but not the chart itself", files: []string{"c/Chart.yaml", minimal, "c/.helmignore", ".*", "c/.joonix", ""}, dir: "c", want: "Chart.yaml"},
		{name: "link to a file", files: []string{"c/Chart.yaml", minimal, "shared/a", "a"}, links: []string{"../shared/a", "c/a"}, dir: "c", want: "Chart.yaml a"},
		{name: "link to a directory", files: []string{"c/Chart.yaml", minimal, "shared/x/a", "a"}, links: []string{"../shared", "c/files"}, dir: "c", want: "Chart.yaml files/x/a"},
		{name: "link to a link", files: []string{"c/Chart.yaml", minimal, "a", "a"}, links: []string{"../a", "c/l1", "l1", "c/l2"}, dir: "c", want: "Chart.yaml l1 l2"},
		{name: "the chart is a link", files: []string{"c/Chart.yaml", minimal}, links: []string{"c", "l"}, dir: "l", want: "Chart.yaml"},
		{name: "case 40: ignored directory outside", files: []string{"c/Chart.yaml", minimal, "c/.helmignore", "out/"}, links: []string{"../../../", "c/out"}, dir: "c", want: ".helmignore Chart.yaml"},
		{name: "ignored broken link", files: []string{"c/Chart.yaml", minimal, "c/.helmignore", "l"}, links: []string{"nowhere", "c/l"}, dir: "c", want: ".helmignore Chart.yaml"},
		{name: "hidden files", files: []string{"c/Chart.yaml", minimal, "c/secret", "", "c/.git/config", "", "c/dropped/b", "", "c/a", ""}, dir: "c", want: "Chart.yaml a dropped/b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := source(t, tt.files...)
			for i := 0; i < len(tt.links); i += 2 {
				link(t, s, tt.links[i], tt.links[i+1])
			}
			s.Filter = without("c/secret", "c/.git", "c/dropped")
			c, err := s.LoadDir(tt.dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := rawNames(c); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Without links and ignored files, a directory gives the same chart as Helm's own loader.
func TestLoadDirLikeHelm(t *testing.T) {
	for name, entries := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, e := range append(entries, entry{name: entries[0].name[:strings.Index(entries[0].name, "/")] + "/bom", data: "\xef\xbb\xbfx"}) {
				_, rest, _ := strings.Cut(e.name, "/")
				file := filepath.Join(dir, filepath.FromSlash(rest))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(e.data), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			got, err := Source{Root: root}.LoadDir("/")
			if err != nil {
				t.Fatal(err)
			}
			want, err := loader.LoadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			sameChart(t, got, want)
		})
	}
}

func TestLoadDirRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		files  []string
		links  []string
		dir    string
		limits Limits
		want   string
	}{
		{name: "case 40: no Chart.yaml", files: []string{"a", ""}, dir: "../", want: "failed to load chart from /: Chart.yaml file is missing"},
		{name: "not there", dir: "charts/x", want: "failed to load files from /charts/x: stat /charts/x: "},
		{name: "case 40: double star", files: []string{"c/Chart.yaml", minimal, "c/.helmignore", "a/**/b"}, dir: "c", want: "cannot load ignore rules for chart: double-star (**) syntax is not supported"},
		{name: "large .helmignore", files: []string{"c/.helmignore", "123456"}, dir: "c", limits: Limits{File: 5}, want: "cannot load ignore rules for chart: size of '.helmignore' exceeds '5' bytes limit"},
		{name: "case 40: file too large", files: []string{"c/fake-file", "12345678901234"}, dir: "c", limits: Limits{File: 5}, want: "failed to load files from /c: cannot load file fake-file as file size (14) exceeds limit (5)"},
		{name: "case 40: .helmignore outside", files: []string{"c/Chart.yaml", minimal}, links: []string{"../../x", "c/.helmignore"}, dir: "c",
			want: "failed to load files from /c: cannot load '.helmignore' file: absolute path traverses outside root boundary: relative path to root ../x"},
		{name: "link outside", files: []string{"c/Chart.yaml", minimal}, links: []string{"../../../etc/passwd", "c/l"}, dir: "c",
			want: "failed to load files from /c: cannot load 'l' file: absolute path traverses outside root boundary: relative path to root ../../etc/passwd"},
		{name: "absolute link", files: []string{"c/Chart.yaml", minimal}, links: []string{"/etc/passwd", "c/l"}, dir: "c",
			want: "failed to load files from /c: cannot load 'l' file: absolute path traverses outside root boundary: relative path to root /etc/passwd"},
		{name: "broken link", files: []string{"c/Chart.yaml", minimal}, links: []string{"nowhere", "c/l"}, dir: "c", want: "failed to load files from /c: error evaluating symlink l: stat /c/l: "},
		{name: "link to itself", files: []string{"c/Chart.yaml", minimal}, links: []string{"l", "c/l"}, dir: "c", want: "failed to load files from /c: error evaluating symlink l: /c/l: too many links"},
		{name: "link to a hidden file", files: []string{"c/Chart.yaml", minimal, "hidden", ""}, links: []string{"../hidden", "c/l"}, dir: "c", want: "failed to load files from /c: error evaluating symlink l: stat /c/l: "},
		{name: "circle", files: []string{"c/Chart.yaml", minimal, "c/a/x", ""}, links: []string{"..", "c/a/l"}, dir: "c", want: "failed to load files from /c: cannot load 'a/l' directory: link leads back to '/c'"},
		{name: "circle through the root", files: []string{"c/Chart.yaml", minimal}, links: []string{"..", "c/l"}, dir: "c", want: "failed to load files from /c: cannot load 'l/c' directory: link leads back to '/c'"},
		{name: "too deep", files: []string{"c/Chart.yaml", minimal, "c/" + strings.Repeat("d/", 101) + "f", ""}, dir: "c", want: "failed to load files from /c: cannot load 'd/d/"},
		{name: "too many files", files: []string{"c/a", "", "c/b", "", "c/d", ""}, dir: "c", limits: Limits{Entries: 2}, want: "failed to load files from /c: archive has more than 2 entries"},
		{name: "too much in all", files: []string{"c/a", "12345", "c/b", "12345"}, dir: "c", limits: Limits{Unpacked: 9}, want: "failed to load files from /c: unpacked size of chart exceeds '9' bytes limit"},
		{name: "broken values.yaml", files: []string{"c/Chart.yaml", minimal, "c/values.yaml", "[]"}, dir: "c", want: "failed to load chart from /c: cannot load values.yaml: "},
		{name: "invalid metadata", files: []string{"c/Chart.yaml", "name: a\n"}, dir: "c", want: "failed to load chart from /c: validation: chart.metadata.version is required"},
		{name: "broken subchart archive", files: []string{"c/Chart.yaml", minimal, "c/charts/a.tgz", "no archive"}, dir: "c", want: "failed to load files from /c: subchart 'a.tgz': not a gzip archive"},
		{name: "apiVersion v3", files: []string{"c/Chart.yaml", "apiVersion: v3\nname: a\nversion: 1.0.0\n"}, dir: "c", want: "failed to load chart from /c: only the Chart API v2 is supported"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := source(t, tt.files...)
			for i := 0; i < len(tt.links); i += 2 {
				link(t, s, tt.links[i], tt.links[i+1])
			}
			s.Limits = tt.limits
			s.Filter = without("hidden")
			_, err := s.LoadDir(tt.dir)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Fatalf("got error %v, want %q", err, tt.want)
			}
			if strings.Contains(err.Error(), s.Root.Name()) {
				t.Errorf("tells where the source is: %v", err)
			}
		})
	}
}

// TestFindNear checks the hint for a path that does not exist.
func TestFindNear(t *testing.T) {
	s := source(t, "charts/podinfo/Chart.yaml", minimal, "charts/hidden/Chart.yaml", minimal)
	s.Filter = func(name string, _ bool) tree.Choice {
		if name == "charts/hidden" {
			return tree.DropAll
		}
		return tree.Keep
	}
	for path, want := range map[string]string{
		"charts/podinof": "did you mean charts/podinfo?", "./chart/podinfo": "did you mean charts?",
		"charts/hiden": "", "charts/podinfo/templates/x": "", "other": "",
	} {
		if _, err := s.Find(path); strings.Join(finding.Hints(err), "") != want {
			t.Errorf("%s: %q, want %q", path, finding.Hints(err), want)
		}
	}
}

func TestFind(t *testing.T) {
	good := archive(t, filesOf("helmchart", "Chart.yaml", "apiVersion: v2\nname: helmchart\nversion: 0.1.0\n")...)
	s := source(t, "helmchart/Chart.yaml", "name: helmchart\nversion: 0.1.0\n", "helmchart/requirements.yaml", "dependencies: [{name: a}]\n",
		"helmchart-0.1.0.tgz", string(good), "trailing.tgz", string(good)+"x", "empty.tgz", string(archive(t)), "text", "no chart",
		"broken/Chart.yaml", "\t", "invalid/Chart.yaml", "name: a\n", "large/Chart.yaml", strings.Repeat("#", 1000),
		"large-requirements/Chart.yaml", minimal, "large-requirements/requirements.yaml", strings.Repeat("#", 1000), "none/values.yaml", "", "dir/Chart.yaml/x", "")
	s.Limits = Limits{Archive: int64(len(good)) + 1, File: 999}
	for path, want := range map[string]string{
		"helmchart": "dir helmchart helmchart 0.1.0", "./helmchart/": "dir helmchart helmchart 0.1.0", "../helmchart": "dir helmchart helmchart 0.1.0",
		"helmchart-0.1.0.tgz": "archive helmchart-0.1.0.tgz helmchart 0.1.0", // §12 case 34
		"trailing.tgz":        "archive trailing.tgz helmchart 0.1.0 archive is followed by other data",
		"nowhere/at/all":      "error: stat /nowhere/at/all: ", // §12 case 33
		"none":                "error: open /none/Chart.yaml: ",
		"empty.tgz":           "error: no 'Chart.yaml' found", // §12 case 38
		"text":                "error: not a gzip archive but text/plain; charset=utf-8: gzip: invalid header",
		"broken":              "error: cannot load 'Chart.yaml': ",
		"invalid":             "error: validation: chart.metadata.version is required",
		"large":               "error: size of 'Chart.yaml' exceeds '999' bytes limit",
		"large-requirements":  "error: size of 'requirements.yaml' exceeds '999' bytes limit", // §12 case 38
		"dir":                 "error: '/dir/Chart.yaml' is not a regular file",
	} {
		t.Run(path, func(t *testing.T) {
			found, err := s.Find(path)
			got := ""
			switch {
			case err != nil:
				got = "error: " + err.Error()
			case found.Dir:
				got = "dir " + found.Path + " " + found.Metadata.Name + " " + found.Metadata.Version
			default:
				got = strings.Join(append([]string{"archive", found.Path, found.Metadata.Name, found.Metadata.Version}, found.Warnings...), " ")
			}
			if !strings.HasPrefix(got, want) || strings.HasPrefix(want, "dir") && got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	t.Run("case 38: archive too large", func(t *testing.T) {
		s := s
		s.Limits.Archive = 10
		if _, err := s.Find("helmchart-0.1.0.tgz"); err == nil || err.Error() != "size of chart 'helmchart-0.1.0.tgz' exceeds '10' bytes limit" {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("case 34: an archive is passed on as it is", func(t *testing.T) {
		found, err := s.Find("helmchart-0.1.0.tgz")
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.Open(found)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, good) {
			t.Errorf("got %d bytes of %d, %v", len(got), len(good), err)
		}
	})
	t.Run("case 34: or with another version", func(t *testing.T) {
		c, err := s.Load("helmchart-0.1.0.tgz")
		if err != nil {
			t.Fatal(err)
		}
		c.Metadata.Version = "0.1.0+foo"
		m, _, err := Check(bytes.NewReader(packaged(t, c)), Limits{})
		if err != nil || m.Version != "0.1.0+foo" {
			t.Errorf("got %+v, %v", m, err)
		}
	})
}

// BenchmarkDir makes an archive of a directory with 300 files, as helm package does.
func BenchmarkDir(b *testing.B) {
	var pairs []string
	r := tar.NewReader(bytes.NewReader(unzip(b, benchmarkChart(b))))
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			b.Fatal(err)
		}
		pairs = append(pairs, h.Name, string(data))
	}
	s, out := source(b, pairs...), b.TempDir()
	for _, bb := range []struct {
		name string
		make func() error
	}{
		{"helm", func() error {
			c, err := loader.LoadDir(filepath.Join(s.Root.Name(), "podinfo"))
			if err != nil {
				return err
			}
			_, err = chartutil.Save(c, out)
			return err
		}},
		{"chart", func() error {
			c, err := s.LoadDir("podinfo")
			if err != nil {
				return err
			}
			f, err := os.Create(filepath.Join(out, "out.tgz"))
			if err != nil {
				return err
			}
			return errors.Join(Package(f, c, commitTime, Limits{}), f.Close())
		}},
		{"load only, helm", func() error { _, err := loader.LoadDir(filepath.Join(s.Root.Name(), "podinfo")); return err }},
		{"load only, chart", func() error { _, err := s.LoadDir("podinfo"); return err }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := bb.make(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
