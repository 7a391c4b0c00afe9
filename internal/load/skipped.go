package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// ReportLeftOut reports the Flux kinds in the inputs that a run skips.
func (l *Reader) ReportLeftOut(inputs ...*Input) {
	var parts []string
	for _, s := range skippedOf(inputs) {
		parts = append(parts, fmt.Sprintf("%d %s", s.Count, s.Kind))
	}
	if len(parts) == 0 {
		return
	}
	// Print a warning, but keep only a note in reports, as the input is valid.
	text := "skipped " + strings.Join(parts, ", ") + ": not supported yet"
	f := validate.New(nil, finding.LeftOut, text, "", manifest.Excerpt{})
	l.Console.Keep(f)
	l.Console.About(console.LevelWarning, console.Subject{}, text, f)
}

// skippedOf counts the skipped objects of several clusters. A kind counts as often as in the cluster with most of its objects,
// because clusters share files.
func skippedOf(inputs []*Input) []manifest.KindCount {
	var all []manifest.KindCount
	for _, in := range inputs {
		for _, s := range in.Set.Skipped() {
			i := slices.IndexFunc(all, func(k manifest.KindCount) bool { return k.Kind == s.Kind && k.Group == s.Group })
			if i < 0 {
				all = append(all, s)
			} else {
				all[i].Count = max(all[i].Count, s.Count)
			}
		}
	}
	return all
}

// rejectSource reports a rejected source, unless the source is itself wanted and reported as such.
func (l *Reader) rejectSource(in *Input, r *inventory.RejectedError) {
	if !in.Wanted(r.Object) {
		l.Reject(in, r.Object, r.Err)
	}
}

// Reject reports why the API server would refuse an object.
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

// found records errors that may block other objects, and reports them with these.
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

// reportRendered prints the renderer's messages. When validating, it keeps the findings
// for validate.
func (l *Reader) reportRendered(in *Input) {
	for _, obj := range in.Rendered.Judged {
		in.Ignores.Add(obj.Kind, obj.Namespace, obj.Name, obj.Ignores())
	}
	for _, r := range in.Rendered.Rejections {
		l.Reject(in, r.Object, r.Err)
	}
	var reported []finding.Finding
	for _, n := range in.Rendered.Notices {
		f := validate.New(n.Object, n.Code, n.Text, n.Hint, n.Excerpt)
		if (n.Code == finding.OutsideLink || n.Code == finding.Unread) && !in.Once("link "+n.Excerpt.Pos.File) {
			continue
		}
		at := console.SubjectOf(f)
		switch {
		case n.Debug:
			l.Console.Debug(at, n.Text)
			continue
		case n.Code == "":
			line := fmt.Sprint(at, n.Text)
			if !in.validating { // the command validate does not hold notes
				line = in.Cluster + line
			}
			if in.Once(line) {
				l.Console.Note(at, n.Text)
			}
			continue
		}
		if n.Object != nil {
			in.Ignores.Add(n.Object.Kind, n.Object.Namespace, n.Object.Name, n.Object.Ignores())
		}
		if in.validating {
			in.Found = append(in.Found, f)
			if f.Severity == finding.Error && n.Object != nil {
				in.Reported[n.Object] = true
			}
			continue
		}
		if f.Code == finding.DependencyCycle {
			in.Ignores.Silences(f) // a comment at any member silences the cycle
		}
		reported = append(reported, f.AsWarning())
	}
	reported = slices.DeleteFunc(reported, func(f finding.Finding) bool { return l.Console.Silenced(&in.Ignores, f) })
	l.Console.ReportByCause(finding.Fold(reported), console.Presentation{Placed: true, Brief: true})
}
