package status

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/fluxcd/pkg/apis/meta"
	kubejson "k8s.io/apimachinery/pkg/util/json"
)

// ClusterAnnotation names the cluster of a document, if there are several.
const ClusterAnnotation = "helmsrc.dev/cluster"

// Document returns the object with a status, as the API server would serve it: apiVersion, kind, metadata and spec of
// content, and status, which may be one of the API's status structs, a map, or nil for an empty status. Content is
// not changed, but shared.
func Document(content map[string]any, status any) (map[string]any, error) {
	fields, err := Map(status)
	if err != nil {
		return nil, err
	}
	doc := maps.Clone(content)
	doc["status"] = fields
	return doc, nil
}

// Map returns a status struct as the map that its JSON decodes to: without empty fields that the API omits, with times in RFC
// 3339 with seconds, and whole numbers as int64.
func Map(status any) (map[string]any, error) {
	switch status := status.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return status, nil
	}
	b, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("status of type %T: %w", status, err)
	}
	var fields map[string]any
	if err := kubejson.Unmarshal(b, &fields); err != nil {
		return nil, fmt.Errorf("status of type %T: %w", status, err)
	}
	return fields, nil
}

// LastHandledReconcileAt returns the new value of status.lastHandledReconcileAt: that of the object's annotation
// reconcile.fluxcd.io/requestedAt if it is set, whatever the outcome, else the previous value.
func LastHandledReconcileAt(annotations map[string]string, previous string) string {
	if requested, ok := meta.ReconcileAnnotationValue(annotations); ok {
		return requested
	}
	return previous
}

// at returns the value at a path of maps, nil if it is missing.
func at(doc map[string]any, path ...string) any {
	var value any = doc
	for _, field := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[field]
	}
	return value
}

// Text returns the string at a path of maps in a document, or "".
func Text(doc map[string]any, path ...string) string {
	s, _ := at(doc, path...).(string)
	return s
}
