package project

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// starts are the functions of the program that start a process. Each is a row of docs/security-model.md.
var starts = map[string]string{
	"internal/helm/helm.go":           "run",
	"internal/auth/ambient_helper.go": "runHelper",
}

// starting are the functions of the standard library that start a process or make one.
var starting = map[string][]string{
	"os/exec":                  {"Command", "CommandContext", "Cmd"},
	"os":                       {"StartProcess"},
	"syscall":                  {"StartProcess", "ForkExec", "Exec", "CreateProcess", "CreateProcessAsUser"},
	"golang.org/x/sys/unix":    {"Exec"},
	"golang.org/x/sys/windows": {"CreateProcess", "CreateProcessAsUser", "ShellExecute"},
}

// TestProcesses: the program starts other programs in these functions alone.
func TestProcesses(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--", "main.go", "cmd/*.go", "internal/*.go", ":!*_test.go", ":!internal/helmtest").Output()
	if err != nil {
		t.Fatal(err)
	}
	unused := maps.Clone(starts)
	for file := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if _, err := os.Stat(file); os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		for _, function := range startsOf(t, file) {
			if starts[file] != function {
				t.Errorf("%s: %s starts a process", file, function)
			}
			delete(unused, file)
		}
	}
	for file, function := range unused {
		t.Errorf("%s: %s starts no process", file, function)
	}
}

// startsOf are the functions of a file that start processes. A process that is only handed on is the type *exec.Cmd.
func startsOf(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	for _, spec := range f.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if functions := starting[path]; functions != nil {
			if name == "." {
				t.Errorf("%s imports %s as a dot", file, path)
			}
			names[name] = functions
		}
	}
	var found []string
	for _, decl := range f.Decls {
		function := "a variable"
		if d, ok := decl.(*ast.FuncDecl); ok {
			function = d.Name.Name
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StarExpr: // handed on
				_, handed := n.X.(*ast.SelectorExpr)
				return !handed
			case *ast.SelectorExpr:
				if id, ok := n.X.(*ast.Ident); ok && slices.Contains(names[id.Name], n.Sel.Name) {
					found = append(found, function)
				}
			}
			return true
		})
	}
	return found
}
