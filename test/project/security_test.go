package project

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSecurityModel compares docs/security-model.md with the tests that it names: each row of a table names a test, and each
// test exists. SECURITY.md links to the page.
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
			strings.HasPrefix(line, "| statement") || strings.HasPrefix(line, "| crossing") || strings.HasPrefix(line, "| run |") || linkedBy(line) != "" {
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

// linkedBy returns the modules of a row of the table of modules, or "" for other lines.
func linkedBy(line string) string {
	_, modules, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
	if !ok || modules != "module |" && !strings.HasPrefix(modules, "`github.com/") && !strings.HasPrefix(modules, "`gopkg.in/") {
		return ""
	}
	return modules
}

// TestLinkedModules compares the table of unmaintained modules with the linked modules: a module whose version is from before
// 2023 is in it, and each module in it is linked.
func TestLinkedModules(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("docs", "security-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		for i, word := range strings.Split(linkedBy(line), "`") {
			if i%2 == 1 {
				listed[word] = false
			}
		}
	}
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{with .Time}}{{.Format \"2006\"}} {{end}}{{.Path}}{{end}}", ".")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range slices.Compact(slices.Sorted(strings.Lines(string(out)))) {
		year, path, ok := strings.Cut(strings.TrimSpace(module), " ")
		if _, known := listed[path]; known {
			listed[path] = true
		} else if ok && year < "2023" {
			t.Errorf("%s of %s is linked and not listed", path, year)
		}
	}
	for path, linked := range listed {
		if !linked {
			t.Errorf("%s is listed and not linked", path)
		}
	}
	if len(listed) < 5 {
		t.Errorf("%d modules", len(listed))
	}
}

// TestVulnerabilitiesLookedUp: the workflow that has a network runs the scanner.
func TestVulnerabilitiesLookedUp(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		filepath.Join(".github", "workflows", "vuln.yml"): "- run: .ci/run vuln\n",
		filepath.Join(".ci", "run"):                       "\nstep_vuln() {\n\tgo -C .ci/vuln build -o \"$tmp/govulncheck\" ",
	} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q: %v", file, want, err)
		}
	}
}

// crossingFunction is a function of a package, or a method of a type.
var crossingFunction = regexp.MustCompile("`([a-z/]+)\\.(?:([A-Za-z]+)\\.)?([A-Za-z]+)`")

// TestCrossings: the functions that the table of crossings names exist, and each row has its function and its fuzz target.
func TestCrossings(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("docs", "security-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| crossing | function | tests |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) < 10 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		cells := strings.Split(row, " | ")
		if len(cells) != 3 {
			t.Errorf("%d cells: %s", len(cells), row)
			continue
		}
		named := crossingFunction.FindAllStringSubmatch(cells[1], -1)
		if len(named) == 0 {
			t.Errorf("no function: %s", row)
		}
		for _, name := range named {
			if !declared(t, name[1], name[2], name[3]) {
				t.Errorf("there is no %s: %s", name[0], row)
			}
		}
		coveringTests(t, cells[0], cells[2])
		if !strings.Contains(cells[2], ".Fuzz") {
			t.Errorf("no fuzz target: %s", row)
		}
	}
}

// declared reports whether a package declares a function, or a type a method.
func declared(t *testing.T, pkg, receiver, name string) bool {
	t.Helper()
	dir := filepath.Join("internal", filepath.FromSlash(pkg))
	if pkg == "cmd" {
		dir = pkg
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Name.Name != name || (f.Recv == nil) != (receiver == "") {
				continue
			}
			if receiver == "" || strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") == receiver {
				return true
			}
		}
	}
	return false
}
