package render

import (
	"bytes"
	"regexp"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/resid"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// lacks reports whether something is left out of what a kustomization includes, because it is elsewhere.
func (r *repository) lacks(dir string, k *types.Kustomization) bool {
	c := newClosure()
	if d := r.directory(dir); d != nil {
		_ = c.add(r, dir, nil) // what is wrong with it is an error of the build
	}
	for _, entry := range append(k.Resources[:len(k.Resources):len(k.Resources)], k.Components...) {
		if path, err := r.within(join(dir, entry)); err == nil && r.isDirectory(path) {
			_ = c.add(r, path, []string{dir})
		}
	}
	return len(c.remote) > 0
}

// forgive gives each patch of a kustomization the target that it names itself: a patch of something that is left out then
// does nothing, where it would fail the build. What else is wrong with a patch is for the build to say.
func (c *confined) forgive(dir string, k *types.Kustomization) {
	if !c.lacking {
		return
	}
	var patches []types.Patch
	for _, p := range k.Patches {
		patches = append(patches, c.targeted(dir, p)...)
	}
	k.Patches = patches
}

// targeted is a patch with a target. One of several documents becomes one for each.
func (c *confined) targeted(dir string, p types.Patch) []types.Patch {
	if p.Target != nil {
		return []types.Patch{p}
	}
	text := []byte(p.Patch)
	if p.Path != "" {
		data, err := c.read(join(dir, p.Path))
		if err != nil {
			return []types.Patch{p}
		}
		text = data
	}
	nodes, err := (&kio.ByteReader{Reader: bytes.NewReader(text), OmitReaderAnnotations: true, DisableUnwrapping: true}).Read()
	if err != nil || len(nodes) == 0 {
		return []types.Patch{p}
	}
	var patches []types.Patch
	for _, n := range nodes {
		target := targetOf(n)
		one, err := n.String()
		if err != nil || target == nil {
			return []types.Patch{p}
		}
		patches = append(patches, types.Patch{Patch: one, Target: target, Options: p.Options})
	}
	return patches
}

// targetOf is what a patch is about, nil if it does not say so.
func targetOf(n *kyaml.RNode) *types.Selector {
	if n.GetKind() == "" || n.GetName() == "" {
		return nil
	}
	gvk := resid.GvkFromNode(n)
	exactly := regexp.QuoteMeta
	return &types.Selector{ResId: resid.ResId{
		Gvk:       resid.Gvk{Group: exactly(gvk.Group), Version: exactly(gvk.Version), Kind: exactly(gvk.Kind)},
		Name:      exactly(n.GetName()),
		Namespace: exactly(n.GetNamespace()),
	}}
}
