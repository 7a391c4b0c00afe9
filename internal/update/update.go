// Package update sets the fields of manifests that follow image policies, and moves exact versions, in place.
package update

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/marked"
	"github.com/helmsrc/helmsrc/internal/policy"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/rewrite"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/status"
)

// Options configure an update.
type Options struct {
	Moves  bool // move exact versions without a marker to published ones, by the results
	DryRun bool // nothing is written, and differences are returned
	Check  bool // nothing is written
}

// An Update is one run of update. After Finish, it holds the changes and the exit code.
type Update struct {
	w *session.Worker
	o Options

	in      *load.Input    // of the current cluster
	found   *rewrite.Found // the named files, and those that the clusters read
	chosen  map[policyKey][]choice
	missing map[policyKey]func() // reports a policy that a cluster does not have
	parsed  map[*rewrite.File]*parsedFile

	Code    int      // the exit code
	Changes []Change // made, or to make in a dry run
	Files   int      // number of files with changes
	Diffs   []byte   // of the files, in a dry run
}

// New returns an update of the manifests that a worker reads. Follow has to be called for each cluster, and then Finish.
func New(w *session.Worker, o Options) *Update {
	return &Update{w: w, o: o, chosen: map[policyKey][]choice{}, missing: map[policyKey]func(){}, parsed: map[*rewrite.File]*parsedFile{}}
}

// parsedFile is a file with edits.
type parsedFile struct {
	*edit.File
	file   *rewrite.File
	fields []marked.Field
	edited []*Change
	inner  map[*yaml.Node]*innerText
}

// A Change is a new value for a scalar. Its fields are part of the contract.
type Change struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	From   string `json:"from"`
	To     string `json:"to"`
	By     string `json:"by"` // the policy, or the object whose version it is
	Chart  string `json:"chart"`
	Object string `json:"object"` // of the document, if it has a kind and a name

	Was, Now string `json:"-"` // versions

	node     *yaml.Node
	document *edit.Document
}

// Map replaces the texts of a change, except the name of its file.
func (c *Change) Map(hide func(string) string) {
	for _, text := range []*string{&c.From, &c.To, &c.By, &c.Chart, &c.Object, &c.Was, &c.Now} {
		*text = hide(*text)
	}
}

func (u *Update) fail(code int) { u.Code = exit.Worst(u.Code, code) }

// Follow evaluates the policies of the markers in a cluster.
func (u *Update) Follow(ctx context.Context, in *load.Input, r *reconcile.Reconciler) {
	u.in = in
	if u.found == nil {
		var code int
		u.found, code = u.w.Editable(ctx, u.in.Options)
		u.fail(code)
	}
	u.read(ctx)
	u.choose(ctx, r)
}

// read reads the files of the cluster, and parses those with markers that were not parsed before.
func (u *Update) read(ctx context.Context) {
	for _, err := range u.found.Read(ctx, u.in.Rendered.Files) {
		u.w.ReportEdit(finding.Unreadable, at("", policyKey{}, "", 0), err.Error())
		u.fail(exit.Usage)
	}
	var parsed []*parsedFile
	for _, file := range u.found.Files {
		if u.parsed[file] == nil && marked.Any(file.Data) {
			parsed = append(parsed, u.parse(file))
		}
	}
	for _, p := range parsed {
		for _, f := range p.fields {
			if f.Err != nil {
				u.reportMarker(p, f)
			}
		}
	}
}

// Idle reports whether there is nothing to do: no file has a marker, and no version is to be moved.
func (u *Update) Idle() bool {
	marker := func(f *rewrite.File) bool { return marked.Any(f.Data) }
	return !u.o.Moves && u.found != nil && len(u.found.Errors) == 0 && !slices.ContainsFunc(u.found.Files, marker)
}

// parse parses a file once.
func (u *Update) parse(file *rewrite.File) *parsedFile {
	if p := u.parsed[file]; p != nil {
		return p
	}
	p := &parsedFile{File: edit.Parse(file.Data), file: file}
	u.parsed[file] = p
	for _, d := range p.Documents() {
		first, last := d.Lines()
		if d.Err != nil && marked.Any(linesOf(file.Data, first, last)) {
			u.w.ReportEdit(finding.Syntax, at("", policyKey{}, file.Name, first), "the document cannot be read, and its markers are ignored: "+d.Err.Error())
			u.fail(exit.Usage)
		}
		for _, f := range marked.Fields(d) {
			if u.asked(f) {
				p.fields = append(p.fields, f)
			}
		}
	}
	return p
}

// linesOf returns lines of a text, counted from 1.
func linesOf(data []byte, first, last int) []byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	first, last = min(first-1, len(lines)), min(last, len(lines))
	return bytes.Join(lines[first:last], nil)
}

// asked reports whether the arguments select a field: by its policy, or by the object that it is in.
func (u *Update) asked(f marked.Field) bool {
	if len(u.in.Selectors) == 0 {
		return u.in.Namespace == "" || u.in.Namespace == f.Marker.Namespace || f.Err != nil
	}
	policy := &manifest.Object{Kind: imagev1.ImagePolicyKind, Namespace: f.Marker.Namespace, Name: f.Marker.Name}
	in := marked.ObjectOf(f.Document.Root)
	holder := &manifest.Object{Kind: in.Kind, Namespace: cmp.Or(in.Namespace, f.Marker.Namespace), Name: in.Name}
	return slices.ContainsFunc(u.in.Selectors, func(s load.Selector) bool { return s.Matches(policy) || s.Matches(holder) })
}

// policyKey names an ImagePolicy.
type policyKey struct{ namespace, name string }

func keyOf(f marked.Field) policyKey { return policyKey{f.Marker.Namespace, f.Marker.Name} }

// at returns an object as a line of a file names it.
func at(kind string, key policyKey, file string, line int) finding.Object {
	return finding.Object{Kind: kind, Namespace: key.namespace, Name: key.name, Pos: finding.Pos{File: file, Line: line, Column: 1}}
}

// followed is a policy that fields follow.
type followed struct {
	policyKey
	first  finding.Object // the policy, at the place of the first field
	fields int
}

// policies returns the policies that the fields of all files follow, in the order of their first field.
func (u *Update) policies() []*followed {
	var list []*followed
	known := map[policyKey]*followed{}
	for _, file := range u.files() {
		for _, f := range file.fields {
			key := keyOf(f)
			if f.Err != nil {
				continue
			}
			if known[key] == nil {
				known[key] = &followed{policyKey: key, first: at(imagev1.ImagePolicyKind, key, file.file.Name, f.Line)}
				list = append(list, known[key])
			}
			known[key].fields++
		}
	}
	return list
}

// choice is the result of a policy in a cluster.
type choice struct {
	cluster string
	image   reconcile.Image
}

// choose evaluates the policies of all markers in a cluster. It reports each failure once.
func (u *Update) choose(ctx context.Context, r *reconcile.Reconciler) {
	failed := func(p *followed, err error) {
		more, hints := "", finding.Hints(err)
		if rejected, ok := errors.AsType[*inventory.RejectedError](err); ok { // a rejected object is not part of a run, which would report why
			more, hints = ": "+rejected.Err.Error(), finding.Hints(rejected.Err)
		}
		if n := p.fields - 1; n > 0 {
			verb := "fields follow"
			if n == 1 {
				verb = "field follows"
			}
			more += fmt.Sprintf(" (%d more %s it)", n, verb)
		}
		u.w.ReportEdit(finding.PolicyFailed, p.first, err.Error()+more, hints...)
		u.fail(session.CodeOf(&reconcile.Result{State: reconcile.Failed, Failure: status.AsFailure(err)}))
	}
	var policies []*admission.Admitted
	var chosen []*followed
	for _, p := range u.policies() {
		adm, err := u.in.Inventory.Find(imagev1.ImagePolicyKind, p.namespace, p.name)
		if _, absent := errors.AsType[*manifest.NotFoundError](err); absent && u.in.Cluster != "" {
			u.missing[p.policyKey] = func() { failed(p, err) } // unless another cluster has it
			continue
		}
		if err != nil {
			failed(p, err)
			continue
		}
		u.w.ReportWarnings(u.in, adm)
		policies, chosen = append(policies, adm), append(chosen, p)
	}
	images, results := r.Images(ctx, policies)
	for i, image := range images {
		p := chosen[i]
		for _, w := range results[i].Warnings {
			u.w.Console.ReportAs(results[i].Warning(w), console.Presentation{At: console.ObjectSubject(results[i].Object.Object), Brief: true})
		}
		if image.Err != nil {
			failed(p, image.Err)
			continue
		}
		if s := image.Suspended; s != nil {
			u.w.Console.Info(console.ObjectSubject(policies[i].Object), fmt.Sprintf("%s is suspended: fields that follow the policy are not changed", s))
			u.chosen[p.policyKey] = append([]choice{}, u.chosen[p.policyKey]...) // it is not missing
			continue
		}
		u.chosen[p.policyKey] = append(u.chosen[p.policyKey], choice{u.in.Cluster, image})
	}
	u.w.ReportNotes(u.in)
}

// resolve sets the values that the policies chose, if all clusters agree.
func (u *Update) resolve() {
	chosen := map[policyKey]reconcile.Image{}
	for _, p := range u.policies() {
		choices := u.chosen[p.policyKey]
		differs := slices.IndexFunc(choices, func(c choice) bool { return c.image != choices[0].image })
		switch {
		case choices == nil && u.missing[p.policyKey] != nil:
			u.missing[p.policyKey]()
		case differs > 0:
			text := fmt.Sprintf("it selects %s in %s, and %s in %s", choices[0].image.Tag, choices[0].cluster, choices[differs].image.Tag, choices[differs].cluster)
			u.w.ReportEdit(finding.PolicyFailed, p.first, text, finding.ChooseCluster)
			u.fail(exit.Failed)
		case len(choices) > 0:
			chosen[p.policyKey] = choices[0].image
		}
	}
	u.set(chosen)
}

func (u *Update) reportMarker(p *parsedFile, f marked.Field) {
	kind := ""
	if f.Marker.Name != "" {
		kind = imagev1.ImagePolicyKind
	}
	u.w.ReportEdit(finding.BrokenMarker, at(kind, keyOf(f), p.file.Name, f.Line), f.Err.Error())
	u.fail(exit.Failed)
}

// files returns the parsed files in the order in which they were found.
func (u *Update) files() []*parsedFile {
	var list []*parsedFile
	for _, file := range u.found.Files {
		if p := u.parsed[file]; p != nil {
			list = append(list, p)
		}
	}
	return list
}

func (u *Update) set(chosen map[policyKey]reconcile.Image) {
	for _, p := range u.files() {
		for _, f := range p.fields {
			image, ok := chosen[keyOf(f)]
			if !ok || f.Err != nil {
				continue
			}
			by := f.Marker.Namespace + "/" + f.Marker.Name
			value, err := partOf(p, f, image)
			if err != nil {
				u.w.ReportEdit(finding.PolicyFailed, at(imagev1.ImagePolicyKind, keyOf(f), p.file.Name, f.Line), err.Error())
				u.fail(exit.Failed)
				continue
			}
			c := &Change{
				File: p.file.Name, Line: f.Line, From: f.Node.Value, To: value, By: imagev1.ImagePolicyKind + " " + by,
				Chart: path.Base(image.Name), node: f.Node, document: f.Document, Was: tagOf(f.Node.Value, f.Marker.Part), Now: image.Tag,
			}
			u.edit(p, c)
		}
	}
}

// partOf returns the text for a field. It keeps a digest next to a tag that stays, if the policy reflects digests that way.
func partOf(p *parsedFile, f marked.Field, image reconcile.Image) (string, error) {
	old := f.Node.Value
	whole := image.Name + ":" + image.Tag + "@"
	switch {
	case !image.KeepDigest:
	case f.Marker.Part == policy.Whole && strings.HasPrefix(old, whole) && isDigest(strings.TrimPrefix(old, whole)):
		return old, nil
	case f.Marker.Part == policy.Digest && isDigest(old) && f.Sibling(p.fields, policy.Tag) == image.Tag:
		return old, nil
	}
	return image.Part(f.Marker.Part)
}

func isDigest(text string) bool {
	algorithm, sum, found := strings.Cut(text, ":")
	return found && algorithm == "sha256" && len(sum) == 64
}

// tagOf returns the tag in the old value of a field, or "".
func tagOf(old string, part policy.Part) string {
	switch part {
	case policy.Tag:
		return old
	case policy.Whole:
		_, tag, _ := manifest.SplitReference(old)
		return tag
	}
	return ""
}
