package render

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxkustomize "github.com/fluxcd/pkg/apis/kustomize"
	annotationsfilter "sigs.k8s.io/kustomize/api/filters/annotations"
	labelsfilter "sigs.k8s.io/kustomize/api/filters/labels"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/resid"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// renderedFile is the name of the manifests in a post renderer's build.
const renderedFile = "helm-output.yaml"

// maxDocuments is the limit of objects in a release. Helm keeps all of them in one Secret of 1 MiB.
const maxDocuments = 10_000

// Release holds the output of helm for a HelmRelease, with the options of an installation.
type Release struct {
	HelmRelease *helmv2.HelmRelease
	// CRDs are the files of the directory crds of the chart and its subcharts.
	CRDs [][]byte
	// Manifests is the output of helm template, with all hooks.
	Manifests []byte
	// Trimmed reports that helm has cut the ends of all documents, not only the end of the last one before the hooks.
	Trimmed bool
	// NoHooks leaves out hooks, NoTests leaves out test hooks, after post rendering.
	NoHooks, NoTests bool
}

// Installed holds the objects that an installation would create.
type Installed struct {
	CRDs, Objects []byte
	// Left names objects of the directory crds that are not applied, because they are not CRDs.
	Left []string
}

// sourceAnnotation is the annotation by which Helm finds an object's template after post rendering.
const sourceAnnotation = "postrenderer.helm.sh/postrender-filename"

// PostRender changes the output of helm as helm-controller does: it runs the post renderers of the release in their order, then
// adds the common metadata, then the labels that name the HelmRelease. Files of the directory crds get only these labels.
// Namespaced objects without a namespace get the namespace of the release, if their kind is known. Finally PostRender separates
// hooks and sorts all objects as Helm does. The builds share the limits of manifest builds.
func PostRender(ctx context.Context, release Release) (Installed, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	b := &kustomize.Build{Budget: kustomize.NewBudget(end), What: "what helm rendered"}
	return kustomize.Guard(func() (Installed, error) { return release.postRender(ctx, b) })
}

func (r *Release) postRender(ctx context.Context, b *kustomize.Build) (done Installed, err error) {
	hr := r.HelmRelease
	labels := map[string]string{helmv2.GroupVersion.Group + "/name": hr.Name, helmv2.GroupVersion.Group + "/namespace": hr.Namespace}
	if err := bound.Check(bytes.Join(r.CRDs, []byte("\n"))); err != nil {
		return done, fmt.Errorf("CRDs: %w", err)
	}
	var crds []*resource.Resource
	created := map[resid.ResId]bool{}
	for _, file := range r.CRDs {
		if err := checkAliases("CRDs", file); err != nil {
			return done, err
		}
		list, err := b.Objects(file)
		if err != nil {
			return done, fmt.Errorf("CRDs: %w", err)
		}
		for _, object := range list {
			switch id := object.CurId(); {
			case id.Kind != "CustomResourceDefinition":
				done.Left = append(done.Left, object.GetKind()+" "+object.GetName())
			case !created[id]: // a second one of its name would exist already
				crds, created[id] = append(crds, object), true
			}
		}
	}
	if err := mark(crds, labels, nil); err != nil {
		return done, err
	}
	documents, err := documentsOf(r.Manifests)
	if err == nil {
		err = r.end(documents)
	}
	if err != nil {
		return done, err
	}
	slices.SortStableFunc(documents, func(a, b document) int { return strings.Compare(a.source, b.source) })
	streams := [][]document{documents}
	strategy := hr.GetPostRenderStrategy()
	if strategy == helmv2.PostRenderStrategySeparate || strategy == helmv2.PostRenderStrategyNoHooks {
		streams = make([][]document, 2)
		for _, d := range documents {
			i := 0
			if hook, err := d.hook(); err != nil {
				return done, err
			} else if hook {
				i = 1
			}
			streams[i] = append(streams[i], d)
		}
	}
	var objects []*resource.Resource
	for i, stream := range streams {
		text, err := merged(stream)
		if err != nil {
			return done, err
		}
		raw := i > 0 && strategy == helmv2.PostRenderStrategyNoHooks
		for _, p := range hr.Spec.PostRenderers {
			if p.Kustomize == nil || raw || len(text) == 0 {
				continue
			}
			if text, err = kustomized(ctx, *b, text, p.Kustomize); err != nil {
				return done, fmt.Errorf("post renderer: %w", err)
			}
		}
		list, err := b.Parse(text)
		if err != nil {
			return done, err
		}
		if common := hr.Spec.CommonMetadata; common != nil && !raw {
			if err := mark(list, common.Labels, common.Annotations); err != nil {
				return done, err
			}
		}
		if !raw {
			if err := mark(list, labels, nil); err != nil {
				return done, err
			}
		}
		for _, object := range list {
			setNamespace(&object.RNode, hr.GetReleaseNamespace())
		}
		objects = append(objects, list...)
	}
	if objects, err = r.installed(objects); err != nil {
		return done, err
	}
	if done.CRDs, err = asText(crds, (*resource.Resource).AsYAML); err != nil {
		return done, err
	}
	done.Objects, err = asText(objects, (*resource.Resource).AsYAML)
	return done, err
}

func asText[T any](objects []T, textOf func(T) ([]byte, error)) ([]byte, error) {
	var out bytes.Buffer
	for _, object := range objects {
		text, err := textOf(object)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}

// installed returns the objects that are installed, in Helm's order: by kind, then by template, hooks last.
func (r *Release) installed(objects []*resource.Resource) ([]*resource.Resource, error) {
	type ranked struct {
		object *resource.Resource
		hook   bool
		kind   int
		source string
	}
	var list []ranked
	for _, object := range objects {
		annotations := object.GetAnnotations()
		events, hook := annotations["helm.sh/hook"]
		if hook && (r.NoHooks || !isHook(events, r.NoTests)) {
			continue
		}
		kind := slices.Index(installOrder, object.GetKind())
		if kind < 0 {
			kind = len(installOrder)
		}
		list = append(list, ranked{object, hook, kind, annotations[sourceAnnotation]})
		delete(annotations, sourceAnnotation)
		if err := object.SetAnnotations(annotations); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(list, func(a, b ranked) int {
		unknown := 0
		if a.kind == len(installOrder) {
			unknown = strings.Compare(a.object.GetKind(), b.object.GetKind())
		}
		first := 0
		if a.hook != b.hook {
			first = -1
			if a.hook {
				first = 1
			}
		}
		return cmp.Or(first, cmp.Compare(a.kind, b.kind), unknown, strings.Compare(a.source, b.source))
	})
	objects = objects[:0]
	for _, l := range list {
		objects = append(objects, l.object)
	}
	return objects, nil
}

// isHook reports whether Helm runs a hook with these events. Helm skips a hook with an unknown event.
func isHook(events string, noTests bool) bool {
	for event := range strings.SplitSeq(events, ",") {
		switch strings.ToLower(strings.TrimSpace(event)) {
		case "test", "test-success":
			if noTests {
				return false
			}
		case "pre-install", "post-install", "pre-delete", "post-delete", "pre-upgrade", "post-upgrade", "pre-rollback", "post-rollback":
		default:
			return false
		}
	}
	return true
}

// installOrder lists the kinds in the order in which Helm installs them. Other kinds follow, sorted by name.
var installOrder = []string{
	"PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy", "PodDisruptionBudget",
	"ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim",
	"CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding", "ClusterRoleBindingList", "Role", "RoleList",
	"RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment",
	"HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob", "IngressClass", "Ingress", "APIService",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
}

// InNamespace sets the namespace of the release in rendered objects that are namespaced and name no namespace. It makes no other
// change: the Helm Operator has no post renderers.
func InNamespace(manifests []byte, namespace string) ([]byte, error) {
	return kustomize.Guard(func() ([]byte, error) {
		documents, err := documentsOf(manifests)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		for _, d := range documents {
			nodes, err := kio.ParseAll(ended(d.text))
			if err != nil {
				return nil, err
			}
			for _, n := range nodes {
				setNamespace(n, namespace)
			}
			text, err := kio.StringAll(nodes)
			if err != nil {
				return nil, err
			}
			if text != "" {
				out.WriteString("---\n" + text)
			}
		}
		return out.Bytes(), nil
	})
}

// document is a part of the output of helm template, with its template.
type document struct{ source, text string }

// documentsOf splits the output of helm. helm writes a line before and a line break after each document, and templates do not
// contain such a line. It returns an error for more documents than a release can have.
func documentsOf(manifests []byte) ([]document, error) {
	if err := bound.Check(manifests); err != nil {
		return nil, err
	}
	var list []document
	parts := strings.Split("\n"+strings.TrimSuffix(string(manifests), "\n"), "\n---\n# Source: ")
	for _, part := range parts[1:] {
		source, text, _ := strings.Cut(part, "\n")
		if strings.TrimSpace(text) == "" {
			continue
		}
		if err := checkAliases(source, []byte(text)); err != nil {
			return nil, err
		}
		list = append(list, document{source, text})
	}
	if len(list) > maxDocuments {
		return nil, fmt.Errorf("more than %d objects", maxDocuments)
	}
	return list, nil
}

// checkAliases returns an error, which quotes nothing, for aliases that expand too much, or refer to their own anchors: kustomize
// would follow those for ever.
func checkAliases(name string, text []byte) error {
	if err := manifest.CheckExpansion(name, text); err != nil {
		return errors.New(err.Error())
	}
	return nil
}

// end restores the line break that helm has cut from the end of documents: of all, or of the last one before the hooks.
func (r *Release) end(documents []document) error {
	for i := range slices.Backward(documents) {
		d := &documents[i]
		if !r.Trimmed {
			if hook, err := d.hook(); err != nil {
				return err
			} else if hook {
				continue
			}
		}
		if d.text = ended(d.text); !r.Trimmed {
			break
		}
	}
	return nil
}

func ended(text string) string { return strings.TrimSuffix(text, "\n") + "\n" }

func (d document) hook() (bool, error) {
	var head struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := sigsyaml.Unmarshal([]byte(d.text), &head); err != nil {
		return false, fmt.Errorf("%s: %w", d.source, err)
	}
	_, hook := head.Metadata.Annotations["helm.sh/hook"]
	return hook, nil
}

// merged returns one text with all documents, each annotated with its template.
func merged(documents []document) ([]byte, error) {
	var all []*kyaml.RNode
	for _, d := range documents {
		nodes, err := kio.ParseAll(d.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.source, err)
		}
		for _, n := range nodes {
			if err := n.PipeE(kyaml.SetAnnotation(sourceAnnotation, d.source)); err != nil {
				return nil, fmt.Errorf("%s: %w", d.source, err)
			}
			all = append(all, n)
		}
	}
	text, err := kio.StringAll(all)
	return []byte(text), err
}

// kustomized builds the manifests in memory, without other files.
func kustomized(ctx context.Context, b kustomize.Build, text []byte, k *helmv2.Kustomize) ([]byte, error) {
	config := &types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{renderedFile},
	}
	for _, image := range k.Images {
		config.Images = append(config.Images, types.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
	}
	for _, p := range k.Patches {
		config.Patches = append(config.Patches, types.Patch{Patch: p.Patch, Target: selector(p.Target)})
	}
	b.Source = helmPrinted(text)
	objects, err := b.Run(ctx, buildRoot, filepath.Join(buildRoot, "kustomization.yaml"), config)
	if err != nil {
		return nil, err
	}
	return asText(objects, kustomize.Object.YAML)
}

// buildRoot is the directory of a post renderer's build.
const buildRoot = string(filepath.Separator)

// helmPrinted is the only file of a post renderer's build.
type helmPrinted []byte

func (m helmPrinted) Kustomization(dir string) (*types.Kustomization, string, error) {
	return nil, "", fmt.Errorf("no kustomization file in %s", dir)
}

func (m helmPrinted) Directory(path string) (string, error) {
	if path != buildRoot {
		return "", fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return path, nil
}

func (m helmPrinted) ReadFile(path string) ([]byte, error) {
	if path != filepath.Join(buildRoot, renderedFile) {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return m, nil
}

func (m helmPrinted) Check(text []byte) error { return checkAliases("patch", text) }

func selector(s *fluxkustomize.Selector) *types.Selector {
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

func mark(list []*resource.Resource, labels, annotations map[string]string) error {
	at := types.FsSlice{{Path: "metadata/labels", CreateIfNotPresent: true}}
	for _, r := range list {
		if len(labels) > 0 {
			if err := r.ApplyFilter(labelsfilter.Filter{Labels: labels, FsSlice: at}); err != nil {
				return err
			}
		}
		if len(annotations) == 0 {
			continue
		}
		at := types.FsSlice{{Path: "metadata/annotations", CreateIfNotPresent: true}}
		if err := r.ApplyFilter(annotationsfilter.Filter{Annotations: annotations, FsSlice: at}); err != nil {
			return err
		}
	}
	return nil
}

// setNamespace sets the namespace of the release in a namespaced object without one, as Helm's client does.
func setNamespace(n *kyaml.RNode, namespace string) {
	namespaced, known := openapi.IsNamespaceScoped(kyaml.TypeMeta{APIVersion: n.GetApiVersion(), Kind: n.GetKind()})
	if known && namespaced && n.GetNamespace() == "" {
		_ = n.SetNamespace(namespace)
	}
}
