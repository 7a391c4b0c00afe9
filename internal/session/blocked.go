package session

import (
	"fmt"
	"strings"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// blocked keeps the objects that failed only because another one did, until all causes
// are printed: a broken repository is one failure, whatever rests on it.
type blocked struct {
	failed map[console.Subject]bool // what was printed by itself; true where what it blocks has the hint
	by     map[console.Subject]console.Subject
	held   []*reconcile.Result // in the order of the run
}

// take reports whether a failure is that of another object, which is held back then.
func (b *blocked) take(r *reconcile.Result) bool {
	s := console.ObjectSubject(r.Object.Object)
	kind, namespace, name, ok := r.BlockedBy()
	if !ok {
		b.fail(s, false)
		return false
	}
	if b.by == nil {
		b.by = map[console.Subject]console.Subject{}
	}
	b.by[s] = console.Subject{Kind: kind, Namespace: namespace, Name: name}
	b.held = append(b.held, r)
	return true
}

func (b *blocked) fail(s console.Subject, hintless bool) {
	if b.failed == nil {
		b.failed = map[console.Subject]bool{}
	}
	b.failed[s] = hintless
}

// cause is what an object fails because of in the end, through other objects that fail
// because of it. It is false for one that was not printed.
func (b *blocked) cause(s console.Subject) (console.Subject, bool) {
	for range len(b.by) + 1 {
		next, ok := b.by[s]
		if !ok {
			_, printed := b.failed[s]
			return s, printed
		}
		s = next
	}
	return s, false // they wait for each other
}

// reportBlocked prints what rests on the failures that were printed: one object in a line
// of its own, several counted. All are kept for the reports.
func (p *progress) reportBlocked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var causes []console.Subject
	by := map[console.Subject][]*reconcile.Result{}
	for _, r := range p.blocked.held {
		cause, ok := p.blocked.cause(console.ObjectSubject(r.Object.Object))
		if !ok || p.console.JSON() {
			p.reportFailure(r)
			continue
		}
		if by[cause] == nil {
			causes = append(causes, cause)
		}
		by[cause] = append(by[cause], r)
	}
	for _, cause := range causes {
		p.reportConsequences(cause, by[cause])
	}
	p.blocked = blocked{}
}

func (p *progress) reportConsequences(cause console.Subject, results []*reconcile.Result) {
	counts := map[string]int{}
	named := map[string][]string{}
	for _, r := range results {
		s := console.ObjectSubject(r.Object.Object)
		counts[s.Kind]++
		named[s.Kind] = append(named[s.Kind], console.OneLine(s.String()))
		f, _ := r.FailureFinding()
		p.console.Keep(f)
		p.console.Debug(s, f.Message)
	}
	var kinds, names []string
	for _, kind := range reconcile.Kinds().Names() {
		if n := counts[kind]; n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
			names = append(named[kind], names...) // a release says more than the chart that is made of it
		}
	}
	text := fmt.Sprintf("%s blocks %s: %s", console.OneLine(cause.String()), strings.Join(kinds, ", "), console.Few(names))
	first, _ := results[0].FailureFinding()
	if len(results) == 1 {
		p.console.About(console.LevelError, console.ObjectSubject(results[0].Object.Object), first.Message, first)
	} else {
		p.console.About(console.LevelError, console.Subject{}, text, finding.Finding{Code: finding.SourceNotReady})
	}
	if p.blocked.failed[cause] {
		p.console.Hint(cause, first.Fix)
	}
}
