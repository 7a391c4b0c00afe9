package load

import (
	"strings"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// reportRejection prints what the API server would have said: all causes in one line,
// shown at the first of them.
func (l *Reader) reportRejection(obj *manifest.Object, err error) {
	all := validate.Rejected(obj, err)
	if len(all) == 0 {
		l.Console.FailObject(console.ObjectSubject(obj), err)
		return
	}
	first := all[0]
	if fix := obj.ConcealError(strings.Join(finding.Hints(err), "; ")); fix != "" {
		first.Fix = fix
	}
	text := obj.ConcealError(strings.TrimPrefix(err.Error(), first.Pos.String()+": "))
	l.Console.ReportAs(first, console.Presentation{At: console.ObjectSubject(obj), Text: text, Placed: true, Causes: all})
}

// rejectSource reports a source that is rejected, unless that is reported anyway.
func (l *Reader) rejectSource(in *Input, r *inventory.RejectedError) {
	if !in.Wanted(r.Object) {
		l.Reject(in, r.Object, r.Err)
	}
}

// Reject reports what the API server would have said, a line per cause.
func (l *Reader) Reject(in *Input, obj *manifest.Object, err error) {
	if in.Reported[obj] {
		return
	}
	in.Reported[obj] = true
	if in.validating {
		in.Found = append(in.Found, in.Replace(obj, validate.Rejected(obj, err))...)
		in.Ignores.Add(obj.Kind, obj.Namespace, obj.Name, obj.Ignores())
		return
	}
	in.Code = exit.Worst(in.Code, exit.Failed)
	l.reportRejection(obj, err)
}

func (l *Reader) ReportWarnings(in *Input, adm *admission.Admitted) {
	in.Ignores.Add(adm.Object.Kind, adm.Object.Namespace, adm.Object.Name, adm.Object.Ignores())
	for _, f := range validate.Warned(adm) {
		if !l.Console.Silenced(&in.Ignores, f) {
			l.Console.ReportAs(f, console.Presentation{At: console.ObjectSubject(adm.Object), Placed: true, Brief: true})
		}
	}
}
