package cmd

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
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
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
	"github.com/helmsrc/helmsrc/internal/validate"

	"github.com/helmsrc/helmsrc/internal/session"
)

// updateRun is one run of update.
type updateRun struct {
	a *app
	o *updateOptions

	in      *load.Input // of the cluster that is looked at
	found   *rewrite.Found
	chosen  map[policyKey][]choice
	missing map[policyKey]func() // reports a policy that a cluster does not have
	parsed  map[*rewrite.File]*parsedFile
	changes []change
	changed bool
	code    int
}

// parsedFile is a file in which something is edited.
type parsedFile struct {
	*edit.File
	file   *rewrite.File
	fields []marked.Field
	edited []*change
}

// change is a scalar that gets another value. Its fields are part of the contract.
type change struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	From   string `json:"from"`
	To     string `json:"to"`
	By     string `json:"by"` // the policy, or the object whose version it is
	Chart  string `json:"chart"`
	Object string `json:"object"` // that holds it, if the document says so

	node     *yaml.Node
	document *edit.Document
	was, now string // versions
}

// report prints a finding about a place in a file.
func (u *updateRun) report(code finding.Code, kind string, namespace, name, file string, line int, message string, hints ...string) {
	f := validate.New(nil, code, message, strings.Join(hints, "\n"), manifest.Excerpt{Pos: manifest.Pos{File: file, Line: line, Column: 1}})
	f.Kind, f.Namespace, f.Name = kind, namespace, name
	u.a.console.ReportAs(f, console.Presentation{At: console.Subject{Kind: kind, Namespace: namespace, Name: name}, Placed: true, Brief: true})
}

func (u *updateRun) fail(code int) { u.code = exit.Worst(u.code, code) }

// follow reads the files and sets what has a marker.
func (u *updateRun) follow(ctx context.Context, in *load.Input, r *reconcile.Reconciler) {
	u.in = in
	if u.parsed == nil {
		u.read(ctx)
	}
	u.choose(ctx, r)
}

// read reads the files that are edited.
func (u *updateRun) read(ctx context.Context) {
	u.parsed, u.chosen, u.missing = map[*rewrite.File]*parsedFile{}, map[policyKey][]choice{}, map[policyKey]func(){}
	u.found = u.in.Options.Editable(ctx)
	for _, err := range u.found.Errors {
		u.report(finding.Unreadable, "", "", "", "", 0, err.Error())
		u.fail(exit.Usage)
	}
	for _, link := range u.found.Outside {
		u.a.console.Warn(link + ": the link leads out of the repository and is not followed")
	}
	for _, file := range u.found.Files {
		if marked.Any(file.Data) {
			u.parse(file)
		}
	}
	for _, p := range u.files() {
		for _, f := range p.fields {
			if f.Err != nil {
				u.reportMarker(p, f)
			}
		}
	}
}

// idle reports whether there is nothing to do: no file has a marker, and no version is to be moved.
func (u *updateRun) idle() bool {
	marker := func(f *rewrite.File) bool { return marked.Any(f.Data) }
	return u.o.level == "" && u.found != nil && len(u.found.Errors) == 0 && !slices.ContainsFunc(u.found.Files, marker)
}

// parse parses a file once.
func (u *updateRun) parse(file *rewrite.File) *parsedFile {
	if p := u.parsed[file]; p != nil {
		return p
	}
	p := &parsedFile{File: edit.Parse(file.Data), file: file}
	u.parsed[file] = p
	for _, d := range p.Documents() {
		first, last := d.Lines()
		if d.Err != nil && marked.Any(linesOf(file.Data, first, last)) {
			u.report(finding.Syntax, "", "", "", file.Name, first, "the document cannot be read, and what has a marker in it is not set: "+d.Err.Error())
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

// linesOf are lines of a text, counted from 1.
func linesOf(data []byte, first, last int) []byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	first, last = min(first-1, len(lines)), min(last, len(lines))
	return bytes.Join(lines[first:last], nil)
}

// asked reports whether the arguments select a field: by its policy, or by the object that it is in.
func (u *updateRun) asked(f marked.Field) bool {
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

// choice is what a policy chooses in a cluster.
type choice struct {
	cluster string
	image   reconcile.Image
}

// choose finds out what the policies of all markers choose in a cluster. Failures are reported, each once.
func (u *updateRun) choose(ctx context.Context, r *reconcile.Reconciler) {
	followers := map[policyKey]int{} // how many fields follow it
	var order []policyKey
	fields := map[policyKey]marked.Field{}
	files := map[policyKey]string{}
	for _, p := range u.files() {
		for _, f := range p.fields {
			if f.Err != nil {
				continue
			}
			key := policyKey{f.Marker.Namespace, f.Marker.Name}
			if followers[key]++; followers[key] == 1 {
				order, fields[key], files[key] = append(order, key), f, p.file.Name
			}
		}
	}
	failed := func(key policyKey, err error) {
		more, hints := "", finding.Hints(err)
		if rejected, ok := errors.AsType[*inventory.RejectedError](err); ok { // it takes no part in a run, which would say why
			more, hints = ": "+rejected.Err.Error(), finding.Hints(rejected.Err)
		}
		if n := followers[key] - 1; n > 0 {
			more += fmt.Sprintf(" (%d more %s it)", n, plural(n, "field follows", "fields follow"))
		}
		u.report(finding.PolicyFailed, imagev1.ImagePolicyKind, key.namespace, key.name, files[key], fields[key].Line, err.Error()+more, hints...)
		u.fail(session.CodeOf(&reconcile.Result{State: reconcile.Failed, Failure: failureOf(err)}))
	}
	var policies []*admission.Admitted
	var keys []policyKey
	for _, key := range order {
		adm, err := u.in.Inventory.Find(imagev1.ImagePolicyKind, key.namespace, key.name)
		if _, absent := errors.AsType[*manifest.NotFoundError](err); absent && u.in.Cluster != "" {
			u.missing[key] = func() { failed(key, err) } // unless another cluster has it
			continue
		}
		if err != nil {
			failed(key, err)
			continue
		}
		u.a.worker.ReportWarnings(u.in, adm)
		policies, keys = append(policies, adm), append(keys, key)
	}
	images, results := r.Images(ctx, policies)
	for i, image := range images {
		for _, w := range results[i].Warnings {
			u.a.console.ReportAs(results[i].Warning(w), console.Presentation{At: console.ObjectSubject(results[i].Object.Object), Brief: true})
		}
		if image.Err != nil {
			failed(keys[i], image.Err)
			continue
		}
		if s := image.Suspended; s != nil {
			u.a.console.Info(console.ObjectSubject(policies[i].Object), fmt.Sprintf("%s is suspended: what follows the policy is left as it is", s))
			u.chosen[keys[i]] = append([]choice{}, u.chosen[keys[i]]...) // it is not missing
			continue
		}
		u.chosen[keys[i]] = append(u.chosen[keys[i]], choice{u.in.Cluster, image})
	}
	u.a.worker.ReportNotes(u.in)
}

// resolve asks for the values that the policies chose, where all clusters agree.
func (u *updateRun) resolve() {
	chosen := map[policyKey]reconcile.Image{}
	known := map[policyKey]bool{}
	for _, p := range u.files() {
		for _, f := range p.fields {
			key := policyKey{f.Marker.Namespace, f.Marker.Name}
			choices := u.chosen[key]
			if f.Err != nil || known[key] {
				continue
			}
			known[key] = true
			differs := slices.IndexFunc(choices, func(c choice) bool { return c.image != choices[0].image })
			switch {
			case choices == nil && u.missing[key] != nil:
				u.missing[key]()
			case differs > 0:
				text := fmt.Sprintf("it chooses %s in %s, and %s in %s", choices[0].image.Tag, choices[0].cluster, choices[differs].image.Tag, choices[differs].cluster)
				u.report(finding.PolicyFailed, imagev1.ImagePolicyKind, key.namespace, key.name, p.file.Name, f.Line, text, "give the policies of the clusters names of their own, or choose one with --cluster")
				u.fail(exit.Failed)
			case len(choices) > 0:
				chosen[key] = choices[0].image
			}
		}
	}
	u.set(chosen)
}

func (u *updateRun) reportMarker(p *parsedFile, f marked.Field) {
	kind := ""
	if f.Marker.Name != "" {
		kind = imagev1.ImagePolicyKind
	}
	u.report(finding.BrokenMarker, kind, f.Marker.Namespace, f.Marker.Name, p.file.Name, f.Line, f.Err.Error())
	u.fail(exit.Failed)
}

// files are the parsed files in the order in which they were found.
func (u *updateRun) files() []*parsedFile {
	var list []*parsedFile
	for _, file := range u.found.Files {
		if p := u.parsed[file]; p != nil {
			list = append(list, p)
		}
	}
	return list
}

// set asks for the values that the policies chose.
func (u *updateRun) set(chosen map[policyKey]reconcile.Image) {
	for _, p := range u.files() {
		for _, f := range p.fields {
			image, ok := chosen[policyKey{f.Marker.Namespace, f.Marker.Name}]
			if !ok || f.Err != nil {
				continue
			}
			by := f.Marker.Namespace + "/" + f.Marker.Name
			value, err := partOf(p, f, image)
			if err != nil {
				u.report(finding.PolicyFailed, imagev1.ImagePolicyKind, f.Marker.Namespace, f.Marker.Name, p.file.Name, f.Line, err.Error())
				u.fail(exit.Failed)
				continue
			}
			c := &change{
				File: p.file.Name, Line: f.Line, From: f.Node.Value, To: value, By: imagev1.ImagePolicyKind + " " + by,
				Chart: path.Base(image.Name), node: f.Node, document: f.Document, was: tagOf(f.Node.Value, f.Marker.Part), now: image.Tag,
			}
			u.edit(p, c)
		}
	}
}

// partOf is the text for a field. A digest beside a tag that stays is kept where the policy wants it so.
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

// tagOf is the tag in the old value of a field, "" if there is none.
func tagOf(old string, part policy.Part) string {
	switch part {
	case policy.Tag:
		return old
	case policy.Whole:
		name, _, _ := strings.Cut(old, "@")
		if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
			return name[i+1:]
		}
	}
	return ""
}

// edit asks for one change.
func (u *updateRun) edit(p *parsedFile, c *change) {
	at := slices.IndexFunc(p.edited, func(other *change) bool { return other.node == c.node })
	if at >= 0 && p.edited[at].To != c.To {
		u.refused(c, fmt.Errorf("another cluster sets it to %s", p.edited[at].To))
	}
	if c.From == c.To || at >= 0 {
		return
	}
	head := marked.ObjectOf(c.document.Root)
	if head.Kind != "" && head.Name != "" {
		c.Object = head.Kind + "/" + head.Name
	}
	if err := c.document.Set(c.node, c.To); err != nil {
		u.refused(c, err)
		return
	}
	p.edited = append(p.edited, c)
}

func (u *updateRun) refused(c *change, err error) {
	kind, name, _ := strings.Cut(c.By, " ")
	namespace, name, _ := strings.Cut(name, "/")
	u.report(finding.NotEdited, kind, namespace, name, c.File, c.Line, "cannot be set to "+c.To+": "+err.Error())
	u.fail(exit.Failed)
}

// advance asks for the versions that --level leads to.
func (u *updateRun) advance(results []*reconcile.Result) {
	for _, r := range results {
		p := r.Published
		if p == nil || p.Next == "" {
			continue
		}
		obj := r.Object.Object
		if c, ok := p.Find(p.Next); ok && c.Deprecated {
			u.a.console.About(console.LevelWarning, console.ObjectSubject(obj), fmt.Sprintf("version '%s' is deprecated", p.Next), finding.Finding{Code: finding.DeprecatedChart})
		}
		if obj.Kind != sourcev1.OCIRepositoryKind {
			u.move(r, p.Current, p.Next, "spec", "version")
			continue
		}
		if p.NextDigest == "" {
			u.move(r, p.Current, p.Next, "spec", "ref", "tag")
			continue
		}
		u.moveBoth(r)
	}
}

// moveBoth moves a tag and the digest beside it, both or none.
func (u *updateRun) moveBoth(r *reconcile.Result) {
	spec := r.Object.Typed.(*sourcev1.OCIRepository).Spec
	file, tag := u.scalar(r, r.Published.Current, r.Published.Next, "spec", "ref", "tag")
	if tag == nil {
		return
	}
	other, digest := u.scalar(r, spec.Reference.Digest, r.Published.NextDigest, "spec", "ref", "digest")
	if digest == nil {
		return
	}
	u.edit(file, tag)
	u.edit(other, digest)
}

func (u *updateRun) move(r *reconcile.Result, from, to string, path ...any) {
	if p, c := u.scalar(r, from, to, path...); c != nil {
		u.edit(p, c)
	}
}

// scalar finds the scalar that holds a field of an object. It is nil if the scalar follows a policy, or was not found,
// which is reported.
func (u *updateRun) scalar(r *reconcile.Result, from, to string, fields ...any) (*parsedFile, *change) {
	obj := r.Object.Object
	pos := obj.Position(fields...)
	if obj.Origin != nil {
		obj = obj.Origin
	}
	_, namespace, name := obj.Called()
	c := &change{
		File: pos.File, Line: pos.Line, From: from, To: to, By: fmt.Sprintf("%s %s/%s", obj.Kind, namespace, name),
		Chart: path.Base(r.Published.Chart), was: r.Published.Current, now: r.Published.Next,
	}
	file := u.found.File(pos.File)
	if file == nil {
		u.refused(c, fmt.Errorf("the file is not among those that were named: name it with -f"))
		return nil, nil
	}
	p := u.parse(file)
	key, _ := fields[len(fields)-1].(string)
	c.document, c.node = marked.At(p.Documents(), pos.Line, key, from)
	switch {
	case c.node == nil:
		u.refused(c, fmt.Errorf("no %s with the value %q stands there: a kustomization, a variable or an alias puts it in", key, from))
		return nil, nil
	case marked.Sealed(c.document.Root):
		u.refused(c, fmt.Errorf("SOPS keeps a checksum of the whole document: edit it with sops"))
		return nil, nil
	case slices.ContainsFunc(marked.Fields(c.document), func(f marked.Field) bool { return f.Node == c.node }):
		return nil, nil
	}
	c.File, c.Line = file.Name, c.document.Line(c.node)
	return p, c
}
