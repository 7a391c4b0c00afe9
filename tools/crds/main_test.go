package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const committed = "../../internal/admission/crds"

// What is committed is what the generator yields.
func TestCommittedSchemas(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(committed, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator yields: run go generate ./internal/admission", name)
		}
	}
	entries, err := os.ReadDir(committed)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(files) {
		t.Errorf("%d files in %s, the generator yields %d", len(entries), committed, len(files))
	}
}

// The schemas are made from the types that the program is built with.
func TestSameVersion(t *testing.T) {
	version := func(dir, module string) string {
		cmd := exec.Command("go", "list", "-m", "-f", "{{.Version}}", module)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	for _, a := range apis {
		if here, main := version(".", a.module), version("../..", a.module); here != main {
			t.Errorf("%s is %s here and %s in the main module", a.module, here, main)
		}
	}
}
