package render

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/filters/patchjson6902"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/types"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// unquoted removes secrets that kustomize quotes in the error of a build: contents of Secrets and of the files of their
// generators, and fields named like a password.
func (c *confined) unquoted(err error) error {
	if _, ok := errors.AsType[*kustomize.PanicError](err); ok || c.ctx.Err() != nil {
		return err
	}
	var texts []string
	sources := map[string]bool{}
	for _, path := range c.paths {
		data, failed := c.read(path)
		k := &types.Kustomization{}
		if failed != nil || !manifest.IsKustomizationFile(path) || sigsyaml.Unmarshal(data, k) != nil {
			continue
		}
		secretFiles(filepath.Dir(path), k, sources)
		if broken := c.brokenPatch(path, k); broken != nil {
			return broken
		}
		for _, p := range patchesIn(k) {
			if p.Target != nil && p.Target.Kind == "Secret" {
				texts = append(texts, c.valuesOf(path, p)...)
			}
		}
	}
	for _, path := range c.paths {
		data, failed := c.read(path)
		switch _, secret := sources[path]; {
		case failed != nil:
		case secret:
			texts = append(texts, linesOf(data)...)
		default:
			texts = append(texts, sensitiveTexts(data)...)
		}
	}
	text := err.Error()
	if concealed := conceal.Within(text, texts); concealed != text {
		return errors.New(concealed)
	}
	return err
}

func patchesIn(k *types.Kustomization) []types.Patch {
	list := slices.Concat(k.Patches, k.PatchesJson6902) //nolint:staticcheck // people still write them
	for _, text := range k.PatchesStrategicMerge {      //nolint:staticcheck // the same
		p := types.Patch{Patch: string(text)}
		if !strings.Contains(p.Patch, "\n") {
			p = types.Patch{Path: p.Patch}
		}
		list = append(list, p)
	}
	return list
}

// brokenPatch returns why a patch of a kustomization cannot be read, nil if all can. kustomize would quote the whole patch.
func (c *confined) brokenPatch(path string, k *types.Kustomization) error {
	for i, p := range patchesIn(k) {
		text, name := []byte(p.Patch), fmt.Sprintf("%s: patch %d", c.repo.display(path), i+1)
		if p.Path != "" {
			data, err := c.read(join(filepath.Dir(path), p.Path))
			if err != nil {
				continue // the build reports it
			}
			text, name = data, c.repo.display(join(filepath.Dir(path), p.Path))
		}
		if line, err := manifest.CheckSyntax(text); err != nil && p.Target != nil && p.Target.Kind == "Secret" {
			return fmt.Errorf("%s: line %d is not YAML", name, line)
		} else if err != nil {
			return fmt.Errorf("%s: line %d: %w", name, line, err)
		}
		if c.Check(text) != nil {
			return fmt.Errorf("%s: an alias refers to its own anchor, or aliases expand too much", name)
		}
		_, merges := provider.NewDefaultDepProvider().GetResourceFactory().SliceFromBytes(text)
		if _, operates := (patchjson6902.Filter{Patch: string(text)}).Filter(nil); merges != nil && operates != nil {
			return fmt.Errorf("%s: neither an object with apiVersion, kind and metadata.name nor a list of operations with op and path", name)
		}
	}
	return nil
}

func (c *confined) valuesOf(path string, p types.Patch) []string {
	text := []byte(p.Patch)
	if p.Path != "" {
		text, _ = c.read(join(filepath.Dir(path), p.Path)) // the build reports the error
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil
	}
	g := &gatherer{}
	g.gather(&document, true)
	return g.list
}

func linesOf(data []byte) []string {
	list := []string{strings.TrimSpace(string(data))}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		_, value, _ := strings.Cut(line, "=")
		list = append(list, line, value)
	}
	return list
}

// sensitiveTexts returns the values in a file that messages must not quote.
func sensitiveTexts(data []byte) []string {
	g := &gatherer{}
	g.texts(data, false)
	return g.list
}

// gatherer collects values that messages must not quote.
type gatherer struct {
	list []string
	seen map[*yaml.Node]bool // targets of aliases
}

func (g *gatherer) texts(data []byte, sensitive bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			g.list = append(g.list, conceal.Assigned(data)...)
			return
		}
		g.gather(&document, sensitive)
	}
}

func (g *gatherer) gather(n *yaml.Node, sensitive bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		if strings.Contains(n.Value, "\n") || strings.HasPrefix(n.Value, "[") || strings.HasPrefix(n.Value, "{") {
			g.texts([]byte(n.Value), sensitive) // a patch in a kustomization file
		}
		if !sensitive {
			return
		}
		g.list = append(g.list, n.Value)
		if _, value, ok := strings.Cut(n.Value, "="); ok {
			g.list = append(g.list, value)
		}
	case yaml.AliasNode:
		if sensitive && !g.seen[n.Alias] {
			if g.seen == nil {
				g.seen = map[*yaml.Node]bool{}
			}
			g.seen[n.Alias] = true
			g.gather(n.Alias, true)
		}
	case yaml.MappingNode:
		secret := fieldOf(n, "kind")
		path := fieldOf(n, "path")
		target := fieldOf(n, "target") // of a plugin that patches
		patches := target != nil && fieldOf(target, "kind") != nil && fieldOf(target, "kind").Value == "Secret"
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i].Value, n.Content[i+1]
			below := sensitive && !naming(key)
			switch {
			case secret != nil && secret.Value == "Secret" && (key == "data" || key == "stringData"):
				below = true
			case key == "literals" || (value.Kind == yaml.ScalarNode || value.Kind == yaml.AliasNode) && conceal.Sensitive(key) && !strings.HasSuffix(key, "Name"):
				below = true
			case key == "value" && path != nil && slices.ContainsFunc(strings.Split(path.Value, "/"), conceal.Sensitive):
				below = true // of a JSON patch
			case patches && (key == "patch" || key == "jsonOp"):
				below = true
			}
			g.gather(value, below)
		}
	default:
		for _, item := range n.Content {
			g.gather(item, sensitive)
		}
	}
}

// naming reports whether a field names an object or a field, or is the operation of a patch.
func naming(key string) bool {
	return slices.Contains([]string{"apiVersion", "kind", "metadata", "name", "namespace", "type", "op", "path", "from"}, key)
}
