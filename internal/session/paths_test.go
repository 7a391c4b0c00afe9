package session

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestFromLock: a lock names files below its directory, relative to it and with forward slashes.
func TestFromLock(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, test := range []struct{ lock, name, want string }{
		{"helmsrc.lock", "a.yaml", "a.yaml"},
		{"helmsrc.lock", filepath.Join("sub", "..", "b", "c.yaml"), "b/c.yaml"},
		{filepath.Join("sub", "helmsrc.lock"), filepath.Join("sub", "a.yaml"), "a.yaml"},
		{filepath.Join("sub", "helmsrc.lock"), "a.yaml", ""},
		{"helmsrc.lock", filepath.Join("..", "a.yaml"), ""},
		{filepath.Join(dir, "helmsrc.lock"), "a.yaml", "a.yaml"},
		{"helmsrc.lock", ".", "."},
	} {
		if got := FromLock(test.lock, test.name); got != test.want {
			t.Errorf("%s from %s is %q, want %q", test.name, test.lock, got, test.want)
		}
	}
}

// TestWithoutPrivateProxies keeps the value of the environment, in either spelling, and adds the private addresses.
func TestWithoutPrivateProxies(t *testing.T) {
	for _, test := range []struct{ upper, lower, begins string }{
		{"", "", "localhost,"},
		{"a.example.org", "b.example.org", "a.example.org,localhost,"},
		{"", "b.example.org", "b.example.org,localhost,"},
	} {
		getenv := withoutPrivateProxies(func(name string) string {
			return map[string]string{"NO_PROXY": test.upper, "no_proxy": test.lower, "HTTPS_PROXY": "proxy"}[name]
		})
		if got := getenv("NO_PROXY"); !strings.HasPrefix(got, test.begins) || !strings.Contains(got, "169.254.0.0/16") {
			t.Errorf("%v: NO_PROXY is %s", test, got)
		}
		if got := getenv("HTTPS_PROXY"); got != "proxy" {
			t.Errorf("HTTPS_PROXY is %q", got)
		}
	}
}
