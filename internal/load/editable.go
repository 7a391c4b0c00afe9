package load

import (
	"context"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/rewrite"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// Editable finds the files that were named and may be edited, which standard input may not.
func (o *Options) Editable(ctx context.Context) *rewrite.Found {
	names := slices.DeleteFunc(slices.Concat(o.Names, o.Offered), func(name string) bool { return name == "-" })
	return rewrite.Find(ctx, rewrite.Options{Names: names, Recursive: o.Recursive, Skip: o.SkipDirs})
}

// Editable does the same, and reports what cannot be read. It returns the exit code of that.
func (l *Reader) Editable(ctx context.Context, o *Options) (*rewrite.Found, int) {
	found, code := o.Editable(ctx), exit.OK
	for _, err := range found.Errors {
		l.ReportEdit(finding.Unreadable, finding.Object{}, err.Error())
		code = exit.Usage
	}
	for _, link := range found.Outside {
		l.Console.Warn(link + ": the link leads out of the repository and is not followed")
	}
	return found, code
}

// ReportEdit reports what editing the files found out about an object, at its place in them.
func (l *Reader) ReportEdit(code finding.Code, about finding.Object, message string, hints ...string) {
	f := validate.New(nil, code, message, strings.Join(hints, "\n"), manifest.Excerpt{Pos: about.Pos})
	f.Kind, f.Namespace, f.Name = about.Kind, about.Namespace, about.Name
	l.Console.ReportAs(f, console.Presentation{At: console.SubjectOf(f), Placed: true, Brief: true})
}
