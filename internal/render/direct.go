package render

import (
	"cmp"
	"encoding/json"
	"strings"

	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// localConfig marks what kustomize leaves out of what it builds.
const localConfig = "config.kubernetes.io/local-config"

// direct builds kustomizations that do no more than name files and each other, and set the namespace of objects to which
// nothing refers by it. kustomize compares each object with all others, which for thousands takes most of the time of a
// run, and it prepares much for each of thousands of small builds. It is kustomize that reads the files, and whatever it
// might object to, or treat in a way of its own, is left to it.
type direct struct {
	r       *repository
	fs      *confined
	factory *resmap.Factory
	seen    map[objectID]bool
	found   []sourced
}

// sourced is an object, and the file that it comes from.
type sourced struct {
	*resource.Resource
	file string
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
	m, err := d.factory.NewResMapFromBytes(text)
	if err != nil {
		return false
	}
	m.RemoveBuildAnnotations()
	for _, res := range m.Resources() {
		if namespace != "" {
			if !movable(res) || res.SetNamespace(namespace) != nil {
				return false
			}
		}
		id := res.CurId()
		key := objectID{id.Gvk, id.EffectiveNamespace(), id.Name}
		if _, local := res.GetAnnotations(localConfig)[localConfig]; local || d.seen[key] {
			return false
		}
		d.seen[key] = true
		d.found = append(d.found, sourced{res, name})
	}
	return true
}

// movable reports whether a namespace changes nothing else of an object than its own: kustomize knows no reference in it, and none
// to it from objects of these kinds.
func movable(res *resource.Resource) bool {
	id := res.GetGvk()
	return strings.HasSuffix(id.Group, "toolkit.fluxcd.io") || id.Group == "" && (id.Kind == "ConfigMap" || id.Kind == "Secret")
}
