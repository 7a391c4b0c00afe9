package project

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestStart: no regular expression is compiled before main, because that would delay every start of the program.
func TestStart(t *testing.T) {
	t.Parallel()
	later := 0
	for _, root := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncLit, *ast.BlockStmt:
					return false
				case *ast.SelectorExpr:
					if from, ok := n.X.(*ast.Ident); ok && from.Name == "regexp" && strings.Contains(n.Sel.Name, "Compile") {
						t.Errorf("%s: %s before main; give it to sync.OnceValue in a function", files.Position(n.Pos()), n.Sel.Name)
					}
				case *ast.ImportSpec:
					if n.Path.Value == `"regexp"` {
						later++
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if later == 0 {
		t.Error("no package uses regular expressions")
	}
}
