package publish

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
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
		t.Error("a file below a file was written")
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
	link := filepath.Join(root, "link")
	if err := os.Symlink(filepath.Join(root, "repository"), link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(link, "sub")) // a shell that followed the link sets PWD to it
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

// TestPublish writes the reports that are wanted, with files as they are called from the root of the repository, for GitHub too.
func TestPublish(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, ".git"), "")
	write(t, filepath.Join(root, "sub", "a.yaml"), "")
	t.Chdir(filepath.Join(root, "sub"))
	here := manifest.Pos{File: "a.yaml", Line: 1}
	found := []finding.Finding{{
		Code: "HS001", Severity: finding.Error, Pos: here, Related: []manifest.Pos{here},
		Blocks: []finding.Object{{Name: "b", Pos: here}}, Repair: &finding.Repair{Pos: here},
	}}
	var stdout, stderr bytes.Buffer
	env := map[string]string{"GITHUB_OUTPUT": filepath.Join(root, "output"), "GITHUB_STEP_SUMMARY": filepath.Join(root, "summary")}
	p := Publisher{Console: console.New(&stderr), Getenv: func(name string) string { return env[name] }, Stdout: &stdout}
	publish := func(o Reports) (*report.Run, []error) {
		stdout.Reset()
		stderr.Reset()
		run := &report.Run{Command: "fetch", Count: map[string]int{report.StateFailed: 1}, Findings: found, Silenced: found, Objects: []report.Object{
			{Kind: "HelmChart", Name: "a\nb", State: report.StateFailed, Pos: here, BlockedBy: finding.Object{Name: "c", Pos: here}}, {Name: "d", State: report.StateReady, Pos: here},
		}}
		return run, p.Publish(t.Context(), &o, run, []Output{{"more", "x"}})
	}
	if run, errs := publish(Reports{Findings: "yaml"}); run.Findings[0].Pos != here || len(errs) > 0 || stdout.Len()+stderr.Len() > 0 {
		t.Errorf("nothing is wanted: %v, %q, %q", errs, &stdout, &stderr)
	}
	run, errs := publish(Reports{Findings: "json"})
	there := manifest.Pos{File: "sub/a.yaml", Line: 1}
	for _, f := range []finding.Finding{run.Findings[0], run.Silenced[0]} {
		if f.Pos != there || f.Related[0] != there || f.Blocks[0].Pos != there || f.Repair.Pos != there {
			t.Errorf("%+v", f)
		}
	}
	if f := found[0]; f.Pos != here || f.Related[0] != here || f.Blocks[0].Pos != here || f.Repair.Pos != here {
		t.Errorf("the run has its findings at %+v", f)
	}
	if run.Objects[0].Pos != there || run.Objects[0].BlockedBy.Pos != there || len(errs) > 0 || run.ListSilenced {
		t.Errorf("%+v, %v", run.Objects, errs)
	}
	if text := stdout.String(); !strings.Contains(text, `"kind": "List"`) {
		t.Errorf("json is %s", text)
	}
	if run, _ := publish(Reports{Findings: "jsonl", Silenced: true}); strings.Count(stdout.String(), "\n") != 1 || !run.ListSilenced {
		t.Errorf("jsonl is %s", &stdout)
	}
	_, errs = publish(Reports{Targets: []Target{{"json", "-"}, {"no", "-"}, {"json", "a.yaml/x"}, {"junit", "b.xml"}}})
	if text, err := os.ReadFile("b.xml"); len(errs) != 2 || err != nil || !strings.Contains(string(text), "<testsuites") || !strings.Contains(stdout.String(), `"command": "fetch"`) {
		t.Errorf("%v, %v, %s, %s", errs, err, text, &stdout)
	}
	p.Stdout = full{}
	if _, errs := publish(Reports{Findings: "json", Targets: []Target{{"json", "-"}}}); len(errs) != 2 {
		t.Errorf("a full disk: %v", errs)
	}

	env["GITHUB_ACTIONS"] = "true"
	publish(Reports{NoGitHub: true})
	if _, err := os.Stat(env["GITHUB_OUTPUT"]); err == nil || stderr.Len() > 0 {
		t.Errorf("GitHub got a command, %q", &stderr)
	}
	for range 2 {
		publish(Reports{})
	}
	summary, err := os.ReadFile(env["GITHUB_STEP_SUMMARY"])
	if err != nil || strings.Count(string(summary), "\n\n## ") != 1 || !strings.HasPrefix(string(summary), "## ") {
		t.Errorf("%v, summaries\n%s", err, summary)
	}
	outputs, err := os.ReadFile(env["GITHUB_OUTPUT"])
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"failed": "1", "errors": "1", "warnings": "0", "notes": "0", "failed-objects": "HelmChart a b", "more": "x"} {
		if !regexp.MustCompile(`(?m)^` + name + `<<(helmsrc_\w+)\n` + value + `\nhelmsrc_`).Match(outputs) {
			t.Errorf("%s is not %s in\n%s", name, value, outputs)
		}
	}
	if text := stderr.String(); strings.Count(text, "::error ") != 1 || strings.Contains(text, "more findings") {
		t.Errorf("annotations\n%s", text)
	}
	found = slices.Repeat(found, report.AnnotationsPerStep+1)
	env["GITHUB_OUTPUT"], env["GITHUB_STEP_SUMMARY"] = root, root
	publish(Reports{})
	for _, want := range []string{"1 more findings have no annotation", "GITHUB_OUTPUT: ", "GITHUB_STEP_SUMMARY: "} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("no %q in\n%s", want, &stderr)
		}
	}
	p.Console.Configure(console.Options{JSON: true})
	env["GITHUB_OUTPUT"], env["GITHUB_STEP_SUMMARY"] = "", ""
	if publish(Reports{}); stderr.Len() > 0 {
		t.Errorf("in JSON: %s", &stderr)
	}
}

// full takes nothing, as a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

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
