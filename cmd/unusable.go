package cmd

import (
	"strings"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// reportUnreadable prints a file, or an object in it, that cannot be used.
func (a *app) reportUnreadable(err error) {
	f := validate.Unreadable(err)
	text, placed := strings.CutPrefix(err.Error(), f.Pos.String()+": ")
	a.console.ReportAs(f, console.Presentation{Text: text, Placed: placed})
}

// reportRejection prints what the API server would have said: all causes in one line,
// shown at the first of them.
func (a *app) reportRejection(obj *manifest.Object, err error) {
	all := validate.Rejected(obj, err)
	if len(all) == 0 {
		a.console.FailObject(subjectOf(obj), err)
		return
	}
	first := all[0]
	if fix := obj.ConcealError(strings.Join(finding.Hints(err), "; ")); fix != "" {
		first.Fix = fix
	}
	text := obj.ConcealError(strings.TrimPrefix(err.Error(), first.Pos.String()+": "))
	a.console.ReportAs(first, console.Presentation{At: subjectOf(obj), Text: text, Placed: true, Causes: all})
}
