package render

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// notFetched is what a source is that could not be fetched: why is reported with it.
const notFetched = "not there, because it could not be fetched"

// shownAs are the directories that have other names than their own: those of the input, and what was fetched.
func (r *Renderer) shownAs() map[string]string {
	shown := maps.Clone(r.named)
	for _, s := range r.o.Fetched {
		if real, err := absolute(s.Dir); err == nil {
			shown[real] = filepath.FromSlash(s.shown())
		}
	}
	return shown
}

// shown is what the directory of a source that was fetched is called.
func (s Source) shown() string { return path.Join(s.Kind, s.Namespace, s.Name) }

// fetchedFile reports whether a file, as it is shown, came with a source that was fetched.
func (r *Renderer) fetchedFile(name string) bool {
	name = filepath.ToSlash(name)
	return slices.ContainsFunc(r.o.Fetched, func(s Source) bool { return strings.HasPrefix(name, s.shown()+"/") })
}

// inputHome is the root of the repository that the input begins with. That of the cluster is it for what was fetched, too.
func (r *Renderer) inputHome() string {
	for _, path := range r.paths {
		return r.repository(filepath.Dir(path)).root
	}
	return r.repositories[0].root
}

func (r *Renderer) unfetched(kind, namespace, name string) bool {
	return slices.Contains(r.o.Unfetched, Source{Kind: kind, Namespace: namespace, Name: name})
}

// fromFetched reports whether a Kustomization, or any of what it is built from, was fetched. The user's own keys decrypt
// nothing of it: what comes from elsewhere could have them open what the checkout holds, and send it to a place of its choice.
func (b *builder) fromFetched(f *flux) bool {
	var used []Source
	if f.source != nil {
		used = append(used, *f.source)
	}
	if f.made != nil {
		used = append(used, f.made.used...)
	}
	return b.fetchedFile(f.object.Pos.File) || slices.ContainsFunc(used, func(s Source) bool { return slices.Contains(b.o.Fetched, s) })
}

// lack takes down that a source is not available.
func (b *builder) lack(s Source, generator bool) {
	if e := (Elsewhere{s, generator}); !slices.Contains(b.elsewheres, e) {
		b.elsewheres = append(b.elsewheres, e)
	}
}
