package render

import (
	"errors"
	"maps"
	"strings"

	"sigs.k8s.io/kustomize/api/filters/patchjson6902"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio/kioutil"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

const (
	// maxPatched is how many objects are patched without kustomize. Each patch compares each of them with all others.
	maxPatched = 200

	// maxKeptNodes bounds the text, in bytes, of the files whose objects are kept as kustomize reads them. They need up to 30
	// times as much.
	maxKeptNodes = 1 << 20
)

// nodes are the objects of files as kustomize reads them. A file is kept from the second time on: most are read once.
type nodes struct {
	seen map[string]bool
	kept map[string][]*resource.Resource
	size int // of the text of what is kept, in bytes
}

// parse reads the objects of a file as kustomize does. They are the caller's own.
func (d *direct) parse(path string, text []byte, plain bool) ([]*resource.Resource, error) {
	real := ""
	if plain && d.patches {
		var err error
		if real, err = d.fs.real(path); err != nil {
			return nil, err
		}
		if kept, ok := d.r.keptNodes(real); ok {
			list := make([]*resource.Resource, len(kept))
			for i, res := range kept {
				list[i] = res.DeepCopy()
			}
			return list, nil
		}
	}
	m, err := d.factory.NewResMapFromBytes(text)
	if err != nil {
		return nil, err
	}
	if !d.patches {
		m.RemoveBuildAnnotations()
	}
	if real != "" {
		d.r.keepNodes(real, m, len(text))
	}
	return m.Resources(), nil
}

func (r *repository) keptNodes(path string) ([]*resource.Resource, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, ok := r.nodes.kept[path]
	return list, ok
}

func (r *repository) keepNodes(path string, m resmap.ResMap, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch n := &r.nodes; {
	case !n.seen[path]:
		if n.seen == nil {
			n.seen, n.kept = map[string]bool{}, map[string][]*resource.Resource{}
		}
		n.seen[path] = true
	case n.size+size <= maxKeptNodes:
		n.kept[path], n.size = m.DeepCopy().Resources(), n.size+size
	}
}

// setOrigin gives an object the annotation that kustomize would: it comes and goes with the others.
func setOrigin(res *resource.Resource, file string) error {
	annotations := res.GetAnnotations()
	annotations[originAnnotation] = "path: " + file + "\n"
	return res.SetAnnotations(annotations)
}

// patched builds a kustomization that patches what it names, with the patching of kustomize itself. It answers false where a
// patch changes what an object is called or what kustomize notes of it, and for whatever is wrong.
func (d *direct) patched(dir, name string, namespaces []string, k *types.Kustomization) bool {
	below := &direct{r: d.r, fs: d.fs, factory: d.factory, seen: map[objectID]bool{}, patches: true}
	if d.fs.lacking || !below.resources(dir, name, nil, k) || len(below.found) > maxPatched || openapi.SetSchema(nil, nil, true) != nil {
		return false
	}
	p := &patching{dir: dir, fs: d.fs, factory: d.factory.RF(), objects: resmap.New(), changed: map[*resource.Resource]bool{}}
	ids := map[*resource.Resource]resid.ResId{}
	for _, s := range below.found {
		ids[s.Resource] = s.CurId()
		if p.objects.Append(s.Resource) != nil {
			return false
		}
	}
	for i := range k.Patches {
		if d.fs.ctx.Err() != nil || p.apply(&k.Patches[i]) != nil {
			return false
		}
		p.objects.DropEmpties()
	}
	left := map[*resource.Resource]bool{}
	for _, res := range p.objects.Resources() {
		left[res] = true
	}
	for _, s := range below.found {
		if !left[s.Resource] {
			continue
		}
		if p.changed[s.Resource] {
			if s.CurId() != ids[s.Resource] || !intact(s.Resource) {
				return false
			}
			s.content = nil
		}
		if !d.patches && !s.finish() || !d.add(s, namespaces) {
			return false
		}
	}
	return true
}

// intact reports whether an object is still one for kustomize, with what it noted.
func intact(res *resource.Resource) bool {
	_, err := res.GetValidatedMetadata()
	return err == nil && res.GetAnnotations()[originAnnotation] != ""
}

// finish removes what kustomize notes of an object while it is built. What no patch changed is as it was read before.
func (s *sourced) finish() bool {
	if s.content != nil {
		s.Resource = nil
		return true
	}
	s.RemoveBuildAnnotations()
	annotations := s.GetAnnotations()
	delete(annotations, originAnnotation)
	return s.SetAnnotations(annotations) == nil && !hasMeaning(s.Resource)
}

// patching applies the patches of a kustomization in the way of kustomize's PatchTransformer.
type patching struct {
	dir     string
	fs      *confined
	factory *resource.Factory
	objects resmap.ResMap
	changed map[*resource.Resource]bool
}

// errUnusual is a patch that is left to kustomize.
var errUnusual = errors.New("a patch for kustomize")

func (p *patching) apply(patch *types.Patch) error {
	text := strings.TrimSpace(patch.Patch)
	if patch.Options != nil || (text == "") == (patch.Path == "") || patch.Target != nil && means(patch.Target.AnnotationSelector) {
		return errUnusual
	}
	if patch.Path != "" {
		data, err := p.fs.ReadFile(join(p.dir, patch.Path))
		if err != nil {
			return err
		}
		text = string(data)
	}
	if means(text) {
		return errUnusual
	}
	patches, err := p.factory.SliceFromBytes([]byte(text))
	switch {
	case err != nil && patch.Target != nil:
		return p.json(text, patch.Target)
	case err != nil:
		return err
	case patch.Target == nil:
		return p.named(patches)
	case len(patches) == 1:
		return p.merge(patches[0], patch.Target)
	}
	return errUnusual
}

// named merges patches with the objects that they name.
func (p *patching) named(patches []*resource.Resource) error {
	for _, patch := range patches {
		res, err := p.objects.GetById(patch.OrgId())
		if err != nil {
			return err
		}
		p.changed[res] = true
		if err := res.ApplySmPatch(patch); err != nil {
			return err
		}
	}
	return nil
}

// merge merges a patch with the objects that a selector selects.
func (p *patching) merge(patch *resource.Resource, target *types.Selector) error {
	selected, err := p.objects.Select(*target)
	if err != nil {
		return err
	}
	for _, res := range selected {
		p.changed[res] = true
	}
	return p.objects.ApplySmPatch(resource.MakeIdSet(selected), patch)
}

// json applies a JSON patch to the objects that a selector selects.
func (p *patching) json(text string, target *types.Selector) error {
	selected, err := p.objects.Select(*target)
	if err != nil {
		return err
	}
	if _, err := (patchjson6902.Filter{Patch: text}).Filter(nil); err != nil {
		return err // even where there is nothing to patch
	}
	for _, res := range selected {
		p.changed[res] = true
		res.StorePreviousId()
		noted := kioutil.GetInternalAnnotations(&res.RNode)
		if err := res.ApplyFilter(patchjson6902.Filter{Patch: text}); err != nil {
			return err
		}
		annotations := res.GetAnnotations()
		maps.Copy(annotations, noted)
		if err := res.SetAnnotations(annotations); err != nil {
			return err
		}
	}
	return nil
}
