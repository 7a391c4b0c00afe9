package sops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	metadataKey = "sops"
	flatPrefix  = "sops_"

	// maxList is the limit of the index of a list in flat metadata.
	maxList = 1000
)

// parse parses encrypted text into trees, one for each document.
func parse(data []byte, f Format) ([]*tree, error) {
	var roots []*yaml.Node
	var err error
	switch f {
	case YAML:
		roots, err = parseYAML(data)
	case JSON, Binary:
		roots, err = parseJSON(data)
	case Dotenv:
		return parseDotenv(data)
	default:
		return nil, fmt.Errorf("sops: the format %s is not supported", f)
	}
	if err != nil {
		return nil, err
	}
	var trees []*tree
	for _, root := range roots {
		t, err := newTree(root)
		if err != nil {
			return nil, err
		}
		trees = append(trees, t)
	}
	if len(trees) == 0 {
		return nil, errors.New("sops: an empty file")
	}
	return trees, nil
}

func parseYAML(data []byte) ([]*yaml.Node, error) {
	var roots []*yaml.Node
	for dec := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return roots, nil
		} else if err != nil {
			return nil, errors.New("sops: not YAML")
		}
		if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 && doc.Content[0].Tag != "!!null" {
			roots = append(roots, doc.Content[0])
		}
	}
}

func parseJSON(data []byte) ([]*yaml.Node, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	root, err := jsonNode(dec, 0)
	if err != nil {
		return nil, errors.New("sops: not JSON")
	}
	return []*yaml.Node{root}, nil
}

// jsonNode decodes one value. Unlike the YAML parser, it knows all escapes of JSON.
func jsonNode(dec *json.Decoder, depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deep")
	}
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch t := token.(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		if t == '[' {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		}
		for dec.More() {
			child, err := jsonNode(dec, depth+1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		_, err = dec.Token()
	case string:
		n.Tag, n.Value, n.Style = "!!str", t, yaml.DoubleQuotedStyle
	case nil:
		n.Tag, n.Value = "!!null", "null"
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(t)
	default:
		n.Value = fmt.Sprint(t)
	}
	return n, err
}

// newTree removes the metadata from a document.
func newTree(root *yaml.Node) (*tree, error) {
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("sops: not a map")
	}
	t := &tree{root: root}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != metadataKey {
			continue
		}
		var err error
		if t.meta, err = decodeMetadata(root.Content[i+1]); err != nil {
			return nil, err
		}
		root.Content = append(root.Content[:i:i], root.Content[i+2:]...)
		break
	}
	return t, nil
}

// object returns the document in the types that kubectl would use.
func (t *tree) object() (map[string]any, error) {
	text, err := yaml.Marshal(t.root)
	if err != nil {
		return nil, errors.New("sops: the decrypted document cannot be written")
	}
	if text, err = sigsyaml.YAMLToJSON(text); err != nil {
		return nil, errors.New("sops: the decrypted document is not an object")
	}
	var m map[string]any
	if err := utiljson.Unmarshal(text, &m); err != nil {
		return nil, errors.New("sops: the decrypted document is not an object")
	}
	return m, nil
}

// emit writes decrypted trees.
func emit(trees []*tree, f Format) ([]byte, error) {
	switch f {
	case YAML:
		var out bytes.Buffer
		enc := yaml.NewEncoder(&out)
		for _, t := range trees {
			if err := enc.Encode(t.root); err != nil {
				return nil, errors.New("sops: the decrypted document cannot be written")
			}
		}
		err := enc.Close()
		return out.Bytes(), err
	case JSON:
		m, err := trees[0].object()
		if err != nil {
			return nil, err
		}
		return json.MarshalIndent(m, "", "\t")
	case Dotenv:
		return emitDotenv(trees[0].root)
	case Binary:
		root := trees[0].root
		for i := 0; i+1 < len(root.Content); i += 2 {
			if v := root.Content[i+1]; root.Content[i].Value == "data" && v.Kind == yaml.ScalarNode {
				return []byte(v.Value), nil
			}
		}
		return nil, errors.New("sops: no binary data found in tree")
	}
	return nil, fmt.Errorf("sops: the format %s is not supported", f)
}

// parseDotenv parses NAME=VALUE lines. The metadata are such lines, too, with a path as their name.
func parseDotenv(data []byte) ([]*tree, error) {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	flat := map[string]string{}
	for line := range strings.SplitSeq(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		name, v, found := strings.Cut(line, "=")
		if !found {
			return nil, errors.New("sops: not a dotenv file")
		}
		v = strings.ReplaceAll(v, `\n`, "\n")
		if path, meta := strings.CutPrefix(name, flatPrefix); meta {
			flat[path] = v
			continue
		}
		root.Content = append(root.Content, stringNode(name), stringNode(v))
	}
	v, err := unflatten(flat)
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{}
	if err := n.Encode(v); err != nil {
		return nil, errMetadata
	}
	meta, err := decodeMetadata(n)
	return []*tree{{root: root, meta: meta}}, err
}

func stringNode(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	return n
}

func emitDotenv(root *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	for i := 0; i+1 < len(root.Content); i += 2 {
		v := root.Content[i+1]
		if v.Kind != yaml.ScalarNode {
			return nil, errors.New("sops: cannot use a complex value in a dotenv file")
		}
		fmt.Fprintf(&out, "%s=%s\n", root.Content[i].Value, strings.ReplaceAll(v.Value, "\n", `\n`))
	}
	return out.Bytes(), nil
}

// unflatten builds metadata from lines such as age__list_0__map_enc.
func unflatten(flat map[string]string) (any, error) {
	root := map[string]any{}
	for path, v := range flat {
		at := root
		for i, steps := 0, flatSteps(path); ; i++ {
			step := steps[i]
			if i == len(steps)-1 {
				at[step] = &yaml.Node{Kind: yaml.ScalarNode, Value: v} // its field decides about the type
				break
			}
			if at[step] == nil {
				at[step] = map[string]any{}
			}
			next, ok := at[step].(map[string]any)
			if !ok {
				return nil, errMetadata
			}
			at = next
		}
	}
	return withLists(root)
}

// flatSteps splits a path into names, and into indexes with indexMark in front.
func flatSteps(path string) []string {
	return strings.Split(strings.NewReplacer("__list_", "\x00"+indexMark, "__map_", "\x00").Replace(path), "\x00")
}

// indexMark does not occur in names.
const indexMark = "\x01"

// withLists converts maps whose keys are indexes to lists.
func withLists(v any) (any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return v, nil
	}
	items := map[int]any{}
	for key, value := range m {
		value, err := withLists(value)
		if err != nil {
			return nil, err
		}
		m[key] = value
		if index, isIndex := strings.CutPrefix(key, indexMark); isIndex {
			n, err := strconv.Atoi(index)
			if err != nil || n < 0 || n > maxList {
				return nil, errMetadata
			}
			items[n] = value
		}
	}
	switch {
	case len(items) == 0:
		return m, nil
	case len(items) != len(m):
		return nil, errMetadata
	}
	var list []any
	for _, n := range slices.Sorted(maps.Keys(items)) {
		list = append(list, items[n])
	}
	return list, nil
}
