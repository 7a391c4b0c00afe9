package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// validateCodes are the codes that validate tells of a manifest.
func validateCodes(t *testing.T, text string, args ...string) map[string]bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	Run(t.Context(), &Env{
		Args: append([]string{"validate", "-f", file, "--log-format", "json", "-v"}, args...), Stdin: strings.NewReader(""),
		Stdout: io.Discard, Stderr: &stderr, Terminal: func() (int, int, bool) { return 0, 0, false },
		Getenv: func(string) string { return "" }, Now: time.Now, Program: "helmsrc",
		Dial: func(context.Context, string, string) (net.Conn, error) {
			t.Error("validate opened a connection")
			return nil, net.ErrClosed
		},
	})
	codes := map[string]bool{}
	for line := range strings.Lines(stderr.String()) {
		var record struct{ Level, Code, Msg string }
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if record.Level == "error" && record.Code == "" {
			t.Errorf("an error without a code: %s", record.Msg)
		}
		if record.Code != "" && record.Level != levelHint {
			codes[record.Code] = true
		}
	}
	return codes
}

// TestExamples gives the example of each rule to validate, which has to find the mistake, and its correction, which
// must not have any.
func TestExamples(t *testing.T) {
	for _, r := range finding.Rules() {
		if r.Example == "" {
			continue
		}
		t.Run(string(r.Code), func(t *testing.T) {
			if got := validateCodes(t, r.Example); !got[string(r.Code)] {
				t.Errorf("the example gives %v:\n%s", got, r.Example)
			}
			for code := range validateCodes(t, r.Better) {
				if other, _ := finding.Lookup(code); other.Code == r.Code || other.Severity != finding.Note && r.Code != finding.DeprecatedSpelling {
					t.Errorf("the correction gives %s:\n%s", code, r.Better)
				}
			}
		})
	}
}

// TestIgnored silences the mistake of each example, but those that cannot be.
func TestIgnored(t *testing.T) {
	for _, r := range finding.Rules() {
		if r.Example == "" || r.Group == "Comments that silence findings" || r.Code == finding.InvalidMetadata {
			continue
		}
		text := strings.ReplaceAll(r.Example, "\nkind:", "\n# helmsrc:ignore "+string(r.Code)+" because\nkind:")
		text = strings.ReplaceAll(text, "apiVersion:", "# helmsrc:ignore "+string(r.Code)+" because\napiVersion:")
		if got := validateCodes(t, text); got[string(r.Code)] != r.Lasting {
			t.Errorf("%s: silenced gives %v:\n%s", r.Code, got, text)
		}
	}
}
