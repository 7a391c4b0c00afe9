package admission

import "strings"

// asksForPresence is true of a rule that asks for nothing but which fields are there, has(self.a) with !, &&, || and
// parentheses, and whether one is equal to a text, and that holds. Of any other rule it is false.
func asksForPresence(rule string, fields map[string]any) bool {
	p := &presence{text: rule, fields: fields}
	holds := p.or()
	return holds && !p.unknown && p.rest() == ""
}

// presence evaluates such a rule as it reads it.
type presence struct {
	text    string
	pos     int
	fields  map[string]any
	unknown bool // something else stands there
}

func (p *presence) rest() string { return strings.TrimLeft(p.text[p.pos:], " ") }

// accept reads one token.
func (p *presence) accept(token string) bool {
	rest := p.rest()
	if !strings.HasPrefix(rest, token) {
		return false
	}
	p.pos = len(p.text) - len(rest) + len(token)
	return true
}

func (p *presence) or() bool {
	holds := p.and()
	for p.accept("||") {
		holds = p.and() || holds
	}
	return holds
}

func (p *presence) and() bool {
	holds := p.operand()
	for p.accept("&&") {
		holds = p.operand() && holds
	}
	return holds
}

func (p *presence) operand() bool {
	switch {
	case p.accept("!"):
		return !p.operand()
	case p.accept("has(self."):
		return p.field()
	case p.accept("self."):
		return p.comparison()
	case p.accept("("):
		holds := p.or()
		p.unknown = !p.accept(")") || p.unknown
		return holds
	}
	p.unknown = true
	return false
}

func (p *presence) field() bool {
	name, _, closed := strings.Cut(p.rest(), ")")
	if !closed || strings.ContainsAny(name, " .[(") {
		p.unknown = true
		return false
	}
	p.accept(name + ")")
	v, there := p.fields[name]
	p.unknown = p.unknown || there && v == nil // whether null counts as there is for CEL to say
	return there
}

// comparison is self.a == 'text' or self.a != 'text', of a field that holds a text.
func (p *presence) comparison() bool {
	name, _, found := strings.Cut(p.rest(), " ")
	got, isText := p.fields[name].(string)
	if !found || !isText || !p.accept(name) {
		p.unknown = true
		return false
	}
	equal := p.accept("==")
	if !equal && !p.accept("!=") || !p.accept("'") {
		p.unknown = true
		return false
	}
	text, _, closed := strings.Cut(p.text[p.pos:], "'")
	if !closed || strings.Contains(text, `\`) {
		p.unknown = true
		return false
	}
	p.pos += len(text) + 1
	return (got == text) == equal
}
