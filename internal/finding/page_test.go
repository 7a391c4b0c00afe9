package finding

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/docs"
)

// TestPage checks that docs/findings.md has the form that the program parses: the rules, in the order of their codes in each
// group, and no other content.
func TestPage(t *testing.T) {
	page := strings.ReplaceAll(docs.Findings, "\r\n", "\n")
	head := strings.Join(strings.Split(page, "\n## ")[:2], "\n## ")
	if got := head + catalogue(); got != page {
		want, have := strings.Split(page, "\n"), strings.Split(got, "\n")
		for i := range min(len(want), len(have)) {
			if want[i] != have[i] {
				t.Fatalf("docs/findings.md:%d: %q is read as %q", i+1, want[i], have[i])
			}
		}
		t.Errorf("docs/findings.md has %d lines, of which %d are read", len(want), len(have))
	}
}

// groups returns the headings of the catalogue, in its order.
func groups() []string {
	return []string{
		"Input", "Rejected by the API server", "Deprecations", "References", "URLs", "Charts and versions", "Settings", "Verification",
		"Secrets", "Kustomizations", "Generators", "Releases of Flux 1", "Comments that silence findings", "While fetching", "Integrity",
	}
}

// catalogue returns the part of the page with the rules.
func catalogue() string {
	var b strings.Builder
	for _, group := range groups() {
		rules := slices.DeleteFunc(Rules(), func(r Rule) bool { return r.Group != group })
		fmt.Fprintf(&b, "\n## %s\n\n| code | severity | |\n|---|---|---|\n", group)
		for _, r := range rules {
			fmt.Fprintf(&b, "| [%s](#%s-%s) | %s | %s |\n", r.Code, strings.ToLower(string(r.Code)), r.Name, r.Severity, r.Summary)
		}
		for _, r := range rules {
			writeRule(&b, r)
		}
	}
	return b.String()
}

func writeRule(b *strings.Builder, r Rule) {
	fmt.Fprintf(b, "\n### %s %s\n\n%s. %s\n\n%s", r.Code, r.Name, r.Summary, r.Explanation, r.Fix)
	if !r.Silenceable {
		b.WriteString(lasting)
	}
	b.WriteString("\n")
	if r.Example != "" {
		fmt.Fprintf(b, "\n```yaml\n%s```\n\nBetter:\n\n```yaml\n%s```\n", r.Example, r.Better)
	}
}
