package kustomize

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"
)

//go:generate go -C ../../tools run ./fieldspecs ../internal/kustomize/defaults.json

//go:embed defaults.json
var defaultsText []byte

// config lists the fields that the transformers of kustomize work on.
type config struct {
	NamePrefix        types.FsSlice   `json:"namePrefix,omitempty"`
	NameSuffix        types.FsSlice   `json:"nameSuffix,omitempty"`
	NameSpace         types.FsSlice   `json:"namespace,omitempty"`
	CommonLabels      types.FsSlice   `json:"commonLabels,omitempty"`
	Labels            types.FsSlice   `json:"labels,omitempty"`
	TemplateLabels    types.FsSlice   `json:"templateLabels,omitempty"`
	CommonAnnotations types.FsSlice   `json:"commonAnnotations,omitempty"`
	NameReference     []nameReference `json:"nameReference,omitempty"`
	VarReference      types.FsSlice   `json:"varReference,omitempty"`
	Images            types.FsSlice   `json:"images,omitempty"`
	Replicas          types.FsSlice   `json:"replicas,omitempty"`
}

// nameReference lists the fields that refer to objects of a kind.
type nameReference struct {
	resid.Gvk `json:",inline,omitempty"`
	Referrers types.FsSlice `json:"fieldSpecs,omitempty"`
}

// defaults is the embedded configuration. It is shared and must not be changed.
type defaults struct {
	config
	OrderFirst []string `json:"orderFirst"`
	OrderLast  []string `json:"orderLast"`
}

var defaultConfig = sync.OnceValue(func() *defaults {
	d := &defaults{}
	if err := json.Unmarshal(defaultsText, d); err != nil {
		panic(err) // a test decodes it
	}
	d.sort()
	return d
})

func (c *config) lists() []*types.FsSlice {
	return []*types.FsSlice{&c.NamePrefix, &c.NameSuffix, &c.NameSpace, &c.CommonLabels, &c.Labels, &c.TemplateLabels, &c.CommonAnnotations, &c.VarReference, &c.Images, &c.Replicas}
}

func (c *config) sort() {
	for _, list := range c.lists() {
		sort.Sort(*list)
	}
	slices.SortStableFunc(c.NameReference, func(a, b nameReference) int {
		switch {
		case a.IsLessThan(b.Gvk):
			return -1
		case b.IsLessThan(a.Gvk):
			return 1
		}
		return 0
	})
}

// merged returns a new configuration with the fields of both.
func (c *config) merged(other *config) (*config, error) {
	if c == other {
		return c, nil
	}
	m := &config{}
	theirs, from := other.lists(), c.lists()
	for i, list := range m.lists() {
		var err error
		if *list, err = slices.Clone(*from[i]).MergeAll(*theirs[i]); err != nil {
			return nil, fmt.Errorf("failed to merge fieldSpecs: %w", err)
		}
	}
	m.NameReference = slices.Clone(c.NameReference)
	for _, r := range other.NameReference {
		if err := m.addReference(r); err != nil {
			return nil, err
		}
	}
	m.sort()
	return m, nil
}

func (c *config) addReference(r nameReference) error {
	found := false
	for i, known := range c.NameReference {
		if known.Gvk.Equals(r.Gvk) {
			merged, err := slices.Clone(known.Referrers).MergeAll(r.Referrers)
			if err != nil {
				return fmt.Errorf("failed to merge NameReference fieldSpec: %w", err)
			}
			c.NameReference[i].Referrers, found = merged, true
		}
	}
	if !found {
		c.NameReference = append(c.NameReference, r)
	}
	return nil
}

func configOf(l *loader, k *types.Kustomization) (*config, error) {
	c := &defaultConfig().config
	own := &config{}
	for _, path := range k.Configurations {
		text, err := l.Load(path)
		if err != nil {
			return nil, err
		}
		one := &config{}
		if err := yaml.UnmarshalStrict(text, one); err != nil {
			return nil, err
		}
		one.sort()
		if own, err = own.merged(one); err != nil {
			return nil, err
		}
	}
	for _, path := range k.Crds {
		text, err := l.Load(path)
		if err != nil {
			return nil, fmt.Errorf("loading CRDs %v: %w", k.Crds, err)
		}
		definitions := map[string]definition{}
		if err := yaml.Unmarshal(text, &definitions); err != nil {
			return nil, fmt.Errorf("loading CRDs %v: unable to parse open API definition from '%s': %w", k.Crds, path, err)
		}
		for _, name := range slices.Sorted(maps.Keys(definitions)) {
			properties := definitions[name].Schema.Properties
			if !has(properties, "kind") || !has(properties, "apiVersion") || !has(properties, "metadata") {
				continue
			}
			r := &crdReader{build: l.build, definitions: definitions, config: own, kind: name[strings.LastIndex(name, ".")+1:]}
			if err := r.read(name, nil, nil); err != nil {
				return nil, err
			}
		}
	}
	if len(k.Configurations)+len(k.Crds) == 0 {
		return c, nil
	}
	return c.merged(own)
}

func has(m map[string]spec.Schema, key string) bool {
	_, ok := m[key]
	return ok
}

type definition struct{ Schema spec.Schema }

// crdReader finds the fields of a type for labels, annotations and names.
type crdReader struct {
	build       *Build
	definitions map[string]definition
	config      *config
	kind        string
}

func (r *crdReader) read(name string, path, way []string) error {
	if slices.Contains(way, name) {
		return fmt.Errorf("the definition %s contains itself", name)
	}
	way = append(way[:len(way):len(way)], name)
	properties := r.definitions[name].Schema.Properties
	if err := r.build.Budget.Work(r.build.What, scanWork*int64(1+len(properties))); err != nil {
		return err // definitions that refer to others twice at each level
	}
	for _, property := range slices.Sorted(maps.Keys(properties)) {
		schema := properties[property]
		at := append(path[:len(path):len(path)], property)
		field := func(more ...string) types.FieldSpec {
			return types.FieldSpec{Gvk: resid.Gvk{Kind: r.kind}, Path: strings.Join(append(at[:len(at):len(at)], more...), "/")}
		}
		for extension, list := range map[string]*types.FsSlice{
			"x-kubernetes-annotation": &r.config.CommonAnnotations, "x-kubernetes-label-selector": &r.config.CommonLabels, "x-kubernetes-identity": &r.config.NamePrefix,
		} {
			if _, ok := schema.Extensions.GetString(extension); ok {
				var err error
				if *list, err = list.MergeOne(field()); err != nil {
					return err
				}
			}
		}
		version, versioned := schema.Extensions.GetString("x-kubernetes-object-ref-api-version")
		kind, known := schema.Extensions.GetString("x-kubernetes-object-ref-kind")
		if versioned && known {
			key, ok := schema.Extensions.GetString("x-kubernetes-object-ref-name-key")
			if !ok {
				key = "name"
			}
			if err := r.config.addReference(nameReference{Gvk: resid.Gvk{Kind: kind, Version: version}, Referrers: types.FsSlice{field(key)}}); err != nil {
				return err
			}
		}
		if schema.Ref.GetURL() != nil {
			if err := r.read(schema.Ref.String(), at, way); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxReferences is the limit of schemas that only refer to each other in a chain. kustomize would follow a cycle for ever.
const maxReferences = 100

// checkSchema returns an error for a schema that refers to itself without properties in between. kustomize reports other errors.
func checkSchema(text []byte) error {
	var root any
	if yaml.Unmarshal(text, &root) != nil {
		return nil
	}
	return checkReferences(root, root)
}

func checkReferences(root, v any) error {
	switch v := v.(type) {
	case map[string]any:
		at := v
		for count := 0; at != nil; count++ {
			reference, _ := at["$ref"].(string)
			if reference == "" {
				break
			}
			if count > maxReferences {
				return fmt.Errorf("openapi.path: %s: a schema that refers to itself", reference)
			}
			at = referred(root, reference)
		}
		for _, item := range v {
			if err := checkReferences(root, item); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := checkReferences(root, item); err != nil {
				return err
			}
		}
	}
	return nil
}

// referred returns the schema at a JSON pointer, nil if it is missing.
func referred(root any, reference string) map[string]any {
	_, pointer, _ := strings.Cut(reference, "#")
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		fields, _ := root.(map[string]any)
		root = fields[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	schema, _ := root.(map[string]any)
	return schema
}
