package kustomize

import (
	"errors"
	"fmt"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/builtins" //nolint:staticcheck // kustomize has no other door to its transformers
	"sigs.k8s.io/kustomize/api/filters/namespace"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"
)

// ErrNoHelm is the error with which kustomize refuses to run helm.
var ErrNoHelm = errors.New("trouble configuring builtin HelmChartInflationGenerator: must specify --enable-helm")

func (t *target) configure(kind string, p resmap.Configurable, c any) error {
	text, err := yaml.Marshal(c)
	if err == nil {
		err = p.Config(t.helpers(), text)
	}
	if err != nil {
		return fmt.Errorf("trouble configuring builtin %s with config: `\n%s`: %w", kind, text, err)
	}
	return nil
}

func (t *target) helpers() *resmap.PluginHelpers {
	return resmap.NewPluginHelpers(t.loader, provider.NewDefaultDepProvider().GetFieldValidator(), t.factory, types.DisabledPluginConfig())
}

// transformers returns the transformers for the fields of a kustomization, in the order of kustomize.
func (t *target) transformers(c *config) ([]transformer, error) {
	k := t.k
	var list []transformer
	add := func(kind string, one resmap.Transformer) {
		list = append(list, transformer{Transformer: one, origin: t.configured(kind)})
	}
	if len(k.PatchesStrategicMerge) > 0 { //nolint:staticcheck // people still write them
		p := builtins.NewPatchStrategicMergeTransformerPlugin()
		if err := t.configure("PatchStrategicMergeTransformer", p, map[string]any{"paths": k.PatchesStrategicMerge}); err != nil { //nolint:staticcheck // as above
			return nil, err
		}
		add("PatchStrategicMergeTransformer", p)
	}
	for i := range k.Patches {
		patch := &k.Patches[i]
		p := &patchTransformer{source: t.Source}
		if err := t.configure("PatchTransformer", p, patch); err != nil {
			return nil, t.entry(err, "patches", i, patch.Path)
		}
		list = append(list, transformer{p, t.configured("PatchTransformer"), patch, i})
	}
	if k.Namespace != "" {
		p := &builtins.NamespaceTransformerPlugin{FieldSpecs: c.NameSpace, SetRoleBindingSubjects: namespace.DefaultSubjectsOnly}
		p.Namespace = k.Namespace
		add("NamespaceTransformer", p)
	}
	if k.NamePrefix != "" {
		add("PrefixTransformer", &builtins.PrefixTransformerPlugin{Prefix: k.NamePrefix, FieldSpecs: c.NamePrefix})
	}
	if k.NameSuffix != "" {
		add("SuffixTransformer", &builtins.SuffixTransformerPlugin{Suffix: k.NameSuffix, FieldSpecs: c.NameSuffix})
	}
	for _, label := range k.Labels {
		fields, err := labelFields(label, c)
		if err != nil {
			return nil, fmt.Errorf("failed to merge labels: %w", err)
		}
		add("LabelTransformer", &builtins.LabelTransformerPlugin{Labels: label.Pairs, FieldSpecs: fields})
	}
	if len(k.Labels) > 0 || len(k.CommonLabels) > 0 { //nolint:staticcheck // people still write them
		add("LabelTransformer", &builtins.LabelTransformerPlugin{Labels: k.CommonLabels, FieldSpecs: c.CommonLabels}) //nolint:staticcheck // as above
	}
	if len(k.CommonAnnotations) > 0 {
		add("AnnotationsTransformer", &builtins.AnnotationsTransformerPlugin{Annotations: k.CommonAnnotations, FieldSpecs: c.CommonAnnotations})
	}
	for _, patch := range k.PatchesJson6902 { //nolint:staticcheck // people still write them
		p := &patchTransformer{source: t.Source}
		if err := t.configure("PatchJson6902Transformer", p, patch); err != nil {
			return nil, err
		}
		add("PatchJson6902Transformer", p)
	}
	for _, replica := range k.Replicas {
		add("ReplicaCountTransformer", &builtins.ReplicaCountTransformerPlugin{Replica: replica, FieldSpecs: c.Replicas})
	}
	for _, image := range k.Images {
		add("ImageTagTransformer", &builtins.ImageTagTransformerPlugin{ImageTag: image, FieldSpecs: c.Images})
	}
	if len(k.Replacements) > 0 {
		p := &replacementTransformer{}
		if err := t.configure("ReplacementTransformer", p, map[string]any{"replacements": k.Replacements}); err != nil {
			return nil, err
		}
		add("ReplacementTransformer", p)
	}
	return list, nil
}

func labelFields(label types.Label, c *config) (types.FsSlice, error) {
	fields, err := types.FsSlice(label.FieldSpecs).DeepCopy().MergeAll(c.Labels)
	if err != nil {
		return nil, err
	}
	if label.IncludeSelectors {
		return fields.MergeAll(c.CommonLabels)
	}
	if label.IncludeTemplates {
		if fields, err = fields.MergeAll(c.TemplateLabels); err != nil {
			return nil, fmt.Errorf("failed to merge template fieldSpec: %w", err)
		}
	}
	return fields.MergeOne(types.FieldSpec{Path: "metadata/labels", CreateIfNotPresent: true})
}

// plugin is a generator, transformer or validator that a kustomization names.
type plugin struct {
	resmap.Configurable
	id     resid.ResId
	index  int // of its entry
	file   string
	origin *resource.Origin
}

// plugins reads the configurations of plugins, inline, in files and in directories, and makes the built-in plugins of kustomize.
func (t *target) plugins(field string, entries []string) ([]plugin, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	a := t.newAccumulator()
	indexes := map[*resource.Resource]int{}
	for i, entry := range entries {
		if !isInline(entry) {
			continue
		}
		if err := t.Source.Check([]byte(entry)); err != nil {
			return nil, err
		}
		list, err := t.Objects([]byte(entry))
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			t.files[r], indexes[r] = filepath.Join(t.at, t.file), i
			if t.origin != nil {
				if err := r.SetOrigin(t.origin.Append(t.file)); err != nil {
					return nil, err
				}
			}
		}
		if err := a.appendAll(list); err != nil {
			return nil, err
		}
	}
	for i, entry := range entries {
		if isInline(entry) {
			continue
		}
		before := len(a.list)
		if err := t.resource(a, entry); err != nil {
			return nil, t.placed(err, field, i)
		}
		for _, r := range a.list[before:] {
			indexes[r] = i
		}
	}
	var list []plugin
	for _, r := range a.list {
		p := newPlugin(r.GetGvk(), t.Source)
		if p == nil {
			return nil, refusedPlugin(r)
		}
		origin, err := resource.OriginFromCustomPlugin(r)
		if err != nil {
			return nil, err
		}
		text, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		if err := p.Config(t.helpers(), text); err != nil {
			return nil, t.placed(fmt.Errorf("plugin %s fails configuration: %w", r.OrgId(), err), field, indexes[r])
		}
		list = append(list, plugin{p, r.OrgId(), indexes[r], t.files[r], origin})
	}
	return list, nil
}

func refusedPlugin(r *resource.Resource) error {
	gvk := r.GetGvk()
	if gvk.Group == "" && gvk.Version == konfig.BuiltinPluginApiVersion {
		return fmt.Errorf("unable to load builtin %s", gvk)
	}
	return types.NewErrOnlyBuiltinPluginsAllowed(r.OrgId().Kind)
}

// newPlugin returns a built-in plugin of kustomize, nil for any other plugin.
func newPlugin(gvk resid.Gvk, s Source) resmap.Configurable {
	if gvk.Group != "" || gvk.Version != konfig.BuiltinPluginApiVersion {
		return nil
	}
	return map[string]resmap.Configurable{
		"AnnotationsTransformer":         builtins.NewAnnotationsTransformerPlugin(),
		"ConfigMapGenerator":             builtins.NewConfigMapGeneratorPlugin(),
		"HashTransformer":                builtins.NewHashTransformerPlugin(),
		"IAMPolicyGenerator":             builtins.NewIAMPolicyGeneratorPlugin(),
		"ImageTagTransformer":            builtins.NewImageTagTransformerPlugin(),
		"LabelTransformer":               builtins.NewLabelTransformerPlugin(),
		"NamespaceTransformer":           builtins.NewNamespaceTransformerPlugin(),
		"PatchJson6902Transformer":       &patchTransformer{source: s},
		"PatchTransformer":               &patchTransformer{source: s},
		"PatchStrategicMergeTransformer": builtins.NewPatchStrategicMergeTransformerPlugin(),
		"PrefixSuffixTransformer":        &prefixSuffix{},
		"PrefixTransformer":              builtins.NewPrefixTransformerPlugin(),
		"ReplacementTransformer":         &replacementTransformer{},
		"ReplicaCountTransformer":        builtins.NewReplicaCountTransformerPlugin(),
		"SecretGenerator":                builtins.NewSecretGeneratorPlugin(),
		"SuffixTransformer":              builtins.NewSuffixTransformerPlugin(),
		"ValueAddTransformer":            builtins.NewValueAddTransformerPlugin(),
	}[gvk.Kind]
}

type prefixSuffix struct{ list []resmap.TransformerPlugin }

func (p *prefixSuffix) Config(h *resmap.PluginHelpers, text []byte) error {
	p.list = []resmap.TransformerPlugin{builtins.NewPrefixTransformerPlugin(), builtins.NewSuffixTransformerPlugin()}
	return errors.Join(p.list[0].Config(h, text), p.list[1].Config(h, text))
}

func (p *prefixSuffix) Transform(m resmap.ResMap) error {
	for _, one := range p.list {
		if err := one.Transform(m); err != nil {
			return err
		}
	}
	return nil
}
