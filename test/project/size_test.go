package project

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The size of package cmd, which parses flags, prints and picks exit codes. The figures must not be raised.
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

// namesFlag matches a flag in a text, but not the dashes of a sentence or of a PEM block.
var namesFlag = regexp.MustCompile(`(^|[^-\w])--[a-z]|(^|\s)-[dfoR](\s|$|,)`)

// ofOthers matches a flag of another program.
var ofOthers = regexp.MustCompile(`(git|gpg|helm|cosign|kustomize)( [a-z-]+)* --[a-z]|--enable-helm|Use --debug flag`)

// TestFlagsBelowCommands searches for texts below cmd that name a flag: advice belongs to package finding, or to the option of
// an exit.UsageError. Package config handles flags, and internal/helm/arguments.go has the flags of helm.
func TestFlagsBelowCommands(t *testing.T) {
	t.Parallel()
	var found []string
	eachFile(t, func(path string, file *ast.File, fset *token.FileSet) {
		if strings.HasPrefix(path, "cmd/") || strings.HasPrefix(path, "internal/config/") || strings.HasPrefix(path, "internal/finding/") || path == "internal/helm/arguments.go" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && namesFlag.MatchString(ofOthers.ReplaceAllString(strings.Trim(text.Value, "\"`"), "")) {
				found = append(found, fset.Position(text.Pos()).String()+": "+text.Value)
			}
			return true
		})
	})
	if len(found) > 0 {
		t.Errorf("%d texts below cmd name a flag:\n%s", len(found), strings.Join(found, "\n"))
	}
}

// TestFieldsOutsideObjects searches for texts that name a field of a spec in packages that know no objects: such advice
// belongs to package finding.
func TestFieldsOutsideObjects(t *testing.T) {
	t.Parallel()
	namesField := regexp.MustCompile(`\bspec\.[a-z]|(?i:secretRef)\b`)
	eachFile(t, func(path string, file *ast.File, fset *token.FileSet) {
		if !strings.HasPrefix(path, "internal/fetch/") && !strings.HasPrefix(path, "internal/auth/") && !strings.HasPrefix(path, "internal/verify/") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && namesField.MatchString(text.Value) {
				t.Errorf("%s names a field: %s", fset.Position(text.Pos()), text.Value)
			}
			return true
		})
	})
}

// TestErrorTypes counts the types of errors that no errors.As, assertion or switch of the program matches.
func TestErrorTypes(t *testing.T) {
	t.Parallel()
	// A finding.Problem is an error that is not matched by its type.
	types, matched := map[string]string{}, map[string]bool{"finding.Problem": true}
	eachFile(t, func(path string, file *ast.File, fset *token.FileSet) {
		named := func(e ast.Expr) string {
			if star, ok := e.(*ast.StarExpr); ok {
				e = star.X
			}
			switch e := e.(type) {
			case *ast.Ident:
				return file.Name.Name + "." + e.Name
			case *ast.SelectorExpr:
				if of, ok := e.X.(*ast.Ident); ok {
					return of.Name + "." + e.Sel.Name
				}
			}
			return ""
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				switch {
				case n.Recv != nil && n.Name.Name == "Error":
					types[named(n.Recv.List[0].Type)] = fset.Position(n.Pos()).String()
				case n.Recv != nil && n.Name.Name == "Excerpt": // by which validate looks for it
					matched[named(n.Recv.List[0].Type)] = true
				}
			case *ast.TypeSpec: // a type that embeds a problem is an error, too
				if shape, ok := n.Type.(*ast.StructType); ok {
					for _, field := range shape.Fields.List {
						if field.Names == nil && named(field.Type) == "finding.Problem" {
							types[file.Name.Name+"."+n.Name.Name] = fset.Position(n.Pos()).String()
						}
					}
				}
			case *ast.ValueSpec:
				if n.Type != nil && n.Values == nil {
					matched[named(n.Type)] = true
				}
			case *ast.TypeAssertExpr:
				matched[named(n.Type)] = true
			case *ast.CaseClause:
				for _, e := range n.List {
					matched[named(e)] = true
				}
			case *ast.IndexExpr: // errors.AsType[*T]
				matched[named(n.Index)] = true
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "new" {
					matched[named(n.Args[0])] = true
				}
			}
			return true
		})
	})
	var unmatched []string
	for name, at := range types {
		if !matched[name] {
			unmatched = append(unmatched, at+": "+name)
		}
	}
	t.Logf("%d types of errors, %d that nobody matches", len(types), len(unmatched))
	if len(unmatched) > 0 {
		slices.Sort(unmatched)
		t.Errorf("nobody matches %d types of errors, for which there is finding.Problem:\n%s", len(unmatched), strings.Join(unmatched, "\n"))
	}
}

// eachFile visits the files of the program, without servers for tests.
func eachFile(t *testing.T, visit func(path string, file *ast.File, fset *token.FileSet)) {
	t.Helper()
	for _, dir := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			path = filepath.ToSlash(path)
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "test/") {
				return err
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err == nil {
				visit(path, file, fset)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
