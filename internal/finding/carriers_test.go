package finding

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shared holds the codes of several errors, each of which reports a different fact, and these facts. All other codes have one
// carrier.
var shared = map[Code]map[string]string{
	Authentication: {
		"finding.OfStatus":  "a server answers 401 or 403",
		"finding.codeOfOne": "a login was refused in another way: by a certificate, a text, a status of another protocol",
	},
	InvalidSecret: {
		"manifest.DuplicateError": "two Secrets have one name",
		"manifest.SecretError":    "its data cannot be decoded",
	},
	InvalidValues: {
		"values.Error":     "values that cannot be composed",
		"values.PartError": "values that the Helm Operator could not merge",
	},
	RefusedRequest: {
		"finding.OfStatus":  "a server answers with a status that has no code of its own",
		"fetch.requestCode": "a request was not sent, or its answer not taken",
	},
	UnusableSource: {
		"inventory.RejectedError": "the API server would reject it",
		"manifest.DuplicateError": "two objects have one name",
	},
}

// functions return codes without being methods of an error.
var functions = []string{"OfStatus", "codeOfOne", "CodeOf", "TLSCode", "networkCode", "requestCode"}

// TestCarriers limits codes to one error type each: several types may have a code only if each reports a different fact. A
// Problem has the code of the place where it is made, and is ignored.
func TestCarriers(t *testing.T) {
	names := constants(t)
	carriers := map[Code][]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			carrier := file.Name.Name + "." + carrierName(f)
			for _, code := range codesIn(f, names) {
				if carrier != file.Name.Name+"." && !slices.Contains(carriers[code], carrier) {
					carriers[code] = append(carriers[code], carrier)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for code, got := range carriers {
		want := slices.Sorted(maps.Keys(shared[code]))
		slices.Sort(got)
		if (len(got) > 1 || len(want) > 0) && !slices.Equal(got, want) {
			t.Errorf("%s is carried by %v, want %v", code, got, want)
		}
	}
}

// carrierName returns the type whose method Finding this is, or the name of one of the functions, else "".
func carrierName(f *ast.FuncDecl) string {
	switch {
	case f.Recv == nil && slices.Contains(functions, f.Name.Name) && returnsCode(f):
		return f.Name.Name
	case f.Recv == nil || f.Name.Name != "Finding":
		return ""
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	name := typ.(*ast.Ident).Name
	if name == "Reason" { // the reason of a condition: a fallback for errors without a code
		return ""
	}
	return name
}

// returnsCode reports whether a function returns the code of a finding, and not an exit code.
func returnsCode(f *ast.FuncDecl) bool {
	if f.Type.Results == nil {
		return false
	}
	switch typ := f.Type.Results.List[0].Type.(type) {
	case *ast.Ident:
		return typ.Name == "Code"
	case *ast.SelectorExpr:
		return typ.Sel.Name == "Code"
	}
	return false
}

// codesIn returns the codes that a function names.
func codesIn(f *ast.FuncDecl, names map[string]Code) []Code {
	var found []Code
	ast.Inspect(f, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && names[id.Name] != "" {
			found = append(found, names[id.Name])
		}
		return true
	})
	return found
}

// constants returns the codes by the names of their constants.
func constants(t *testing.T) map[string]Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]Code{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			names[v.Names[0].Name] = Code(strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`))
		}
		return true
	})
	return names
}
