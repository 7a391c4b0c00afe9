package render

import (
	"fmt"
	"maps"
	"slices"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// dropLabels leaves out the labels of an object one of whose labels is no text, as kustomize-controller does when it adds
// its own: it cannot read the map, and writes a new one. Annotations go the same way, but only where the Kustomization
// adds some. Which ones were dropped is returned as well.
func dropLabels(f *flux, content map[string]any) (map[string]any, []string) {
	meta, _ := content["metadata"].(map[string]any)
	var dropped []string
	for _, field := range []string{"labels", "annotations"} {
		if field == "annotations" && (f.spec.CommonMetadata == nil || len(f.spec.CommonMetadata.Annotations) == 0) {
			continue
		}
		values, _ := meta[field].(map[string]any)
		if notText(values) == "" {
			continue
		}
		dropped = append(dropped, field)
		content, meta = copyMap(content), copyMap(meta)
		delete(meta, field)
		content["metadata"] = meta
	}
	return content, dropped
}

// notText is the first key whose value is no text, "" for none.
func notText(values map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, ok := values[key].(string); !ok {
			return key
		}
	}
	return ""
}

// warnDropped warns of labels that do not reach the cluster.
func (b *builder) warnDropped(f *flux, obj *manifest.Object, content map[string]any, fields []string) {
	for _, field := range fields {
		key := notText(manifest.At[map[string]any](content, "metadata", field))
		text := fmt.Sprintf("metadata.%s[%s] is no text: %s drops all %s of the object, and applies it without", field, key, f.name(), field)
		b.warnAt(finding.DroppedLabels, obj, text, "put the value in quotes", obj.Position("metadata", field, key))
	}
}
