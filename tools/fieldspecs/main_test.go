package main

import (
	"bytes"
	"os"
	"testing"
)

// TestCommittedDefaults compares the file that is committed with what the linked version of kustomize has.
func TestCommittedDefaults(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../internal/kustomize/defaults.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("defaults.json is another file than the generator writes: run go generate ./internal/kustomize")
	}
}
