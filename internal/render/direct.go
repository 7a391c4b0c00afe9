package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"strings"

	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// means reports whether an annotation means something to kustomize, as one that keeps an object out of what it builds.
func means(annotation string) bool {
	return strings.Contains(annotation, "config.kubernetes.io/") || strings.Contains(annotation, "config.k8s.io/")
}

// direct builds kustomizations that do no more than name files and each other, and set the namespace of objects to which
// nothing refers by it. kustomize compares each object with all others, which for thousands takes most of the time of a
// run, and it prepares much for each of thousands of small builds. Whatever it might object to, or treat in a way of its own,
// is left to it. So are the files that it might read in another way than package manifest, which has read them before.
type direct struct {
	r       *repository
	fs      *confined
	factory *resmap.Factory
	seen    map[objectID]bool
	found   []sourced
}

// sourced is an object, and the file that it comes from.
type sourced struct {
	*resource.Resource                // as kustomize reads it
	content            map[string]any // or as it was read before
	file               string
}

// weight is about what the object needs once it is decoded.
func (s sourced) weight() int64 {
	if s.content != nil {
		return weightOfValue(s.content)
	}
	return weightOf(s.YNode())
}

// objectID is what kustomize identifies objects by.
type objectID struct {
	resid.Gvk
	namespace, name string
}

// directly answers false if kustomize is to build it.
func (r *repository) directly(fs *confined, dir string, k *types.Kustomization) ([]sourced, bool) {
	d := &direct{r: r, fs: fs, factory: resmap.NewFactory(provider.NewDefaultDepProvider().GetResourceFactory()), seen: map[objectID]bool{}}
	if len(k.Resources) == 0 || !d.kustomization(dir, dir, "", k) || len(d.found) == 0 || len(d.found) > maxObjects {
		return nil, false
	}
	return d.found, true
}

// bare reports whether a kustomization only names resources, and a namespace.
func bare(k *types.Kustomization) bool {
	if k.Kind == types.ComponentKind {
		return false
	}
	rest := *k
	rest.TypeMeta, rest.MetaData, rest.Resources, rest.Namespace = types.TypeMeta{}, nil, nil, ""
	text, err := json.Marshal(rest)
	return err == nil && string(text) == "{}"
}

// kustomization goes through the resources of a directory, by the name that led to it. The outermost namespace wins.
func (d *direct) kustomization(dir, name, namespace string, k *types.Kustomization) bool {
	if !bare(k) {
		return false
	}
	namespace = cmp.Or(namespace, k.Namespace)
	for _, path := range k.Resources {
		if d.fs.ctx.Err() != nil {
			return false
		}
		real, err := d.r.within(join(dir, path))
		if err != nil {
			return false
		}
		if d.r.isDirectory(real) {
			sub := d.r.directory(real)
			if sub == nil || sub.err != nil || len(sub.kustomization.Resources) == 0 || sub.unknown != nil || !d.kustomization(real, join(name, path), namespace, sub.kustomization) {
				return false
			}
		} else if !d.file(join(dir, path), join(name, path), namespace) {
			return false
		}
	}
	return true
}

func (d *direct) file(path, name, namespace string) bool {
	text, err := d.fs.ReadFile(path)
	if err != nil {
		return false
	}
	if objects, ok := d.read(path, text); ok {
		return d.contents(objects, name, namespace)
	}
	m, err := d.factory.NewResMapFromBytes(text)
	if err != nil {
		return false
	}
	m.RemoveBuildAnnotations()
	for _, res := range m.Resources() {
		if namespace != "" {
			if !movable(res.GetGvk()) || res.SetNamespace(namespace) != nil {
				return false
			}
		}
		for k := range res.GetAnnotations() {
			if means(k) {
				return false
			}
		}
		if !d.add(res.CurId(), sourced{Resource: res, file: name}) {
			return false
		}
	}
	return true
}

// add answers false if there is an object of that name.
func (d *direct) add(id resid.ResId, s sourced) bool {
	key := objectID{id.Gvk, id.EffectiveNamespace(), id.Name}
	if d.seen[key] {
		return false
	}
	d.seen[key] = true
	d.found = append(d.found, s)
	return true
}

// read looks for the objects of a file among those that were read before. They are shared.
func (d *direct) read(path string, text []byte) ([]map[string]any, bool) {
	real, err := d.fs.real(path)
	if err != nil {
		return nil, false
	}
	f, err := d.r.file(real)
	if err != nil || !bytes.Equal(f.Data(), text) {
		return nil, false // it was decrypted, or made
	}
	objects, ok := f.PlainDocuments()
	for _, content := range objects {
		if _, known := idOf(content); !known {
			return nil, false
		}
	}
	return objects, ok
}

// contents adds what was read before.
func (d *direct) contents(objects []map[string]any, name, namespace string) bool {
	for _, content := range objects {
		id, _ := idOf(content)
		if namespace != "" {
			if !movable(id.Gvk) {
				return false
			}
			meta, _ := content["metadata"].(map[string]any)
			content, meta = maps.Clone(content), maps.Clone(meta)
			meta["namespace"], content["metadata"], id.Namespace = namespace, meta, namespace
		}
		if !d.add(id, sourced{content: content, file: name}) {
			return false
		}
	}
	return true
}

// idOf is what kustomize knows an object by. It answers false for one that kustomize refuses, takes apart, or does
// something with for an annotation.
func idOf(content map[string]any) (resid.ResId, bool) {
	text := func(m map[string]any, field string) string {
		s, _ := m[field].(string)
		return s
	}
	apiVersion, kind := text(content, "apiVersion"), text(content, "kind")
	meta, _ := content["metadata"].(map[string]any)
	name, namespace := text(meta, "name"), text(meta, "namespace")
	if annotations, ok := meta["annotations"].(map[string]any); ok && len(annotations) == 0 {
		return resid.ResId{}, false
	}
	if _, given := meta["namespace"]; apiVersion == "" || kind == "" || strings.HasSuffix(kind, "List") || name == "" || given && namespace == "" {
		return resid.ResId{}, false
	}
	for _, field := range []string{"labels", "annotations"} {
		values, ok := meta[field].(map[string]any)
		if _, given := meta[field]; given && !ok {
			return resid.ResId{}, false
		}
		for k, v := range values {
			if _, ok := v.(string); !ok || means(k) {
				return resid.ResId{}, false
			}
		}
	}
	group, version := resid.ParseGroupVersion(apiVersion)
	return resid.NewResIdWithNamespace(resid.NewGvk(group, version, kind), name, namespace), !emptyItem(content)
}

// emptyItem reports whether there is a null in a list.
func emptyItem(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if emptyItem(e) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if e == nil || emptyItem(e) {
				return true
			}
		}
	}
	return false
}

// movable reports whether a namespace changes nothing else of an object than its own: kustomize knows no reference in it, and none
// to it from objects of these kinds.
func movable(id resid.Gvk) bool {
	return isFluxGroup(id.Group) || id.Group == "" && (id.Kind == "ConfigMap" || id.Kind == "Secret")
}
