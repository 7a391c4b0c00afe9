package finding

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shared are the codes that several errors carry, each because it is another place that knows the fact. All others have
// one carrier.
var shared = map[Code][]string{
	Authentication:     {"finding.OfStatus", "finding.codeOfOne", "auth.TokenError"},
	DigestMismatch:     {"fetch.DigestError", "oci.BlobError"},
	ForbiddenReference: {"inventory.AccessError", "inventory.GateError"},
	GitReference:       {"git.EmptyError", "git.RefError"},
	InvalidArchive:     {"oci.ManifestError", "reconcile.loadError"},
	InvalidIndex:       {"helmrepo.IndexError", "reconcile.entriesError"},
	InvalidSecret:      {"manifest.DuplicateError", "manifest.SecretError"},
	InvalidURL:         {"git.URLError", "oci.URLError"},
	InvalidValues:      {"values.Error", "inventory.ValuesTypeError"},
	NoMatch:            {"oci.NoTagsError", "resolve.NoMatchError"},
	ServiceAccount:     {"credential.AccountError", "manifest.ServiceAccountError"},
	TimedOut:           {"fetch.CodeOf", "fetch.TimeoutError"},
	TooLarge:           {"finding.codeOfOne", "helmrepo.IndexError", "reconcile.entriesError", "oci.LayerError"},
	Unreachable:        {"fetch.CodeOf", "fetch.requestCode"},
	Unsigned:           {"fetch.ProvenanceError", "reconcile.unaskedError", "verify.UnsignedError"},
	UnusableSource:     {"inventory.RejectedError", "manifest.DuplicateError"},
	Certificate:        {"fetch.CodeOf", "bucket.Error"},
	RefusedRequest:     {"finding.OfStatus", "fetch.requestCode"},
	Unverifiable:       {"reconcile.directoryUnsignedError", "reconcile.setupError", "reconcile.unusableError", "reconcile.unverifiableError"},
}

// functions return codes without being methods of an error.
var functions = []string{"OfStatus", "codeOfOne", "CodeOf", "requestCode"}

// TestCarriers holds the errors to one code in one place: what an error is about is said by its type, and nowhere else.
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
		want := slices.Sorted(slices.Values(shared[code]))
		slices.Sort(got)
		if (len(got) > 1 || len(want) > 0) && !slices.Equal(got, want) {
			t.Errorf("%s is carried by %v, want %v", code, got, want)
		}
	}
}

// carrierName is the type whose method Finding this is, or one of the functions, else empty.
func carrierName(f *ast.FuncDecl) string {
	switch {
	case f.Recv == nil && slices.Contains(functions, f.Name.Name):
		return f.Name.Name
	case f.Recv == nil || f.Name.Name != "Finding":
		return ""
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	name := typ.(*ast.Ident).Name
	if name == "Reason" { // of a condition: what is left to say where the errors say nothing
		return ""
	}
	return name
}

// codesIn are the codes that a function names.
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

// constants are the codes by the names that they have in this package.
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
