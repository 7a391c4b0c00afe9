// Package cel reports whether expressions in CEL can be parsed, in linear time. It evaluates nothing; pure.
package cel

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// The limits of cel-go.
const (
	maxLength = 100_000 // characters
	maxDepth  = 250     // nested expressions
)

// lexer returns the expressions for the blanks before a token, and for a token, with a literal, a name and an operator as
// groups. At the end of the text, all groups are empty.
var lexer = sync.OnceValues(func() (blank, token *regexp.Regexp) {
	blank = regexp.MustCompile(`^(?:[ \t\r\n\f]|//[^\n]*)*`)
	token = regexp.MustCompile(`^(?:` +
		`([bB]?[rR](?s:""".*?"""|'''.*?'''|"[^"\n\r]*"|'[^'\n\r]*')` +
		`|[bB]?(?s:"""(?:\\.|[^\\])*?"""|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n\r])*"|'(?:\\.|[^'\\\n\r])*')` +
		`|0x[0-9a-fA-F]+[uU]?|[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+[uU]?|(?:true|false|null)\b)` +
		"|([a-zA-Z_][a-zA-Z0-9_]*|`[^`\\n]*`)" + `|(==|!=|<=|>=|&&|\|\||[][(){}.,:?<>!+*/%-])|$)`)
	return blank, token
})

// reader parses an expression by the grammar of the language, with optional syntax. It knows neither macros nor reserved
// words, and accepts an extra comma: it accepts some texts that cel-go refuses, but refuses no text that cel-go accepts.
type reader struct {
	rest  string
	token string // "" at the end
	kind  byte   // of the token: literal, name or operator
	depth int
	err   error
}

const (
	literal  = 'l'
	named    = 'n'
	operator = 'o'
)

// A Fault is an expression that cannot be parsed.
type Fault struct {
	Path []any // of the field
	Err  error
}

// Faults returns the expressions of a Kustomization or a HelmRelease that cannot be parsed, which stall its controller. It
// returns nil for a suspended object.
func Faults(content map[string]any) (list []Fault) {
	spec, _ := content["spec"].(map[string]any)
	if spec["suspend"] == true {
		return nil
	}
	for _, of := range []struct {
		list  string
		names []string
	}{{"dependsOn", []string{"readyExpr"}}, {"healthCheckExprs", []string{"current", "inProgress", "failed"}}} {
		entries, _ := spec[of.list].([]any)
		for i, entry := range entries {
			fields, _ := entry.(map[string]any)
			for _, name := range of.names {
				if text, _ := fields[name].(string); text != "" {
					if err := Check(text); err != nil {
						list = append(list, Fault{[]any{"spec", of.list, i, name}, err})
					}
				}
			}
		}
	}
	return list
}

// Check returns an error with the position if an expression cannot be parsed. It accepts all texts that cel-go accepts, and
// texts with a variable.
func Check(text string) error {
	if strings.Contains(text, "${") {
		return nil
	}
	if err := check(text); err != nil {
		return fmt.Errorf("failed to parse the CEL expression: %w", err)
	}
	return nil
}

func check(text string) error {
	if len([]rune(text)) > maxLength {
		return fmt.Errorf("more than %d characters", maxLength)
	}
	r := &reader{rest: text}
	r.next()
	r.expression()
	if r.token != "" {
		r.unexpected()
	}
	if r.err == nil {
		return nil
	}
	read := text[:len(text)-len(r.rest)-len(r.token)]
	return fmt.Errorf("line %d, column %d: %w", 1+strings.Count(read, "\n"), 1+len([]rune(read[strings.LastIndexByte(read, '\n')+1:])), r.err)
}

// next reads the next token, unless there was an error.
func (r *reader) next() {
	if r.err != nil {
		return
	}
	blank, token := lexer()
	r.rest = r.rest[len(blank.FindString(r.rest)):]
	m := token.FindStringSubmatchIndex(r.rest)
	if m == nil {
		r.token, r.err = "", fmt.Errorf("not part of an expression: %.20q", r.rest)
		return
	}
	text := r.rest
	r.rest, r.token, r.kind = text[m[1]:], "", operator
	for i, kind := range []byte{literal, named, operator} {
		if from, to := m[2*i+2], m[2*i+3]; from >= 0 {
			r.token, r.kind = text[from:to], kind
		}
	}
}

func (r *reader) unexpected() {
	switch {
	case r.err != nil:
	case r.token == "":
		r.err = errors.New("the expression ends too early")
	default:
		r.err = fmt.Errorf("unexpected %.20q", r.token)
	}
}

// skip skips the token and returns true if it is one of these.
func (r *reader) skip(tokens ...string) bool {
	for _, t := range tokens {
		if r.err == nil && r.token == t && r.kind != literal {
			r.next()
			return true
		}
	}
	return false
}

func (r *reader) expect(token string) {
	if !r.skip(token) {
		r.unexpected()
	}
}

func (r *reader) expression() {
	if r.depth++; r.depth > maxDepth && r.err == nil {
		r.err = fmt.Errorf("more than %d nested expressions", maxDepth)
	}
	defer func() { r.depth-- }()
	if r.err != nil {
		return
	}
	if r.operands(); r.skip("?") {
		r.operands()
		r.expect(":")
		r.expression()
	}
}

func (r *reader) operands() {
	for r.operand(); r.skip("||", "&&", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%"); {
		r.operand()
	}
}

func (r *reader) operand() {
	for r.skip("!", "-") {
	}
	path := false // of names, which may be that of a message
	switch {
	case r.kind == literal:
		r.next()
	case r.skip("("):
		r.expression()
		r.expect(")")
	case r.skip("["):
		r.elements("]", false)
	case r.skip("{"):
		r.elements("}", true)
	default:
		r.skip(".")
		path = r.name(false)
	}
	for r.err == nil {
		switch {
		case r.skip("."):
			path = r.name(r.skip("?")) && path
		case r.skip("["):
			r.skip("?")
			r.expression()
			r.expect("]")
			path = false
		case path && r.skip("{"):
			r.elements("}", true)
			path = false
		default:
			return
		}
	}
}

// name parses a name, and the arguments of a call. It reports whether the name may be part of a path.
func (r *reader) name(optional bool) bool {
	if r.kind != named || r.token == "in" {
		r.unexpected()
		return false
	}
	r.next()
	if optional || !r.skip("(") {
		return !optional
	}
	r.elements(")", false)
	return false
}

// elements parses a list, a map or arguments, with an optional comma at the end.
func (r *reader) elements(end string, pairs bool) {
	for r.err == nil && !r.skip(end) {
		if r.skip(",") {
			continue
		}
		r.skip("?")
		r.expression()
		if pairs {
			r.expect(":")
			r.expression()
		}
		if r.token != end {
			r.expect(",")
		}
	}
}
