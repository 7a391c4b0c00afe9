package inventory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/values"
)

// OperatedInline returns the inline values of a HelmRelease of Flux 1. The operator silently drops values that
// are not a map; here they are an error.
func OperatedInline(hr *operator.HelmRelease) (map[string]any, error) {
	if hr.Spec.Values == nil || len(hr.Spec.Values.Raw) == 0 {
		return nil, nil
	}
	var inline map[string]any
	if err := json.Unmarshal(hr.Spec.Values.Raw, &inline); err != nil {
		return nil, noMap("the operator silently ignores it")
	}
	return inline, nil
}

// OperatedReaders holds functions for sources of values other than ConfigMaps and Secrets.
type OperatedReaders struct {
	URL       func(url string) ([]byte, error)
	ChartFile func(path string) ([]byte, error)
}

const defaultValuesKey = "values.yaml"

// OperatedParts returns the values that the operator merges before the inline values: valueFileSecrets, then valuesFrom.
func (inv *Inventory) OperatedParts(hr *operator.HelmRelease, r OperatedReaders) ([]values.Part, error) {
	var parts []values.Part
	for i, secret := range hr.Spec.ValueFileSecrets {
		ref := &operator.KeyReference{ObjectReference: operator.ObjectReference{Name: secret.Name}}
		parts = append(parts, inv.keyPart(hr, "Secret", ref, "spec", "valueFileSecrets", i, "name"))
	}
	for i, from := range hr.Spec.ValuesFrom {
		at := func(field, inner string) []any { return []any{"spec", "valuesFrom", i, field, inner} }
		switch {
		case from.ConfigMapKeyRef != nil:
			parts = append(parts, inv.keyPart(hr, "ConfigMap", from.ConfigMapKeyRef, at("configMapKeyRef", "name")...))
		case from.SecretKeyRef != nil:
			parts = append(parts, inv.keyPart(hr, "Secret", from.SecretKeyRef, at("secretKeyRef", "name")...))
		case from.ExternalSourceRef != nil:
			ref := from.ExternalSourceRef
			parts = append(parts, values.Part{
				Kind: "URL", Name: ref.URL, Path: at("externalSourceRef", "url"), Optional: ref.Optional != nil && *ref.Optional,
				Read: func() ([]byte, error) { return r.URL(ref.URL) },
			})
		case from.ChartFileRef != nil:
			ref := from.ChartFileRef
			parts = append(parts, values.Part{
				Kind: "ChartFile", Name: ref.Path, Path: at("chartFileRef", "path"), Optional: ref.Optional != nil && *ref.Optional,
				Read: func() ([]byte, error) { return r.ChartFile(ref.Path) },
			})
		default:
			return nil, &finding.Problem{
				Code: finding.InvalidValues, Field: []any{"spec", "valuesFrom", i},
				Text: fmt.Sprintf("spec.valuesFrom[%d] names no source: the operator ignores it", i),
			}
		}
	}
	return parts, nil
}

func (inv *Inventory) keyPart(hr *operator.HelmRelease, kind string, ref *operator.KeyReference, path ...any) values.Part {
	p := values.Part{Namespace: ref.Namespace, Kind: kind, Name: ref.Name, Key: ref.Key, Path: path, Optional: ref.Optional}
	p.Namespace = cmp.Or(p.Namespace, hr.Namespace)
	p.Key = cmp.Or(p.Key, defaultValuesKey)
	p.Read = func() ([]byte, error) {
		data, err := inv.Values(p.Namespace)(kind, p.Name)
		if notFound, ok := errors.AsType[*manifest.NotFoundError](err); ok && kind != "Secret" {
			return nil, finding.WithCode(finding.MissingValues, notFound)
		} else if ok {
			return nil, notFound
		}
		if err != nil {
			return nil, err
		}
		text, ok := data[p.Key]
		if !ok {
			return nil, finding.WithCode(finding.MissingValues, fmt.Errorf("could not find key %s in %s %s/%s", p.Key, kind, p.Namespace, p.Name))
		}
		return text, nil
	}
	return p
}
