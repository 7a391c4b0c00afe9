package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/store"
)

// managedBy and generatorLabel are the labels that source-watcher gives an ExternalArtifact.
const (
	managedBy      = "app.kubernetes.io/managed-by"
	generatorLabel = swv1.ArtifactGeneratorLabel
)

// Expansion is an artifact of a generator with a pathPattern, which is only known when the generator's sources are fetched.
type Expansion struct {
	Index  int // of the entry in spec.artifacts
	Name   string
	Labels map[string]string
}

func isGenerator(obj *manifest.Object) bool {
	return obj.Group() == manifest.ExtensionsGroup && obj.Kind == generate.Kind
}

// Artifacts returns the ExternalArtifacts that a generator makes, in the order of its spec.
func (inv *Inventory) Artifacts(obj *manifest.Object) []*manifest.Object {
	return inv.Derivations().made[obj]
}

// Taken returns the namespaces, sorted, of the sources with a kind and name that generators use.
func (inv *Inventory) Taken(kind, name string) []string {
	var list []string
	for _, obj := range inv.Objects() {
		if !isGenerator(obj) {
			continue
		}
		adm, err := inv.Admit(obj)
		if err != nil {
			continue
		}
		for _, s := range adm.Typed.(*swv1.ArtifactGenerator).Spec.Sources {
			if s.Kind == kind && s.Name == name {
				list = append(list, cmp.Or(s.Namespace, obj.Namespace))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// deriveArtifacts creates the ExternalArtifacts of all generators. A name that two generators use is left out.
func (inv *Inventory) deriveArtifacts(all *derivations) {
	all.made = map[*manifest.Object][]*manifest.Object{}
	all.unmade = map[store.Key]*RejectedError{}
	first := map[store.Key]*manifest.Object{}
	all.twice = map[store.Key][]*manifest.Object{}
	for _, obj := range all.objects {
		if !isGenerator(obj) {
			continue
		}
		adm, err := inv.Admit(obj)
		if err != nil {
			for _, name := range artifactNames(obj) {
				all.unmade[store.NewKey(sourcev1.ExternalArtifactKind, obj.Namespace, name)] = &RejectedError{Object: obj, Err: err}
			}
			continue
		}
		typed := adm.Typed.(*swv1.ArtifactGenerator)
		for _, e := range inv.expansion(obj, typed) {
			made := deriveArtifact(obj, typed, e)
			key := KeyOf(made)
			if other := first[key]; other != nil && other != obj {
				all.twice[key] = append(all.twice[key], other, obj)
				continue
			}
			first[key] = obj
			all.made[obj] = append(all.made[obj], made)
		}
	}
	for key := range all.twice {
		delete(first, key)
	}
	for _, list := range all.made {
		for _, made := range list {
			if len(all.twice[KeyOf(made)]) == 0 {
				all.byKey[KeyOf(made)] = made
			}
		}
	}
}

// artifactNames returns the names that a generator gives its artifacts, as far as its spec can be read.
func artifactNames(obj *manifest.Object) []string {
	artifacts := manifest.At[[]any](obj.Content, "spec", "artifacts")
	var names []string
	for _, a := range artifacts {
		fields, _ := a.(map[string]any)
		if name, ok := fields["name"].(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// Clash returns an error if several generators make an artifact.
func (inv *Inventory) Clash(namespace, name string) error {
	makers := slices.Clone(inv.Derivations().twice[store.NewKey(sourcev1.ExternalArtifactKind, namespace, name)])
	if len(makers) == 0 {
		return nil
	}
	slices.SortFunc(makers, func(a, b *manifest.Object) int { return strings.Compare(a.String(), b.String()) })
	makers = slices.Compact(makers)
	var names []string
	for _, m := range makers {
		names = append(names, fmt.Sprintf("%s at %s", m, m.Pos))
	}
	return errors.New("ExternalArtifact " + namespace + "/" + name + " is made by " + strings.Join(names, " and ") + ": each overwrites the other")
}

// ClashOf returns an error if another generator makes one of a generator's artifacts.
func (inv *Inventory) ClashOf(obj *manifest.Object, typed *swv1.ArtifactGenerator) error {
	for _, e := range inv.expansion(obj, typed) {
		if err := inv.Clash(obj.Namespace, e.Name); err != nil {
			return err
		}
	}
	return nil
}

func (inv *Inventory) expansion(obj *manifest.Object, typed *swv1.ArtifactGenerator) []Expansion {
	if typed.Spec.PathPattern != "" {
		return inv.Expansions[obj.Namespace+"/"+obj.Name]
	}
	if generate.Validate(&typed.Spec) != nil {
		return nil
	}
	var list []Expansion
	for i, a := range typed.Spec.OutputArtifacts {
		list = append(list, Expansion{Index: i, Name: a.Name})
	}
	return list
}

// deriveArtifact returns the manifest of an ExternalArtifact, whose positions are those of the generator.
func deriveArtifact(obj *manifest.Object, typed *swv1.ArtifactGenerator, e Expansion) *manifest.Object {
	labels := map[string]any{}
	metadata := map[string]any{"name": e.Name, "namespace": obj.Namespace, "labels": labels}
	if common := typed.Spec.CommonMetadata; common != nil {
		for k, v := range common.Labels {
			labels[k] = v
		}
		if len(common.Annotations) > 0 {
			annotations := map[string]any{}
			for k, v := range common.Annotations {
				annotations[k] = v
			}
			metadata["annotations"] = annotations
		}
	}
	for k, v := range e.Labels {
		labels[k] = v
	}
	if typed.IsDisabled() {
		annotations, _ := metadata["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
			metadata["annotations"] = annotations
		}
		annotations[swv1.ReconcileAnnotation] = swv1.DisabledValue
	}
	labels[managedBy] = "source-watcher"
	if typed.UID != "" {
		labels[generatorLabel] = string(typed.UID)
	}
	content := map[string]any{
		"apiVersion": sourcev1.GroupVersion.String(), "kind": sourcev1.ExternalArtifactKind, "metadata": metadata,
		"spec": map[string]any{"sourceRef": map[string]any{
			"apiVersion": swv1.GroupVersion.String(), "kind": generate.Kind, "namespace": obj.Namespace, "name": obj.Name,
		}},
	}
	return obj.Derive(manifest.Object{
		APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.ExternalArtifactKind,
		Namespace: obj.Namespace, Name: e.Name, Content: content,
	}, func([]any) []any { return []any{"spec", "artifacts", e.Index} })
}
