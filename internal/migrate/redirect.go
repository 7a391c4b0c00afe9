package migrate

import (
	"bytes"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/marked"
)

// A Mirror is a registry with copies of the charts of sources.
type Mirror struct {
	// URL returns the oci:// URL of a source in the mirror, "" if the source stays; refusal is the reason if it should not.
	URL func(*Object) (url, refusal string)
	// Plain is set if the mirror is reached over HTTP.
	Plain bool
}

// Redirect rewrites the HelmRepositories and OCIRepositories whose charts come from a mirror. The same input gives the same
// result.
func Redirect(in Input, to Mirror) *Result {
	p := &planner{in: in, result: &Result{}}
	p.read()
	for _, o := range in.Objects {
		if url, _ := to.URL(o); url != "" && p.draftOf(o) == nil {
			p.refuse(Note{ID: o.ID, File: o.Shown, Line: o.Line, Text: "its url is not changed: it is in " + o.Shown + ", " + o.Unfit}, "")
		}
	}
	for _, t := range p.drafts {
		p.redirect(t, to)
	}
	p.finish()
	return p.result
}

// redirect sets the URL of a document, unless the objects that are made from it need different URLs.
func (p *planner) redirect(t *draft, to Mirror) {
	at := child(t.document.Root, "spec", "url")
	stays := func(why string, at ...*yaml.Node) { p.refuse(t.note("its url is not changed: "+why, at...), "") }
	fields, paths := to.fields(t), [][]string{}
	for _, f := range fields {
		paths = append(paths, []string{"spec", f.Key})
	}
	var urls []string
	for _, o := range t.objects {
		url, refusal := to.URL(o)
		if refusal == "" && url != "" {
			refusal = t.fixed(o, paths...)
		}
		if refusal != "" {
			stays(refusal, at)
			return
		}
		urls = append(urls, url)
	}
	if urls = slices.Compact(urls); len(urls) == 0 || len(urls) == 1 && urls[0] == "" {
		return
	}
	if len(urls) > 1 {
		stays("it differs in another cluster")
		return
	}
	if fields[0].Value = urls[0]; marked.Text(at) == urls[0] {
		fields = nil
	}
	var changes []change
	for _, f := range fields {
		changes = append(changes, func(d *edit.Document, root *yaml.Node) error { return setField(d, child(root, "spec"), f) })
	}
	if err := t.step(changes...); err != nil {
		stays(err.Error(), at)
		return
	}
	p.result.Redirected = append(p.result.Redirected, t.objects...)
	if bytes.Equal(t.text, t.document.Text()) {
		return
	}
	p.result.Changes = append(p.result.Changes, t.note("url is "+urls[0], at))
	for _, name := range ownAccess() {
		if n := child(t.document.Root, "spec", name); n != nil {
			p.result.Lost = append(p.result.Lost, t.note("spec."+name+" is left out: it is for the source, not for the mirror", n))
		}
	}
}

// ownAccess returns the fields that configure access to a source. A login for the source must not be sent to the mirror.
func ownAccess() []string {
	return []string{"secretRef", "certSecretRef", "proxySecretRef", "provider"}
}

// fields returns the fields of a source that uses the mirror, its URL first. Fields without a value are removed.
func (m Mirror) fields(t *draft) []edit.Field {
	list, insecure := fields{{Key: "url"}}, literal("insecure", "")
	if t.head.Kind == repositoryKind {
		list.text("type", "oci")
	}
	if m.Plain {
		insecure.Value = "true"
	}
	list = append(list, insecure)
	for _, name := range append(ownAccess(), "passCredentials") {
		list = append(list, edit.Field{Key: name})
	}
	return list
}

func setField(d *edit.Document, spec *yaml.Node, f edit.Field) error {
	switch n := child(spec, f.Key); {
	case f.Literal && n != nil && f.Value != "":
		return d.ReplaceField(spec, f.Key, []edit.Field{f})
	case f.Value != "" && n != nil:
		return d.Set(n, f.Value)
	case f.Value != "":
		return d.InsertFields(spec, "url", []edit.Field{f})
	case n != nil:
		return d.ReplaceField(spec, f.Key, nil)
	}
	return nil
}
