package load

import (
	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// rejectSource reports a source that is rejected, unless that is reported anyway.
func (l *Reader) rejectSource(in *Input, r *inventory.RejectedError) {
	if !in.Wanted(r.Object) {
		l.Reject(in, r.Object, r.Err)
	}
}

// Reject reports the causes for which the API server would not store an object.
func (l *Reader) Reject(in *Input, obj *manifest.Object, err error) {
	if in.Reported[obj] {
		return
	}
	in.Reported[obj] = true
	found := validate.Rejected(obj, err)
	if in.validating {
		found = in.Replace(obj, found)
		in.Ignores.Add(obj.Kind, obj.Namespace, obj.Name, obj.Ignores())
	} else {
		in.Code = exit.Worst(in.Code, exit.Failed)
	}
	l.found(in, found...)
}

// found records errors that may block other objects: they are reported with these.
func (l *Reader) found(in *Input, found ...finding.Finding) {
	in.Found = append(in.Found, found...)
	if in.validating {
		return
	}
	for _, f := range found {
		l.Console.ReportFailure(f)
	}
}

func (l *Reader) ReportWarnings(in *Input, adm *admission.Admitted) {
	in.Ignores.Add(adm.Object.Kind, adm.Object.Namespace, adm.Object.Name, adm.Object.Ignores())
	for _, f := range validate.Warned(adm) {
		if !l.Console.Silenced(&in.Ignores, f) {
			l.Console.ReportAs(f, console.Presentation{At: console.ObjectSubject(adm.Object), Placed: true, Brief: true})
		}
	}
}
