package judging

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/helmtest/inputs"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/rewrite"
)

const repository = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: apps}
spec: {interval: 5m, url: "https://charts.example.org"}
`

func release(name, source, more string) string {
	return `---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: ` + name + `, namespace: apps}
spec:
  interval: 5m
  chart: {spec: {chart: podinfo, version: 6.5.0, sourceRef: {kind: HelmRepository, name: ` + source + `}}}
` + more
}

func kustomization(name, path string) string {
	return `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: ` + name + `, namespace: flux-system}
spec: {interval: 5m, prune: true, path: ` + path + `, sourceRef: {kind: GitRepository, name: flux-system}}
`
}

// sync is the beginning of a cluster.
func sync(path string) string {
	return kustomization("flux-system", path) + `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 5m, url: "https://git.example.org/fleet"}
`
}

// judge judges manifests, and returns the verdict with the printed lines.
func judge(t *testing.T, o Options, files map[string]string) (*Verdict, string) {
	t.Helper()
	w, printed := inputs.Worker()
	in := inputs.Read(t, w, load.Options{Validating: true, AllowEmpty: true}, files)
	v, err := Judge(t.Context(), w, in, o)
	if err != nil {
		t.Fatal(err)
	}
	return v, printed.String()
}

// TestJudge counts documents and findings: valid ones, references to missing objects, and objects that these block.
func TestJudge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text, summary string
		code          int
	}{
		"valid":     {repository + release("one", "charts", ""), "2 valid, 0 invalid, 0 warnings", exit.OK},
		"reference": {repository + release("one", "chart", ""), "1 valid, 1 invalid, 0 warnings", exit.Failed},
		"silenced": {
			"# helmsrc:ignore HS030 the other team has it\n" + strings.TrimPrefix(release("one", "chart", ""), "---\n"),
			"1 valid, 0 invalid, 0 warnings, 1 silenced", exit.OK,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, printed := judge(t, Options{}, map[string]string{"all.yaml": test.text})
			if v.Summary != test.summary || v.Code != test.code {
				t.Errorf("%s, code %d, want %s, code %d\n%s", v.Summary, v.Code, test.summary, test.code, printed)
			}
		})
	}
}

// TestJudgeStrict has warnings fail, and makes warnings of notes.
func TestJudgeStrict(t *testing.T) {
	t.Parallel()
	v := &Verdict{o: Options{Strict: true}}
	note := finding.Finding{Severity: finding.Note}
	if v.report(v.raised(note)); v.warnings != 1 || !v.failed() {
		t.Errorf("strict: %d warnings, failed %v", v.warnings, v.failed())
	}
	v = &Verdict{}
	if v.report(v.raised(note)); v.warnings != 0 || v.failed() {
		t.Errorf("%d warnings, failed %v", v.warnings, v.failed())
	}
}

// TestJudgeClusters reports a mistake of a file that two clusters share once, and names the cluster of a mistake in one of them.
func TestJudgeClusters(t *testing.T) {
	t.Parallel()
	v, printed := judge(t, Options{}, map[string]string{
		"clusters/east/flux-system/sync.yaml": sync("./clusters/east"),
		"clusters/east/apps.yaml":             kustomization("apps", "./apps"),
		"clusters/west/flux-system/sync.yaml": sync("./clusters/west"),
		"clusters/west/apps.yaml":             kustomization("apps", "./apps") + "---\n" + kustomization("own", "./west"),
		"apps/all.yaml":                       repository + release("shared", "nowhere", ""),
		"west/all.yaml":                       strings.TrimPrefix(release("own", "anywhere", ""), "---\n"),
	})
	if got := strings.Count(printed, "nowhere"); got == 0 || v.errors != 2 {
		t.Errorf("%d errors, want 2:\n%s", v.errors, printed)
	}
	if !strings.Contains(printed, "clusters/west)") {
		t.Errorf("no cluster is named:\n%s", printed)
	}
	failed := 0
	for _, o := range v.Objects {
		if o.State == report.StateFailed {
			failed++
		}
	}
	if failed == 0 || v.Code != exit.Failed {
		t.Errorf("%d objects failed, code %d", failed, v.Code)
	}
}

// TestJudgeEnds is an error if the context ends, or if nothing fits the selectors.
func TestJudgeEnds(t *testing.T) {
	t.Parallel()
	w, _ := inputs.Worker()
	in := inputs.Read(t, w, load.Options{Validating: true}, map[string]string{"all.yaml": repository})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(exit.ErrInterrupted)
	if _, err := Judge(ctx, w, in, Options{}); !errors.Is(err, exit.ErrInterrupted) {
		t.Errorf("error %v", err)
	}
}

// TestFix fixes mistakes with exactly one remedy, and keeps all other bytes.
func TestFix(t *testing.T) {
	t.Parallel()
	text := `# the team's
apiVersion: source.toolkit.fluxcd.io/v1beta2
kind: HelmRepository
metadata: {name: charts, namespace: apps}
spec: {interval: 5m, type: OCI, url: "oci://registry.example.org/charts"} # as written
`
	// An unknown field would be lost with another version.
	lossy := "---\n" + strings.NewReplacer("type: OCI", "colour: red", "name: charts", "name: lossy").Replace(text)
	dir := inputs.Write(t, map[string]string{"all.yaml": text + lossy})
	w, printed := inputs.Worker()
	if err := Fix(t.Context(), w, &load.Options{Names: []string{dir}, Recursive: true, Validating: true}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "all.yaml"))
	if want := strings.NewReplacer("v1beta2", "v1", "type: OCI", "type: oci").Replace(text) + lossy; err != nil || string(got) != want {
		t.Errorf("%v\n%s\n%s", err, got, printed)
	}
}

// TestRemedies: a file is parsed once, whatever it is called and however many findings it has, and nothing is worked out once the
// context ends.
func TestRemedies(t *testing.T) {
	t.Parallel()
	const mistakes = 50
	dir := inputs.Write(t, map[string]string{"all.yaml": strings.Repeat("---\n"+strings.Replace(repository, "interval", "type: OCI, interval", 1), mistakes)})
	if err := os.Symlink("all.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	w, _ := inputs.Worker()
	x := &fixer{w: w, found: rewrite.Find(t.Context(), rewrite.Options{Names: []string{dir}}), files: map[string]*editedFile{}}
	repaired := func(ctx context.Context, name string) (n int) {
		var found []finding.Finding
		for i := range mistakes {
			found = append(found, finding.Finding{Code: finding.DeprecatedSpelling, Pos: finding.Pos{File: filepath.Join(dir, name), Line: 5*i + 5, Column: 14}})
		}
		x.remedies(ctx, found)
		for _, f := range found {
			if f.Repair != nil && f.Repair.Text == "oci" {
				n++
			}
		}
		return n
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if n := repaired(ended, "all.yaml"); n > 0 || len(x.order) > 0 {
		t.Errorf("%d remedies after the end, %d files are parsed", n, len(x.order))
	}
	if n := repaired(t.Context(), "none.yaml"); n > 0 || len(x.order) > 0 {
		t.Errorf("%d remedies in a file that is not edited, %d files are parsed", n, len(x.order))
	}
	for _, name := range []string{"all.yaml", "link.yaml"} {
		if n := repaired(t.Context(), name); n != mistakes || len(x.order) != 1 {
			t.Errorf("%s: %d remedies, %d files are parsed", name, n, len(x.order))
		}
	}
}
