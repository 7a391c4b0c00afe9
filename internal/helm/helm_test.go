package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/helm"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// packaged is the path of a chart with these files.
func packaged(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: "app/" + name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "app.tgz")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func found(t *testing.T, build func() (string, error)) (tool *helm.Tool, home string) {
	t.Helper()
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	// The name of a temporary directory may have characters that Helm takes for the end of a file's name.
	home = filepath.Join(t.TempDir(), `a, "b`)
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	tool, err = helm.Find(t.Context(), helm.Options{Name: program, Home: home, Limits: helm.Limits{Time: time.Minute, Memory: 1 << 30, Output: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	return tool, home
}

var helms = map[string]func() (string, error){"3": builtHelm, "4": helmtest.Helm4}

// helmOfTest names the helm of a test binary that runs as another user, who cannot build it.
const helmOfTest = "HELM_OF_TEST"

func builtHelm() (string, error) {
	if program := os.Getenv(helmOfTest); program != "" {
		return program, nil
	}
	return helmtest.Helm()
}

const metadata = "apiVersion: v2\nname: app\nversion: 1.0.0\n"

// A real helm renders the release, and leaves no values behind.
func TestTemplate(t *testing.T) {
	t.Parallel()
	for version, build := range helms {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			tool, home := found(t, build)
			if !strings.HasPrefix(tool.Version, "v"+version+".") {
				t.Errorf("version %s", tool.Version)
			}
			r := helm.Release{
				Name: "web", Namespace: "apps", Values: []byte("text: --post-renderer=x\n"), CRDs: true, NoTests: true,
				KubeVersion: "1.29.1", APIVersions: []string{"example.org/v1/Thing", "--enable-dns"},
				Chart: packaged(t, map[string]string{
					"Chart.yaml":          metadata,
					"crds/thing.yaml":     "kind: CustomResourceDefinition\n",
					"templates/a.yaml":    "a: {{ .Release.Name }}/{{ .Release.Namespace }} {{ .Values.text }} {{ .Capabilities.KubeVersion }} {{ .Capabilities.APIVersions.Has \"example.org/v1/Thing\" }} {{ getHostByName \"localhost\" | quote }}\n",
					"templates/test.yaml": "kind: Pod\nmetadata: {name: t, annotations: {helm.sh/hook: test}}\n",
				}),
			}
			text, err := tool.Template(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"kind: CustomResourceDefinition", "\na: web/apps --post-renderer=x v1.29.1 true \"\"\n"} {
				if !strings.Contains(string(text), want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			if strings.Contains(string(text), "kind: Pod") {
				t.Errorf("a test is rendered:\n%s", text)
			}
			if _, err := os.Stat(filepath.Join(home, "values.yaml")); !os.IsNotExist(err) {
				t.Errorf("the values are left: %v", err)
			}
			r.Name = "--post-renderer=true"
			var refused *helm.NameError
			if _, err := tool.Template(t.Context(), r); !errors.As(err, &refused) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Errors of helm, errors of the chart, and a run that ends.
func TestTemplateErrors(t *testing.T) {
	t.Parallel()
	tool, home := found(t, helmtest.Helm)
	r := helm.Release{Name: "web", Namespace: "apps", Chart: packaged(t, map[string]string{
		"Chart.yaml": metadata, "templates/a.yaml": "a: 1\nb: {{ fail \"a name is needed\" }}\n",
	})}
	_, err := tool.Template(t.Context(), r)
	var failed *helm.Error
	if !errors.As(err, &failed) || failed.File != "app/templates/a.yaml" || failed.Line != 2 {
		t.Errorf("%v: %+v", err, failed)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the run ends")
	cancel(cause)
	if _, err := tool.Template(ctx, r); !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(home, "values.yaml")); !os.IsNotExist(err) {
		t.Errorf("the values are left: %v", err)
	}
}

// A helm that is not networked cannot connect even to this machine; a networked helm can: the schema of a chart makes a request.
func TestNetworked(t *testing.T) {
	t.Parallel()
	for version, build := range helms {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Store(true)
				_, _ = w.Write([]byte("{}"))
			}))
			t.Cleanup(server.Close)
			tool, _ := found(t, build)
			_, err := tool.Template(t.Context(), helm.Release{Name: "web", Namespace: "apps", Chart: packaged(t, map[string]string{
				"Chart.yaml": metadata, "values.schema.json": `{"$ref": "` + server.URL + `/schema.json"}`,
			})})
			if asked.Load() != tool.Networked() || (err == nil) != tool.Networked() {
				t.Errorf("networked: %v, asked: %v, %v", tool.Networked(), asked.Load(), err)
			}
		})
	}
}
