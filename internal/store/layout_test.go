package store

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A newer program may use another layout: its directory is not opened, even if it has a known layout, too.
func TestOpenLayouts(t *testing.T) {
	options := Options{Now: time.Now}
	for name, test := range map[string]struct {
		dirs []string
		want string
	}{
		"no directory":     {nil, ""},
		"nothing recorded": {[]string{"helmchart/apps/podinfo"}, ""},
		"this layout":      {[]string{".helmsrc/v1"}, ""},
		"a later one":      {[]string{".helmsrc/v2"}, "v2"},
		"both":             {[]string{".helmsrc/v1", ".helmsrc/v10"}, "v10"},
		"no layout":        {[]string{".helmsrc/v1", ".helmsrc/cache"}, ""},
	} {
		dir := filepath.Join(t.TempDir(), "artifacts")
		for _, d := range test.dirs {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(dir, options)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want == "":
			_ = s.Close()
		case err == nil || !strings.Contains(err.Error(), "has layout "+test.want+","):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Unknown kinds are listed, whether their objects have their own files or share one, and no run loses them.
func TestUnknownKinds(t *testing.T) {
	dir := t.TempDir()
	newer := openStore(t, dir, Options{Now: time.Now, Kinds: []string{"HelmChart", "HelmRelease.example.org", "NewChart"}, Shared: []string{"HelmRelease.example.org"}})
	remember(t, newer, NewKey("HelmRelease.example.org", "apps", "podinfo"), &Record{Status: []byte(`{}`)})
	if err := newer.Save(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, key := range []Key{NewKey("NewChart", "apps", "podinfo"), chartKey} {
		unlock := lock(t, newer, key)
		remember(t, newer, key, &Record{Status: []byte(`{}`)})
		unlock()
	}
	older := openStore(t, dir, Options{Now: time.Now, Kinds: []string{"HelmChart", "HelmRelease"}, Shared: []string{"HelmRelease"}})
	got, err := older.UnknownKinds()
	if want := []string{"helmrelease.example.org", "newchart"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, not %q", got, err, want)
	}
	remember(t, older, NewKey("HelmRelease", "apps", "podinfo"), &Record{Status: []byte(`{"a":1}`)})
	if err := older.Save(context.Background()); err != nil {
		t.Fatal(err)
	}
	again := openStore(t, dir, Options{Now: time.Now, Kinds: []string{"HelmChart"}, Shared: []string{"HelmRelease", "HelmRelease.example.org"}})
	for _, kind := range []string{"HelmRelease", "HelmRelease.example.org"} {
		if _, err := again.Recall(NewKey(kind, "apps", "podinfo")); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if got, err := again.UnknownKinds(); err != nil || !slices.Equal(got, []string{"newchart"}) {
		t.Errorf("%q, %v", got, err)
	}
}
