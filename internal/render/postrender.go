package render

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/kustomize"
	annotationsfilter "sigs.k8s.io/kustomize/api/filters/annotations"
	labelsfilter "sigs.k8s.io/kustomize/api/filters/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/resid"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// renderedFile is what the manifests are called in a post renderer's build.
const renderedFile = "helm-output.yaml"

// PostRender does to what helm rendered what helm-controller does: the post renderers of the release in their order, then
// its common metadata, then the labels that say which HelmRelease an object belongs to. CRDs of the directory crds only
// get the latter. Objects that belong into a namespace and name none get that of the release, where their kind is known.
// The builds are within the limits of those of manifests.
func PostRender(ctx context.Context, hr *helmv2.HelmRelease, manifests []byte) ([]byte, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	g := newGuard(end)
	parts := split(manifests)
	labels := map[string]string{helmv2.GroupVersion.Group + "/name": hr.Name, helmv2.GroupVersion.Group + "/namespace": hr.Namespace}
	var out bytes.Buffer
	write := func(text []byte, renderers []helmv2.PostRenderer, common *helmv2.CommonMetadata) error {
		if len(bytes.TrimSpace(text)) == 0 {
			return nil
		}
		done, err := guarded(ctx, g, "HelmRelease "+hr.Namespace+"/"+hr.Name, func() ([]byte, error) {
			return postRender(text, renderers, common, labels, hr.GetReleaseNamespace())
		})
		if err != nil {
			return err
		}
		out.WriteString("---\n")
		out.Write(done)
		return nil
	}
	if err := write(parts.crds, nil, nil); err != nil {
		return nil, err
	}
	streams := [][]byte{append(parts.templates, parts.hooks...)}
	if s := hr.GetPostRenderStrategy(); s == helmv2.PostRenderStrategySeparate || s == helmv2.PostRenderStrategyNoHooks {
		streams = [][]byte{parts.templates, parts.hooks}
	}
	for i, text := range streams {
		renderers, common := hr.Spec.PostRenderers, hr.Spec.CommonMetadata
		if i > 0 && hr.GetPostRenderStrategy() == helmv2.PostRenderStrategyNoHooks {
			out.WriteString("---\n")
			out.Write(bytes.TrimPrefix(bytes.TrimSpace(text), []byte("---\n")))
			out.WriteString("\n")
			continue
		}
		if err := write(text, renderers, common); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// InNamespace puts objects that helm rendered, that belong into a namespace and that name none, into that of the release, and does nothing
// else to them: the Helm Operator has no post renderers. The documents come out in the form that PostRender gives them.
func InNamespace(ctx context.Context, release string, manifests []byte, namespace string) ([]byte, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	parts := split(manifests)
	text := slices.Concat(parts.crds, parts.templates, parts.hooks)
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	done, err := guarded(ctx, newGuard(end), release, func() ([]byte, error) { return postRender(text, nil, nil, nil, namespace) })
	if err != nil {
		return nil, err
	}
	return append([]byte("---\n"), done...), nil
}

// rendered are the documents that helm rendered, by what becomes of them.
type rendered struct{ crds, templates, hooks []byte }

var (
	crdSource = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^# Source: [^/\n]+(?:/charts/[^/\n]+)*/crds/`) })
	hookText  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^ {2,}["']?helm\.sh/hook["']?:`)
	})
)

func split(manifests []byte) rendered {
	var r rendered
	for _, document := range regexp.MustCompile(`(?m)^---[ \t]*$`).Split(string(manifests), -1) {
		document = strings.TrimLeft(document, "\n")
		if strings.TrimSpace(document) == "" {
			continue
		}
		to := &r.templates
		switch {
		case crdSource().MatchString(document):
			to = &r.crds
		case hookText().MatchString(document):
			to = &r.hooks
		}
		*to = append(*to, "---\n"+strings.TrimRight(document, "\n")+"\n"...)
	}
	return r
}

func postRender(text []byte, renderers []helmv2.PostRenderer, common *helmv2.CommonMetadata, labels map[string]string, namespace string) ([]byte, error) {
	for _, r := range renderers {
		if r.Kustomize == nil {
			continue
		}
		var err error
		if text, err = kustomized(text, r.Kustomize); err != nil {
			return nil, fmt.Errorf("post renderer: %w", err)
		}
	}
	m, err := resmap.NewFactory(provider.NewDefaultDepProvider().GetResourceFactory()).NewResMapFromBytes(text)
	if err != nil {
		return nil, err
	}
	if m.Size() > maxObjects {
		return nil, fmt.Errorf("more than %d objects", maxObjects)
	}
	if common != nil {
		if err := mark(m, common.Labels, common.Annotations); err != nil {
			return nil, err
		}
	}
	if err := mark(m, labels, nil); err != nil {
		return nil, err
	}
	setNamespace(m, namespace)
	return m.AsYaml()
}

// kustomized builds the manifests in memory, with nothing else beside them.
func kustomized(text []byte, k *helmv2.Kustomize) ([]byte, error) {
	config := types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{renderedFile},
	}
	for _, image := range k.Images {
		config.Images = append(config.Images, types.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
	}
	for _, p := range k.Patches {
		config.Patches = append(config.Patches, types.Patch{Patch: p.Patch, Target: selector(p.Target)})
	}
	written, err := sigsyaml.Marshal(config)
	if err != nil {
		return nil, err
	}
	fs := filesys.MakeFsInMemory()
	for name, data := range map[string][]byte{"kustomization.yaml": written, renderedFile: text} {
		if err := fs.WriteFile(name, data); err != nil {
			return nil, err
		}
	}
	options := krusty.MakeDefaultOptions()
	options.PluginConfig = types.DisabledPluginConfig()
	options.Reorder = krusty.ReorderOptionNone
	m, err := krusty.MakeKustomizer(options).Run(fs, ".")
	if err != nil {
		return nil, err
	}
	return m.AsYaml()
}

func selector(s *kustomize.Selector) *types.Selector {
	if s == nil {
		return nil
	}
	return &types.Selector{
		ResId: resid.ResId{
			Gvk:  resid.Gvk{Group: s.Group, Version: s.Version, Kind: s.Kind},
			Name: s.Name, Namespace: s.Namespace,
		},
		AnnotationSelector: s.AnnotationSelector, LabelSelector: s.LabelSelector,
	}
}

// mark adds labels and annotations to the metadata of all objects.
func mark(m resmap.ResMap, labels, annotations map[string]string) error {
	at := func(path string) types.FsSlice { return types.FsSlice{{Path: path, CreateIfNotPresent: true}} }
	if len(labels) > 0 {
		if err := m.ApplyFilter(labelsfilter.Filter{Labels: labels, FsSlice: at("metadata/labels")}); err != nil {
			return err
		}
	}
	if len(annotations) == 0 {
		return nil
	}
	return m.ApplyFilter(annotationsfilter.Filter{Annotations: annotations, FsSlice: at("metadata/annotations")})
}

// setNamespace puts objects into the namespace of the release, as Helm's client does with those that name none.
func setNamespace(m resmap.ResMap, namespace string) {
	for _, r := range m.Resources() {
		gvk := r.GetGvk()
		namespaced, known := openapi.IsNamespaceScoped(kyaml.TypeMeta{APIVersion: gvk.ApiVersion(), Kind: gvk.Kind})
		if known && namespaced && r.GetNamespace() == "" {
			_ = r.SetNamespace(namespace)
		}
	}
}
