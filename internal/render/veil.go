package render

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/conceal"
)

// A kustomization can copy values of Secrets to any object: with replacements, vars and patches. A second build with hidden values
// finds them: its output differs in the fields that they reached.

// veil hides values of Secrets in the input of a build.
type veil struct {
	files map[string]bool   // of Secret generators
	shown map[string][]byte // decrypted files without the encrypted values
}

func newVeil(c *closure, shown map[string][]byte) *veil {
	v := &veil{files: map[string]bool{}, shown: shown}
	for _, d := range c.dirs {
		if d.kustomization != nil {
			secretFiles(d.path, d.kustomization, v.files)
		}
	}
	return v
}

// secretFiles adds the files of the Secret generators of a kustomization; the value is true for files with name=value lines.
func secretFiles(dir string, k *types.Kustomization, files map[string]bool) {
	for _, g := range k.SecretGenerator {
		for _, source := range g.FileSources {
			_, path, named := strings.Cut(source, "=")
			if !named {
				path = source
			}
			if at := join(dir, path); !files[at] {
				files[at] = false
			}
		}
		for _, path := range append(g.EnvSources[:len(g.EnvSources):len(g.EnvSources)], g.EnvSource) {
			files[join(dir, path)] = true
		}
	}
}

func (v *veil) overKustomization(file string, k *types.Kustomization) (*types.Kustomization, error) {
	if v == nil {
		return k, nil
	}
	text, err := json.Marshal(k) // which is YAML, too
	if err != nil {
		return nil, err
	}
	hidden := &types.Kustomization{}
	return hidden, sigsyaml.Unmarshal(v.over(file, text), hidden)
}

// over returns a file with the values of Secrets hidden.
func (v *veil) over(path string, data []byte) []byte {
	if v == nil {
		return data
	}
	switch lines, secret := v.files[path]; {
	case v.shown[path] != nil:
		return v.shown[path]
	case lines:
		return hiddenEnv(data)
	case secret:
		return []byte(conceal.Hidden)
	case bytes.Contains(data, []byte("ecret")):
		return hiddenDocuments(data)
	}
	return data
}

func hiddenEnv(data []byte) []byte {
	var lines []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if name, _, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			line = name + "=" + conceal.Hidden
		}
		lines = append(lines, line)
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// hiddenDocuments hides the values of Secrets in a text. Invalid YAML is returned unchanged: the build reports it.
func hiddenDocuments(data []byte) []byte {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return data
		}
		hideSecrets(&document)
		if err := encoder.Encode(&document); err != nil {
			return data
		}
	}
	if err := encoder.Close(); err != nil {
		return data
	}
	return out.Bytes()
}

// hideSecrets hides the values of Secrets, of their generators and of patches for them, in place: anchors keep their names.
func hideSecrets(n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		switch kind := fieldOf(n, "kind"); {
		case kind != nil && kind.Value == "Secret":
			hideValues(fieldOf(n, "data"), base64.StdEncoding.EncodeToString([]byte(conceal.Hidden)))
			hideValues(fieldOf(n, "stringData"), conceal.Hidden)
		case kind != nil && kind.Value == "SecretGenerator":
			hideLiterals(fieldOf(n, "literals"))
		}
		if generators := fieldOf(n, "secretGenerator"); generators != nil {
			for _, g := range generators.Content {
				hideLiterals(fieldOf(g, "literals"))
			}
		}
		if patch, kind := fieldOf(n, "patch"), fieldOf(fieldOf(n, "target"), "kind"); patch != nil && kind != nil && kind.Value == "Secret" {
			hidePatch(patch)
		}
	}
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "ecret") && strings.Contains(n.Value, ":") {
		n.Value = string(hiddenDocuments([]byte(n.Value)))
	}
	for _, item := range n.Content {
		hideSecrets(item)
	}
}

func hideValues(n *yaml.Node, hidden string) {
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for i := 1; i < len(n.Content); i += 2 {
		if value := n.Content[i]; value.Kind == yaml.ScalarNode {
			value.Value, value.Tag, value.Style = hidden, "!!str", yaml.DoubleQuotedStyle
		}
	}
}

func hideLiterals(n *yaml.Node) {
	if n == nil {
		return
	}
	for _, item := range n.Content {
		if name, _, ok := strings.Cut(item.Value, "="); ok {
			item.Value = name + "=" + conceal.Hidden
		}
	}
}

// hidePatch hides the values of a JSON patch for a Secret, in base64 where the path is in data.
func hidePatch(patch *yaml.Node) {
	var ops yaml.Node
	if err := yaml.Unmarshal([]byte(patch.Value), &ops); err != nil || len(ops.Content) == 0 {
		return
	}
	for _, op := range ops.Content[0].Content {
		path, value := fieldOf(op, "path"), fieldOf(op, "value")
		if path == nil || value == nil {
			continue
		}
		hidden := conceal.Hidden
		if strings.HasPrefix(path.Value, "/data") {
			hidden = base64.StdEncoding.EncodeToString([]byte(hidden))
		}
		if value.Kind == yaml.ScalarNode {
			value.Value, value.Tag, value.Style = hidden, "!!str", yaml.DoubleQuotedStyle
		}
		hideValues(value, hidden)
	}
	if text, err := yaml.Marshal(&ops); err == nil {
		patch.Value = string(text)
	}
}
