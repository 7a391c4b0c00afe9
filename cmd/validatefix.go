package cmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/marked"

	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/rewrite"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// fixer finds out which findings have exactly one remedy, and applies them.
type fixer struct {
	a     *app
	flux  *distribution
	found *rewrite.Found // the files that may be edited
}

// remedies gives each finding with one remedy the edit that it is, for reports.
func (x *fixer) remedies(found []finding.Finding) {
	for i := range found {
		f := &found[i]
		file, at := x.locate(f)
		if file == nil || x.lost(found, f) {
			continue
		}
		alone := edit.Parse(file.Data) // its regions are those of this one edit
		if !x.apply(alone, at, f) {
			continue
		}
		if _, edits, refusals := alone.Apply(); edits != 1 || len(refusals) > 0 {
			continue
		}
		for _, d := range alone.Documents() {
			for _, r := range d.Regions() {
				if x.secret(r.Text) {
					continue
				}
				f.Repair = &finding.Repair{Pos: finding.Pos{File: f.Pos.File, Line: r.Line, Column: r.Column}, EndColumn: r.EndColumn, Text: r.Text}
				f.Repair.File = at.File
			}
		}
	}
}

// secret reports whether a text holds a login, or what comes from a Secret. Such an edit is left to people: a report would
// show it.
func (x *fixer) secret(text string) bool {
	return reconcile.RedactText(text) != text || x.a.console.Secrets().Text(text) != text
}

// locate returns the file and the line that the remedy of a finding is about.
func (x *fixer) locate(f *finding.Finding) (*rewrite.File, finding.Pos) {
	rule, ok := finding.Lookup(string(f.Code))
	if !ok || rule.Remedy == nil {
		return nil, finding.Pos{}
	}
	at := f.Pos
	if f.Code == finding.ChartInURL {
		if len(f.Related) != 1 {
			return nil, at
		}
		at = f.Related[0]
	}
	return x.found.File(at.File), at
}

// lost reports whether a newer apiVersion would take something from the object.
func (x *fixer) lost(found []finding.Finding, f *finding.Finding) bool {
	if f.Code != finding.DeprecatedVersion && f.Code != finding.RemovedVersion {
		return false
	}
	return slices.ContainsFunc(found, func(other finding.Finding) bool {
		return other.Kind == f.Kind && other.Namespace == f.Namespace && other.Name == f.Name && other.Pos.File == f.Pos.File &&
			(other.Code == finding.RemovedField || other.Code == finding.UnknownField)
	})
}

// apply asks for the edit. It is false if the text is another than the remedy is about.
func (x *fixer) apply(file *edit.File, at finding.Pos, f *finding.Finding) bool {
	rule, _ := finding.Lookup(string(f.Code))
	r := rule.Remedy
	d, mapping, key, value := marked.Valued(file.Documents(), at.Line, at.Column, r.Keys)
	switch {
	case value == nil || marked.Sealed(d.Root):
		return false
	case r.Quote:
		return d.Quote(value) == nil
	case r.Insert != [2]string{}:
		return d.Insert(mapping, key.Value, r.Insert[0], r.Insert[1]) == nil
	case r.Replace != nil:
		next := r.Replace(value.Value)
		return next != "" && next != value.Value && d.Set(value, next) == nil
	}
	next := x.upgrade(value.Value, f.Kind)
	return next != "" && next != value.Value && d.Set(value, next) == nil
}

// upgrade is the apiVersion to write. Kinds that admission does not convert may have other fields there.
func (x *fixer) upgrade(apiVersion, kind string) string {
	if !admission.Converts(kind) {
		return ""
	}
	_, s := x.flux.serve(&manifest.Object{APIVersion: apiVersion, Kind: kind})
	return s.Upgrade
}

// fix edits the files, and returns which of the findings are left.
func (x *fixer) fix(found []finding.Finding) (left []finding.Finding, fixed int) {
	parsed := map[*rewrite.File]*edit.File{}
	by := map[*rewrite.File][]finding.Finding{}
	var order []*rewrite.File
	for _, f := range found {
		file, at := x.locate(&f)
		if f.Repair == nil || file == nil {
			left = append(left, f)
			continue
		}
		if parsed[file] == nil {
			parsed[file], order = edit.Parse(file.Data), append(order, file)
		}
		x.apply(parsed[file], at, &f) // again false for what another finding has asked for as well
		by[file] = append(by[file], f)
	}
	for _, file := range order {
		text, _, refusals := parsed[file].Apply()
		err := file.Replace(text)
		if err != nil || len(refusals) > 0 {
			left = append(left, by[file]...)
		}
		if err != nil {
			x.a.console.Report(validate.New(nil, finding.NotEdited, unnamed(err).Error(), "", manifest.Excerpt{Pos: manifest.Pos{File: file.Name}}))
			continue
		}
		for _, f := range by[file] {
			fixed++
			x.a.console.Info(console.SubjectOf(f), fmt.Sprintf("%s: fixed: %s", f.Pos, f.Message))
		}
	}
	return left, fixed
}

// repair works out the remedies, and applies them if that is asked for.
func (a *app) repair(ctx context.Context, o *inputOptions, v *verdict, args []string, fix bool) {
	given, err := splitArguments(args, len(o.files) == 0)
	if err != nil {
		return
	}
	names := slices.Concat(splitNames(o.files), given.dirs, given.files)
	names = slices.DeleteFunc(names, func(name string) bool { return name == "-" })
	x := &fixer{a: a, flux: v.judged[0].in.distribution, found: rewrite.Find(ctx, rewrite.Options{Names: names, Recursive: o.recursive})}
	x.remedies(v.reported)
	if !fix {
		return
	}
	left, fixed := x.fix(v.reported)
	if fixed == 0 {
		return
	}
	v.reported, v.errors, v.warnings = nil, 0, 0
	for _, j := range v.judged {
		clear(j.invalid)
	}
	for _, f := range left {
		v.report(f)
		for _, j := range v.judged {
			if f.Severity == finding.Error {
				j.invalid[console.SubjectOf(f)] = true
			}
		}
	}
}

// machine reports whether a report is written that carries fixes.
func (o *reportOptions) machine() bool {
	return slices.ContainsFunc(o.targets, func(t reportTarget) bool { return t.format == "sarif" })
}
