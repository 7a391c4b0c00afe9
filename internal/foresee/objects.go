package foresee

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/values"
)

// hiddenData replaces the data of a Secret. It is valid base64, so that checkers accept it.
const hiddenData = "UkVEQUNURUQ="

// documentsOf returns the documents in rendered manifests: post rendering leaves no other separator in them.
func documentsOf(manifests []byte) []string {
	return strings.Split(strings.TrimPrefix(string(manifests), "---\n"), "\n---\n")
}

// hideSecrets hides the values of Secrets, in the input and in rendered objects. Documents that cannot be read are not shown.
func (t *Renderer) hideSecrets(manifests []byte, short []string) []byte {
	if len(manifests) == 0 {
		return nil
	}
	var b strings.Builder
	for _, document := range documentsOf(manifests) {
		b.WriteString("---\n")
		b.WriteString(strings.TrimSuffix(hideSecret(document, short), "\n"))
		b.WriteString("\n")
	}
	return []byte(t.console.Secrets().Text(b.String()))
}

func hideSecret(document string, short []string) string {
	const unreadable = "# an object that cannot be shown"
	var object map[string]any
	if err := yaml.Unmarshal([]byte(document), &object); err != nil {
		return unreadable
	}
	shown, _ := withoutShort(object, short, false).(map[string]any)
	hidden := !reflect.DeepEqual(shown, object)
	object = shown
	for _, secret := range secretsIn(object) {
		for _, field := range []string{"data", "stringData"} {
			data, _ := secret[field].(map[string]any)
			for key := range data {
				data[key], hidden = hiddenData, true
			}
		}
	}
	if !hidden {
		return document
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return unreadable
	}
	return string(text)
}

// shortSecrets returns values of a release from Secrets that are too short to be searched for in every text, and their base64.
// They are hidden in its rendered objects: values of three or more letters as words, shorter ones only as a whole text.
func (r *Release) shortSecrets() (short []string) {
	for _, text := range append(r.whole.origins.Confidential(r.whole.values), r.Object.Confidential()...) {
		if text != "" && !conceal.Distinguishing(text) {
			short = append(short, text, base64.StdEncoding.EncodeToString([]byte(text)))
		}
	}
	slices.Sort(short)
	return slices.Compact(short)
}

// freeKeys returns the fields whose keys are free texts. All other keys are fields of a type and do not contain values.
func freeKeys() []string {
	return []string{"data", "stringData", "binaryData", "labels", "annotations", "matchLabels", "nodeSelector", "parameters"}
}

// withoutShort copies a JSON value without short texts. The type of an object stays.
func withoutShort(value any, short []string, keys bool) any {
	if len(short) == 0 {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(v))
		for key, part := range v {
			if key != "kind" && key != "apiVersion" {
				part = withoutShort(part, short, slices.Contains(freeKeys(), key))
			}
			if keys {
				key = conceal.Within(key, short)
			}
			shown[key] = part
		}
		return shown
	case []any:
		shown := make([]any, len(v))
		for i, part := range v {
			shown[i] = withoutShort(part, short, false)
		}
		return shown
	case string:
		return conceal.Within(v, short)
	case float64:
		if text := strconv.FormatFloat(v, 'f', -1, 64); len(text) > 2 && slices.Contains(short, text) {
			return conceal.Hidden
		}
	}
	return value
}

// secretsIn returns the Secrets in an object: itself, or items of a list.
func secretsIn(object map[string]any) []map[string]any {
	if kind, _ := object["kind"].(string); kind == "Secret" {
		return []map[string]any{object}
	}
	var found []map[string]any
	items, _ := object["items"].([]any)
	for _, item := range items {
		if o, ok := item.(map[string]any); ok {
			if kind, _ := object["kind"].(string); kind == "SecretList" {
				found = append(found, o)
				continue
			}
			found = append(found, secretsIn(o)...)
		}
	}
	return found
}

// RenderedObjects returns the objects in manifests by the names of their files in a diff. Lists are split.
func RenderedObjects(manifests []byte) (map[string]map[string]any, error) {
	objects := map[string]map[string]any{}
	var add func(object map[string]any)
	add = func(object map[string]any) {
		if items, ok := object["items"].([]any); ok {
			kind, _ := object["kind"].(string)
			for _, item := range items {
				if o, ok := item.(map[string]any); ok {
					if _, named := o["kind"]; !named {
						o["kind"] = strings.TrimSuffix(kind, "List")
					}
					add(o)
				}
			}
			return
		}
		name := objectFile(object)
		for n := 2; objects[name] != nil; n++ {
			name = fmt.Sprintf("%s-%d", objectFile(object), n)
		}
		objects[name] = object
	}
	for _, document := range documentsOf(manifests) {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, fmt.Errorf("the rendered text is not YAML: %w", err)
		}
		if len(object) > 0 {
			add(object)
		}
	}
	return objects, nil
}

// objectFile returns the name of an object in a diff, without the version of its API: deployment.apps/NAMESPACE/NAME.
func objectFile(object map[string]any) string {
	version, kind, namespace, name := manifest.Identify(object)
	resource := strings.ToLower(kind)
	if group, _, ok := strings.Cut(version, "/"); ok {
		resource += "." + group
	}
	parts := []string{resource}
	if namespace != "" {
		parts = append(parts, namespace)
	}
	parts = append(parts, name)
	for i, part := range parts {
		part = strings.Map(func(r rune) rune {
			if r == '/' || r == '\\' || !unicode.IsPrint(r) {
				return '_'
			}
			return r
		}, part)
		if part == "" || part == "." || part == ".." {
			part = "_"
		}
		parts[i] = part
	}
	return strings.Join(parts, "/")
}

// hiding hides secrets in an object and in its counterpart on the other side. Values that differ but would look alike get the name
// of their side.
type hiding struct {
	console *console.Console
	side    string
	short   []string // of both sides
}

func (h hiding) object(object, other map[string]any) map[string]any {
	shown := map[string]any{}
	kind, _ := object["kind"].(string)
	for key, value := range object {
		secret := kind == "Secret" && (key == "data" || key == "stringData")
		shown[key] = h.value(key, value, other[key], secret)
	}
	return shown
}

func (h hiding) value(field string, value, other any, secret bool) any {
	switch v := value.(type) {
	case map[string]any:
		o, _ := other.(map[string]any)
		shown := make(map[string]any, len(v))
		for key, value := range v {
			name := h.console.Secrets().Text(key)
			if slices.Contains(freeKeys(), field) {
				name = conceal.Within(name, h.short)
			}
			shown[name] = h.value(key, value, o[key], secret)
		}
		return shown
	case []any:
		o, _ := other.([]any)
		shown := make([]any, len(v))
		for i, value := range v {
			if i < len(o) {
				shown[i] = h.value("", value, o[i], secret)
			} else {
				shown[i] = h.value("", value, nil, secret)
			}
		}
		return shown
	case nil:
		return nil
	}
	shown := h.text(value, secret)
	if shown == fmt.Sprint(value) && !secret {
		return value
	}
	if other != nil && fmt.Sprint(other) != fmt.Sprint(value) && h.text(other, secret) == shown {
		return shown + " " + h.side
	}
	return shown
}

func (h hiding) text(value any, secret bool) string {
	if secret {
		return values.Hidden
	}
	return h.console.Secrets().Text(fmt.Sprint(withoutShort(value, h.short, false)))
}
