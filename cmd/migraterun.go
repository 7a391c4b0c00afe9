package cmd

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/migrate"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/rewrite"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// migration is one run of migrate.
type migration struct {
	app    *app
	o      *migrateOptions
	args   []string
	inputs []*load.Input

	shared   *session.Session
	found    *rewrite.Found
	unfit    map[string]string // files that are not edited, and why
	registry map[migrate.ID]string
	left     map[migrate.ID]bool
	result   *migrate.Result
	code     int
}

func (m *migration) fail(code int) { m.code = exit.Worst(m.code, code) }

// find reads the files that may be edited.
func (m *migration) find(ctx context.Context) {
	given, _ := splitArguments(m.args, len(m.o.run.input.files) == 0) // it was read before
	names := slices.Concat(splitNames(m.o.run.input.files), given.dirs, given.files)
	m.found = rewrite.Find(ctx, rewrite.Options{Names: names, Recursive: m.o.run.input.Recursive, Skip: []string{m.o.run.store.dir}})
	for _, err := range m.found.Errors {
		m.report(finding.Unreadable, migrate.Note{Text: err.Error()})
		m.fail(exit.Usage)
	}
	for _, link := range m.found.Outside {
		m.app.console.Warn(link + ": the link leads out of the repository and is not followed")
	}
	m.unfit, m.left = map[string]string{}, map[migrate.ID]bool{}
}

// report prints a finding about a place in a file.
func (m *migration) report(code finding.Code, n migrate.Note) {
	f := validate.New(nil, code, n.Text, n.Hint, manifest.Excerpt{Pos: manifest.Pos{File: n.File, Line: n.Line, Column: 1}})
	if n.File == "" {
		f.Pos = manifest.Pos{}
	}
	f.Kind, f.Namespace, f.Name = n.Kind, n.Namespace, n.Name
	m.app.console.ReportAs(f, console.Presentation{At: console.Subject{Kind: n.Kind, Namespace: n.Namespace, Name: n.Name}, Placed: true, Brief: true})
}

// objects are those of all clusters, as they are applied, and the repositories beside the input that they refer to.
func (m *migration) objects() []*migrate.Object {
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
		for _, obj := range in.Inventory.Objects() {
			if adm, err := in.Inventory.Admit(obj); err == nil {
				for _, source := range in.SourcesOf(adm, func(*inventory.RejectedError) {}) {
					add(source.Object, false)
				}
			}
		}
	}
	return list
}

func (m *migration) object(obj *manifest.Object, cluster string, asked bool) *migrate.Object {
	o := &migrate.Object{
		ID: migrate.ID{Kind: obj.Kind, Namespace: obj.Namespace, Name: obj.Name}, APIVersion: obj.APIVersion, Cluster: cluster,
		Content: obj.Content, Shown: obj.Pos.File, Line: obj.Pos.Line, By: obj.Built, Asked: asked,
	}
	switch file := m.found.File(obj.Pos.File); {
	case file == nil:
		o.Unfit = "which is not among the files that were named"
	case m.unfit[file.Name] != "":
		o.Unfit = "and " + m.unfit[file.Name]
	default:
		o.File = file.Name
	}
	return o
}

func (m *migration) input() migrate.Input {
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

func (m *migration) secretType(namespace, name string) string {
	for _, in := range m.inputs {
		if s, err := in.Set.Secret(namespace, name); err == nil {
			return s.Type
		}
	}
	return ""
}

// maxRounds bounds how often what cannot be edited is left out, and all else is planned anew.
const maxRounds = 10

// plan works out the edits, without those that cannot be written, and without what they would change.
func (m *migration) plan(ctx context.Context) error {
	if m.o.prove {
		if err := m.lookIntoIndexes(ctx); err != nil {
			return err
		}
	}
	var p *proof
	for round := 0; ; round++ {
		m.result = migrate.Plan(m.input())
		if m.readOnly() {
			continue
		}
		if !m.o.prove || len(m.result.Files) == 0 {
			break
		}
		var err error
		if p, err = m.proveOnce(ctx); err != nil {
			return err
		}
		if len(p.differ) == 0 {
			break
		}
		if round == maxRounds || !m.leave(p) {
			m.report(finding.ChangesChart, migrate.Note{Text: "what is left out changes what stays: nothing is edited"})
			m.fail(exit.Failed)
			m.result.Files = nil
			break
		}
	}
	p.say(m)
	return nil
}

// readOnly leaves out the files that cannot be written. It is false if there are none.
func (m *migration) readOnly() bool {
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

func (m *migration) reportPlan() {
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
	if !m.o.prove {
		for _, n := range m.result.Wider {
			m.report(finding.NotCompared, n)
		}
	}
}

// finish writes the files and prints what became of them.
func (m *migration) finish(ctx context.Context) error {
	var diffs []byte
	if m.o.dryRun {
		for _, e := range m.result.Files {
			file := m.found.File(e.Name)
			diffs = append(diffs, m.app.diff(file, edit.Parse(file.Data), e.Text)...)
		}
	}
	changes := m.write(ctx)
	if m.o.dryRun {
		_, err := m.app.env.Stdout.Write(diffs)
		return err
	}
	hide := m.app.console.Secrets().Text
	records := []migrated{}
	for _, c := range changes {
		object := strings.TrimSuffix(c.Kind+"/"+c.Name, "/")
		records = append(records, migrated{c.File, c.Line, hide(object), hide(c.Namespace), hide(c.Text)})
	}
	return migratedColumns().Print(m.app.env.Stdout, m.o.format.format, m.app.paper, records)
}

// write replaces all files or none, if that is wanted, says how many, and returns the changes.
func (m *migration) write(ctx context.Context) []migrate.Note {
	var list []rewrite.Replacement
	for _, e := range m.result.Files {
		list = append(list, rewrite.Replacement{File: m.found.File(e.Name), Text: e.Text})
	}
	verb := "edited"
	switch {
	case m.o.dryRun || m.o.check:
		verb = "to be edited"
	case ctx.Err() != nil:
		list = nil
	default:
		if err := rewrite.ReplaceAll(list); err != nil {
			m.report(finding.NotEdited, migrate.Note{Text: "nothing is edited: " + err.Error()})
			m.fail(exit.Failed)
			list = nil
		}
	}
	changes := m.result.Changes
	if len(list) == 0 {
		changes = nil
	}
	m.app.console.Info(console.Subject{}, fmt.Sprintf("%d %s, %d %s %s", len(changes), plural(len(changes), "change", "changes"), len(list), plural(len(list), "file", "files"), verb))
	return changes
}

// migrated is a record of migrate's output. Its fields are part of the contract.
type migrated struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	Change    string `json:"change"`
}

func migratedColumns() *records.Columns[migrated] {
	return &records.Columns[migrated]{
		Header: []string{"FILE", "LINE", "OBJECT", "CHANGE"},
		Wide:   []string{"NAMESPACE"},
		Row: func(r migrated) []string {
			return []string{r.File, fmt.Sprint(r.Line), r.Object, r.Change, cmp.Or(r.Namespace, "-")}
		},
	}
}

// texts are the edits, by the absolute names of the files.
func (m *migration) texts() map[string][]byte {
	texts := map[string][]byte{}
	for _, e := range m.result.Files {
		path, err := filepath.EvalSymlinks(e.Name)
		if err != nil {
			continue // it was read a moment ago
		}
		if path, err = filepath.Abs(path); err == nil {
			texts[path] = e.Text
		}
	}
	return texts
}
