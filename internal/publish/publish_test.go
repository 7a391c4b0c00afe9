package publish

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/report"
)

func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "report")
	for _, text := range []string{"first, which is longer", "second"} {
		if err := writeWhole(t.Context(), path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := writeWhole(t.Context(), filepath.Dir(path), nil); err == nil {
		t.Error("a directory was written")
	}
	if err := writeWhole(t.Context(), filepath.Join(path, "below"), nil); err == nil {
		t.Error("below a file there is none")
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("something was left behind: %v, %v", entries, err)
	}
	if runtime.GOOS != "windows" {
		if err := writeWhole(t.Context(), "/dev/null", []byte("x")); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat("/dev/null"); err != nil || info.Mode().IsRegular() {
			t.Fatalf("/dev/null was replaced: %v, %v", info, err)
		}
	}
}

func TestFileInRepository(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "sub", "a.yaml"), "")
	if err := os.Symlink(filepath.Join(root, "sub"), filepath.Join(elsewhere, "link")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(root, "sub"))
	for file, want := range map[string]string{
		"":                            "",
		manifest.StdinName:            manifest.StdinName,
		"a.yaml":                      "sub/a.yaml",
		filepath.Join("..", "b.yaml"): "b.yaml",
		filepath.Join(root, "c.yaml"): "c.yaml",
		filepath.Join(elsewhere, "link", "a.yaml"): "sub/a.yaml",
		filepath.Join(elsewhere, "x.yaml"):         filepath.ToSlash(filepath.Join(elsewhere, "x.yaml")),
		filepath.Join("..", "..", "none.yaml"):     filepath.ToSlash(filepath.Join(filepath.Dir(root), "none.yaml")),
	} {
		if got := fileInRepository(root, file); got != want {
			t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
}

func TestRepositoryRoot(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "repository", ".git"), "")
	write(t, filepath.Join(root, "repository", "sub", "a"), "")
	t.Chdir(filepath.Join(root, "repository", "sub"))
	for _, test := range []struct{ variable, value, want string }{
		{"", "", "repository"},
		{"GITHUB_WORKSPACE", root, ""},
		{"CI_PROJECT_DIR", filepath.Join(root, "repository", "sub"), "repository/sub"},
		{"GITHUB_WORKSPACE", filepath.Join(root, "elsewhere"), "repository"}, // not where we are
		{"GITHUB_WORKSPACE", ".", "repository"},
	} {
		getenv := func(name string) string {
			if name == test.variable {
				return test.value
			}
			return ""
		}
		if got, want := repositoryRoot(getenv), filepath.Join(root, filepath.FromSlash(test.want)); got != want {
			t.Errorf("%s=%s: %s, want %s", test.variable, test.value, got, want)
		}
	}
}

// FuzzOutputs reads outputs back as GitHub does: no value ends before its delimiter, or begins another output.
func FuzzOutputs(f *testing.F) {
	f.Add("x\nready<<EOF\n7\nEOF\nhelmsrc_\n", "")
	f.Add("helmsrc_", "b=c\r\nb<<x\r")
	f.Fuzz(func(t *testing.T, first, second string) {
		text := encodeOutputs([]Output{{"a", first}, {"b", second}})
		if strings.Contains(text, "\r") {
			t.Fatalf("GitHub ends a line in\n%q", text)
		}
		got := map[string]string{}
		for lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n"); len(lines) > 0; {
			name, delimiter, ok := strings.Cut(lines[0], "<<")
			end := slices.Index(lines[1:], delimiter) + 1
			if !ok || end == 0 {
				t.Fatalf("%q begins no output in\n%s", lines[0], text)
			}
			got[name] = strings.Join(lines[1:end], "\n")
			lines = lines[end+1:]
		}
		if len(got) != 2 || got["a"] != console.Printable(first) || got["b"] != console.Printable(second) {
			t.Errorf("read back %q from\n%s", got, text)
		}
	})
}

// TestSummariesOfAStep fills the file that all programs of a step share.
func TestSummariesOfAStep(t *testing.T) {
	run := &report.Run{Command: "fetch"}
	for range 5000 {
		run.Findings = append(run.Findings, finding.Finding{Code: "HS001", Severity: finding.Error, Message: strings.Repeat("x", 300)})
	}
	for _, there := range []int{0, 1000, maxStepSummary / 2, maxStepSummary - 1000, maxStepSummary - 10, maxStepSummary, 2 * maxStepSummary} {
		path := filepath.Join(t.TempDir(), "summary")
		write(t, path, strings.Repeat("y", there))
		err := appendSummary(path, run)
		info, statErr := os.Stat(path)
		if statErr != nil {
			t.Fatal(statErr)
		}
		size := int(info.Size())
		if size > maxStepSummary && size > there {
			t.Errorf("%d bytes became %d", there, size)
		}
		if (err == nil) != (size > there) {
			t.Errorf("%d bytes became %d: %v", there, size, err)
		}
		if there <= maxStepSummary-1000 && err != nil {
			t.Errorf("%d bytes: %v", there, err)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
