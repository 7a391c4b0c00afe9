package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// newFinding is a mistake in an object, at a field of it.
func newFinding(obj *manifest.Object, code finding.Code, message string, hints []string, path ...any) finding.Finding {
	f := finding.Finding{Kind: obj.Kind, Namespace: obj.Namespace, Name: obj.Name}
	return complete(f, code, obj.ConcealError(message), concealed(obj, hints), obj.Excerpt(path...))
}

// NewFinding is a mistake at a place, of an object if there is one.
func NewFinding(obj *manifest.Object, code finding.Code, message, hint string, e manifest.Excerpt) finding.Finding {
	var f finding.Finding
	if obj != nil {
		f.Kind, f.Namespace, f.Name = obj.Kind, obj.Namespace, obj.Name
	}
	var hints []string
	if hint != "" {
		hints = []string{hint}
	}
	if obj != nil {
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

// complete fills in what follows from the code and the place.
func complete(f finding.Finding, code finding.Code, message string, hints []string, e manifest.Excerpt) finding.Finding {
	rule, _ := finding.Lookup(string(code))
	f.Code, f.Severity, f.Pos = code, finding.SeverityOf(code), e.Pos
	f.Message, f.Fix = RedactText(message), RedactText(strings.Join(hints, "; "))
	if f.Fix == "" {
		f.Fix = rule.Hint()
	}
	f.Line, f.Length = quote(e)
	return f
}

// quote redacts the line of an excerpt. One with a password in front of what is
// marked is not quoted at all: the columns would be wrong.
func quote(e manifest.Excerpt) (line string, length int) {
	e = e.Masked()
	marked, after := RedactText(e.Marked), RedactText(e.After)
	line = e.Before + marked + after
	if RedactText(line) != line {
		return "", len(e.Marked)
	}
	return line, len(marked)
}

// Unreadable is a file, or an object in it, that cannot be used.
func Unreadable(err error) finding.Finding {
	var excerpt interface{ Excerpt() manifest.Excerpt }
	var parse *manifest.ParseError
	var kind *manifest.KindError
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
		code = finding.Syntax
	case errors.As(err, &kind):
		code = finding.UnknownKind
	case errors.As(err, &duplicate):
		code = finding.DuplicateObject
		f.Kind, f.Namespace, f.Name = duplicate.Kind, duplicate.Namespace, duplicate.Name
		f.Related = duplicate.Places[:len(duplicate.Places)-1]
	case errors.As(err, &object):
		code = codeOfObject(err)
		f.Kind, f.Namespace, f.Name = object.Kind, object.Namespace, object.Name
	case errors.As(err, new(interface{ NotBuilt() bool })):
		code = finding.NotBuilt
	case errors.As(err, &file):
		e.Pos.File = file.Name
	}
	return complete(f, code, strings.TrimPrefix(err.Error(), e.Pos.String()+": "), finding.Hints(err), e)
}

// codeOfObject returns the code for why an object was not made ready for admission.
func codeOfObject(err error) finding.Code {
	switch {
	case errors.As(err, new(interface{ Variable() string })):
		return finding.UnresolvedVariable
	case errors.As(err, new(interface{ NotBuilt() bool })):
		return finding.NotBuilt
	}
	var coded interface{ Code() finding.Code }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return finding.NotReady
}

// Rejected are the causes for which the API server would not store an object.
func Rejected(obj *manifest.Object, err error) []finding.Finding {
	var invalid *admission.InvalidError
	if !errors.As(err, &invalid) {
		return []finding.Finding{newFinding(obj, finding.Unexpected, err.Error(), finding.Hints(err))}
	}
	var found []finding.Finding
	for _, c := range invalid.Causes {
		if c.Code == "" && len(invalid.Causes) > 1 {
			continue // it only says that there may be more
		}
		var hints []string
		if c.Hint != "" {
			hints = []string{c.Hint}
		} else if hint := partHint(obj, c.Code); hint != "" {
			hints = []string{hint}
		}
		f := newFinding(obj, c.Code, c.Message, hints, c.Path...)
		if obj.Open && f.Code == finding.UnresolvedVariable {
			f.Severity = finding.Warning // the cluster knows its value
		}
		found = append(found, f)
	}
	return found
}

// partHint names the kustomization that may add what an object lacks.
func partHint(obj *manifest.Object, code finding.Code) string {
	if code != finding.MissingField {
		return ""
	}
	return obj.PartHint()
}

// Warned is what admission warns of in an object.
func Warned(adm *admission.Admitted) []finding.Finding {
	var found []finding.Finding
	for _, w := range adm.Warnings {
		found = append(found, newFinding(adm.Object, w.Code, w.Message, nil, w.Path...))
	}
	return found
}

// Findings are the failure of an object, and the warnings of its run.
func (r *Result) Findings() []finding.Finding {
	var found []finding.Finding
	for _, w := range r.Warnings {
		found = append(found, r.Warning(w))
	}
	if f, ok := r.FailureFinding(); ok {
		found = append(found, f)
	}
	return found
}

// Warning is a warning of the run.
func (r *Result) Warning(w Warning) finding.Finding {
	if w.Path != nil {
		return newFinding(r.Object.Object, w.Code, w.Text, finding.Hints(w.Err), w.Path...)
	}
	return r.finding(w.Code, w.Text, nil)
}

// FailureFinding is the failure of an object, false if it has none.
func (r *Result) FailureFinding() (finding.Finding, bool) {
	switch {
	case r.Failure == nil:
		return finding.Finding{}, false
	case r.State == Interrupted:
		return r.finding(finding.Interrupted, r.Failure.Message, nil), true
	}
	f := r.finding(CodeOf(r.Failure), cmp.Or(r.Failure.Detail, r.Failure.Message), r.Failure)
	f.Severity = finding.Error // also where validate would only warn
	if f.Code == finding.MissingSecret && (f.Kind == sourcev1.GitRepositoryKind || f.Kind == sourcev1.BucketKind) {
		f.Fix += fmt.Sprintf("; or take a directory in its place: --source %s/%s/%s=PATH", f.Kind, f.Namespace, f.Name)
	}
	return f, true
}

func (r *Result) finding(code finding.Code, message string, err error) finding.Finding {
	obj := r.Object.Object
	return newFinding(obj, code, message, finding.Hints(err), placeOf(obj, code, err)...)
}

// placeOf is the field of an object that a failure is about: the first of those
// that come into question that is there.
func placeOf(obj *manifest.Object, code finding.Code, err error) []any {
	if inventory.IsRelease(obj) && code != finding.SourceNotReady && releasePlace(err) != nil {
		return releasePlace(err)
	}
	var tag *tagMissingError
	if errors.As(err, &tag) && !inventory.IsRelease(obj) {
		return []any{"spec", "ref", "tag"}
	}
	if path := referencePlace(obj, err); path != nil {
		return path
	}
	for _, field := range append(fieldsOf(code), "spec.url", "spec.endpoint", "spec.chart.spec.chart", "spec.chart", "spec.chartRef", "spec") {
		path := steps(field)
		if valueAt(obj.Content, path) != nil {
			return path
		}
	}
	return nil
}

// fieldsOf are the fields that a kind of failure is mostly about.
func fieldsOf(code finding.Code) []string {
	var fields []string
	switch code {
	case finding.NoMatch, finding.MalformedVersion:
		fields = []string{"version", "ref", "chart"}
	case finding.UnknownChart, finding.InvalidChartName:
		fields = []string{"chart"}
	case finding.ValuesFiles:
		fields = []string{"valuesFiles"}
	case finding.MissingSource, finding.UnusableSource, finding.SourceNotReady:
		fields = []string{"sourceRef.name", "chartRef.name"}
	case finding.GitReference:
		fields = []string{"ref"}
	case finding.UselessVerify, finding.NotVerified, finding.Unsigned, finding.SignatureFailed, finding.Unverifiable, finding.GitUnsigned:
		fields = []string{"verify"}
	case finding.IncompleteLogin, finding.NoRegistryLogin, finding.GitSecret, finding.BucketSecret:
		fields = []string{"secretRef.name"}
	case finding.BrokenTLS:
		fields = []string{"certSecretRef.name"}
	case finding.ProxySecret:
		fields = []string{"proxySecretRef.name"}
	case finding.NotSupported:
		fields = []string{"provider"}
	case finding.FirstLayer, finding.IncompleteChart:
		fields = []string{"layerSelector"}
	case finding.IncludeCycle:
		fields = []string{"include"}
	}
	var all []string
	for _, field := range fields {
		all = append(all, "spec."+field, "spec.chart.spec."+field)
	}
	return all
}

// referencePlace finds the reference to a Secret that is missing or broken.
func referencePlace(obj *manifest.Object, err error) []any {
	name := ""
	var missing *manifest.NotFoundError
	var broken *manifest.SecretError
	switch {
	case errors.As(err, &missing) && missing.Kind == "Secret":
		name = missing.Name
	case errors.As(err, &broken):
		name = broken.Name
	default:
		return nil
	}
	for _, field := range []string{
		"spec.secretRef", "spec.certSecretRef", "spec.proxySecretRef", "spec.verify.secretRef", "spec.sts.secretRef", "spec.sts.certSecretRef",
	} {
		path := append(steps(field), "name")
		if valueAt(obj.Content, path) == name {
			return path
		}
	}
	return nil
}

func steps(field string) []any {
	var path []any
	for step := range strings.SplitSeq(field, ".") {
		path = append(path, step)
	}
	return path
}

func valueAt(content map[string]any, path []any) any {
	var v any = content
	for _, step := range path {
		m, _ := v.(map[string]any)
		name, _ := step.(string)
		v = m[name]
	}
	return v
}

// sortFindings makes the order that of the file.
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
