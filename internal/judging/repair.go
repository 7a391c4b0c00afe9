package judging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/marked"
	"github.com/helmsrc/helmsrc/internal/rewrite"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// fixer finds the findings that have exactly one remedy, and applies the remedies.
type fixer struct {
	w     *session.Worker
	flux  *load.Distribution
	found *rewrite.Found // the files that may be edited
	files map[string]*editedFile
	order []*editedFile // in the order of the findings
}

// editedFile is a file with the edits of all its findings. It is parsed once.
type editedFile struct {
	*rewrite.File
	text      *edit.File
	locations marked.Locations
	wanted    map[*yaml.Node]string // the new value of a node
	edits     []mending
	after     []byte
}

// mending is the edit of a finding.
type mending struct {
	finding  *finding.Finding
	file     string // name of the file in the finding
	document *edit.Document
	node     *yaml.Node
}

// remedies adds its edit to each finding with one remedy, for reports. It ends with the context.
func (x *fixer) remedies(ctx context.Context, found []finding.Finding) {
	lost := lossy(found)
	for i := range found {
		if ctx.Err() != nil {
			return
		}
		if f := &found[i]; !lost[objectIn(f)] || f.Code != finding.DeprecatedVersion && f.Code != finding.RemovedVersion {
			x.apply(f)
		}
	}
	for _, file := range x.order {
		if ctx.Err() != nil {
			return
		}
		var refusals map[*yaml.Node]error
		file.after, _, refusals = file.text.Apply()
		for _, m := range file.edits {
			if r, ok := m.document.Region(m.node); ok && refusals[m.node] == nil {
				m.finding.Repair = &finding.Repair{Pos: finding.Pos{File: m.file, Line: r.Line, Column: r.Column}, EndColumn: r.EndColumn, Text: r.Text}
			}
		}
	}
}

// objectIn returns a key that is equal for the findings of an object.
func objectIn(f *finding.Finding) string { return inFile(console.SubjectOf(*f), f.Pos.File) }

// lossy returns the objects that would lose fields with a newer apiVersion.
func lossy(found []finding.Finding) map[string]bool {
	lost := map[string]bool{}
	for i := range found {
		if code := found[i].Code; code == finding.RemovedField || code == finding.UnknownField {
			lost[objectIn(&found[i])] = true
		}
	}
	return lost
}

// secret reports whether a text contains a login, or a value from a Secret. Such an edit is left to the user: a report would
// show it.
func (x *fixer) secret(text string) bool {
	return auth.RedactText(text) != text || x.w.Console.Secrets().Text(text) != text
}

// file parses a file that may be edited, and returns nil for any other file.
func (x *fixer) file(name string) *editedFile {
	if file, known := x.files[name]; known {
		return file
	}
	var file *editedFile
	if found := x.found.File(name); found != nil {
		i := slices.IndexFunc(x.order, func(other *editedFile) bool { return other.File == found }) // under another name
		if i >= 0 {
			file = x.order[i]
		} else {
			text := edit.Parse(found.Data)
			file = &editedFile{File: found, text: text, locations: marked.LocationsOf(text.Documents(), finding.RemedyKeys()), wanted: map[*yaml.Node]string{}}
			x.order = append(x.order, file)
		}
	}
	x.files[name] = file
	return file
}

// apply adds the edit of a finding, unless the file does not have the text of its remedy, or another finding needs
// another edit of the same value.
func (x *fixer) apply(f *finding.Finding) {
	rule, ok := finding.Lookup(string(f.Code))
	if !ok || rule.Remedy == nil {
		return
	}
	r, at := rule.Remedy, f.Pos
	if f.Code == finding.ChartInURL {
		if len(f.Related) != 1 {
			return
		}
		at = f.Related[0]
	}
	file := x.file(at.File)
	if file == nil {
		return
	}
	location, ok := file.locations.At(at.Line, at.Column, r.Keys)
	if !ok || marked.Sealed(location.Document.Root) {
		return
	}
	node, next, edit := x.edit(r, location, f.Kind)
	if before, asked := file.wanted[node]; asked && before != next || next == "" || x.secret(next) {
		return
	}
	if _, asked := file.wanted[node]; !asked {
		if edit() != nil {
			return
		}
		if _, ok := location.Document.Region(node); !ok {
			location.Document.Keep(node)
			return
		}
		file.wanted[node] = next
	}
	file.edits = append(file.edits, mending{f, at.File, location.Document, node})
}

// edit returns the node that a remedy changes, its new text, and a function that adds the edit; the text is "" without a remedy.
func (x *fixer) edit(r *finding.Remedy, p marked.Location, kind string) (node *yaml.Node, next string, ask func() error) {
	switch {
	case r.Quote:
		return p.Value, p.Value.Value, func() error { return p.Document.Quote(p.Value) }
	case r.Insert != [2]string{}:
		return p.Mapping, r.Insert[0] + ": " + r.Insert[1], func() error {
			return p.Document.InsertFields(p.Mapping, p.Key.Value, []edit.Field{{Key: r.Insert[0], Value: r.Insert[1]}})
		}
	case r.Replace != nil:
		next = r.Replace(p.Value.Value)
	default:
		next = x.upgrade(p.Value.Value, kind)
	}
	if next == p.Value.Value {
		next = ""
	}
	return p.Value, next, func() error { return p.Document.Set(p.Value, next) }
}

// upgrade returns the apiVersion to write. It returns "" for kinds that admission does not convert: their fields may differ.
func (x *fixer) upgrade(apiVersion, kind string) string {
	if !admission.Converts(kind) {
		return ""
	}
	_, s := x.flux.Serve(&manifest.Object{APIVersion: apiVersion, Kind: kind})
	return s.Upgrade
}

// fix edits the files.
func (x *fixer) fix(c *console.Console) {
	for _, edited := range x.order {
		var done []finding.Finding
		for _, m := range edited.edits {
			if m.finding.Repair != nil {
				done = append(done, *m.finding)
			}
		}
		if len(done) == 0 {
			continue
		}
		if err := edited.Replace(edited.after); err != nil {
			c.Report(validate.New(nil, finding.NotEdited, file.Cause(err).Error(), "", manifest.Excerpt{Pos: manifest.Pos{File: edited.Name}}))
			continue
		}
		for _, f := range done {
			c.Info(console.SubjectOf(f), fmt.Sprintf("%s: fixed: %s", f.Pos, f.Message))
		}
	}
}

// repair finds the remedies of the reported findings.
func (v *Verdict) repair(ctx context.Context) *fixer {
	in := v.judged[0].in
	x := &fixer{w: v.w, flux: in.Distribution, found: in.Options.Editable(ctx), files: map[string]*editedFile{}}
	x.remedies(ctx, v.reported)
	return x
}

// Fix edits the manifests where a mistake has exactly one remedy, and reports the edits. It judges the manifests without a report:
// the run after it reports the remaining findings. The worker can read standard input again.
func Fix(ctx context.Context, w *session.Worker, o *load.Options) error {
	var stdin bytes.Buffer
	silent := *w
	silent.Console = w.Console.Apart(func(io.Writer) io.Writer { return io.Discard })
	silent.Stdin, w.Stdin = io.TeeReader(w.Stdin, &stdin), &stdin
	inputs, err := silent.Inputs(ctx, o)
	if err != nil || load.CheckSelectors(inputs) != nil {
		return err
	}
	v := newVerdict(ctx, &silent, inputs, Options{})
	x := v.repair(ctx)
	if ctx.Err() != nil {
		return fmt.Errorf("the run is not complete: %w", context.Cause(ctx))
	}
	for _, err := range x.found.Errors {
		if errors.Is(err, file.ErrOutside) { // other errors are findings already
			w.Console.Warn(err.Error())
		}
	}
	x.fix(w.Console)
	return nil
}
