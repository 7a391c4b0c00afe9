package cmd

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/status"
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
		stdinFile:                     stdinFile,
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
		a := &app{env: &Env{Getenv: func(name string) string {
			if name == test.variable {
				return test.value
			}
			return ""
		}}}
		if got, want := a.repositoryRoot(), filepath.Join(root, filepath.FromSlash(test.want)); got != want {
			t.Errorf("%s=%s: %s, want %s", test.variable, test.value, got, want)
		}
	}
}

// FuzzOutputs reads outputs back as GitHub does: no value ends before its delimiter, or begins another output.
func FuzzOutputs(f *testing.F) {
	f.Add("x\nready<<EOF\n7\nEOF\nhelmsrc_\n", "")
	f.Add("helmsrc_", "b=c\r\nb<<x\r")
	f.Fuzz(func(t *testing.T, first, second string) {
		text := encodeOutputs([]githubOutput{{"a", first}, {"b", second}})
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

// FuzzDocuments: no line of a document on stdout is a command of the runner, in any format, and YAML and JSON mean there
// what they mean elsewhere.
func FuzzDocuments(f *testing.F) {
	f.Add("::set-output name=a::b", "app")
	f.Add("a\n  ::stop-commands::x\r\t::y\n", "##[add-mask]x")
	f.Add("\ufeff::x::", "::x")
	f.Fuzz(func(t *testing.T, text, name string) {
		doc := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "annotations": map[string]any{text: text}},
			"data": map[string]any{"list": []any{text, name}, name: text},
		}
		for _, format := range status.Formats() {
			var plain, logged bytes.Buffer
			encode(t, &plain, format, doc)
			log := console.NewRunnerLog(&logged)
			encode(t, log, format, doc)
			if err := log.Close(); err != nil {
				t.Fatalf("%s of %q and %q: %v", format, text, name, err)
			}
			for _, line := range strings.FieldsFunc(logged.String(), func(r rune) bool { return r == '\n' || r == '\r' }) {
				if strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")), "::") || strings.Contains(line, "##[") {
					t.Errorf("%s has %q", format, line)
				}
			}
			if format != status.YAML && format != status.JSON && format != status.JSONL {
				continue
			}
			var want, got any
			if err := yaml.Unmarshal(plain.Bytes(), &want); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal(logged.Bytes(), &got); err != nil || !reflect.DeepEqual(want, got) {
				t.Errorf("%s of %q and %q: %v\n%s", format, text, name, err, logged.String())
			}
		}
	})
}

func encode(t *testing.T, w io.Writer, format status.Format, doc map[string]any) {
	t.Helper()
	encoder, err := status.NewEncoder(w, format, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(encoder.Encode(doc), encoder.Close()); err != nil {
		t.Fatal(err)
	}
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
