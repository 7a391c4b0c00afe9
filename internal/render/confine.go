package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/resid"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// confined is the file system of a build: the files below one directory, with some of them replaced. It follows links inside of
// the directory only, counts the bytes that are read, and ends with its context.
type confined struct {
	ctx     context.Context
	repo    *repository
	replace map[string][]byte
	what    string                   // the name of the build, for messages
	veil    *veil                    // nil for no veil
	paths   []string                 // that were read
	patched func(kustomize.PatchUse) // records patches, may be nil

	lacking bool // something is left out of the build

	failed error // the error of a kustomization file; kustomize only adds context
}

// real follows the links of a path. A path that leads out of the root is an error.
func (c *confined) real(path string) (string, error) {
	if _, ok := c.replace[filepath.Clean(path)]; ok {
		return filepath.Clean(path), nil
	}
	return c.repo.within(path)
}

// Kustomization returns the kustomization of a directory, with resolved paths, and its file.
func (c *confined) Kustomization(dir string) (*types.Kustomization, string, error) {
	if c.ctx.Err() != nil {
		return nil, "", c.ended()
	}
	d := c.repo.directory(dir)
	if d == nil {
		return nil, "", errors.New("no kustomization file in it")
	}
	c.remember(d.file)
	err := d.err
	switch {
	case err != nil:
	case len(d.unknown) > 0:
		err = d.unknown[0]
	case d.empty:
		err = d.kustomization.CheckEmpty()
	}
	if err == nil {
		err = c.repo.budget.Read(c.what, d.file, len(d.text))
	}
	if err != nil {
		if c.failed == nil {
			c.failed = err
		}
		return nil, "", err
	}
	k, err := c.veil.overKustomization(d.file, d.kustomization)
	if err == nil && c.lacking && len(k.Patches) > 0 {
		own := *k
		c.forgive(d.path, &own)
		k = &own
	}
	return k, d.file, err
}

// Directory resolves the path of a directory.
func (c *confined) Directory(path string) (string, error) {
	real, err := c.real(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.repo.display(path), err)
	}
	dir, err := c.repo.isDir(real)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.repo.display(path), plainPathError(err))
	}
	if !dir {
		return "", fmt.Errorf("%s: not a directory", c.repo.display(path))
	}
	return real, nil
}

// Check refuses inline text whose aliases expand beyond the limit.
func (c *confined) Check(text []byte) error { return manifest.CheckExpansion(c.what, text) }

// ReadFile reads a file.
func (c *confined) ReadFile(path string) ([]byte, error) {
	if c.ctx.Err() != nil {
		return nil, c.ended()
	}
	path = filepath.Clean(path)
	data, err := c.read(path)
	if err != nil {
		return nil, err
	}
	c.remember(path)
	data = c.veil.over(path, data)
	return data, c.repo.budget.Read(c.what, path, len(data))
}

// maxReread is the limit of files that are read again when a build fails.
const maxReread = 1000

func (c *confined) remember(path string) {
	if len(c.paths) < maxReread && !slices.Contains(c.paths, path) {
		c.paths = append(c.paths, path)
	}
}

func (c *confined) ended() error { return context.Cause(c.ctx) }

func (c *confined) read(path string) ([]byte, error) {
	if data, ok := c.replace[path]; ok {
		return data, nil
	}
	real, err := c.repo.within(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.repo.display(path), err)
	}
	if data, ok := c.replace[real]; ok && c.repo.view != nil {
		return data, nil
	}
	data, err := c.repo.read(real)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.repo.display(path), err)
	}
	return data, manifest.CheckExpansion(c.repo.display(path), data)
}

// forgive sets the target of each patch of a kustomization to the object that the patch names: if that object is left out, the
// patch has no effect and does not fail the build. The build reports all other errors in patches.
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

// targeted returns a patch with a target. A patch with several documents becomes one patch for each document.
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

// targetOf returns the object that a patch names, nil if the kind or the name is missing.
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
