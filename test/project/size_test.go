package project

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The size of package cmd, which parses flags, prints and picks exit codes. Both figures only ever go down.
const (
	mostLines   = 5800
	mostMethods = 36
)

// TestSizeOfCommands counts the lines of cmd without tests, and the methods of each of its types.
func TestSizeOfCommands(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("cmd", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	lines, methods := 0, map[string]int{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				receiver := f.Recv.List[0].Type
				if star, ok := receiver.(*ast.StarExpr); ok {
					receiver = star.X
				}
				if named, ok := receiver.(*ast.Ident); ok {
					methods[named.Name]++
				}
			}
		}
	}
	if lines > mostLines {
		t.Errorf("cmd has %d lines, want at most %d", lines, mostLines)
	}
	if methods["app"] == 0 {
		t.Error("the methods of app are not found")
	}
	for name, n := range methods {
		if n > mostMethods {
			t.Errorf("type %s of cmd has %d methods, want at most %d", name, n, mostMethods)
		}
	}
}
