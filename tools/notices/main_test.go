package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinkedModules: each module that is linked into the program has a license text, which the notices hold.
func TestLinkedModules(t *testing.T) {
	modules, err := linked("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) < 50 {
		t.Fatalf("only %d modules are linked", len(modules))
	}
	var b bytes.Buffer
	if err := write(&b, modules); err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		if !strings.Contains(b.String(), "\n"+m.path+" (") {
			t.Errorf("no text is from %s", m.path)
		}
	}
	for _, text := range []string{
		"  github.com/spf13/cobra v", "Apache License", "The Go standard library (LICENSE)", "Copyright 2009 The Go Authors",
	} {
		if !strings.Contains(b.String(), text) {
			t.Errorf("the notices do not hold %q", text)
		}
	}
	var again bytes.Buffer
	if err := write(&again, modules); err != nil || again.String() != b.String() {
		t.Errorf("the second time the notices differ (%v)", err)
	}
	if strings.Contains(b.String(), modules[0].root) {
		t.Error("the notices hold a path of this machine")
	}
}

func TestTexts(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := &module{path: "example.com/m", version: "v1.0.0", root: dir, packages: []string{filepath.Join(dir, "a", "b")}}
	put("a/b/LICENSE", "copied from elsewhere")
	put("NOTICE", "a notice is no license")
	put("license.go", "package m")
	put("COPYING", " \n")
	if _, err := m.texts(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "example.com/m v1.0.0 has no license text") {
		t.Errorf("without a license: %v", err)
	}
	put("License.txt", "the license\r\nof the module\n")
	put("c/LICENSE", "of a package that is not linked")
	texts, err := m.texts()
	if err != nil || len(texts) != 3 || texts["License.txt"] != "the license\nof the module" || texts["a/b/LICENSE"] == "" || texts["NOTICE"] == "" {
		t.Errorf("%q, %v", texts, err)
	}
}
