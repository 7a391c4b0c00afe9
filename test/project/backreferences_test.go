package project

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mostBackReferences is the limit of the names that files of internal/reconcile use from files that follow them on the page.
// It must not be raised.
const mostBackReferences = 1

// TestBackReferences compares the files of internal/reconcile with their order in docs/architecture.md: each file is on the
// page, and the number of references from a file to a later one must not grow. A reference is a function, method, type,
// variable or constant that a file uses, regardless of how often.
func TestBackReferences(t *testing.T) {
	t.Parallel()
	const dir = "internal/reconcile"
	order := map[string]int{}
	for _, line := range architecture(t, "The files of `internal/reconcile`") {
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) != 2 {
			continue
		}
		for _, m := range inBackquotes.FindAllStringSubmatch(cells[1], -1) {
			if _, twice := order[m[1]]; twice {
				t.Errorf("docs/architecture.md names %s twice", m[1])
			}
			order[m[1]] = len(order)
		}
	}
	uses := usesBetweenFiles(t, dir)
	for name := range uses.files {
		if _, ok := order[name]; !ok {
			t.Errorf("docs/architecture.md has no place for %s/%s.go", dir, name)
		}
	}
	for name := range order {
		if !uses.files[name] {
			t.Errorf("docs/architecture.md names %s, which is no file of %s", name, dir)
		}
	}
	var back []string
	for use := range uses.names {
		if order[use.from] < order[use.to] {
			back = append(back, use.from+".go → "+use.to+".go: "+use.name)
		}
	}
	t.Logf("%d of %d references run back up", len(back), len(uses.names))
	if len(back) > mostBackReferences {
		t.Errorf("%d references run back up, want at most %d:\n%s", len(back), mostBackReferences, strings.Join(back, "\n"))
	}
	if len(uses.names) < 500 {
		t.Errorf("only %d references", len(uses.names))
	}
}

type fileUse struct{ from, to, name string }

type fileUses struct {
	files map[string]bool
	names map[fileUse]bool
}

// usesBetweenFiles returns the names that the files of a package use from each other, except fields.
func usesBetweenFiles(t *testing.T, dir string) fileUses {
	t.Helper()
	compiled := map[string]string{}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./"+dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		compiled[path] = file
	}
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	base := func(p token.Pos) string { return strings.TrimSuffix(filepath.Base(fset.Position(p).Filename), ".go") }
	uses := fileUses{map[string]bool{}, map[fileUse]bool{}}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		uses.files[base(f.Pos())] = true
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	imported := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })
	checked, err := (&types.Config{Importer: imported}).Check(dir, fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	for id, of := range info.Uses {
		if of.Pkg() != checked || of.Parent() != checked.Scope() && !isMethod(of) {
			continue
		}
		if use := (fileUse{base(id.Pos()), base(of.Pos()), of.Name()}); use.from != use.to {
			uses.names[use] = true
		}
	}
	return uses
}

func isMethod(of types.Object) bool {
	f, ok := of.(*types.Func)
	return ok && f.Signature().Recv() != nil
}
