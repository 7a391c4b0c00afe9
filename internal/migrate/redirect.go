package migrate

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/edit"
)

// A Mirror is a registry that has what sources of charts have.
type Mirror struct {
	// URL is the oci:// URL of a source there, "" for one that stays; refusal says why one stays that should not.
	URL func(*Object) (url, refusal string)
	// Plain is true if it is reached over HTTP.
	Plain bool
}

// Redirect works out how the HelmRepositories and OCIRepositories are written that get their charts from a mirror. The same input
// gives the same result.
func Redirect(in Input, to Mirror) *Result {
	p := &planner{in: in, result: &Result{}}
	p.read()
	for _, o := range in.Objects {
		if url, _ := to.URL(o); url != "" && p.draftOf(o) == nil {
			p.refuse(Note{ID: o.ID, File: o.Shown, Line: o.Line, Text: "its url stays: it is in " + o.Shown + ", " + o.Unfit}, "")
		}
	}
	for _, t := range p.drafts {
		p.redirect(t, to)
	}
	p.finish()
	return p.result
}

// redirect writes the URL of a source for all objects that a document becomes, or for none of them.
func (p *planner) redirect(t *draft, to Mirror) {
	var urls []string
	for _, o := range t.objects {
		url, refusal := to.URL(o)
		if refusal == "" && url != "" {
			refusal = t.fixed(o, redirected()...)
		}
		if refusal != "" {
			p.refuse(t.note("its url stays: "+refusal, child(t.document.Root, "spec", "url")), "")
			return
		}
		urls = append(urls, url)
	}
	if urls = slices.Compact(urls); len(urls) == 0 || len(urls) == 1 && urls[0] == "" {
		return
	}
	if len(urls) > 1 {
		p.refuse(t.note("its url stays: in another cluster it is another one"), "")
		return
	}
	back := t.snapshot()
	for _, step := range redirection(t, urls[0], to.Plain) {
		if err := t.step(step); err != nil {
			back()
			p.refuse(t.note("its url stays: "+err.Error(), child(t.document.Root, "spec", "url")), "")
			return
		}
	}
	p.result.Redirected = append(p.result.Redirected, t.objects...)
	if !t.changed {
		return
	}
	p.result.Changes = append(p.result.Changes, t.note("url is "+urls[0], child(t.document.Root, "spec", "url")))
	for _, name := range ownAccess() {
		if n := child(t.document.Root, "spec", name); n != nil {
			p.result.Lost = append(p.result.Lost, t.note("spec."+name+" is left out: it is for the source, and not for the mirror", n))
		}
	}
}

// ownAccess are the fields that say how a source is reached. The owner of a login to a source did not send it to the mirror.
func ownAccess() []string {
	return []string{"secretRef", "certSecretRef", "proxySecretRef", "provider"}
}

func redirected() [][]string {
	var paths [][]string
	for _, name := range append(ownAccess(), "url", "type", "insecure", "passCredentials") {
		paths = append(paths, []string{"spec", name})
	}
	return paths
}

func redirection(t *draft, url string, plain bool) []func(*edit.Document, *yaml.Node) error {
	steps := []func(*edit.Document, *yaml.Node) error{setField(edit.Field{Key: "url", Value: url})}
	if text(child(t.document.Root, "spec", "url")) == url {
		return steps
	}
	if t.head.Kind == repositoryKind {
		steps = append(steps, setField(edit.Field{Key: "type", Value: "oci"}))
	}
	drop := append(ownAccess(), "passCredentials")
	if plain {
		steps = append(steps, setField(edit.Field{Key: "insecure", Value: "true", Literal: true}))
	} else {
		drop = append(drop, "insecure")
	}
	for _, name := range drop {
		steps = append(steps, func(d *edit.Document, root *yaml.Node) error {
			if spec := child(root, "spec"); child(spec, name) != nil {
				return d.ReplaceField(spec, name, nil)
			}
			return nil
		})
	}
	return steps
}

func setField(f edit.Field) func(*edit.Document, *yaml.Node) error {
	return func(d *edit.Document, root *yaml.Node) error {
		spec := child(root, "spec")
		if n := child(spec, f.Key); n != nil {
			return d.Set(n, f.Value)
		}
		return d.InsertFields(spec, "url", []edit.Field{f})
	}
}
