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

// TestStreams: only cmd/process.go names the streams of the process, so that all output goes through those of cmd.Env.
func TestStreams(t *testing.T) {
	t.Parallel()
	named := 0
	for _, root := range []string{"cmd", "internal", "main.go"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, filepath.Join("internal", "helmtest")) {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				use := ""
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if from, ok := n.X.(*ast.Ident); ok {
						use = from.Name + "." + n.Sel.Name
					}
				case *ast.CallExpr:
					if f, ok := n.Fun.(*ast.Ident); ok {
						use = f.Name
					}
				}
				switch use {
				case "os.Stdout", "os.Stderr":
					named++
					if path == filepath.Join("cmd", "process.go") {
						return true
					}
				case "fmt.Print", "fmt.Printf", "fmt.Println", "println":
				default:
					return true
				}
				t.Errorf("%s: %s", files.Position(n.Pos()), use)
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if named == 0 {
		t.Error("no stream is named")
	}
}
