package validate

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// At returns a finding about a field of an object.
func At(obj *manifest.Object, code finding.Code, message string, hints []string, path ...any) finding.Finding {
	return complete(about(obj), code, obj.ConcealError(message), concealed(obj, operatedHints(obj, code, hints)), obj.Excerpt(path...))
}

// about returns a finding with the object only.
func about(obj *manifest.Object) finding.Finding {
	f := finding.Finding{Kind: obj.Kind, Namespace: obj.Namespace, Name: obj.Name}
	if obj.Origin != nil {
		f.MadeOf = Named(obj.Origin)
	}
	return f
}

// Named returns the identity of an object for findings.
func Named(obj *manifest.Object) finding.Object {
	return finding.Object{Kind: obj.Kind, Namespace: obj.Namespace, Name: obj.Name, Pos: obj.Pos}
}

// New returns a finding about a place. obj may be nil.
func New(obj *manifest.Object, code finding.Code, message, hint string, e manifest.Excerpt) finding.Finding {
	var f finding.Finding
	var hints []string
	if hint != "" {
		hints = []string{hint}
	}
	if obj != nil {
		f = about(obj)
		message, hints = obj.ConcealError(message), concealed(obj, hints)
	}
	return complete(f, code, message, hints, e)
}

func concealed(obj *manifest.Object, hints []string) []string {
	var list []string
	for _, hint := range hints {
		list = append(list, obj.ConcealError(hint))
	}
	return list
}

// complete adds the fields that depend on the code and the place.
func complete(f finding.Finding, code finding.Code, message string, hints []string, e manifest.Excerpt) finding.Finding {
	rule, _ := finding.Lookup(string(code))
	f.Code, f.Severity, f.Pos = code, finding.SeverityOf(code), e.Pos
	f.Message, f.Fix = auth.RedactText(message), auth.RedactText(strings.Join(hints, "; "))
	if f.Fix == "" {
		f.Fix = rule.Hint()
	}
	f.Line, f.Length = quote(e)
	return f
}

// quote redacts the line of an excerpt. It returns no line if there is a password before the marked
// text: the columns would be wrong.
func quote(e manifest.Excerpt) (line string, length int) {
	e = e.Masked()
	marked, after := auth.RedactText(e.Marked), auth.RedactText(e.After)
	line = e.Before + marked + after
	if auth.RedactText(line) != line {
		return "", len(e.Marked)
	}
	return line, len(marked)
}

// BlockedBy returns the object of the input that causes an error of another object: it is rejected, or defined several times. The
// result is empty for an error of the object itself.
func BlockedBy(err error) finding.Object {
	if rejected, ok := errors.AsType[*inventory.RejectedError](err); ok {
		return Named(rejected.Object)
	}
	if duplicate, ok := errors.AsType[*manifest.DuplicateError](err); ok {
		return finding.Object{Kind: duplicate.Kind, Namespace: duplicate.Namespace, Name: duplicate.Name}
	}
	return finding.Object{}
}

// Unreadable returns the finding for a file, or an object in it, that cannot be used.
func Unreadable(err error) finding.Finding {
	var excerpt interface{ Excerpt() manifest.Excerpt }
	var parse *manifest.ParseError
	var duplicate *manifest.DuplicateError
	var file *manifest.FileError
	var object *manifest.ObjectError
	f, e := finding.Finding{}, manifest.Excerpt{}
	if errors.As(err, &excerpt) {
		e = excerpt.Excerpt()
	}
	code := finding.Unreadable
	switch {
	case errors.As(err, &parse):
		code = cmp.Or(parse.Finding(), finding.Syntax)
	case errors.As(err, &duplicate):
		code = finding.DuplicateObject
		f.Kind, f.Namespace, f.Name = duplicate.Kind, duplicate.Namespace, duplicate.Name
		f.Related = duplicate.Places[:len(duplicate.Places)-1]
	case errors.As(err, &object):
		code = codeOfObject(err)
		f.Kind, f.Namespace, f.Name = object.Object.Called()
	case errors.As(err, new(interface{ NotBuilt() bool })):
		code = finding.NotBuilt
	case errors.As(err, &file):
		e.Pos.File = file.Name
	}
	message := strings.TrimPrefix(err.Error(), e.Pos.String()+": ")
	if duplicate != nil {
		message = strings.TrimPrefix(message, f.Object().String()+" is ")
	}
	return complete(f, code, message, finding.Hints(err), e)
}

// codeOfObject returns the code for an object that could not be prepared for admission.
func codeOfObject(err error) finding.Code {
	switch {
	case errors.As(err, new(interface{ Variable() string })):
		return finding.UnresolvedVariable
	case errors.As(err, new(interface{ NotBuilt() bool })):
		return finding.NotBuilt
	}
	return cmp.Or(finding.CodeOf(err), finding.NotReady)
}

// Rejected returns the findings for the reasons why the API server would refuse an object.
func Rejected(obj *manifest.Object, err error) []finding.Finding {
	var invalid *admission.InvalidError
	if !errors.As(err, &invalid) {
		return []finding.Finding{At(obj, finding.Unexpected, err.Error(), finding.Hints(err))}
	}
	var found []finding.Finding
	for _, c := range invalid.Causes {
		if c.Code == "" && len(invalid.Causes) > 1 {
			continue // it only reports that there may be more
		}
		var hints []string
		if c.Hint != "" {
			hints = []string{c.Hint}
		} else if hint := partHint(obj, c.Code); hint != "" {
			hints = []string{hint}
		}
		f := At(obj, c.Code, c.Message, hints, c.Path...)
		if obj.Open && f.Code == finding.UnresolvedVariable {
			f.Severity = finding.Warning // the cluster knows its value
		}
		found = append(found, f)
	}
	return found
}

// partHint names the kustomization that may add a missing field of an object.
func partHint(obj *manifest.Object, code finding.Code) string {
	if code != finding.MissingField {
		return ""
	}
	return obj.PartHint()
}

// Warned returns the findings for admission's warnings about an object.
func Warned(adm *admission.Admitted) []finding.Finding {
	var found []finding.Finding
	for _, w := range adm.Warnings {
		found = append(found, At(adm.Object, w.Code, w.Message, nil, w.Path...))
	}
	return found
}

// sortFindings sorts findings by their position in a file.
func sortFindings(found []finding.Finding) {
	slices.SortStableFunc(found, func(a, b finding.Finding) int {
		switch {
		case a.Pos.File != b.Pos.File:
			return 0
		case a.Pos.Line != b.Pos.Line:
			return a.Pos.Line - b.Pos.Line
		}
		return a.Pos.Column - b.Pos.Column
	})
}
