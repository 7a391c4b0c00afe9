package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// cutFile cuts the name of a file from the beginning of an example.
func cutFile(text string) (name, rest string, ok bool) {
	line, rest, _ := strings.Cut(text, "\n")
	name, ok = strings.CutPrefix(line, "# ")
	return name, rest, ok && strings.HasSuffix(name, ".yaml")
}

// filesOf returns the files of an example, under "" if they have no names.
func filesOf(text string) map[string]string {
	files := map[string]string{}
	at := ""
	for i, document := range strings.Split(text, "---\n") {
		if name, rest, ok := cutFile(document); ok {
			at, files[name] = name, rest
			continue
		}
		if i > 0 {
			files[at] += "---\n"
		}
		files[at] += document
	}
	return files
}

// validateCodes returns the codes that validate reports for a manifest.
func validateCodes(t *testing.T, text string, args ...string) map[string]bool {
	t.Helper()
	input := filepath.Join(t.TempDir(), "manifest.yaml")
	if _, _, several := cutFile(text); several {
		input = t.TempDir()
		args = append(args, "-R")
	}
	for name, content := range filesOf(text) {
		write(t, filepath.Join(input, filepath.FromSlash(name)), content)
	}
	var stderr bytes.Buffer
	Run(t.Context(), &Env{
		Args: append([]string{"validate", "-f", input, "--log-format", "json", "-v"}, args...), Stdin: strings.NewReader(""),
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
		if record.Code != "" && record.Level != "hint" {
			codes[record.Code] = true
		}
	}
	return codes
}

// TestExamples validates the example of each rule, which must contain the mistake, and its correction, which must not have
// findings.
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

// TestIgnored silences the mistake of each example, except those that cannot be silenced.
func TestIgnored(t *testing.T) {
	for _, r := range finding.Rules() {
		if r.Example == "" || r.Group == "Comments that silence findings" || r.Code == finding.InvalidMetadata {
			continue
		}
		text := strings.ReplaceAll(r.Example, "\nkind:", "\n# helmsrc:ignore "+string(r.Code)+" because\nkind:")
		text = strings.ReplaceAll(text, "apiVersion:", "# helmsrc:ignore "+string(r.Code)+" because\napiVersion:")
		if got := validateCodes(t, text); got[string(r.Code)] != !r.Silenceable {
			t.Errorf("%s: silenced gives %v:\n%s", r.Code, got, text)
		}
	}
}

// TestOptions compares the options in the sentences of package finding with the options of the commands.
func TestOptions(t *testing.T) {
	known := map[string]bool{}
	for _, c := range newRootCommand(&app{env: &Env{Program: "helmsrc"}, console: console.New(nil)}).Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		c.InheritedFlags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	}
	text, err := os.ReadFile(filepath.Join("..", "internal", "finding", "options.go"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`[^-\w]--([a-z-]+)`).FindAllSubmatch(text, -1)
	if len(named) == 0 {
		t.Error("no option is named")
	}
	for _, m := range named {
		if !known[string(m[1])] {
			t.Errorf("no command has --%s", m[1])
		}
	}
}
