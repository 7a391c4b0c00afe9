package foresee

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/plan"
)

// manifestsOf compares rendered objects by name. With strip, it removes from objects in both sets the labels and annotations that
// change with every version of a chart, also in its arguments.
func manifestsOf(before, after map[string]map[string]any, strip bool) *plan.Manifests {
	m := &plan.Manifests{}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] == nil {
			m.Removed = append(m.Removed, name)
			if holdsData(before[name]) {
				m.DeletesData = append(m.DeletesData, name)
			}
			noteCRD(m, before[name], name+" removed")
		}
	}
	images := map[plan.Image]bool{}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		old, now := before[name], after[name]
		if old == nil {
			m.Added = append(m.Added, name)
			noteCRD(m, now, name+" added")
			continue
		}
		if reflect.DeepEqual(old, now) {
			continue
		}
		if strip {
			old, _ = stripped(old).(map[string]any)
			now, _ = stripped(now).(map[string]any)
			before[name], after[name] = old, now
		}
		if reflect.DeepEqual(old, now) {
			m.Stripped++
			continue
		}
		m.Changed = append(m.Changed, name)
		noteCRD(m, now, name+" changed")
		for _, image := range replacedImages(old, now) {
			if !images[image] {
				images[image] = true
				m.Images = append(m.Images, image)
			}
		}
	}
	return m
}

const crdKind = "CustomResourceDefinition"

func noteCRD(m *plan.Manifests, object map[string]any, text string) {
	if object["kind"] == crdKind {
		m.CRDs = append(m.CRDs, text)
	}
}

// holdsData reports whether Helm deletes data with an object.
func holdsData(object map[string]any) bool {
	annotations := manifest.At[map[string]any](object, "metadata", "annotations")
	switch object["kind"] {
	case "PersistentVolumeClaim", "Namespace", crdKind:
		return annotations["helm.sh/resource-policy"] != "keep"
	}
	return false
}

// stripped copies a JSON value without the labels and annotations that change with every version of a chart. Those in selectors
// and volume claim templates stay: Kubernetes refuses an upgrade that changes them.
func stripped(value any) any {
	return conceal.Rebuilt(value, func(key string, part any) (any, bool) {
		switch key {
		case "volumeClaimTemplates":
			return part, true
		case "metadata":
			return withoutVersions(part), true
		}
		return nil, false
	})
}

// withoutVersions copies metadata without the labels and annotations of a chart's version.
func withoutVersions(metadata any) any {
	fields, ok := metadata.(map[string]any)
	if !ok {
		return metadata
	}
	fields = maps.Clone(fields)
	for _, field := range []string{"labels", "annotations"} {
		texts, _ := fields[field].(map[string]any)
		left := maps.Clone(texts)
		maps.DeleteFunc(left, func(key string, _ any) bool {
			return key == "helm.sh/chart" || key == "app.kubernetes.io/version" || strings.HasPrefix(key, "checksum/")
		})
		if len(left) < len(texts) {
			fields[field] = left
		}
		if len(left) == 0 {
			delete(fields, field)
		}
	}
	return fields
}

// replacedImages returns the images that changed, by field.
func replacedImages(before, after map[string]any) (replaced []plan.Image) {
	old := map[string]string{}
	EachImage(before, func(field, reference string) { old[field] = reference })
	EachImage(after, func(field, reference string) {
		if was := old[field]; was != "" && was != reference {
			replaced = append(replaced, plan.Image{Before: was, After: reference})
		}
	})
	return replaced
}

var imageReference = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._:-]*(/[a-z0-9._-]+)*(:[\w][\w.-]*)?(@sha(256|512):[0-9a-f]+)?$`)
})

// EachImage visits the references in fields named image and in image volumes. It skips ConfigMaps, Secrets and
// CustomResourceDefinitions.
func EachImage(object map[string]any, visit func(field, reference string)) {
	switch object["kind"] {
	case "ConfigMap", "Secret", crdKind:
		return
	}
	for path, value := range manifest.Leaves(object, nil) {
		text, _ := value.(string)
		last := len(path) - 1
		named := path[last] == "image" || path[last] == "reference" && last > 1 && path[last-1] == "image"
		if named && imageReference().MatchString(text) {
			visit(manifest.Dotted(path...), text)
		}
	}
}
