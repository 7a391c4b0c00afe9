package project

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecurityModel holds docs/security-model.md against the tests that it names: each row of a table names one, and each of
// them exists. SECURITY.md points to the page.
func TestSecurityModel(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("docs", "security-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for i, line := range strings.Split(string(page), "\n") {
		position := fmt.Sprintf("docs/security-model.md:%d", i+1)
		if _, names := coveringTests(t, position, line); !strings.HasPrefix(line, "| ") ||
			strings.HasPrefix(line, "| statement") || strings.HasPrefix(line, "| run |") {
			continue
		} else if names == 0 {
			t.Errorf("%s: no test", position)
		}
		rows++
	}
	if rows < 10 {
		t.Errorf("%d rows", rows)
	}
	policy, err := os.ReadFile("SECURITY.md")
	if err != nil || !strings.Contains(string(policy), "(docs/security-model.md)") {
		t.Errorf("SECURITY.md does not point to the page: %v", err)
	}
}
