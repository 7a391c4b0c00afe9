package project

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// starts holds the functions of the program that start a process. Each is a row of docs/security-model.md.
var starts = map[string][]string{
	"internal/helm/helm.go":           {"run"},
	"internal/auth/ambient_helper.go": {"runHelper"},
}

// starting holds the functions of the standard library that start a process or make a command.
var starting = map[string][]string{
	"os/exec":                  {"Command", "CommandContext", "Cmd"},
	"os":                       {"StartProcess"},
	"syscall":                  {"StartProcess", "ForkExec", "Exec", "CreateProcess", "CreateProcessAsUser"},
	"golang.org/x/sys/unix":    {"Exec"},
	"golang.org/x/sys/windows": {"CreateProcess", "CreateProcessAsUser", "ShellExecute"},
}

// opens holds the functions that open files by their paths. An untrusted file may be a pipe, and a link may lead anywhere:
// package file checks each file that it opens, and the rest create new files, or append to a file that the runner names.
var opens = map[string][]string{
	"internal/publish/github.go":   {"appendFile"},
	"internal/foresee/renderer.go": {"writeArchive"},
	"internal/publish/files.go":    {"writeInBackground"},
	"internal/bundle/write.go":     {"complete", "index", "archive", "blobs"},
	"internal/fetch/git/store.go":  {"writeIndex"},
	"internal/file/file.go":        {"OpenRoot", "ReadDir", "Read", "Open"},
	"internal/helm/helm.go":        {"Template"},
	"internal/rewrite/write.go":    {"beside", "exclusive"},
}

// opening holds the functions of the standard library that open a file by its path. Those of an os.Root stay below it.
var opening = map[string][]string{
	"os":        {"Open", "OpenFile", "ReadFile", "ReadDir", "OpenRoot", "Create", "DirFS", "WriteFile", "CopyFS"},
	"io/ioutil": {"ReadFile", "ReadDir", "WriteFile"},
	"syscall":   {"Open"},
}

// TestProcesses: only these functions of the program start other programs.
func TestProcesses(t *testing.T) {
	t.Parallel()
	onlyIn(t, starts, starting, "starts a process")
}

// TestReaders: only these functions of the program open files by their paths.
func TestReaders(t *testing.T) {
	t.Parallel()
	onlyIn(t, opens, opening, "opens a file by its path")
}

// onlyIn checks that the program calls functions of packages only in the named functions of the named files.
func onlyIn(t *testing.T, allowed, of map[string][]string, does string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--", "main.go", "cmd/*.go", "internal/*.go", ":!*_test.go", ":!internal/helmtest", ":!internal/fetch/fetchtest", ":!*/testdata/*").Output()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for file := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if _, err := os.Stat(file); os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		for _, function := range usesOf(t, file, of) {
			if !slices.Contains(allowed[file], function) {
				t.Errorf("%s: %s %s", file, function, does)
			}
			used[file+function] = true
		}
	}
	for file, functions := range allowed {
		for _, function := range functions {
			if !used[file+function] {
				t.Errorf("%s: that %s %s is no longer true", file, function, does)
			}
		}
	}
}

// usesOf returns the functions of a file that use functions of packages. A type such as *exec.Cmd does not count.
func usesOf(t *testing.T, file string, of map[string][]string) []string {
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
		if functions := of[path]; functions != nil {
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
