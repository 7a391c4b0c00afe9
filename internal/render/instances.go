package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resourceset"
	"github.com/helmsrc/helmsrc/internal/tree"
)

const instanceKind = "FluxInstance"

type syncObjects struct {
	source, kustomization *manifest.Object
	url                   string

	instance *manifest.Object
	patches  []types.Patch
	common   map[string]any // metadata of all objects
	err      error          // of a value that breaks the YAML without quotes
}

// syncOf returns the objects of the sync at a path of some content, nil if the sync is missing or invalid.
func syncOf(o *manifest.Object, content map[string]any, namespace string, at ...any) *syncObjects {
	field := func(name string) string { return manifest.At[string](content, append(slices.Clone(at), any(name))...) }
	kind := cmp.Or(field("kind"), "GitRepository")
	if o.Kind == instanceKind && resourceset.Disabled(content) || field("path") == "" || !slices.Contains([]string{"Bucket", "GitRepository", "OCIRepository"}, kind) {
		return nil
	}
	namespace = cmp.Or(namespace, bootstrapName)
	name := cmp.Or(field("name"), namespace)
	made := func(apiVersion, kind string, spec map[string]any, fields map[string]string) *manifest.Object {
		return o.Derive(manifest.Object{
			APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name,
			Content: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}, "spec": spec},
		}, func(path []any) []any {
			if len(path) < 2 || path[0] != "spec" {
				return at
			}
			field, _ := path[1].(string)
			if from := fields[field]; from != "" {
				return append(slices.Clone(at), any(from))
			}
			return at
		})
	}
	s := &syncObjects{url: field("url"), instance: o}
	s.err = unquotable(o, content, at)
	s.kustomization = made(kustomizev1.GroupVersion.String(), "Kustomization", map[string]any{
		"interval": "10m0s", "prune": true, "path": unquoted(field("path")), "sourceRef": map[string]any{"kind": kind, "name": name},
	}, map[string]string{"path": "path", "sourceRef": "kind"})
	s.source = made(manifest.SourceGroup+"/v1", kind, sourceSpec(kind, field), map[string]string{
		"url": "url", "endpoint": "url", "ref": "ref", "bucketName": "ref", "secretRef": "pullSecret", "provider": "provider", "interval": "interval",
	})
	s.common = manifest.At[map[string]any](content, "spec", "commonMetadata")
	text, err := json.Marshal(manifest.At[any](content, "spec", "kustomize", "patches"))
	if err != nil || json.Unmarshal(text, &s.patches) != nil {
		s.patches = nil // the schema check reports them
	}
	return s
}

func sourceSpec(kind string, field func(string) string) map[string]any {
	spec := map[string]any{"interval": cmp.Or(field("interval"), "1m")}
	set := func(name, value string) {
		if value != "" {
			spec[name] = unquoted(value)
		}
	}
	set("provider", field("provider"))
	switch kind {
	case "Bucket":
		set("endpoint", field("url"))
		set("bucketName", field("ref"))
	case "OCIRepository":
		set("url", field("url"))
		spec["ref"] = map[string]any{"tag": unquoted(field("ref"))}
	default:
		set("url", field("url"))
		spec["ref"] = map[string]any{"name": unquoted(field("ref"))}
	}
	if secret := field("pullSecret"); secret != "" {
		spec["secretRef"] = map[string]any{"name": unquoted(secret)}
	}
	return spec
}

// maxUnquoted is the limit, in bytes, of a value that the operator writes into YAML without quotes.
const maxUnquoted = 4096

// unquoted returns the value that YAML reads from an unquoted text.
func unquoted(text string) any {
	v, err := readUnquoted(text)
	if err != nil {
		return text
	}
	switch v := v.(type) {
	case time.Time:
		return text
	case int:
		return int64(v)
	}
	return v
}

func readUnquoted(text string) (any, error) {
	if len(text) > maxUnquoted {
		return nil, fmt.Errorf("longer than %d bytes", maxUnquoted)
	}
	var n yaml.Node
	if err := yaml.Unmarshal([]byte("v: "+text), &n); err != nil {
		return nil, err
	}
	var v struct{ V any }
	err := bound.Decode(&n, &v)
	return v.V, err
}

// unquotable returns the error of the first field of a sync that breaks the YAML that it is written into.
func unquotable(o *manifest.Object, content map[string]any, at []any) error {
	for _, name := range []string{"ref", "url", "path", "pullSecret", "provider"} {
		text := manifest.At[string](content, append(slices.Clone(at), any(name))...)
		if _, err := readUnquoted(text); err != nil {
			return manifest.Fault(o, &buildError{err: fmt.Errorf("flux-operator writes the value without quotes: %w", flat(err))}, "spec", "sync", name)
		}
	}
	return nil
}

// finish completes both objects as the operator applies them: with the patches and the common metadata.
func (s *syncObjects) finish(r *Renderer) error {
	if s.err != nil {
		return s.err
	}
	if err := s.patch(r); err != nil {
		return err
	}
	for _, o := range []*manifest.Object{s.source, s.kustomization} {
		if o != nil {
			addMetadata(o, s.common)
		}
	}
	return nil
}

func addMetadata(o *manifest.Object, common map[string]any) {
	metadata, _ := o.Content["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		values, _ := common[field].(map[string]any)
		if before, _ := metadata[field].(map[string]any); len(values) > 0 {
			merged := copyMap(before)
			maps.Copy(merged, values)
			metadata[field] = merged
		}
	}
}

// patch applies the patches of the instance that may have one of the two objects as target, as kustomize does. Patches of the
// operator's other objects are ignored, unless these objects are known not to exist.
func (s *syncObjects) patch(r *Renderer) error {
	if len(s.patches) == 0 {
		return nil
	}
	k := &types.Kustomization{Resources: []string{"sync.yaml"}}
	k.APIVersion, k.Kind = types.KustomizationVersion, types.KustomizationKind
	for _, p := range s.patches {
		if p.Path != "" {
			continue
		}
		for _, own := range (&confined{}).targeted("", p) {
			if p.Target == nil && own.Target != nil && s.hasAll(own.Target.Gvk) {
				own.Target = nil // kustomize fails if there is no such object
			}
			k.Patches = append(k.Patches, own)
		}
	}
	var text []byte
	for _, o := range []*manifest.Object{s.source, s.kustomization} {
		document, err := sigsyaml.Marshal(o.Content)
		if err != nil {
			return err
		}
		text = slices.Concat(text, []byte("---\n"), document)
	}
	// A path below .git is unique: no manifests are read there.
	v := newView(filepath.Join(r.homeOf(s.instance), ".git", instanceKind, s.instance.Namespace, s.instance.Name))
	v.add("sync.yaml", viewFile{made: text, pos: s.instance.Pos})
	repo := r.newRepository(v.root)
	repo.view, repo.rules = v, func() *tree.Rules { return new(tree.Rules) }
	result := repo.build(r.ctx, v.root, filepath.Join(v.root, "kustomization.yaml"), k, nil)
	if result.err != nil {
		return manifest.Fault(s.instance, &buildError{err: result.err}, "spec", "kustomize", "patches")
	}
	source, kustomization := s.source, s.kustomization
	s.source, s.kustomization = nil, nil // a patch may delete them
	for _, o := range result.objects {
		if _, kind, _, _ := manifest.Identify(o.content); kind == kustomizev1.KustomizationKind {
			kustomization.Content, s.kustomization = o.content, kustomization
		} else {
			source.Content, s.source = o.content, source
		}
	}
	return nil
}

// hasAll reports whether the operator makes no objects of a kind's group except the two.
func (s *syncObjects) hasAll(of resid.Gvk) bool {
	group := strings.ReplaceAll(of.Group, `\`, "")
	return group == manifest.SourceGroup || group == kustomizev1.GroupVersion.Group
}

// checkDistribution returns an error if no version of Flux 2 matches the version, or if no match has the features of the sync.
func checkDistribution(o *manifest.Object) error {
	version := manifest.At[string](o.Content, "spec", "distribution", "version")
	if version == "" || strings.ContainsAny(version, "$-") {
		return nil // a variable, or a prerelease
	}
	fault := func(err error, path ...any) error {
		return manifest.Fault(o, finding.WithCode(finding.InvalidValue, err), path...)
	}
	constraint, err := semver.NewConstraint(version)
	if err != nil {
		return fault(fmt.Errorf("build failed: semver '%s' parse error: %w", version, err), "spec", "distribution", "version")
	}
	matches := func(firstMinor uint64) bool {
		for minor := firstMinor; minor < 100; minor++ {
			for patch := range uint64(50) {
				if constraint.Check(semver.New(2, minor, patch, "", "")) {
					return true
				}
			}
		}
		return false
	}
	switch {
	case !matches(2):
		return fault(fmt.Errorf("build failed: no match found for semver: %s", version), "spec", "distribution", "version")
	case manifest.At[string](o.Content, "spec", "sync", "kind") == "GitRepository" && manifest.At[string](o.Content, "spec", "sync", "provider") == "aws" && !matches(9):
		return fault(fmt.Errorf("build failed: sync.provider 'aws' for GitRepository requires Flux version >= 2.9.0, got '%s'", version), "spec", "sync", "provider")
	}
	return nil
}
