// Command fieldspecs writes the defaults of kustomize that package kustomize embeds: which fields hold names, namespaces,
// labels and images, and in which order kinds are sorted. kustomize keeps them in packages that nothing else can import.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: fieldspecs FILE")
		os.Exit(2)
	}
	text, err := generate()
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// generate gives the content of the file.
func generate() ([]byte, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kustomize/api")
	list.Dir = filepath.Join("..", "..")
	if _, err := os.Stat("tools.go"); err == nil {
		list.Dir = ".."
	}
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	internal := filepath.Join(strings.TrimSpace(string(out)), "internal")
	files, err := filepath.Glob(filepath.Join(internal, "konfig", "builtinpluginconsts", "*.go"))
	if err != nil {
		return nil, err
	}
	d := declarations{}
	for _, file := range append(files, filepath.Join(internal, "builtins", "SortOrderTransformer.go")) {
		if err := d.read(file); err != nil {
			return nil, err
		}
	}
	defaults := map[string]any{"orderFirst": d.texts("defaultOrderFirst"), "orderLast": d.texts("defaultOrderLast")}
	for _, name := range slices.Sorted(maps.Keys(d)) {
		if !strings.HasSuffix(name, "FieldSpecs") || name == "metadataLabelsFieldSpecs" { // which is a part of others
			continue
		}
		if err := yaml.Unmarshal([]byte(d.text(d[name])), &defaults); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var text bytes.Buffer
	for i, field := range slices.Sorted(maps.Keys(defaults)) {
		value, err := json.Marshal(defaults[field])
		if err != nil {
			return nil, err
		}
		separator := ","
		if i == 0 {
			separator = "{"
		}
		fmt.Fprintf(&text, "%s\n%q: %s", separator, field, bytes.ReplaceAll(value, []byte("},{"), []byte("},\n  {")))
	}
	text.WriteString("\n}\n")
	return text.Bytes(), nil
}

// declarations are the values of constants and variables, by name.
type declarations map[string]ast.Expr

func (d declarations) read(file string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		return err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			d[spec.Names[0].Name] = spec.Values[0]
		}
		return true
	})
	return nil
}

// text evaluates a text that is made of literals and constants.
func (d declarations) text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.Ident:
		return d.text(d[e.Name])
	case *ast.BinaryExpr:
		return d.text(e.X) + d.text(e.Y)
	}
	return ""
}

// texts evaluates a list.
func (d declarations) texts(name string) []string {
	list, _ := d[name].(*ast.CompositeLit)
	var texts []string
	for _, e := range list.Elts {
		texts = append(texts, d.text(e))
	}
	return texts
}
