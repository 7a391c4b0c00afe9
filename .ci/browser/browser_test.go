// Package browser looks at the pages of --report html with Chromium.
package browser

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a browser may take for everything that a test does.
const patience = 3 * time.Minute

// browse opens a page in a browser without a network.
func browse(t *testing.T, page string) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.UserDataDir(profile(t)), chromedp.WindowSize(1280, 900))
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	options = append(options, chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"))
	// The test's own context ends before its cleanups, which would kill the browser.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Error(err)
		}
	})
	do(t, ctx, chromedp.Navigate("file://"+page))
	return ctx
}

// profile makes the directory of a browser. Some of the browser's processes end after it and write there until then, so the
// directory is removed as often as it takes.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := os.RemoveAll(dir)
		for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); err = os.RemoveAll(dir) {
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return dir
}

func do(t *testing.T, ctx context.Context, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// eval is the value of an expression in the page.
func eval[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	var v T
	do(t, ctx, chromedp.Evaluate(expression, &v))
	return v
}

// report runs helmsrc on manifests, and returns its page. That the run finds mistakes is no failure.
func report(t *testing.T, command string, files map[string]string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), os.Getenv("HELMSRC"), append([]string{command, "--report", "html=page.html"}, args...)...)
	run.Dir = dir
	output, _ := run.CombinedOutput()
	page := filepath.Join(dir, "page.html")
	if _, err := os.Stat(page); err != nil {
		t.Fatalf("helmsrc %s: %v\n%s", command, err, output)
	}
	return page
}

const repository = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: repo, namespace: apps}
spec: {interval: 5m, url: "https://charts.example.org"}
`

func release(name, chart, version string) string {
	return fmt.Sprintf(`---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %s, namespace: apps}
spec: {interval: 5m, chart: {spec: {chart: %q, version: %q, sourceRef: {kind: HelmRepository, name: repo}}}}
`, name, chart, version)
}

// TestHostile: nothing that a manifest says runs, loads or becomes an element.
func TestHostile(t *testing.T) {
	hostile := `<img src=x onerror="window.taken=1"><script>window.taken=1</script>`
	page := report(t, "validate", map[string]string{"a/a.yaml": repository + release("app", hostile, hostile)}, "-R", "-f", "a")
	ctx := browse(t, page)
	if eval[bool](t, ctx, `"taken" in window`) || eval[int](t, ctx, `document.querySelectorAll("img, iframe, object").length`) != 0 {
		t.Error("the page runs or shows what a manifest says")
	}
	if !strings.Contains(eval[string](t, ctx, `document.body.innerText`), "<img src=x") {
		t.Error("the page does not say what the manifest does")
	}
	if n := eval[int](t, ctx, `performance.getEntriesByType("resource").length`); n != 0 {
		t.Errorf("the page loads %d resources", n)
	}
}

// TestKeyboard: a page can be used without a mouse.
func TestKeyboard(t *testing.T) {
	page := report(t, "validate", map[string]string{"a/a.yaml": repository + release("first", "one", "1.x") + release("second", "two", "2.x")}, "-R", "-f", "a")
	ctx := browse(t, page)
	do(t, ctx, chromedp.KeyEvent(kb.Tab))
	if got := eval[string](t, ctx, `document.activeElement.className`); got != "skip" {
		t.Errorf("the first stop is %q", got)
	}
	do(t, ctx, chromedp.KeyEvent("/"), chromedp.KeyEvent("second"))
	if got := eval[int](t, ctx, `document.querySelectorAll(".chunk .row:not([hidden])").length`); got != 2 { // the release and its chart
		t.Errorf("%d rows are left by the filter %q", got, eval[string](t, ctx, `document.getElementById("filter").value`))
	}
	open := `document.querySelector("nav details").open`
	do(t, ctx, chromedp.Focus("nav summary", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
	if eval[bool](t, ctx, open) {
		t.Error("Enter does not close a part of the tree")
	}
}

// TestThousands: what is not in sight is not laid out, so that ten thousand objects are there at once. What it takes is logged:
// a clock decides nothing.
func TestThousands(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(repository)
	for i := range 5000 { // each with its HelmChart
		b.WriteString(release(fmt.Sprintf("app-%d", i), "podinfo", "6.x"))
	}
	page := report(t, "validate", map[string]string{"a/a.yaml": b.String()}, "-R", "-f", "a")
	ctx := browse(t, page)
	if n := eval[int](t, ctx, `document.querySelectorAll(".chunk .row").length`); n != 10001 {
		t.Errorf("%d rows", n)
	}
	if n := eval[int](t, ctx, `[...document.querySelectorAll(".chunk > .row:first-child")].filter(r => !r.checkVisibility({contentVisibilityAuto: true})).length`); n < 90 {
		t.Errorf("only %d parts are left out of the layout", n)
	}
	t.Logf("first paint after %.0f ms, loaded after %.0f ms", eval[float64](t, ctx, `performance.getEntriesByName("first-contentful-paint")[0].startTime`),
		eval[float64](t, ctx, `performance.timing.loadEventEnd - performance.timing.navigationStart`))
}

// fleet is a repository of two clusters, one of which has a mistake.
func fleet() map[string]string {
	files := map[string]string{".git/HEAD": "ref: refs/heads/main\n", "apps/base/podinfo.yaml": repository + release("podinfo", "podinfo", "6.x"), "apps/base/kustomization.yaml": "resources: [podinfo.yaml]\n"}
	for _, cluster := range []string{"production", "staging"} {
		files["clusters/"+cluster+"/gotk-sync.yaml"] = fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.org/fleet", ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 10m, path: ./clusters/%[1]s, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec: {interval: 10m, path: ./apps/%[1]s, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`, cluster)
		files["apps/"+cluster+"/kustomization.yaml"] = "resources: [../base]\n"
	}
	files["apps/staging/kustomization.yaml"] += `patches:
- patch: |
    apiVersion: helm.toolkit.fluxcd.io/v2
    kind: HelmRelease
    metadata: {name: podinfo, namespace: apps}
    spec:
      install:
        remediation:
          retires: 3
`
	return files
}

// TestPictures makes the picture of the docs, in PICTURES, of a page that is in light and in dark colours.
func TestPictures(t *testing.T) {
	page := report(t, "validate", fleet(), "-R", "-f", "clusters")
	ctx := browse(t, page)
	eval[any](t, ctx, `document.querySelector("header p:last-child").textContent = "2026-01-02T03:04:05Z · helmsrc v1.0.0"`)
	eval[any](t, ctx, `document.querySelector("header p").textContent = document.querySelector("header p").textContent.replace(/; [0-9.]+s$/, "; 0.2s")`)
	colors := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		var picture []byte
		do(t, ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), emulation.SetDeviceMetricsOverride(1200, 620, 1, false), chromedp.CaptureScreenshot(&picture))
		colors[scheme] = eval[string](t, ctx, `getComputedStyle(document.body).backgroundColor`)
		if dir := os.Getenv("PICTURES"); dir != "" && scheme == "light" {
			if err := os.WriteFile(filepath.Join(dir, "page.png"), picture, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if colors["light"] == colors["dark"] {
		t.Errorf("both schemes have the background %s", colors["light"])
	}
}
