package resourceset

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Dependency is an object that a set waits for. What the expression says of it is for a cluster to find out.
type Dependency struct {
	Ready     bool   `json:"ready"`
	ReadyExpr string `json:"readyExpr"`
}

// checkReadiness refuses expressions that the operator cannot parse: the set would wait for ever.
func (s *Set) checkReadiness() error {
	for i, d := range s.Spec.DependsOn {
		if !d.Ready || d.ReadyExpr == "" {
			continue
		}
		err := s.Budget.spendSteps(1 + len(d.ReadyExpr)/parseLen)
		if err == nil {
			err = checkCEL(d.ReadyExpr)
		}
		if err != nil {
			return &Error{Path: []any{"spec", "dependsOn", i, "readyExpr"}, Err: fmt.Errorf("failed to parse the CEL expression: %w", err)}
		}
	}
	return nil
}

// The limits of cel-go.
const (
	maxCEL      = 100_000 // characters
	maxCELDepth = 250     // expressions in each other
)

// celLexer finds the next token: what may stand before it, and as groups a literal, a name and an operator; at the end there is
// none.
var celLexer = sync.OnceValues(func() (blank, token *regexp.Regexp) {
	blank = regexp.MustCompile(`^(?:[ \t\r\n\f]|//[^\n]*)*`)
	token = regexp.MustCompile(`^(?:` +
		`([bB]?[rR](?s:""".*?"""|'''.*?'''|"[^"\n\r]*"|'[^'\n\r]*')` +
		`|[bB]?(?s:"""(?:\\.|[^\\])*?"""|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n\r])*"|'(?:\\.|[^'\\\n\r])*')` +
		`|0x[0-9a-fA-F]+[uU]?|[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+[uU]?|(?:true|false|null)\b)` +
		"|([a-zA-Z_][a-zA-Z0-9_]*|`[^`\\n]*`)" + `|(==|!=|<=|>=|&&|\|\||[][(){}.,:?<>!+*/%-])|$)`)
	return blank, token
})

// celReader reads an expression by the grammar of the language, with optional syntax. It knows neither macros nor reserved
// words, and takes a comma too many: some texts that cel-go refuses pass, and none that it takes is refused.
type celReader struct {
	rest  string
	token string // "" at the end
	kind  byte   // of the token: literal, name or operator
	depth int
	err   error
}

const (
	celLiteral  = 'l'
	celName     = 'n'
	celOperator = 'o'
)

// checkCEL returns why an expression cannot be parsed.
func checkCEL(text string) error {
	if len([]rune(text)) > maxCEL {
		return fmt.Errorf("more than %d characters", maxCEL)
	}
	c := &celReader{rest: text}
	c.next()
	c.expression()
	if c.token != "" {
		c.unexpected()
	}
	if c.err == nil {
		return nil
	}
	read := text[:len(text)-len(c.rest)-len(c.token)]
	return fmt.Errorf("line %d, column %d: %w", 1+strings.Count(read, "\n"), 1+len([]rune(read[strings.LastIndexByte(read, '\n')+1:])), c.err)
}

// next goes on to the next token, unless there was an error.
func (c *celReader) next() {
	if c.err != nil {
		return
	}
	blank, token := celLexer()
	c.rest = c.rest[len(blank.FindString(c.rest)):]
	m := token.FindStringSubmatchIndex(c.rest)
	if m == nil {
		c.token, c.err = "", fmt.Errorf("no part of an expression: %.20q", c.rest)
		return
	}
	text := c.rest
	c.rest, c.token, c.kind = text[m[1]:], "", celOperator
	for i, kind := range []byte{celLiteral, celName, celOperator} {
		if from, to := m[2*i+2], m[2*i+3]; from >= 0 {
			c.token, c.kind = text[from:to], kind
		}
	}
}

func (c *celReader) unexpected() {
	switch {
	case c.err != nil:
	case c.token == "":
		c.err = errors.New("the expression ends too early")
	default:
		c.err = fmt.Errorf("unexpected %.20q", c.token)
	}
}

// skip passes over a token if it is one of these.
func (c *celReader) skip(tokens ...string) bool {
	for _, t := range tokens {
		if c.err == nil && c.token == t && c.kind != celLiteral {
			c.next()
			return true
		}
	}
	return false
}

func (c *celReader) expect(token string) {
	if !c.skip(token) {
		c.unexpected()
	}
}

func (c *celReader) expression() {
	if c.depth++; c.depth > maxCELDepth && c.err == nil {
		c.err = fmt.Errorf("more than %d expressions in each other", maxCELDepth)
	}
	defer func() { c.depth-- }()
	if c.err != nil {
		return
	}
	if c.operands(); c.skip("?") {
		c.operands()
		c.expect(":")
		c.expression()
	}
}

func (c *celReader) operands() {
	for c.operand(); c.skip("||", "&&", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%"); {
		c.operand()
	}
}

func (c *celReader) operand() {
	for c.skip("!", "-") {
	}
	path := false // of names, which may be that of a message
	switch {
	case c.kind == celLiteral:
		c.next()
	case c.skip("("):
		c.expression()
		c.expect(")")
	case c.skip("["):
		c.elements("]", false)
	case c.skip("{"):
		c.elements("}", true)
	default:
		c.skip(".")
		path = c.name(false)
	}
	for c.err == nil {
		switch {
		case c.skip("."):
			path = c.name(c.skip("?")) && path
		case c.skip("["):
			c.skip("?")
			c.expression()
			c.expect("]")
			path = false
		case path && c.skip("{"):
			c.elements("}", true)
			path = false
		default:
			return
		}
	}
}

// name reads a name, and the arguments of a call. It reports whether it is one of a path.
func (c *celReader) name(optional bool) bool {
	if c.kind != celName || c.token == "in" {
		c.unexpected()
		return false
	}
	c.next()
	if optional || !c.skip("(") {
		return !optional
	}
	c.elements(")", false)
	return false
}

// elements reads a list, a map or arguments. A comma may be the last of it.
func (c *celReader) elements(end string, pairs bool) {
	for c.err == nil && !c.skip(end) {
		if c.skip(",") {
			continue
		}
		c.skip("?")
		c.expression()
		if pairs {
			c.expect(":")
			c.expression()
		}
		if c.token != end {
			c.expect(",")
		}
	}
}
