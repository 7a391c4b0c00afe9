package render

import (
	"fmt"
	"path/filepath"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// elsewhereError is a source that is not available here. Nothing of it is built.
type elsewhereError struct {
	kind, namespace, name, why string
	unknown                    bool // the input does not say where it is

	generator *manifest.Object // that needs it, nil for a Kustomization
	at        int              // among its sources
	alias     string
}

func (e *elsewhereError) Error() string {
	if e.generator != nil {
		return fmt.Sprintf("source %s %s/%s (alias %s) is %s: nothing is made, and what takes its artifacts is not built", e.kind, e.namespace, e.name, e.alias, e.why)
	}
	return fmt.Sprintf("its source %s %s/%s is %s: it is not built", e.kind, e.namespace, e.name, e.why)
}

func (e *elsewhereError) Hint() string {
	hint := fmt.Sprintf("name a checkout of it with --source %s/%s/%s=PATH, or with source in .helmsrc.yaml", e.kind, e.namespace, e.name)
	switch {
	case e.unknown, e.why == notFetched, e.kind == externalArtifact:
		return hint
	case e.kind == "HelmChart":
		return "fetch, resolve and lock get it first with --follow-sources"
	}
	return hint + "; fetch, resolve and lock get it with --follow-sources"
}

// sourceOf is the source of a Kustomization: a directory that stands in for it, the artifact that a generator makes, or the
// repository that the Kustomization itself is in.
func (r *Renderer) sourceOf(o *manifest.Object, f *flux, built sources) (*repository, error) {
	ref := f.spec.SourceRef
	namespace := ref.Namespace
	if namespace == "" {
		namespace = o.Namespace
	}
	stand, root, err := r.standIn(ref.Kind, namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	if f.source = stand; stand != nil {
		return r.at(root), nil
	}
	if ref.Kind == externalArtifact {
		repo, made, err := r.fromArtifact(o, namespace, ref.Name, built)
		f.made = made
		return repo, err
	}
	root = r.homeOf(o)
	if r.unfetched(ref.Kind, namespace, ref.Name) {
		return nil, &elsewhereError{kind: ref.Kind, namespace: namespace, name: ref.Name, why: notFetched}
	}
	source := r.sourceFor(o, built, ref.Kind, namespace, ref.Name)
	if why := r.elsewhere(source, ref, namespace, root, f.spec.Path); why != "" {
		return nil, &elsewhereError{kind: ref.Kind, namespace: namespace, name: ref.Name, why: why, unknown: source == nil}
	}
	return r.at(root), nil
}

// standIn is the directory that --source names for a source, nil if there is none.
func (r *Renderer) standIn(kind, namespace, name string) (*Source, string, error) {
	for _, s := range r.o.Sources {
		if s.Kind == kind && s.Name == name && (s.Namespace == "" || s.Namespace == namespace) {
			root, err := absolute(s.Dir)
			if err != nil {
				return nil, "", fmt.Errorf("--source: %s: %w", s.Dir, plainPathError(err))
			}
			return &s, root, nil
		}
	}
	for _, s := range r.arrived.trees {
		if s.Kind == kind && s.Name == name && s.Namespace == namespace {
			root, err := absolute(s.Dir)
			return &s, root, err
		}
	}
	return nil, "", nil
}

func (r *Renderer) homeOf(o *manifest.Object) string {
	if r.fetchedFile(o.Pos.File) {
		return r.inputHome()
	}
	dir := filepath.Dir(o.Pos.File)
	if root, ok := r.roots[dir]; ok {
		return root
	}
	if real, err := absolute(dir); err == nil {
		r.roots[dir] = r.repository(real).root
		return r.roots[dir]
	}
	return r.repositories[0].root
}
