package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/manifest"
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
			path, err := r.within(join(dir, entry))
			if err == nil && r.isDirectory(path) {
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

// builtPlugins are the configurations that a directory builds, at the expense of the build that needs them. It is part
// of the closure of that, so this ends.
func (r *repository) builtPlugins(c *confined, path string) (string, error) {
	if d := r.directory(path); d != nil && d.kustomization != nil && d.kustomization.Kind == types.ComponentKind {
		return "", fmt.Errorf("a %s cannot be built by itself", types.ComponentKind)
	}
	before := *c
	before.failed = nil
	what := r.display(path)
	text, err := guarded(before.ctx, before.guard, what, func() ([]byte, error) {
		m, err := run(&before, path, what)
		if err != nil {
			return nil, err
		}
		return m.AsYaml()
	})
	if err != nil {
		return "", err
	}
	if err := c.budget.spend(0, len(text)); err != nil {
		return "", err
	}
	text, err = checkedPlugin(text)
	return string(text), err
}

// plugins resolves generators, transformers and validators: files, directories, or configurations in place. What these
// refer to in turn must be no address either; what directories build is looked at when it is built. kustomize reads the
// text that was checked, and none other.
func (p *pathResolver) plugins(field string, entries []string) []string {
	var kept []string
	for i, entry := range entries {
		if isInline(entry) {
			text, err := checkedPlugin([]byte(entry))
			p.failIn(err, field, i)
			kept = append(kept, string(text))
			continue
		}
		before := len(p.d.files)
		path, ok := p.one(entry, anything, field, i)
		if !ok {
			continue
		}
		kept = append(kept, path)
		if len(p.d.files) == before {
			continue // a directory
		}
		p.failIn(p.r.pluginFile(p.d.files[before]), field, i)
	}
	return kept
}

// isInline reports whether an entry is an inline configuration, and not a path.
func isInline(entry string) bool { return strings.ContainsAny(entry, "\n{") }

func (p *pathResolver) failIn(err error, path ...any) {
	if err != nil {
		p.fail(fmt.Errorf("%s: %w", fieldName(path), err), path...)
	}
}

// pluginFile checks the configurations in a file. From then on kustomize reads them as they were checked.
func (r *repository) pluginFile(path string) error {
	if r.checked(path) {
		return nil
	}
	text, err := r.read(path)
	if err == nil {
		err = manifest.CheckExpansion(r.display(path), text)
	}
	if err == nil {
		text, err = checkedPlugin(text)
	}
	if err == nil {
		learn(r, r.plugins, path, text)
	}
	return err
}

// checked reports whether kustomize reads a file in another form than it is written in, which nothing may replace.
func (r *repository) checked(path string) bool {
	_, plugin := known(r, r.plugins, path)
	return plugin || manifest.IsKustomizationFile(path)
}

// maxPluginDocuments bounds how many configurations one text may hold.
const maxPluginDocuments = 1000

// checkedPlugin refuses a configuration that names an address where a path belongs, and returns it without aliases,
// anchors and tags: what is checked is what kustomize reads.
func checkedPlugin(text []byte) ([]byte, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var out bytes.Buffer
	g := &growth{}
	for range maxPluginDocuments {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, errors.New("cannot be parsed as YAML") // the reason may quote it
		}
		plain, err := plainNode(&doc, new(int), 0)
		if err != nil {
			return nil, err
		}
		if n := addressIn(plain, false); n != nil {
			return nil, fmt.Errorf("%s: only files of the repository are read", redacted(n.Value))
		}
		text, err := yaml.Marshal(plain)
		if err == nil {
			err = g.plugin(text)
		}
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return nil, errors.New("too many documents")
}

// maxPluginNodes bounds what the aliases of one configuration may expand to.
const maxPluginNodes = 1_000_000

// plainNode copies YAML as it is understood: aliases in full, binary values and keys decoded.
func plainNode(n *yaml.Node, count *int, depth int) (*yaml.Node, error) {
	if *count++; *count > maxPluginNodes || depth > maxDepth {
		return nil, errors.New("its aliases expand to too much, or it is nested too deep")
	}
	switch n.Kind {
	case yaml.AliasNode:
		return plainNode(n.Alias, count, depth+1)
	case yaml.ScalarNode:
		return plainScalar(n)
	}
	c := &yaml.Node{Kind: n.Kind, Style: n.Style &^ yaml.TaggedStyle}
	for _, item := range n.Content {
		plain, err := plainNode(item, count, depth+1)
		if err != nil {
			return nil, err
		}
		c.Content = append(c.Content, plain)
	}
	return c, nil
}

func plainScalar(n *yaml.Node) (*yaml.Node, error) {
	c := &yaml.Node{Kind: yaml.ScalarNode, Tag: n.ShortTag(), Value: n.Value, Style: n.Style &^ yaml.TaggedStyle}
	switch c.Tag {
	case "!!binary":
		var text string
		if err := n.Decode(&text); err != nil {
			return nil, errors.New("a binary value is not base64")
		}
		c.SetString(text)
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!merge":
	default:
		return nil, errors.New("a value has a tag that is unknown")
	}
	return c, nil
}

// addressIn finds a value that kustomize would download. Everything below a field that may hold paths counts.
func addressIn(n *yaml.Node, paths bool) *yaml.Node {
	if n.Kind == yaml.ScalarNode {
		_, path, found := strings.Cut(n.Value, "=")
		if paths && (isAddress(n.Value) || found && isAddress(path)) {
			return n
		}
		return nil
	}
	for i, c := range n.Content {
		below := paths
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			below = paths || pathField(n.Content[i-1].Value)
		}
		if bad := addressIn(c, below); bad != nil {
			return bad
		}
	}
	return nil
}

func pathField(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "path") || strings.Contains(name, "file") || strings.Contains(name, "env") || name == "resources"
}

func isAddress(text string) bool {
	lower := strings.ToLower(strings.TrimSpace(text))
	return strings.HasPrefix(lower, "http:") || strings.HasPrefix(lower, "https:")
}
