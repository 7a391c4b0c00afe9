package migration

import (
	"context"
	"errors"
	"strconv"

	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/migrate"
	"github.com/helmsrc/helmsrc/internal/rewrite"
)

// Options configure a migration.
type Options struct {
	Prove    bool // changes of a chart or of values are not made
	Must     bool // nor are changes that cannot be compared
	DryRun   bool // nothing is written, and differences are returned
	Check    bool // nothing is written, and a change is exit code 4
	ExitCode bool // a change is exit code 4
}

// A Migration is one run of migrate.
type Migration struct {
	foresee.Work
	o      Options
	inputs []*load.Input

	found    *rewrite.Found
	unfit    map[string]string // the reasons why files are not edited
	registry map[migrate.ID]string
	left     map[migrate.ID]bool
	result   *migrate.Result

	Code    int            // the exit code
	Changes []migrate.Note // made, or to make in a dry run
	Files   int            // number of edited files
	Written bool           // all files were written
	Diffs   []byte         // of the files, in a dry run
}

// Run migrates the objects that the options of the work select. An error ends the run.
func Run(ctx context.Context, w foresee.Work, o Options) (*Migration, error) {
	m := &Migration{Work: w, o: o, unfit: map[string]string{}, left: map[migrate.ID]bool{}}
	var err error
	if m.inputs, err = w.Worker.Inputs(ctx, w.Options.Load); err == nil {
		err = load.CheckSelectors(m.inputs)
	}
	if err == nil {
		m.Shared, err = w.Worker.Open(ctx, w.Options)
	}
	if err != nil {
		m.fail(exit.Usage)
		return m, err
	}
	defer m.Shared.Close()
	var clusters []string
	for _, in := range m.inputs {
		m.fail(in.Code)
		w.Worker.ReportNotes(in)
		if !in.Loose {
			clusters = append(clusters, in.Cluster)
		}
	}
	w.Worker.Console.Divide(clusters)
	m.find(ctx)
	err = m.plan(ctx)
	w.Worker.Console.Unite()
	if err != nil {
		m.Code = exit.Failed
		return m, err
	}
	m.reportPlan()
	m.finish(ctx)
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), exit.ErrInterrupted) {
		m.fail(exit.Interrupted)
	}
	if (o.Check || o.ExitCode) && len(m.result.Files) > 0 {
		m.fail(exit.Drift)
	}
	return m, nil
}

// Redirect makes the sources of inputs that were read use a mirror, and returns the result.
func Redirect(ctx context.Context, w foresee.Work, inputs []*load.Input, mirror migrate.Mirror, dryRun bool) (*Migration, *migrate.Result) {
	m := &Migration{Work: w, o: Options{DryRun: dryRun}, inputs: inputs, unfit: map[string]string{}, left: map[migrate.ID]bool{}}
	m.find(ctx)
	for again := true; again; again = m.readOnly() {
		m.result = migrate.Redirect(m.input(), mirror)
	}
	m.reportPlan()
	m.finish(ctx)
	return m, m.result
}

func (m *Migration) fail(code int) { m.Code = exit.Worst(m.Code, code) }

// find reads the files that may be edited.
func (m *Migration) find(ctx context.Context) {
	var code int
	m.found, code = m.Worker.Editable(ctx, m.Options.Load)
	m.fail(code)
}

// report prints a finding about a place in a file.
func (m *Migration) report(code finding.Code, n migrate.Note) {
	about := finding.Object{Kind: n.Kind, Namespace: n.Namespace, Name: n.Name}
	if n.File != "" {
		about.Pos = finding.Pos{File: n.File, Line: n.Line, Column: 1}
	}
	m.Worker.ReportEdit(code, about, n.Text, n.Hint)
}

// objects returns the objects of all clusters, as they are applied, and the repositories outside of the input that they use.
func (m *Migration) objects() []*migrate.Object {
	var list []*migrate.Object
	for i, in := range m.inputs {
		seen := map[*manifest.Object]bool{}
		add := func(obj *manifest.Object, asked bool) {
			if obj.Origin == nil && !seen[obj] {
				seen[obj] = true
				list = append(list, m.object(obj, strconv.Itoa(i), asked))
			}
		}
		for _, obj := range in.Inventory.Objects() {
			add(obj, in.Asked(obj))
		}
		for _, adm := range in.WithSources(in.Inventory.Objects()...) {
			add(adm.Object, false)
		}
	}
	return list
}

func (m *Migration) object(obj *manifest.Object, cluster string, asked bool) *migrate.Object {
	o := &migrate.Object{
		ID: idOf(obj), APIVersion: obj.APIVersion, Cluster: cluster,
		Content: obj.Content, Shown: obj.Pos.File, Line: obj.Pos.Line, By: obj.Built, Asked: asked,
	}
	switch file := m.found.File(obj.Pos.File); {
	case file == nil:
		o.Unfit = "which is not among the named files"
	case m.unfit[file.Name] != "":
		o.Unfit = "and " + m.unfit[file.Name]
	default:
		o.File = file.Name
	}
	return o
}

func (m *Migration) input() migrate.Input {
	flux := m.inputs[0].Distribution
	in := migrate.Input{
		Objects: m.objects(),
		All:     len(m.inputs[0].Selectors) == 0 && m.inputs[0].Namespace == "",
		Left:    m.left,
		Current: func(apiVersion, kind string) string {
			_, s := flux.Serve(&manifest.Object{APIVersion: apiVersion, Kind: kind})
			if s.Known && (s.Deprecated || !s.Served) {
				return s.Upgrade
			}
			return ""
		},
		Served: func(apiVersion, kind string) bool {
			_, s := flux.Serve(&manifest.Object{APIVersion: apiVersion, Kind: kind})
			return s.Served
		},
		SecretType: m.secretType,
		Registry:   func(id migrate.ID) string { return m.registry[id] },
	}
	for _, f := range m.found.Files {
		if m.unfit[f.Name] == "" {
			in.Files = append(in.Files, migrate.File{Name: f.Name, Data: f.Data})
		}
	}
	return in
}

func (m *Migration) secretType(namespace, name string) string {
	for _, in := range m.inputs {
		if s, err := in.Set.Secret(namespace, name); err == nil {
			return s.Type
		}
	}
	return ""
}

// maxRounds is the limit of plans. Each plan leaves out the objects that could not be edited in the one before it.
const maxRounds = 10

// plan plans the edits, without files that cannot be written, and without edits that would change a chart or values.
func (m *Migration) plan(ctx context.Context) error {
	if m.o.Prove {
		if err := m.lookIntoIndexes(ctx); err != nil {
			return err
		}
	}
	var p proof
	for round := 0; ; round++ {
		m.result = migrate.Plan(m.input())
		if m.readOnly() {
			continue
		}
		if !m.o.Prove || len(m.result.Files) == 0 {
			break
		}
		var err error
		if p, err = m.proveOnce(ctx); err != nil {
			return err
		}
		if len(p.found(differs)) == 0 {
			break
		}
		if round == maxRounds || !m.leave(p) {
			m.report(finding.ChangesChart, migrate.Note{Text: "without the edits that were left out, others would change a chart: nothing is edited"})
			m.fail(exit.Failed)
			m.result.Files = nil
			break
		}
	}
	m.say(p)
	return nil
}

// readOnly leaves out the files that cannot be written, and reports whether it has found any.
func (m *Migration) readOnly() bool {
	before := len(m.unfit)
	for _, e := range m.result.Files {
		if err := m.found.File(e.Name).Writable(); err != nil {
			m.unfit[e.Name] = err.Error()
			m.report(finding.NotEdited, migrate.Note{File: e.Name, Text: err.Error()})
			m.fail(exit.Failed)
		}
	}
	return len(m.unfit) > before
}

func (m *Migration) reportPlan() {
	for _, n := range m.result.Refused {
		m.report(finding.NotEdited, n)
		m.fail(exit.Failed)
	}
	if len(m.result.Files) == 0 {
		return
	}
	for _, n := range m.result.Lost {
		m.report(finding.NotKept, n)
	}
	if !m.o.Prove {
		for _, n := range m.result.Wider {
			m.report(finding.NotCompared, n)
		}
	}
}

// finish writes the files, unless the context is over.
func (m *Migration) finish(ctx context.Context) {
	var list []rewrite.Replacement
	for _, e := range m.result.Files {
		file := m.found.File(e.Name)
		list = append(list, rewrite.Replacement{File: file, Text: e.Text})
		if m.o.DryRun {
			m.Diffs = append(m.Diffs, m.Worker.Diff(file, edit.Parse(file.Data), e.Text)...)
		}
	}
	switch {
	case m.o.DryRun || m.o.Check:
	case ctx.Err() != nil:
		list = nil
	default:
		if err := rewrite.ReplaceAll(list); err != nil {
			m.report(finding.NotEdited, migrate.Note{Text: "nothing is edited: " + err.Error()})
			m.fail(exit.Failed)
			list = nil
		} else {
			m.Written = true
		}
	}
	if m.Files = len(list); m.Files > 0 {
		m.Changes = m.result.Changes
	}
}

// texts returns the new texts, by the absolute names of the files.
func (m *Migration) texts() map[string][]byte {
	texts := map[string][]byte{}
	for _, e := range m.result.Files {
		if path, err := file.Real(e.Name); err == nil { // it was read a moment ago
			texts[path] = e.Text
		}
	}
	return texts
}
