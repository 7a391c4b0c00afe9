// Typecheck finds errors of types in the packages of a module, and in their tests, for one operating system after the other, without
// compiling what they import: that takes minutes for each system, and this takes seconds.
//
//	go run ./typecheck DIRECTORY GOOS...
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stderr))
}

// run returns the exit code: 1 if there is an error of types, 2 if the packages cannot be looked at.
func run(args []string, stderr io.Writer) int {
	if len(args) < 2 {
		fmt.Fprintln(stderr, "usage: typecheck DIRECTORY GOOS...")
		return 2
	}
	code := 0
	for _, system := range args[1:] {
		found, err := check(args[0], system)
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
		for _, e := range found {
			fmt.Fprintf(stderr, "%s: %s\n", system, e)
			code = 1
		}
	}
	return code
}

// check returns the errors in all packages below dir, built without cgo for a system. It is an error if there are no packages.
func check(dir, system string) ([]packages.Error, error) {
	roots, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedFiles | packages.NeedCompiledGoFiles |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedTypesSizes,
		Dir:   dir,
		Env:   append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		Tests: true,
		ParseFile: func(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
			return parser.ParseFile(fset, name, text, parser.SkipObjectResolution) // without comments
		},
	}, "./...")
	if err != nil {
		return nil, fmt.Errorf("packages for %s: %w", system, err)
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("packages for %s: none below %s", system, dir)
	}
	var found []packages.Error
	seen := map[string]bool{}
	for _, p := range roots {
		for _, e := range p.Errors { // a package and its tests share files
			if !seen[e.Error()] {
				seen[e.Error()] = true
				found = append(found, e)
			}
		}
	}
	return found, nil
}
