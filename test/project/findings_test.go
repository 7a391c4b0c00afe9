package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// TestRunTimeCodes searches the scripts for each code that a manifest alone cannot cause. The other codes are tested with
// their examples.
func TestRunTimeCodes(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var scripts strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		scripts.Write(text)
	}
	all := scripts.String()
	for _, r := range finding.Rules() {
		shown := strings.Contains(all, "["+string(r.Code)+"]") || strings.Contains(all, `\[`+string(r.Code)+`\]`)
		if r.Example == "" && !shown {
			t.Errorf("no script shows %s %s", r.Code, r.Name)
		}
	}
}
