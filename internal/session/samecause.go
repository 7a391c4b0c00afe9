package session

import (
	"fmt"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// sameCause keeps the failures of one server but for the first few, until all objects are done with: a registry that is down is
// one failure, however many objects come from it.
type sameCause struct {
	first   map[string]console.Subject
	printed map[string]int
	held    map[string][]*reconcile.Result
	order   []string // causes of those that are held
}

// take reports whether a failure is like several that were printed. It is held back then.
func (s *sameCause) take(r *reconcile.Result) bool {
	cause := r.Cause()
	if cause == "" {
		return false
	}
	if s.first == nil {
		s.first, s.printed, s.held = map[string]console.Subject{}, map[string]int{}, map[string][]*reconcile.Result{}
	}
	if s.printed[cause]++; s.printed[cause] == 1 {
		s.first[cause] = console.ObjectSubject(r.Object.Object)
	}
	if s.printed[cause] <= console.MaxAlike {
		return false
	}
	if s.held[cause] == nil {
		s.order = append(s.order, cause)
	}
	s.held[cause] = append(s.held[cause], r)
	return true
}

// reportSameCause prints what was held back: one as it is, several in one line. All of them are kept for the reports.
func (p *progress) reportSameCause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cause := range p.alike.order {
		held := p.alike.held[cause]
		if len(held) == 1 {
			p.reportFailure(held[0])
			continue
		}
		var names []string
		first, _ := held[0].FailureFinding()
		for _, r := range held {
			f, _ := r.FailureFinding()
			p.console.Keep(f)
			p.console.Debug(console.ObjectSubject(r.Object.Object), f.Message)
			names = append(names, console.OneLine(p.console.Called(console.ObjectSubject(r.Object.Object)).String()))
		}
		text := fmt.Sprintf("%d more fail like %s: %s", len(held), console.OneLine(p.console.Called(p.alike.first[cause]).String()), console.Few(names))
		p.console.About(console.LevelError, console.Subject{}, text, first)
	}
	p.alike = sameCause{}
}
