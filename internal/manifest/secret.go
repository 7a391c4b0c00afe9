package manifest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxSecretSize is the API server's limit of the values of one Secret or ConfigMap together, in bytes.
const maxSecretSize = 1 << 20

// Secret is a Secret as the API server would store it: data and stringData are merged. It does not print its values.
type Secret struct {
	Namespace, Name, Type string
	Data                  map[string][]byte
	Pos                   Pos
}

// Secret returns the Secret of a reference. A Secret that is encrypted with SOPS counts as missing.
func (s *Set) Secret(namespace, name string) (*Secret, error) {
	o, content, err := s.datum("Secret", namespace, name)
	if err != nil {
		return nil, err
	}
	return newSecret(o, content)
}

// datum returns an object of a kind that is kept for references only. It reads the content on first use.
func (s *Set) datum(kind, namespace, name string) (*Object, map[string]any, error) {
	o, err := s.find(key{"", kind, namespace, name}, func(s *Set) map[key][]*Object { return s.data })
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	content, err := s.contentOf(o)
	hint := o.Sealed
	if sealed, ok := errors.AsType[*SealedError](err); ok {
		hint, err = cmp.Or(sealed.Reason, "decrypt it first"), nil
	}
	if sops, ok := content["sops"].(map[string]any); ok && sops["mac"] != nil && hint == "" {
		hint = "decrypt it first"
	}
	if hint != "" {
		return nil, nil, &NotFoundError{Kind: kind, Namespace: namespace, Name: name, InCluster: true,
			known: "the one at " + o.Pos.String() + " is encrypted with SOPS: " + hint}
	}
	return o, content, err
}

func (s *Set) contentOf(o *Object) (map[string]any, error) {
	if opened, ok := s.opened[o]; ok {
		return opened.Content, opened.Err
	}
	if o.Content != nil {
		return o.Content, nil
	}
	root, err := o.at.doc.root()
	if err != nil {
		return nil, err
	}
	return o.at.doc.object(root, o.at.path)
}

func newSecret(o *Object, content map[string]any) (*Secret, error) {
	s := &Secret{Namespace: o.Namespace, Name: o.Name, Pos: o.Pos, Data: map[string][]byte{}}
	r := secretReader{o, content}
	var err error
	if s.Type, err = r.text("type"); err != nil {
		return nil, err
	}
	s.Type = cmp.Or(s.Type, "Opaque")
	if err := r.merge(s.Data, "data", base64.StdEncoding.DecodeString); err != nil {
		return nil, err
	}
	if err := r.merge(s.Data, "stringData", plainText); err != nil {
		return nil, err
	}
	o.Secrets.AddLogin(s.Data)
	return s, r.validate(s)
}

type secretReader struct {
	object  *Object
	content map[string]any
}

func (r secretReader) fail(format string, args ...any) *SecretError {
	return &SecretError{Kind: r.object.Kind, Namespace: r.object.Namespace, Name: r.object.Name, Pos: r.object.Pos,
		Msg: fmt.Sprintf(format, args...)}
}

func (r secretReader) failAt(field, k, format string, args ...any) *SecretError {
	e := r.fail("%s[%s]: "+format, append([]any{field, k}, args...)...)
	e.Pos = r.object.Position(field, k)
	return e
}

func (r secretReader) text(field string) (string, error) {
	switch v := r.content[field].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	e := r.fail("%s must be a string", field)
	e.Pos = r.object.Position(field)
	return "", e
}

// merge adds data or stringData to a map. A null value is an empty string, as the API server reads JSON.
func (r secretReader) merge(into map[string][]byte, field string, decode func(string) ([]byte, error)) error {
	values, ok := r.content[field].(map[string]any)
	if !ok && r.content[field] != nil {
		e := r.fail("%s must be a map", field)
		e.Pos = r.object.Position(field)
		return e
	}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		var text string
		switch v := values[k].(type) {
		case nil:
		case string:
			text = v
		default:
			e := r.failAt(field, k, "must be a string")
			e.hint = "put the value in quotes"
			return e
		}
		value, err := decode(text)
		if err != nil {
			e := r.failAt(field, k, "not base64: %v", err)
			e.hint = "plain text belongs in stringData"
			return e
		}
		into[k] = value
	}
	return nil
}

// requiredKeys are the keys that the API server requires, by the type of a Secret.
var requiredKeys = map[string][]string{
	"kubernetes.io/tls":              {"tls.crt", "tls.key"},
	"kubernetes.io/dockerconfigjson": {".dockerconfigjson"},
	"kubernetes.io/dockercfg":        {".dockercfg"},
	"kubernetes.io/ssh-auth":         {"ssh-privatekey"},
}

// check validates keys and size. The rules are the same for a ConfigMap and a Secret.
func (r secretReader) check(data map[string][]byte) error {
	size := 0
	for _, k := range slices.Sorted(maps.Keys(data)) {
		if msgs := validation.IsConfigMapKey(k); len(msgs) > 0 {
			e := r.fail("data[%s]: Invalid value: %q: %s", k, k, strings.Join(msgs, ", "))
			e.Pos = r.position(k)
			return e
		}
		size += len(data[k])
	}
	if size > maxSecretSize {
		return r.fail("data: Too long: may not be more than %d bytes", maxSecretSize)
	}
	return nil
}

func (r secretReader) validate(s *Secret) error {
	if err := r.check(s.Data); err != nil {
		return err
	}
	for _, k := range requiredKeys[s.Type] {
		if _, ok := s.Data[k]; !ok {
			return r.fail("data[%s]: Required value: a Secret of type %s has it", k, s.Type)
		}
		if strings.HasPrefix(k, ".docker") && !json.Valid(s.Data[k]) {
			e := r.fail("data[%s]: Invalid value: not JSON", k)
			e.Pos = r.position(k)
			return e
		}
	}
	if s.Type == "kubernetes.io/basic-auth" && s.Data["username"] == nil && s.Data["password"] == nil {
		return r.fail("data: Required value: a Secret of type %s has a username or a password", s.Type)
	}
	return nil
}

// position returns the position of the value of a key in stringData, which takes precedence, or in data.
func (r secretReader) position(k string) Pos {
	if m, ok := r.content["stringData"].(map[string]any); ok {
		if _, ok := m[k]; ok {
			return r.object.Position("stringData", k)
		}
	}
	return r.object.Position("data", k)
}

// String names the Secret and its keys, never the values.
func (s Secret) String() string {
	return fmt.Sprintf("Secret %s/%s (%s) with keys %v", s.Namespace, s.Name, s.Type, slices.Sorted(maps.Keys(s.Data)))
}

// GoString returns String: %#v must not circumvent the redaction.
func (s Secret) GoString() string { return s.String() }

// Format writes String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalJSON writes the keys without the values.
func (s Secret) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"namespace": s.Namespace, "name": s.Name, "type": s.Type, "keys": slices.Sorted(maps.Keys(s.Data))})
}

// MarshalText returns String, for every other encoder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ConfigMap is a ConfigMap as the API server would store it. It omits binary data: no reference reads it.
type ConfigMap struct {
	Data         map[string]string
	Confidential bool // a part of it came from a Secret or was encrypted
	Pos          Pos

	object *Object
}

// Excerpt returns the line of a key, or only the position of a ConfigMap that came from a Secret.
func (c *ConfigMap) Excerpt(key string) Excerpt {
	if c.Confidential {
		return Excerpt{Pos: c.Pos}
	}
	return c.object.Excerpt("data", key)
}

// ConfigMap returns the ConfigMap of a reference. A ConfigMap that is encrypted with SOPS counts as missing.
func (s *Set) ConfigMap(namespace, name string) (*ConfigMap, error) {
	o, content, err := s.datum("ConfigMap", namespace, name)
	if err != nil {
		return nil, err
	}
	values := map[string][]byte{}
	r := secretReader{o, content}
	if err := r.merge(values, "data", plainText); err != nil {
		return nil, err
	}
	if err := r.check(values); err != nil {
		return nil, err
	}
	c := &ConfigMap{Pos: o.Pos, Data: map[string]string{}, Confidential: s.confidential(o), object: o}
	for k, v := range values {
		c.Data[k] = string(v)
	}
	return c, nil
}

func (s *Set) confidential(o *Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, opened := s.opened[o]
	return opened || o.Tainted()
}

func plainText(v string) ([]byte, error) { return []byte(v), nil }
