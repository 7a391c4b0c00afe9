package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/helmsrc/helmsrc/internal/resolve"
)

// reference reads an index the plain and slow way: all of it into memory, with the YAML and JSON libraries and Helm's own
// validation. It decides what the right answer is.
func reference(data []byte) (map[string]versions, error) {
	if len(data) == 0 {
		return nil, errors.New("empty")
	}
	root, err := refParse(data)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, errors.New("no apiVersion")
	}
	top, ok := root.(refMap)
	if !ok {
		return nil, errors.New("no mapping")
	}
	if v, ok := top["apiVersion"].(string); !ok || v == "" {
		return nil, errors.New("no apiVersion")
	}
	charts := map[string]versions{}
	switch entries := top["entries"].(type) {
	case nil:
	case refMap:
		for name, value := range entries {
			charts[name] = refChart(value)
		}
	default:
		return nil, errors.New("entries is no mapping")
	}
	return charts, nil
}

type (
	refMap    map[string]any
	refNumber string
)

func refChart(value any) (v versions) {
	if value == nil {
		return versions{known: true}
	}
	list, ok := value.([]any)
	if !ok {
		return v
	}
	v.known = true
	for _, item := range list {
		if c, ok := refEntry(item); ok {
			v.candidates = append(v.candidates, c)
		} else {
			v.dropped++
		}
	}
	return v
}

// refFields are the fields that Helm knows, with those of their items.
var refFields = map[string][]string{
	"name": nil, "home": nil, "sources": nil, "version": nil, "description": nil, "keywords": nil, "icon": nil,
	"apiVersion": nil, "condition": nil, "tags": nil, "appVersion": nil, "deprecated": nil, "annotations": nil,
	"kubeVersion": nil, "type": nil, "urls": nil, "removed": nil, "digest": nil, "checksum": nil, "engine": nil,
	"tillerVersion": nil, "url": nil,
	"maintainers":  {"name", "email", "url"},
	"dependencies": {"name", "version", "repository", "condition", "tags", "enabled", "import-values", "alias"},
}

type refVersion struct {
	helmchart.Metadata
	URLs          []string `json:"urls"`
	Removed       bool     `json:"removed"`
	Digest        string   `json:"digest"`
	Checksum      string   `json:"checksum"`
	Engine        string   `json:"engine"`
	TillerVersion string   `json:"tillerVersion"`
	URL           string   `json:"url"`
}

func refEntry(value any) (c resolve.Candidate, ok bool) {
	entry, ok := value.(refMap)
	if !ok {
		return c, false
	}
	digest, numeric := entry["digest"].(refNumber)
	known := map[string]any{}
	for field, value := range entry {
		items, ok := refFields[field]
		if ok && (field != "digest" || !numeric) {
			known[field] = refKnown(value, items)
		}
	}
	text, err := json.Marshal(known)
	if err != nil {
		panic(err)
	}
	var v refVersion
	if json.Unmarshal(text, &v) != nil {
		return c, false
	}
	if v.APIVersion == "" {
		v.APIVersion = "v1"
	}
	err = v.Validate()
	if err != nil && !strings.HasPrefix(err.Error(), "validation: more than one dependency with name or alias") {
		return c, false
	}
	if strings.Contains(v.Name, "/") { // only "/" itself comes so far
		return c, false
	}
	c = resolve.Candidate{Name: v.Name, Version: v.Version, AppVersion: v.AppVersion, Digest: v.Digest, URLs: v.URLs, Removed: v.Removed, Deprecated: v.Deprecated}
	if numeric {
		c.Digest = "unquoted number " + string(digest)
	}
	if len(c.URLs) == 0 {
		c.URLs = nil
	}
	if created, ok := entry["created"].(string); ok {
		text, _ := json.Marshal(created) // as Helm gets it
		if json.Unmarshal(text, &c.Created) != nil {
			c.Created = time.Time{}
		}
	}
	return c, true
}

// refKnown makes a value fit for JSON, with only the fields that Helm knows in the items of a list.
func refKnown(value any, fields []string) any {
	switch value := value.(type) {
	case refNumber:
		return 1
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			if m, ok := item.(refMap); ok && fields != nil {
				known := map[string]any{}
				for _, field := range fields {
					if v, ok := m[field]; ok {
						known[field] = refKnown(v, nil)
					}
				}
				list[i] = known
				continue
			}
			list[i] = refKnown(item, nil)
		}
		return list
	case refMap:
		m := map[string]any{}
		for k, v := range value {
			m[k] = refKnown(v, nil)
		}
		return m
	}
	return value
}

func refParse(data []byte) (value any, err error) {
	if json.Valid(data) {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		return refJSON(d)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := d.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("after the document: %v", err)
	}
	return refNode(document.Content[0], map[*yaml.Node]bool{})
}

func refJSON(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Number:
		return refNumber(token), nil
	case json.Delim:
		if token == '[' {
			list := []any{}
			for d.More() {
				item, err := refJSON(d)
				if err != nil {
					return nil, err
				}
				list = append(list, item)
			}
			_, err := d.Token()
			return list, err
		}
		m := refMap{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			if _, ok := m[key.(string)]; ok {
				return nil, fmt.Errorf("key %q twice", key)
			}
			if m[key.(string)], err = refJSON(d); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return m, err
	}
	return token, nil
}

func refNode(n *yaml.Node, open map[*yaml.Node]bool) (any, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
		if open[n] {
			return nil, errors.New("an anchor contains itself")
		}
	}
	open[n] = true
	defer delete(open, n)
	switch n.Kind {
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			value, err := refNode(item, open)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case yaml.MappingNode:
		return refMapping(n, open)
	}
	if n.Style == 0 {
		switch n.Value {
		case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
			return true, nil
		case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
			return false, nil
		}
	}
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return strings.ContainsAny(n.Value[:min(1, len(n.Value))], "tTyY") || strings.EqualFold(n.Value, "on"), nil
	case "!!int", "!!float":
		return refNumber(n.Value), nil
	}
	return n.Value, nil
}

func refMapping(n *yaml.Node, open map[*yaml.Node]bool) (any, error) {
	m := refMap{}
	var merges []*yaml.Node
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, errors.New("a key is no scalar")
		}
		if seen[key.Value] {
			return nil, fmt.Errorf("key %q twice", key.Value)
		}
		seen[key.Value] = true
		v, err := refNode(value, open)
		if err != nil {
			return nil, err
		}
		if n.Content[i].Kind == yaml.ScalarNode && key.Value == "<<" && key.Tag == "!!merge" {
			merges = append(merges, value)
			if err := refMergeable(v); err != nil {
				return nil, err
			}
			continue
		}
		m[key.Value] = v
	}
	for _, merge := range merges {
		v, _ := refNode(merge, open)
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, from := range list {
			for key, value := range from.(refMap) {
				if _, ok := m[key]; !ok {
					m[key] = value
				}
			}
		}
	}
	return m, nil
}

func refMergeable(v any) error {
	if list, ok := v.([]any); ok {
		for _, item := range list {
			if _, ok := item.(refMap); !ok {
				return errors.New("merge of no mapping")
			}
		}
		return nil
	}
	if _, ok := v.(refMap); !ok {
		return errors.New("merge of no mapping")
	}
	return nil
}
