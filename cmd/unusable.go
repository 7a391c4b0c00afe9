package cmd

import (
	"strings"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
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

// rejectSource reports a source that is rejected, unless that is reported anyway.
func (a *app) rejectSource(in *input, r *inventory.RejectedError) {
	if !in.wanted(r.Object) {
		a.reject(in, r.Object, r.Err)
	}
}

// reject reports what the API server would have said, a line per cause.
func (a *app) reject(in *input, obj *manifest.Object, err error) {
	if in.reported[obj] {
		return
	}
	in.reported[obj] = true
	if in.validating {
		in.found = append(in.found, in.replace(obj, validate.Rejected(obj, err))...)
		in.ignores.Add(obj.Kind, obj.Namespace, obj.Name, obj.Ignores())
		return
	}
	in.code = worst(in.code, exitFailed)
	a.reportRejection(obj, err)
}

func (a *app) reportWarnings(in *input, adm *admission.Admitted) {
	in.ignores.Add(adm.Object.Kind, adm.Object.Namespace, adm.Object.Name, adm.Object.Ignores())
	for _, f := range validate.Warned(adm) {
		if !a.console.Silenced(&in.ignores, f) {
			a.console.ReportAs(f, console.Presentation{At: subjectOf(adm.Object), Placed: true, Brief: true})
		}
	}
}
