package load

import (
	"fmt"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// reportRendered prints what the renderer has to say, but what validate judges with the
// rest.
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
		if (n.Code == finding.OutsideLink || n.Code == finding.Unread) && !in.once("link "+n.Excerpt.Pos.File) {
			continue
		}
		at := console.SubjectOf(f)
		switch {
		case n.Debug:
			l.Console.Debug(at, n.Text)
			continue
		case n.Code == "":
			if in.once(fmt.Sprint(at, n.Text)) {
				l.Console.Info(at, n.Text)
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
		f = f.AsWarning()
		if !l.Console.Silenced(&in.Ignores, f) {
			reported = append(reported, f)
		}
	}
	l.Console.ReportAlike(reported, console.Presentation{Placed: true, Brief: true})
}
