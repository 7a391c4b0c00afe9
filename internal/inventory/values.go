package inventory

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/values"
)

// ConfigMapKey returns the position of a key of a ConfigMap, if the input has the ConfigMap.
func (inv *Inventory) ConfigMapKey(namespace, name, key string) (manifest.Excerpt, bool) {
	c, err := inv.set.ConfigMap(namespace, name)
	if err != nil {
		return manifest.Excerpt{}, false
	}
	return c.Excerpt(key), true
}

// AvailableValues returns the references to values. It makes references to missing Secrets optional, so that the values
// can be composed without them.
func (inv *Inventory) AvailableValues(hr *helmv2.HelmRelease, absent func(i int, err error)) []meta.ValuesReference {
	refs := slices.Clone(hr.Spec.ValuesFrom)
	for i, ref := range refs {
		if ref.Kind != "Secret" || ref.Optional {
			continue
		}
		var missing *manifest.NotFoundError
		if _, err := inv.set.Secret(hr.Namespace, ref.Name); errors.As(err, &missing) {
			absent(i, fmt.Errorf("could not resolve %s: %w", values.Reference{Namespace: hr.Namespace, ValuesReference: ref}, err))
			refs[i].Optional = true
		}
	}
	return refs
}

// InlineValues returns the inline values, or an error if helm-controller would ignore
// them. helm-controller parses YAML; the JSON from admission is faster to parse, and
// almost always has the same value.
func InlineValues(hr *helmv2.HelmRelease) (map[string]any, error) {
	if hr.Spec.Values == nil || len(hr.Spec.Values.Raw) == 0 {
		return nil, nil
	}
	var inline map[string]any
	err := json.Unmarshal(hr.Spec.Values.Raw, &inline)
	if err == nil && inline != nil && !readsAsYAML(hr.Spec.Values.Raw) {
		if inline = hr.GetValues(); inline == nil {
			return nil, noMap("helm-controller would silently ignore it")
		}
	}
	if err != nil {
		return nil, noMap("helm-controller would silently ignore it")
	}
	return inline, nil
}

// maxYAMLKey is a little less than the 1024 characters that YAML allows a key.
const maxYAMLKey = 1000

// readsAsYAML reports whether JSON has the same value as YAML. YAML forbids control
// characters that JSON allows, and some other characters; it has a further line break, and
// limits the length of keys.
func readsAsYAML(text []byte) bool {
	length := 0
	for _, c := range text {
		switch c {
		case '"':
			length = 0
		case 0x7f, 0xc2, 0xef: // U+007F, and the first bytes of U+0080 to U+009F, U+FFFE and U+FFFF in UTF-8
			return false
		}
		if length++; length > maxYAMLKey {
			return false
		}
	}
	return true
}

// noMap returns the error of values that are a scalar or a list.
func noMap(what string) error {
	return &finding.Problem{
		Code: finding.InvalidValues, Field: []any{"spec", "values"}, Text: "spec.values is not a map: " + what,
		Advice: "write a map below spec.values; a | after the colon makes it a text",
	}
}

// Values returns a function that looks up the ConfigMaps and Secrets of a namespace.
func (inv *Inventory) Values(namespace string) values.Lookup {
	return func(kind, name string) (map[string][]byte, error) {
		if kind == "Secret" {
			secret, err := inv.set.Secret(namespace, name)
			if err != nil {
				return nil, missing(err)
			}
			return secret.Data, nil
		}
		config, err := inv.set.ConfigMap(namespace, name)
		if err != nil {
			return nil, missing(err)
		}
		data := make(map[string][]byte, len(config.Data))
		for k, v := range config.Data {
			data[k] = []byte(v)
		}
		return data, nil
	}
}

// Public reports whether a ConfigMap has no values from a Secret.
func (inv *Inventory) Public(namespace, name string) bool {
	config, err := inv.set.ConfigMap(namespace, name)
	return err == nil && !config.Confidential
}

// missingError reports a missing object, which an optional reference allows.
type missingError struct{ error }

func (e *missingError) Unwrap() error { return e.error }

func (e *missingError) Is(target error) bool { return target == fs.ErrNotExist }

func missing(err error) error {
	if _, ok := errors.AsType[*manifest.NotFoundError](err); ok {
		return &missingError{err}
	}
	return err
}
