package cmd

import (
	"path/filepath"
	"testing"
)

func TestCacheDir(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name, system string
		env          map[string]string
		want         string
	}{
		{"linux", "linux", map[string]string{"HOME": dir}, filepath.Join(dir, ".cache", "helmsrc")},
		{"XDG", "linux", map[string]string{"HOME": "/elsewhere", "XDG_CACHE_HOME": dir}, filepath.Join(dir, "helmsrc")},
		{"relative XDG does not count", "linux", map[string]string{"HOME": dir, "XDG_CACHE_HOME": "cache"}, filepath.Join(dir, ".cache", "helmsrc")},
		{"relative home does not count", "linux", map[string]string{"HOME": "home"}, ""},
		{"macOS", "darwin", map[string]string{"HOME": dir, "XDG_CACHE_HOME": "/elsewhere"}, filepath.Join(dir, "Library", "Caches", "helmsrc")},
		{"Windows", "windows", map[string]string{"LocalAppData": dir, "HOME": "/elsewhere"}, filepath.Join(dir, "helmsrc")},
		{"nothing", "linux", nil, ""},
		{"nothing on macOS", "darwin", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := cacheDir(test.system, func(name string) string { return test.env[name] })
			if got != test.want {
				t.Errorf("cacheDir = %q, want %q", got, test.want)
			}
		})
	}
}
