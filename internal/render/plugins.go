package render

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/types"
)

// inline puts what the directories among the generators, transformers and validators of a kustomization build in their
// place. kustomize would build them itself, but what comes out must name no address, and that is known only afterwards.
func (r *repository) inline(c *confined, dir string, k *types.Kustomization) error {
	for _, list := range []struct {
		field   string
		entries []string
	}{{"generators", k.Generators}, {"transformers", k.Transformers}, {"validators", k.Validators}} {
		for i, entry := range list.entries {
			if isInline(entry) {
				continue
			}
			path, err := within(r.root, join(dir, entry))
			if err == nil && isDirectory(path) {
				list.entries[i], err = r.builtPlugins(c, path)
			}
			if err != nil {
				return fmt.Errorf("%s[%d]: %s: %w", list.field, i, entry, err)
			}
		}
	}
	return nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// builtPlugins are the configurations that a directory builds, at the expense of the build that needs them. It is part of
// the closure of that, so this ends.
func (r *repository) builtPlugins(c *confined, path string) (string, error) {
	if d := r.directory(path); d != nil && d.kustomization != nil && d.kustomization.Kind == types.ComponentKind {
		return "", fmt.Errorf("a %s cannot be built by itself", types.ComponentKind)
	}
	before := *c
	before.failed = nil
	m, err := run(c.ctx, &before, path)
	if err != nil {
		return "", err
	}
	text, err := m.AsYaml()
	if err != nil {
		return "", err
	}
	if err := c.budget.spend(0, len(text)); err != nil {
		return "", err
	}
	return string(text), checkPlugin(text)
}
