package reconcile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

// CheckForeign returns an error if a record from another machine belongs to another object, or names artifacts of
// objects that its object does not refer to.
func CheckForeign(key store.Key, record *store.Record) error {
	obj, k, _, err := decodeRecorded(key, record)
	if err != nil {
		return err
	}
	_, _, namespace, name := manifest.Identify(obj.Content)
	if !strings.EqualFold(k.name, key.Kind) || !manifest.MayBeStoredAs(namespace, key.Namespace) || !manifest.MayBeStoredAs(name, key.Name) {
		return errors.New("the record is that of another object")
	}
	typed := k.empty()
	if err := errors.Join(json.Unmarshal(record.Object, typed), json.Unmarshal(record.Status, k.parts(typed).status)); err != nil {
		return fmt.Errorf("recorded object: %w", err)
	}
	named, referred := references(k, key, typed)
	for _, artifact := range append(named, record.Chart.Artifact, manifest.At[string](obj.Content, "metadata", "annotations", status.ArtifactAnnotation)) {
		if artifact != "" && !slices.ContainsFunc(referred, func(k store.Key) bool { return isArtifactOf(artifact, k) }) {
			return fmt.Errorf("%q is not an artifact of an object that it refers to", artifact)
		}
	}
	return nil
}

// references returns the paths of other objects' artifacts that a status names, and the objects that the spec refers to. A
// key without a name matches every object of its kind and namespace.
func references(k *kind, key store.Key, typed any) (named []string, referred []store.Key) {
	switch obj := typed.(type) {
	case *sourcev1.GitRepository:
		for _, i := range obj.Spec.Include {
			referred = append(referred, store.NewKey(key.Kind, key.Namespace, i.GitRepositoryRef.Name))
		}
		for _, included := range obj.Status.IncludedArtifacts {
			if included != nil {
				named = append(named, included.Path)
			}
		}
	case *swv1.ArtifactGenerator:
		for _, made := range obj.Spec.OutputArtifacts {
			if obj.Spec.PathPattern != "" {
				made.Name = "" // its sources determine the names
			}
			referred = append(referred, store.NewKey(sourcev1.ExternalArtifactKind, key.Namespace, made.Name))
		}
		for _, made := range obj.Status.Inventory {
			named = append(named, strings.Join([]string{"externalartifact", made.Namespace, made.Name, made.Filename}, "/"))
		}
	case *helmv2.HelmRelease:
		if obj.Status.HelmChart != "" {
			named = append(named, "helmchart/"+obj.Status.HelmChart+"/chart.tgz")
		}
	}
	if p := k.parts(typed); k.noArtifact && p.sourceName != "" {
		referred = append(referred, store.NewKey(p.sourceKind, cmp.Or(p.sourceNamespace, key.Namespace), p.sourceName))
	}
	return named, referred
}

// isArtifactOf reports whether a path can be that of an artifact of an object. A key without a name matches every object
// of its kind and namespace.
func isArtifactOf(artifact string, of store.Key) bool {
	parts := strings.Split(artifact, "/")
	if len(parts) != 4 || parts[0] != of.Kind || !manifest.MayBeStoredAs(of.Namespace, parts[1]) || of.Name != "" && !manifest.MayBeStoredAs(of.Name, parts[2]) {
		return false
	}
	is, err := store.NewKey(parts[0], parts[1], parts[2]).Path(parts[3])
	return err == nil && is == artifact
}
