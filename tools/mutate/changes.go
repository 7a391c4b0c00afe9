package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// A change replaces the bytes of a source between two offsets.
type change struct {
	in       string // the function, after the type of its receiver
	what     string
	from, to int
	with     string
}

func (c *change) apply(source []byte) []byte {
	out := append([]byte(nil), source[:c.from]...)
	out = append(out, c.with...)
	return append(out, source[c.to:]...)
}

// swapped are operators and what they are replaced by.
var swapped = map[token.Token]string{
	token.EQL: "!=", token.NEQ: "==",
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.LAND: "||", token.LOR: "&&",
	token.ADD: "-", token.SUB: "+",
}

// changesOf lists what can be changed in a source, in its order.
func changesOf(source []byte) ([]change, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	at := func(p token.Pos) int { return fset.Position(p).Offset }
	text := func(n ast.Node) string { return string(source[at(n.Pos()):at(n.End())]) }
	var found []change
	in := ""
	add := func(what string, from, to token.Pos, with string) {
		found = append(found, change{in, what, at(from), at(to), with})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			in = n.Name.Name
			if n.Recv != nil {
				in = strings.Trim(text(n.Recv.List[0].Type), "*") + "." + in
			}
		case *ast.IfStmt:
			add("negated condition", n.Cond.Pos(), n.Cond.End(), "!("+text(n.Cond)+")")
		case *ast.BinaryExpr:
			if with := swapped[n.Op]; with != "" && !isText(n) {
				add("other operator", n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), with)
			}
		case *ast.ExprStmt:
			if _, ok := n.X.(*ast.CallExpr); ok {
				add("dropped call", n.Pos(), n.End(), "{}")
			}
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				add("dropped assignment", n.Pos(), n.End(), "{}")
			}
		case *ast.IncDecStmt:
			add("dropped statement", n.Pos(), n.End(), "{}")
		case *ast.BranchStmt:
			if n.Tok != token.GOTO && n.Tok != token.FALLTHROUGH {
				add("dropped branch", n.Pos(), n.End(), "{}")
			}
		case *ast.ReturnStmt:
			if last := lastResult(n); last != nil {
				add("no error", last.Pos(), last.End(), "nil")
			}
		case *ast.CaseClause:
			if len(n.List) > 0 && len(n.Body) > 0 {
				add("dropped case", n.Body[0].Pos(), n.Body[len(n.Body)-1].End(), "{}")
			}
		case *ast.ImportSpec, *ast.GenDecl:
			return false // constants and imports
		}
		return true
	})
	return found, nil
}

// isText: a sum with a string in it is no sum of numbers.
func isText(n *ast.BinaryExpr) bool {
	for _, side := range []ast.Expr{n.X, n.Y} {
		switch side := side.(type) {
		case *ast.BasicLit:
			if side.Kind == token.STRING && n.Op == token.ADD {
				return true
			}
		case *ast.BinaryExpr:
			if isText(side) {
				return true
			}
		}
	}
	return false
}

// lastResult is what may be the error of a return.
func lastResult(n *ast.ReturnStmt) ast.Expr {
	if len(n.Results) == 0 {
		return nil
	}
	last := n.Results[len(n.Results)-1]
	switch e := last.(type) {
	case *ast.Ident:
		if e.Name == "nil" || e.Name == "true" || e.Name == "false" {
			return nil
		}
		return last
	case *ast.CallExpr, *ast.UnaryExpr:
		return last
	}
	return nil
}
