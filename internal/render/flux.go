package render

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	sigsjson "sigs.k8s.io/json"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/tree"
)

type flux struct {
	object *manifest.Object
	spec   kustomizev1.KustomizationSpec
	repo   *repository
	path   string  // absolute, without links
	source *Source // that replaces its own, or nil

	artifact artifact
	made     *output // the generator of its artifact, or nil

	from  int // the start that led to it
	since int // how often its objects had been withdrawn before

	objects []built
	seen    *flux // with the values that may be shown
}

func (f *flux) name() string { return "Kustomization " + f.object.Namespace + "/" + f.object.Name }

// decode reads the spec. It returns an error if the API server would refuse the object, and also the spec if that still
// determines the build.
func decode(o *manifest.Object) (*kustomizev1.KustomizationSpec, error) {
	text, err := json.Marshal(o.Content)
	if err != nil {
		return nil, err
	}
	var k kustomizev1.Kustomization
	strict, err := sigsjson.UnmarshalStrict(text, &k)
	if err != nil {
		return nil, manifest.Fault(o, fmt.Errorf("strict decoding error: %w", err), "spec")
	}
	if current := o.APIVersion == kustomizev1.GroupVersion.String(); len(strict) > 0 && current {
		return &k.Spec, manifest.Fault(o, fmt.Errorf("strict decoding error: %w", strict[0]), "spec")
	}
	given, _ := o.Content["spec"].(map[string]any)
	refuse := func(msg string, path ...any) error { return manifest.Fault(o, errors.New(msg), path...) }
	ref := k.Spec.SourceRef
	kinds := []string{"OCIRepository", "GitRepository", "Bucket", "ExternalArtifact"}
	switch {
	case o.Name == "":
		return nil, refuse("metadata.name: Required value", "metadata")
	case given["interval"] == nil:
		return &k.Spec, refuse("spec.interval: Required value", "spec")
	case given["prune"] == nil:
		return &k.Spec, refuse("spec.prune: Required value", "spec")
	case ref.Kind == "" || ref.Name == "":
		return nil, refuse("spec.sourceRef: Required value: kind and name of the source", "spec", "sourceRef")
	case !slices.Contains(kinds, ref.Kind):
		return nil, refuse(fmt.Sprintf("spec.sourceRef.kind: Unsupported value: %q: supported values: %q", ref.Kind, kinds), "spec", "sourceRef", "kind")
	case k.Spec.Decryption != nil && k.Spec.Decryption.Provider != "sops":
		return &k.Spec, refuse(fmt.Sprintf("spec.decryption.provider: Unsupported value: %q: supported values: %q", k.Spec.Decryption.Provider, []string{"sops"}), "spec", "decryption", "provider")
	}
	return &k.Spec, nil
}

// visible returns the Kustomization as it may be shown, or itself if it has no secrets. Its paths and references stay.
func (f *flux) visible() *flux {
	if !f.object.Tainted() {
		return f
	}
	content := copyMap(f.object.Content)
	spec, _ := content["spec"].(map[string]any)
	spec = copyMap(spec)
	shown, _ := f.object.Shown(content)["spec"].(map[string]any)
	for _, field := range []string{"patches", "commonMetadata", "postBuild", "namePrefix", "nameSuffix", "images", "targetNamespace"} {
		if value, ok := shown[field]; ok {
			spec[field] = value
		} else {
			delete(spec, field)
		}
	}
	content["spec"] = spec
	other, object := *f, *f.object
	object.Content = content
	other.object = &object
	decoded, err := decode(&object)
	if err != nil {
		decoded = &kustomizev1.KustomizationSpec{} // show an empty spec
	}
	other.spec = *decoded
	return &other
}

// locate finds the files of a Kustomization. It returns nil and an error if they are not available, and both if the API server
// would refuse the Kustomization.
func (r *Renderer) locate(o *manifest.Object, built sources) (*flux, error) {
	spec, refused := decode(o)
	if spec == nil {
		return nil, refused
	}
	f := &flux{object: o, spec: *spec}
	var err error
	if f.repo, err = r.sourceOf(o, f, built); err != nil {
		return nil, cmp.Or(refused, err)
	}
	f.spec.Path = r.ownPath(o, spec)
	path := slashed(f.spec.Path)
	real, err := f.repo.within(join(f.repo.root, path))
	if err == nil {
		var dir bool
		if dir, err = f.repo.isDir(real); err == nil && !dir {
			err = errors.New("not a directory")
		}
	}
	if err != nil {
		err = manifest.Fault(o, f.pathError(err), "spec", "path")
		return nil, cmp.Or(refused, err)
	}
	f.path = real
	f.artifact = r.artifactOf(f, built)
	return f, refused
}

// sourceOf returns the source of a Kustomization: a directory that replaces it, the artifact of a generator, or the repository of
// the Kustomization itself.
func (r *Renderer) sourceOf(o *manifest.Object, f *flux, built sources) (*repository, error) {
	ref := sourceRef(o)
	stand, root, err := r.standIn(ref)
	if err != nil {
		return nil, err
	}
	if f.source = stand; stand != nil {
		return r.at(root), nil
	}
	if ref.Kind == externalArtifact {
		repo, made, err := r.fromArtifact(o, ref, built)
		f.made = made
		return repo, err
	}
	root = r.homeOf(o)
	if r.arrived.lost[ref] {
		return nil, &elsewhereError{Source: ref, why: notFetched}
	}
	source := r.sourceFor(o, built, ref)
	if why := r.elsewhere(source, ref, root, f.spec.Path); why != "" {
		return nil, &elsewhereError{Source: ref, why: why, unknown: source == nil}
	}
	return r.at(root), nil
}

func (r *Renderer) artifactOf(f *flux, built sources) artifact {
	ref := sourceRef(f.object)
	a := artifact{git: ref.Kind == sourcev1.GitRepositoryKind, source: r.sourceFor(f.object, built, ref)}
	if a.source != nil && a.git {
		a.ignore = manifest.At[string](a.source.Content, "spec", "ignore")
	}
	return a
}

// ownPath returns the path of a Kustomization. If the Kustomization is not built, its own variables are substituted in the path.
func (r *Renderer) ownPath(o *manifest.Object, spec *kustomizev1.KustomizationSpec) string {
	if spec.PostBuild == nil || !strings.Contains(spec.Path, "${") || strings.HasPrefix(o.Built, "Kustomization ") {
		return spec.Path
	}
	v := newVariables(UnsetFails, r.budget)
	v.set(spec.PostBuild.Substitute, public)
	v.set(r.o.Variables, public)
	text, _, err := v.text(r.ctx, spec.Path)
	if err != nil {
		return spec.Path
	}
	return text
}

// slashed returns the path of a Kustomization relative to the root of its repository, with slashes.
func slashed(path string) string {
	return strings.TrimPrefix(filepath.ToSlash(filepath.Clean("/"+filepath.FromSlash(path))), "/")
}

func (f *flux) pathError(err error) error {
	path := f.spec.Path
	if f.repo.view != nil {
		there := f.repo.view.dirs[f.repo.view.root]
		if len(there) > 5 {
			there = append(there[:5:5], "…")
		}
		return &finding.Problem{
			Text:   fmt.Sprintf("kustomization path not found in the artifact: stat %s: no such file or directory", strings.TrimSuffix(path, "/")),
			Advice: fmt.Sprintf("spec.path begins at the root of ExternalArtifact %s, which contains %s", f.spec.SourceRef.Name, strings.Join(there, ", ")),
		}
	}
	if !file.Missing(err) {
		return fmt.Errorf("kustomization path not found: %s: %w", path, err)
	}
	return &finding.Problem{
		Text:   fmt.Sprintf("kustomization path not found: stat %s: no such file or directory", strings.TrimSuffix(path, "/")),
		Advice: finding.RootOfPath,
	}
}

// ignores reports whether a path is missing from the artifact that the controller sees.
func (f *flux) ignores(path string, dir bool) bool {
	choice := f.repo.choice(path, dir, f.artifact)
	return choice == tree.DropAll || choice == tree.Drop && !dir
}

// complete returns an error if a file of a build is missing from the artifact, or if that is not known.
func (f *flux) complete(c *closure) error {
	err := f.absent(c)
	f.repo.mu.Lock()
	defer f.repo.mu.Unlock()
	if f.repo.rulesErr != nil {
		return manifest.Fault(f.object, fmt.Errorf("the files that the source ignores are not known: %w", f.repo.rulesErr), "spec", "sourceRef")
	}
	return err
}

func (f *flux) absent(c *closure) error {
	if !f.artifact.git {
		return nil
	}
	if why := f.left(f.path, true); why != "" {
		return manifest.Fault(f.object, fmt.Errorf("%w: %s", f.pathError(os.ErrNotExist), why), "spec", "path")
	}
	for _, d := range c.dirs {
		for _, e := range d.entries {
			path := e.path
			if f.repo.isDirectory(path) {
				path = f.repo.kustomizationFile(path)
			}
			if why := f.left(path, false); path != "" && why != "" {
				return &placedError{d.object.Excerpt(e.at...), fmt.Errorf("%s: %s: %s", e.field, e.text, why)}
			}
		}
	}
	return nil
}

// left explains why a path is missing from the artifact of the source. It returns "" if it is there or if that is not known.
func (f *flux) left(path string, dir bool) string {
	if path == f.repo.root || !f.ignores(path, dir) || dir && f.repo.choice(path, dir, f.artifact) != tree.DropAll {
		return ""
	}
	rel, err := filepath.Rel(f.repo.root, path)
	if err != nil {
		return ""
	}
	rel = filepath.ToSlash(rel)
	source := "the source"
	if o := f.artifact.source; o != nil {
		source = fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name)
	}
	by := "a " + tree.IgnoreFile
	switch own, err := tree.NewRules(f.artifact.ignore); {
	case err == nil && own.Ignored(rel, dir):
		by = "spec.ignore"
	case new(tree.Rules).WithDefaults().Ignored(rel, dir) && !f.repo.saysIgnored(filepath.Dir(path)):
		if f.artifact.source == nil {
			return "" // its spec.ignore may include it again
		}
		by = "Flux's own list of what is ignored"
	}
	return fmt.Sprintf("it is not in the artifact of %s, because of %s", source, by)
}
