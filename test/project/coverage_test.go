package project

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	coveredScript = regexp.MustCompile("`([a-z][a-z0-9_]*\\.txtar)`")
	coveredTest   = regexp.MustCompile("`(?:([a-z/]+)\\.)?((?:Test|Fuzz)[A-Za-z0-9]+)`")
	coveredCase   = regexp.MustCompile(`^\| case ([RG]?\d+) `)
)

// TestCoverage compares docs/coverage.md with the tests that it names: each test exists, each row of a table names a test or a
// reason why it has no test, and the test of a numbered case mentions its number.
func TestCoverage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("docs", "coverage.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(page), "\n") {
		position := fmt.Sprintf("docs/coverage.md:%d", i+1)
		sources, names := coveringTests(t, position, line)
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| statement") {
			continue
		}
		if last := strings.TrimSpace(cells[len(cells)-1]); names == 0 && !strings.HasPrefix(last, "does not apply: ") {
			t.Errorf("%s: neither a test nor a reason", position)
		}
		if m := coveredCase.FindStringSubmatch(line); m != nil && !mentions(sources, m[1]) {
			t.Errorf("%s: none of its tests mentions case %s", position, m[1])
		}
	}
}

// coveringTests reads the files of the tests that a line names.
func coveringTests(t *testing.T, position, line string) (sources []string, names int) {
	t.Helper()
	for _, m := range coveredScript.FindAllStringSubmatch(line, -1) {
		names++
		b, err := os.ReadFile(filepath.Join("testdata", "script", m[1]))
		if err != nil {
			t.Errorf("%s: %v", position, err)
		}
		sources = append(sources, string(b))
	}
	for _, m := range coveredTest.FindAllStringSubmatch(line, -1) {
		names++
		dirs := []string{filepath.Join("internal", m[1])}
		switch m[1] {
		case "":
			dirs = []string{"test/program", "test/project"}
		case "cmd":
			dirs = []string{m[1]}
		}
		source := sourceOfTest(t, dirs, m[2])
		if source == "" {
			t.Errorf("%s: no %s in %s", position, m[2], strings.Join(dirs, " or "))
		}
		sources = append(sources, source)
	}
	return sources, names
}

// sourceOfTest returns the file of a package that declares a test, or "".
func sourceOfTest(t *testing.T, dirs []string, name string) string {
	t.Helper()
	var files []string
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "\nfunc "+name+"(") {
			return string(b)
		}
	}
	return ""
}

// mentions reports whether a source contains "case N", or "cases" with N in the list.
func mentions(sources []string, number string) bool {
	pattern := regexp.MustCompile(`\bcases? (?:[RG]?\d+(?:, | and |–|, case ))*` + number + `\b`)
	for _, source := range sources {
		if pattern.MatchString(source) {
			return true
		}
	}
	return false
}
