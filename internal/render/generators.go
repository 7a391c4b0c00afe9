package render

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// generatorFor returns the generator that makes an artifact, or nil. It looks at built generators first, then at those in files,
// ordered by their distance from the object that refers to the artifact.
func (r *Renderer) generatorFor(o *manifest.Object, namespace, name string, built sources, way []string) *output {
	var keys []string
	for key, g := range built {
		if isGenerator(g) && g.Namespace == namespace && r.mayMake(g, name) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if m := r.outputOf(built[key], built, way); m.makes(name) {
			return m
		}
	}
	for _, p := range r.generatorsNear(o, namespace, name) {
		if built[datumKey(generate.Kind, namespace, p.object.Name)] != nil {
			continue
		}
		if m := r.outputOf(p.object, built, way); m.makes(name) {
			return m
		}
	}
	return nil
}

// generatorsNear lists the generators in files that may make an artifact, the nearest to an object first.
func (r *Renderer) generatorsNear(o *manifest.Object, namespace, name string) []placed {
	var list []placed
	for _, p := range r.index.artifactGenerators {
		live := r.plan == nil || r.plan.live(p.path) || r.plan.claimed[p.path]
		if p.object.Namespace == namespace && r.mayMake(p.object, name) && live {
			list = append(list, p)
		}
	}
	return r.nearestFirst(o, list)
}

// outputOf runs a generator. It keeps the result until a source changes.
func (r *Renderer) outputOf(o *manifest.Object, built sources, way []string) *output {
	name := o.Namespace + "/" + o.Name
	if slices.Contains(way, name) {
		return &output{object: o, spec: r.specOf(o), err: &unmadeError{errors.New("a cycle")}}
	}
	if m := r.made[o]; m != nil {
		return m
	}
	m := &output{object: o, id: r.outputs, views: map[string]*repository{}}
	r.outputs++
	if len(way) < maxDepth {
		m.build(r, built, append(way[:len(way):len(way)], name))
	} else {
		m.err = manifest.Fault(o, fmt.Errorf("more than %d ArtifactGenerators depend on each other", maxDepth), "spec", "sources")
	}
	r.made[o] = m
	return m
}

func (m *output) build(r *Renderer, built sources, way []string) {
	if r.o.Admit != nil {
		if m.err = r.o.Admit(m.object); m.err != nil {
			m.err = &unmadeError{m.err}
			return
		}
	}
	if m.spec = r.specOf(m.object); m.spec == nil {
		return
	}
	if err := generate.Validate(m.spec); err != nil {
		m.err = &unmadeError{err}
		return
	}
	if alias, path := generate.UnknownAlias(m.spec); path != nil {
		m.err = &unmadeError{fmt.Errorf("source alias '%s' not found", alias)}
		return
	}
	trees := map[string]*generate.Tree{}
	for i, s := range m.spec.Sources {
		t, err := m.source(r, i, built, way)
		if elsewhere, ok := errors.AsType[*elsewhereError](err); ok && elsewhere.generator == m.object {
			m.lacks = append(m.lacks, elsewhere.Source)
		}
		if m.err == nil {
			m.err = err
		}
		trees[s.Alias] = t
	}
	if m.err != nil {
		return
	}
	m.artifacts, m.doubts, m.err = generate.Build(r.ctx, m.spec, trees)
	if err, refused := errors.AsType[*generate.Error](m.err); refused {
		m.err = manifest.Fault(m.object, finding.WithCode(finding.RefusedGenerator, err), err.Path...)
	}
}

func (m *output) source(r *Renderer, i int, built sources, way []string) (*generate.Tree, error) {
	s := m.spec.Sources[i]
	ref := Source{Kind: s.Kind, Namespace: cmp.Or(s.Namespace, m.object.Namespace), Name: s.Name}
	source := r.sourceFor(m.object, built, ref)
	if stand, root, err := r.standIn(ref); stand != nil || err != nil {
		if err != nil {
			return nil, manifest.Fault(m.object, err, "spec", "sources", i)
		}
		m.used = append(m.used, *stand)
		return r.listing(root, ignoreOf(source))
	}
	elsewhere := func(why string) error {
		return &elsewhereError{ref, why, source == nil, m.object, i, s.Alias}
	}
	switch s.Kind {
	case externalArtifact:
		return m.chained(r, i, ref, built, way)
	case "HelmChart":
		if !r.arrived.lost[ref] {
			return nil, elsewhere("not here, as every chart")
		}
	}
	if r.arrived.lost[ref] {
		return nil, elsewhere(notFetched)
	}
	root := r.homeOf(m.object)
	begins := m.begins(s.Alias)
	first := "/"
	if len(begins) > 0 {
		first = begins[0]
	}
	why := r.elsewhere(source, ref, root, first)
	if why == "" && urlOf(source) != "" && len(begins) > 0 && !slices.ContainsFunc(begins, func(at string) bool { return r.hasPath(root, at) }) {
		why = "not this repository, which lacks the files to copy"
	}
	if why != "" {
		return nil, elsewhere(why)
	}
	if here := (Source{ref.Kind, ref.Namespace, ref.Name, root}); source == nil && r.begins(ref) && !slices.Contains(r.here, here) {
		r.here = append(r.here, here)
	}
	return r.listing(root, ignoreOf(source))
}

func (m *output) chained(r *Renderer, i int, ref Source, built sources, way []string) (*generate.Tree, error) {
	other := r.generatorFor(m.object, ref.Namespace, ref.Name, built, way)
	if other == nil {
		return nil, &elsewhereError{ref, "created by no ArtifactGenerator in the input", true, m.object, i, m.spec.Sources[i].Alias}
	}
	if _, elsewhere := errors.AsType[*elsewhereError](other.err); elsewhere {
		return nil, other.err
	}
	made := other.artifact(ref.Name)
	if made == nil {
		return nil, &unmadeError{other.err}
	}
	m.used = append(m.used, other.used...)
	return made.Tree, nil
}

// hasPath reports whether a file or directory exists at a path that begins with a slash.
func (r *Renderer) hasPath(root, at string) bool {
	real, err := r.disk.within(root, join(root, strings.TrimPrefix(at, "/")))
	if err == nil {
		_, err = os.Stat(real)
		return !file.Missing(err)
	}
	return false
}

func ignoreOf(source *manifest.Object) string {
	if source == nil {
		return ""
	}
	return manifest.At[string](source.Content, "spec", "ignore")
}

// listing returns the tree below a directory, without the files that its source ignores. It reads each tree once.
func (r *Renderer) listing(dir, ignore string) (*generate.Tree, error) {
	key := dir + "\x00" + ignore
	if t := r.listings[key]; t != nil {
		return t, nil
	}
	t, err := list(r.ctx, dir, ignore, r.skipped(dir))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.display(dir), plainPathError(err))
	}
	r.listings[key] = t
	return t, nil
}

// skipped drops the directories that do not belong to a repository.
func (r *Renderer) skipped(root string) tree.Filter {
	drop := map[string]bool{}
	for _, dir := range r.o.SkipDirs {
		if real, err := absolute(dir); err == nil && inside(root, real) && real != root {
			if rel, err := filepath.Rel(root, real); err == nil {
				drop[filepath.ToSlash(rel)] = true
			}
		}
	}
	return func(name string, dir bool) tree.Choice {
		if dir && drop[name] {
			return tree.DropAll
		}
		return tree.Keep
	}
}

// repository returns the tree of an artifact as the repository of a build.
func (m *output) repository(r *Renderer, a *generate.Artifact) (*repository, error) {
	name := a.Spec.Name
	if repo := m.views[name]; repo != nil {
		return repo, nil
	}
	// A path below .git is unique: no manifests are read there.
	v := newView(filepath.Join(r.homeOf(m.object), ".git", externalArtifact, strconv.Itoa(m.id), m.object.Namespace, name))
	for _, file := range a.Tree.Names() {
		f, _ := a.Tree.File(file)
		if original, ok := f.Content.(onDisk); ok {
			v.add(file, viewFile{original: string(original)})
			continue
		}
		text, err := f.Content.Bytes()
		if err != nil {
			return nil, err
		}
		v.add(file, viewFile{made: slices.Concat([]byte{}, text), pos: m.object.Position("spec", "artifacts", a.Index, "copy", f.Copied)})
	}
	repo := r.newRepository(v.root)
	repo.view, repo.rules = v, func() *tree.Rules { return new(tree.Rules) }
	repo.display = func(path string) string { return v.shown(path, r.display) }
	m.views[name] = repo
	return repo, nil
}

func (r *Renderer) fromArtifact(o *manifest.Object, ref Source, built sources) (*repository, *output, error) {
	m := r.generatorFor(o, ref.Namespace, ref.Name, built, nil)
	if m == nil {
		return nil, nil, &elsewhereError{Source: ref, why: "created by no ArtifactGenerator in the input"}
	}
	if _, elsewhere := errors.AsType[*elsewhereError](m.err); elsewhere {
		return nil, m, m.err
	}
	made := m.artifact(ref.Name)
	if made == nil {
		return nil, m, &unmadeError{m.err}
	}
	repo, err := m.repository(r, made)
	return repo, m, err
}

func (r *Renderer) mayMake(g *manifest.Object, name string) bool {
	spec := r.specOf(g)
	return spec != nil && slices.ContainsFunc(spec.OutputArtifacts, func(a swv1.OutputArtifact) bool {
		return a.Name == name || spec.PathPattern != "" && mayRender(a.Name, name)
	})
}

// specOf decodes the spec of a generator, once. It returns nil for an invalid spec and for other objects.
func (r *Renderer) specOf(o *manifest.Object) *swv1.ArtifactGeneratorSpec {
	if spec, known := r.specs[o]; known || !isGenerator(o) {
		return spec
	}
	spec := &swv1.ArtifactGeneratorSpec{}
	if text, err := json.Marshal(o.Content["spec"]); err != nil || json.Unmarshal(text, spec) != nil {
		spec = nil
	}
	r.specs[o] = spec
	return spec
}
