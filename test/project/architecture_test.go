package project

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	inBackquotes = regexp.MustCompile("`([^`]+)`")
	roomName     = regexp.MustCompile("^\\| `([a-z/]+)` \\| (.+) \\|$")
)

// architecture returns docs/architecture.md, and the lines of the section with this heading.
func architecture(t *testing.T, heading string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return strings.Split(section, "\n")
}

// TestRooms compares the table of rooms with the existing packages.
func TestRooms(t *testing.T) {
	rooms := map[string]bool{"": true}
	for _, line := range architecture(t, "Packages") {
		if m := roomName.FindStringSubmatch(line); m != nil {
			rooms[m[1]] = true
		}
	}
	packages := map[string]bool{}
	for _, p := range goList(t, "./...") {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, strings.TrimSuffix(module, "/")), "/")
		packages[name] = true
		if !forTests(name) && !rooms[name] {
			t.Errorf("docs/architecture.md does not name %s", name)
		}
	}
	for name := range rooms {
		if !packages[name] {
			t.Errorf("docs/architecture.md names %s, which is no package", name)
		}
	}
}

// TestImportsPage compares the imports on the page with the table of TestImports.
func TestImportsPage(t *testing.T) {
	drawn := map[string][]string{}
	for _, line := range architecture(t, "Packages") {
		name, list, ok := strings.Cut(strings.TrimSpace(line), " → ")
		if strings.HasPrefix(line, "    ") && ok {
			drawn[strings.TrimSpace(name)] = strings.Split(list, ", ")
		}
	}
	for name, imported := range imports {
		if name == "" {
			name = "main"
		}
		name = strings.TrimPrefix(name, "internal/")
		want := []string{}
		for _, p := range imported {
			want = append(want, strings.TrimPrefix(p, "internal/"))
		}
		slices.Sort(want)
		got := slices.Sorted(slices.Values(drawn[name]))
		if len(want) == 0 {
			want = []string{"nothing"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("docs/architecture.md: %s → %s, want %s", name, strings.Join(got, ", "), strings.Join(want, ", "))
		}
		delete(drawn, name)
	}
	for name := range drawn {
		t.Errorf("docs/architecture.md: the table of imports has no %s", name)
	}
}

// TestSteps searches for the files and the reasons in the table of steps.
func TestSteps(t *testing.T) {
	sources := &strings.Builder{}
	for _, pattern := range []string{"internal/reconcile/*.go", "internal/status/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(b)
		}
	}
	steps := 0
	for _, line := range architecture(t, "One HelmChart, step by step") {
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if len(cells) < 2 || len(strings.TrimSpace(cells[0])) != 1 {
			continue
		}
		if want := string(rune('a' + steps)); strings.TrimSpace(cells[0]) != want {
			t.Errorf("step %s, want %s", cells[0], want)
		}
		steps++
		for _, m := range inBackquotes.FindAllStringSubmatch(cells[1], -1) {
			name := m[1]
			if strings.HasSuffix(name, ".go") {
				name = filepath.Join("internal", "reconcile", name)
			}
			if _, err := os.Stat(name); err != nil {
				t.Errorf("step %s: %v", cells[0], err)
			}
		}
		for _, m := range inBackquotes.FindAllStringSubmatch(strings.Join(cells[2:], ""), -1) {
			if !strings.Contains(sources.String(), m[1]) {
				t.Errorf("step %s: no reason %s", cells[0], m[1])
			}
		}
	}
	if steps == 0 {
		t.Error("no steps")
	}
}
