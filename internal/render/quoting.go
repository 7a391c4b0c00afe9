package render

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// maxReread bounds the files that are looked at again when a build fails.
const maxReread = 1000

// unquoted takes out of the error of a build what kustomize quotes of the files that it read: what Secrets and their
// generators hold, and fields that are called as a password is.
func (c *confined) unquoted(err error) error {
	if _, ok := errors.AsType[*panicError](err); ok || c.ctx.Err() != nil {
		return err
	}
	var texts []string
	sources := map[string]bool{}
	for _, path := range c.paths {
		if data, err := c.read(path); err == nil && manifest.IsKustomizationFile(path) {
			c.sourcesIn(path, data, sources)
		}
	}
	for _, path := range c.paths {
		data, failed := c.read(path)
		switch {
		case failed != nil:
		case sources[path]:
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

// sourcesIn adds the files of the Secret generators of a kustomization file.
func (c *confined) sourcesIn(path string, data []byte, sources map[string]bool) {
	k := &types.Kustomization{}
	if err := sigsyaml.Unmarshal(data, k); err != nil {
		return
	}
	for _, g := range k.SecretGenerator {
		for _, source := range slices.Concat(g.FileSources, g.EnvSources, []string{g.EnvSource}) {
			_, name, named := strings.Cut(source, "=")
			if !named {
				name = source
			}
			sources[join(filepath.Dir(path), name)] = true
		}
	}
}

func (c *confined) remember(path string) {
	if len(c.paths) < maxReread && !slices.Contains(c.paths, path) {
		c.paths = append(c.paths, path)
	}
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

// sensitiveTexts are the values in a file that no message may quote.
func sensitiveTexts(data []byte) []string {
	var list []string
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			return append(list, conceal.Assigned(data)...)
		}
		list = gather(&document, false, list)
	}
}

func gather(n *yaml.Node, sensitive bool, list []string) []string {
	switch n.Kind {
	case yaml.ScalarNode:
		if strings.Contains(n.Value, "\n") || strings.HasPrefix(n.Value, "[") || strings.HasPrefix(n.Value, "{") {
			list = append(list, sensitiveTexts([]byte(n.Value))...) // a patch in a kustomization file
		}
		if !sensitive {
			return list
		}
		list = append(list, n.Value)
		if _, value, ok := strings.Cut(n.Value, "="); ok {
			list = append(list, value)
		}
	case yaml.MappingNode:
		secret := fieldOf(n, "kind")
		path := fieldOf(n, "path")
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i].Value, n.Content[i+1]
			below := sensitive && key != "name" && key != "namespace" && key != "kind" && key != "type"
			switch {
			case secret != nil && secret.Value == "Secret" && (key == "data" || key == "stringData"):
				below = true
			case key == "literals" || value.Kind == yaml.ScalarNode && conceal.Sensitive(key) && !strings.HasSuffix(key, "Name"):
				below = true
			case key == "value" && path != nil && slices.ContainsFunc(strings.Split(path.Value, "/"), conceal.Sensitive):
				below = true // of a JSON patch
			}
			list = gather(value, below, list)
		}
		return list
	}
	for _, item := range n.Content {
		list = gather(item, sensitive, list)
	}
	return list
}
