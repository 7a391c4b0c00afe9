package migration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/helmtest/inputs"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/migrate"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/session"
)

const old = `# The team's.
apiVersion: source.toolkit.fluxcd.io/v1beta2
kind: HelmRepository
metadata: {name: charts, namespace: apps}
spec: {interval: 5m, url: "https://charts.example.org"} # as written
`

// work is that of a migration of files in a new directory.
func work(t *testing.T, files map[string]string) (foresee.Work, string, *inputs.Printed) {
	t.Helper()
	dir := inputs.Write(t, files)
	w, printed := inputs.Worker()
	o := &session.Options{
		Load:      &load.Options{Names: []string{dir}, Recursive: true},
		Store:     session.StoreOptions{Dir: t.TempDir(), Records: 2},
		Reconcile: reconcile.Options{Concurrency: 1},
	}
	return foresee.Work{Worker: w, Options: o}, dir, printed
}

// TestRun writes current API versions and keeps all other bytes. A dry run or a check writes no files, but reports the changes.
func TestRun(t *testing.T) {
	t.Parallel()
	current := strings.Replace(old, "v1beta2", "v1", 1)
	for name, test := range map[string]struct {
		text    string
		o       Options
		want    string
		code    int
		changes int
	}{
		"edit":      {old, Options{}, current, exit.OK, 1},
		"dry run":   {old, Options{DryRun: true}, old, exit.OK, 1},
		"check":     {old, Options{Check: true}, old, exit.Drift, 1},
		"exit code": {old, Options{ExitCode: true}, current, exit.Drift, 1},
		"current":   {current, Options{Check: true}, current, exit.OK, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, dir, printed := work(t, map[string]string{"all.yaml": test.text})
			m, err := Run(t.Context(), w, test.o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(dir, "all.yaml"))
			if err != nil || string(got) != test.want {
				t.Errorf("%v, %s\n%s", err, got, printed)
			}
			if m.Code != test.code || len(m.Changes) != test.changes || m.Files != test.changes {
				t.Errorf("code %d, %d changes in %d files\n%s", m.Code, len(m.Changes), m.Files, printed)
			}
			if diff := string(m.Diffs); test.o.DryRun != strings.Contains(diff, "+apiVersion: source.toolkit.fluxcd.io/v1\n") {
				t.Errorf("diff %s", diff)
			}
		})
	}
}

// TestRunInterrupted writes nothing once the context is over.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	w, dir, _ := work(t, map[string]string{"all.yaml": old})
	m := &Migration{Work: w, unfit: map[string]string{}, left: map[migrate.ID]bool{}}
	var err error
	if m.inputs, err = w.Worker.Inputs(t.Context(), w.Options.Load); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	m.find(ctx)
	if err := m.plan(ctx); err != nil || len(m.result.Files) != 1 {
		t.Fatalf("%v, %+v", err, m.result)
	}
	cancel(exit.ErrInterrupted)
	m.finish(ctx)
	got, err := os.ReadFile(filepath.Join(dir, "all.yaml"))
	if err != nil || string(got) != old || m.Written || m.Files != 0 {
		t.Errorf("written %v, %d files, %v\n%s", m.Written, m.Files, err, got)
	}
}

// TestLeave leaves out a release once: if it still differs, leave returns false.
func TestLeave(t *testing.T) {
	t.Parallel()
	w, _, printed := work(t, map[string]string{"all.yaml": old})
	m := &Migration{Work: w, left: map[migrate.ID]bool{}}
	id := migrate.ID{Kind: "HelmRelease", Namespace: "apps", Name: "one"}
	p := proof{{is: differs, id: id, pos: manifest.Pos{File: "all.yaml", Line: 7, Column: 1}, text: "its values would change", code: exit.Transient}}
	if !m.leave(p) || !m.left[id] || m.Code != exit.Transient {
		t.Errorf("left %v, code %d", m.left, m.Code)
	}
	if text := printed.String(); !strings.Contains(text, "all.yaml:7:1: it is not changed: its values would change") {
		t.Errorf("printed %s", text)
	}
	if m.leave(p) {
		t.Error("a release is left out twice")
	}
	if m.leave(proof{{is: differs, text: "the manifests cannot be built any more"}}) {
		t.Error("what is no object is left out")
	}
	if m.leave(nil) {
		t.Error("nothing differs, and something is left out")
	}
}

// TestRedirect makes a source use a mirror, without the login for the source, and reports a source that stays.
func TestRedirect(t *testing.T) {
	t.Parallel()
	text := strings.Replace(strings.Replace(old, "v1beta2", "v1", 1), "interval: 5m,", "interval: 5m, secretRef: {name: login},", 1)
	w, dir, printed := work(t, map[string]string{"all.yaml": text, "other.yaml": strings.Replace(text, "name: charts", "name: others", 1)})
	in, err := w.Worker.Inputs(t.Context(), w.Options.Load)
	if err != nil {
		t.Fatal(err)
	}
	to := migrate.Mirror{URL: func(o *migrate.Object) (string, string) {
		if o.Name == "others" {
			return "", "nothing of it is mirrored"
		}
		return "oci://mirror.example.org/charts", ""
	}}
	m, result := Redirect(t.Context(), w, in, to, false)
	got, err := os.ReadFile(filepath.Join(dir, "all.yaml"))
	if err != nil || !strings.Contains(string(got), `url: "oci://mirror.example.org/charts"`) || !strings.Contains(string(got), "type: oci") || strings.Contains(string(got), "secretRef") {
		t.Errorf("%v\n%s", err, got)
	}
	if len(result.Redirected) != 1 || m.Code != exit.Failed || !strings.Contains(printed.String(), "its url is not changed: nothing of it is mirrored") {
		t.Errorf("%d redirected, code %d\n%s", len(result.Redirected), m.Code, printed)
	}
}
