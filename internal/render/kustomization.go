package render

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// kustomization returns the kustomization at the path of a Kustomization, with the fields of the spec written into it. If the path
// has no kustomization file, it generates one with all manifests.
func (f *flux) kustomization(c *closure) (file string, k *types.Kustomization, err error) {
	if d := f.repo.directory(f.path); d != nil {
		if err := c.add(f.repo, f.path, nil); err != nil {
			return "", nil, err
		}
		if k, err = clone(d.kustomization); err != nil {
			return "", nil, err
		}
		file = d.file
	} else {
		file = filepath.Join(f.path, "kustomization.yaml")
		if k, err = f.generate(c); err != nil {
			return "", nil, err
		}
	}
	return file, k, f.edit(k, c)
}

// clone copies a kustomization that is about to be changed.
func clone(k *types.Kustomization) (*types.Kustomization, error) {
	text, err := json.Marshal(k)
	if err != nil {
		return nil, err
	}
	c := &types.Kustomization{}
	return c, json.Unmarshal(text, c)
}

// buildPlain builds a directory with its own kustomization only.
func (r *Renderer) buildPlain(f *flux, c *closure) buildResult {
	file, k, err := f.kustomization(c)
	if d := f.repo.directory(f.path); err == nil && len(d.unknown) > 0 {
		err = d.unknown[0]
	}
	if err != nil {
		return buildResult{err: err}
	}
	return r.buildOnce(f.repo, f.path, file, k, nil)
}

// generate names every manifest below the path. A directory with its own kustomization file is one resource.
func (f *flux) generate(c *closure) (*types.Kustomization, error) {
	k := &types.Kustomization{}
	k.APIVersion, k.Kind = types.KustomizationVersion, types.KustomizationKind
	g := &generator{f: f, c: c, k: k}
	g.walk(f.path, 0)
	if g.err != nil {
		return nil, g.err
	}
	if len(k.Resources) == 0 {
		k.Namespace = "_placeholder"
	}
	return k, nil
}

type generator struct {
	f     *flux
	c     *closure
	k     *types.Kustomization
	count int
	err   error // the first one; the walk continues, to find all files
}

func (g *generator) fail(err error) {
	if g.err == nil {
		g.err = err
	}
}

func (g *generator) walk(dir string, depth int) {
	entries, err := g.f.repo.readDir(dir)
	if err != nil {
		g.fail(fmt.Errorf("%s: %w", g.f.repo.display(dir), plainPathError(err)))
	}
	if depth > maxDepth {
		g.fail(fmt.Errorf("%s: nested too deep", g.f.repo.display(dir)))
		return
	}
	for _, e := range entries {
		if g.count++; g.count > maxWalk {
			g.fail(fmt.Errorf("%s: more than %d files", g.f.repo.display(g.f.path), maxWalk))
			return
		}
		g.entry(filepath.Join(dir, e.Name()), e, depth)
	}
}

func (g *generator) entry(path string, e fs.DirEntry, depth int) {
	if e.IsDir() {
		info, err := e.Info()
		if err != nil || g.f.repo.skips(info) || g.f.ignores(path, true) {
			return
		}
		if g.f.repo.kustomizationFile(path) == "" {
			g.walk(path, depth+1)
			return
		}
		if err := g.c.add(g.f.repo, path, []string{g.f.path}); err != nil {
			g.fail(err)
		}
		g.resource(path)
		return
	}
	if isLink(e) {
		g.link(path)
		return
	}
	ext := filepath.Ext(path)
	if ext != ".yaml" && ext != ".yml" || g.f.ignores(path, false) {
		return
	}
	if err := g.check(path); err != nil {
		g.fail(err)
	}
	g.c.files[g.f.repo.original(path)] = true
	g.resource(path)
}

func (g *generator) resource(path string) {
	rel, err := filepath.Rel(g.f.path, path)
	if err != nil {
		g.fail(err)
	}
	g.k.Resources = append(g.k.Resources, relative(rel))
}

// check refuses a file that is not a manifest, as the controller does: one such file makes the build fail.
func (g *generator) check(path string) error {
	f, err := g.f.repo.file(path)
	if err == nil {
		err = f.NoObjects()
	}
	if err != nil {
		err = &decodeError{g.f.repo.display(path), err}
	}
	if mistake, ok := errors.AsType[interface {
		error
		Excerpt() manifest.Excerpt
	}](err); ok {
		return &placedError{mistake.Excerpt(), err}
	}
	return err
}

// decodeError is the error of a file without objects in a directory of manifests.
type decodeError struct {
	file string
	err  error
}

func (e *decodeError) Error() string {
	return fmt.Sprintf("failed to decode Kubernetes YAML from %s: %v", e.file, e.err)
}

func (e *decodeError) Unwrap() error { return e.err }

func (e *decodeError) Hint() string {
	return "every .yaml file below spec.path is applied: move other files away, or write a kustomization.yaml that names the manifests"
}

// link records a link below the path of a Kustomization: Flux's artifacts do not contain links, so that it is not applied. Links
// to files below the path or to files that are not manifests are no loss.
func (g *generator) link(path string) {
	real, err := g.f.repo.disk.within(g.f.repo.root, path)
	_, out := errors.AsType[*outsideError](err)
	if err != nil && !out || !out && inside(g.f.path, real) {
		return
	}
	info, err := os.Stat(path)
	if ext := filepath.Ext(path); err != nil || !info.IsDir() && ext != ".yaml" && ext != ".yml" || g.f.ignores(path, info.IsDir()) {
		return
	}
	g.c.links = append(g.c.links, manifest.Link{Name: g.f.repo.display(path), Out: out})
}

func isLink(e fs.DirEntry) bool { return e.Type()&fs.ModeSymlink != 0 }

// edit writes the fields of the spec into a kustomization, as the controller does.
func (f *flux) edit(k *types.Kustomization, c *closure) error {
	s := f.spec
	if s.TargetNamespace != "" {
		k.Namespace = s.TargetNamespace
	}
	if s.NamePrefix != "" {
		k.NamePrefix = s.NamePrefix
	}
	if s.NameSuffix != "" {
		k.NameSuffix = s.NameSuffix
	}
	for _, p := range s.Patches {
		k.Patches = append(k.Patches, types.Patch{Patch: p.Patch, Target: selector(p.Target)})
	}
	for _, i := range s.Images {
		image := types.Image{Name: i.Name, NewName: i.NewName, NewTag: i.NewTag, Digest: i.Digest}
		at := slices.IndexFunc(k.Images, func(other types.Image) bool { return other.Name == i.Name })
		if at < 0 {
			k.Images = append(k.Images, image)
			continue
		}
		image.NewName = cmp.Or(image.NewName, k.Images[at].NewName)
		if image.NewTag == "" && image.Digest == "" {
			image.NewTag, image.Digest = k.Images[at].NewTag, k.Images[at].Digest
		}
		k.Images[at] = image
	}
	if len(s.BuildMetadata) > 0 {
		k.BuildMetadata = nil
		for _, option := range s.BuildMetadata {
			k.BuildMetadata = append(k.BuildMetadata, string(option))
		}
	}
	return f.components(k, c)
}

func (f *flux) components(k *types.Kustomization, c *closure) error {
	for i, path := range f.spec.Components {
		if filepath.IsAbs(filepath.FromSlash(path)) || looksRemote(path) {
			return manifest.Fault(f.object, fmt.Errorf("component path '%s' must be local and relative", path), "spec", "components", i)
		}
		real, err := f.repo.within(join(f.path, path))
		if err == nil && f.repo.directory(real) == nil {
			err = errors.New("no kustomization file in it")
		}
		if err != nil && f.spec.IgnoreMissingComponents {
			continue
		}
		if err == nil {
			err = c.add(f.repo, real, []string{f.path})
		}
		if err != nil {
			return manifest.Fault(f.object, fmt.Errorf("component %s: %w", path, err), "spec", "components", i)
		}
		k.Components = append(k.Components, relative(path))
	}
	return nil
}

// spoilingError is an error in a file, in variables, or in their use, for which a whole Kustomization fails.
type spoilingError struct {
	err  error
	name string
	hint string // "" for the hint of err
}

// spoiledBy returns the error of a Kustomization or directory with a file that cannot be parsed.
func spoiledBy(parse *manifest.ParseError, name string, err error) *spoilingError {
	e := &spoilingError{err: parse, name: name, hint: parse.Hint()}
	if decode, ok := errors.AsType[*decodeError](err); ok && e.hint == "" && !parse.Syntax() {
		e.hint = decode.Hint()
	}
	return e
}

// Hint returns the advice for the error.
func (e *spoilingError) Hint() string { return cmp.Or(e.hint, cmp.Or(finding.Hints(e.err)...)) }

func (e *spoilingError) Error() string {
	return e.err.Error() + ": nothing of " + e.name + " is applied"
}

func (e *spoilingError) Unwrap() error { return e.err }
