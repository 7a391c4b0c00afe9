package admission

import (
	"regexp"
	"slices"
	"strings"
)

// rulesMatter is false if every CEL rule that applies to a value holds for a reason that can be seen without CEL. Nearly
// all objects are like that, and compiling rules takes longer than everything else in admission together.
//
// All rules have the form `… || !has(self.field) || …`. In CEL a disjunction is true as soon as one side is, whatever
// the others are, errors included, so such a rule holds when the field is not there. A rule of any other form matters.
func (s *shape) rulesMatter(v any) bool {
	if s == nil || v == nil {
		return false
	}
	fields, _ := v.(map[string]any)
	for _, rule := range s.rules {
		if !appliesWithout(rule, fields) && !asksForPresence(rule, fields) && !asksOfAll(rule, fields) {
			return true
		}
	}
	for name, e := range fields {
		if s.field(name).rulesMatter(e) {
			return true
		}
	}
	items, _ := v.([]any)
	return slices.ContainsFunc(items, s.Items.rulesMatter)
}

func appliesWithout(rule string, fields map[string]any) bool {
	for _, name := range guards(rule) {
		if _, ok := fields[name]; !ok {
			return true
		}
	}
	return false
}

var allMatch = regexp.MustCompile(`\|\| self\.(\w+)\.all\(a, a\.(\w+)\.matches\('([^']*)'\)\)$`)

// asksOfAll is true of a rule whose last operand says that a field of every element of a list matches an expression, and
// it does.
func asksOfAll(rule string, fields map[string]any) bool {
	m := allMatch.FindStringSubmatch(rule)
	if m == nil {
		return false
	}
	matches, err := regexp.Compile(strings.ReplaceAll(m[3], `\\`, `\`))
	list, ok := fields[m[1]].([]any)
	if err != nil || !ok {
		return false
	}
	return !slices.ContainsFunc(list, func(e any) bool {
		element, _ := e.(map[string]any)
		text, ok := element[m[2]].(string)
		return !ok || !matches.MatchString(text)
	})
}

var absent = regexp.MustCompile(`^!has\(self\.([A-Za-z][A-Za-z0-9]*)\)$`)

// guards are the fields without which a rule holds.
func guards(rule string) []string {
	var names []string
	for _, operand := range disjunction(rule) {
		if m := absent.FindStringSubmatch(operand); m != nil {
			names = append(names, m[1])
		}
	}
	return names
}

// disjunction is the operands of || at the top of a rule, or nothing if the top is something else: only the conditional
// binds weaker.
func disjunction(rule string) []string {
	var operands []string
	depth, start := 0, 0
	for i := 0; i < len(rule); i++ {
		switch c := rule[i]; c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '?', '/', '\\':
			return nil
		case '\'', '"':
			end := strings.IndexByte(rule[i+1:], c)
			if end < 0 || strings.Contains(rule[i+1:i+1+end], `\`) {
				return nil
			}
			i += 1 + end
		case '|':
			if depth == 0 {
				operands = append(operands, strings.TrimSpace(rule[start:i]))
				i++
				start = i + 1
			}
		}
	}
	return append(operands, strings.TrimSpace(rule[min(start, len(rule)):]))
}
