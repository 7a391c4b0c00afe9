package bound

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// maxWork is the limit of the instructions of a regular expression that run, multiplied by the bytes that they read. A million
// of them take up to 60 milliseconds.
const maxWork = 1 << 27

// ErrPattern reports a regular expression that may take too long.
var ErrPattern error = &finding.Problem{
	Text:   fmt.Sprintf("the regular expression may take more than %d steps here", maxWork),
	Advice: "make the expression or the text shorter, repeat less in it, or anchor it with ^ and $",
}

// Match returns [ErrPattern] if the search for a match of each expression in each text may take too long. An invalid
// expression is not counted.
func Match(texts []string, patterns ...string) error {
	size := 0
	for _, text := range texts {
		size += len(text) + 1
	}
	for _, pattern := range patterns {
		if Steps(pattern, size*len(patterns), 1) >= maxWork {
			return ErrPattern
		}
	}
	return nil
}

// A Pattern is a regular expression with a budget of steps for all texts together.
type Pattern struct {
	expression  *regexp.Regexp
	steps, left int
}

// Compile compiles an expression. Its error is that of package regexp.
func Compile(expression string) (*Pattern, error) {
	re, err := regexp.Compile(expression)
	return &Pattern{re, Steps(expression, 1, 1), maxWork}, err
}

// Whole returns a function that reports whether an expression matches a whole text, as a selector of kustomize does. An empty
// expression matches every text, an invalid one none.
func Whole(expression string) func(text string) bool {
	if expression == "" {
		return func(string) bool { return true }
	}
	p, err := Compile("^(?:" + expression + ")$")
	return func(text string) bool {
		if err != nil {
			return false
		}
		found, err := p.Match(text)
		return found && err == nil
	}
}

// Match reports whether a text has a match. It returns [ErrPattern] if that may take more steps than the budget has left.
func (p *Pattern) Match(text string) (bool, error) {
	if p.left -= min(p.steps, maxWork) * (len(text) + 1); p.left < 0 {
		return false, ErrPattern
	}
	return p.expression.MatchString(text), nil
}

// Steps returns how many instructions of an expression may run to find matches in texts of a size: one for each byte and each
// match, because the search for the next match may read to the end. The result is bounded.
func Steps(pattern string, size, matches int) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	n := instructions(re)
	if !rereads(re, true) {
		matches = min(matches, n)
	}
	steps := n
	for _, factor := range []int{size, matches} {
		if factor > 0 && steps > maxWork/factor {
			return maxWork
		}
		steps *= max(factor, 1)
	}
	return steps
}

// instructions returns about the number of instructions that an expression compiles to.
func instructions(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxWork)
}

// rereads reports whether a search may read any number of bytes beyond its match: an element that may be missing follows an
// unlimited repetition.
func rereads(re *syntax.Regexp, last bool) bool {
	endless := re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0
	if endless && !last {
		return true
	}
	for i, sub := range re.Sub {
		if rereads(sub, last && !endless && (re.Op != syntax.OpConcat || i == len(re.Sub)-1)) {
			return true
		}
	}
	return false
}
