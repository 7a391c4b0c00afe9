package project

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// vagueNames are words that names of functions, types, fields and variables must not contain, with replacements: the words of
// Go, Helm, Flux or OCI.
var vagueNames = map[string]string{
	"ahead":    "buffered, started",
	"alike":    "equal, similar",
	"aside":    "referenceOnly, suspended",
	"away":     "elsewhere, outside",
	"book":     "records",
	"brought":  "tracked, downloaded",
	"clue":     "hint",
	"hear":     "collect",
	"maker":    "generator",
	"pick":     "choose, resolved",
	"place":    "path, position, location",
	"settle":   "resolve, finish",
	"spare":    "keep, forget",
	"spared":   "kept",
	"stumble":  "misreading",
	"stumbled": "misread",
	"tell":     "report, warn",
	"teller":   "warner",
	"waits":    "waiting, delays",
}

// vagueName are such words as whole names.
var vagueName = map[string]string{
	"wayBack": "dependencyPath",
	"isHome":  "isOwnRepository",
	"lose":    "claim",
	"promise": "the generated thing",
	"words":   "text, fields",
}

// fieldTerms matches terms of the field that contain such a word.
var fieldTerms = regexp.MustCompile(`(?i)in_?place`)

// vagueComments matches the words that comments must not contain.
var vagueComments = regexp.MustCompile(`(?i)\b(tells?|telling|told|whoever|somebody|anybody|hears?|mend(s|ed)?|hardly|at hand|hangs? on|nowhere|odd|twins?|(?:is|are) none|(?:is|are) asked for)\b`)

var namePart = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// TestNames: names and comments use the terms of the field.
func TestNames(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	for file := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if _, err := os.Stat(file); os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if instead := insteadOf(strings.TrimSuffix(path.Base(file), ".go")); instead != "" {
			t.Errorf("%s: call the file %s", file, instead)
		}
		for _, name := range declaredNames(f) {
			declared++
			if instead := insteadOf(name.Name); instead != "" {
				t.Errorf("%s: %s: write %s", fset.Position(name.Pos()), name.Name, instead)
			}
		}
		for _, group := range f.Comments {
			for _, c := range group.List {
				if found := vagueComments.FindString(c.Text); found != "" && !strings.HasSuffix(file, "words_test.go") {
					t.Errorf("%s: %q: comments say returns, reports, calls, the caller", fset.Position(c.Pos()), found)
				}
			}
		}
	}
	if declared < 10000 {
		t.Errorf("only %d names", declared)
	}
}

func insteadOf(name string) string {
	if instead := vagueName[name]; instead != "" {
		return instead
	}
	for _, part := range namePart.FindAllString(fieldTerms.ReplaceAllString(name, ""), -1) {
		if instead := vagueNames[strings.ToLower(part)]; instead != "" {
			return instead
		}
	}
	return ""
}

// declaredNames returns the names that a file declares.
func declaredNames(f *ast.File) []*ast.Ident {
	var names []*ast.Ident
	add := func(all ...ast.Expr) {
		for _, e := range all {
			if id, ok := e.(*ast.Ident); ok {
				names = append(names, id)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name)
		case *ast.TypeSpec:
			names = append(names, n.Name)
		case *ast.ValueSpec:
			names = slices.Concat(names, n.Names)
		case *ast.Field:
			names = slices.Concat(names, n.Names)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key, n.Value)
			}
		}
		return true
	})
	return names
}
