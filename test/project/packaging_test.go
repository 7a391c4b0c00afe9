package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManualsAreInTheCask: other packages include all manual pages by a pattern, but the cask names each of them.
func TestManualsAreInTheCask(t *testing.T) {
	config, err := os.ReadFile(".goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("man/*.1")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d manual pages: %v", len(pages), err)
	}
	for _, page := range pages {
		if page = filepath.ToSlash(page); !strings.Contains(string(config), "      - "+page+"\n") {
			t.Errorf("%s is not among the manpages of the cask", page)
		}
	}
}
