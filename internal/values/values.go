// Package values composes the values of a release as helm-controller does, and returns the digest by which
// helm-controller detects changes. It does not know where ConfigMaps and Secrets come from, and its errors contain no
// values of Secrets.
package values

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/finding"
)

const kindSecret = "Secret"

// Lookup returns the data of an object of a kind, Secret or ConfigMap. An optional reference forgives an error that
// matches fs.ErrNotExist.
type Lookup func(kind, name string) (map[string][]byte, error)

// A Reference is an entry of valuesFrom, with the namespace of its release.
type Reference struct {
	Namespace string
	meta.ValuesReference
}

func (r Reference) String() string {
	return fmt.Sprintf("%s chart values reference '%s/%s' with key '%s'", r.Kind, r.Namespace, r.Name, r.GetValuesKey())
}

// Error reports a reference whose values cannot be read or merged.
type Error struct {
	Reference Reference
	Index     int // in the list of references
	Err       error

	hint string
}

func (e *Error) Error() string {
	optional := ""
	if e.Reference.Optional {
		optional = " optional"
	}
	return fmt.Sprintf("could not resolve%s %s: %v", optional, e.Reference, e.Err)
}

// Finding returns the code of the error.
func (e *Error) Finding() finding.Code {
	if e.Missing() {
		return finding.MissingValues
	}
	return finding.InvalidValues
}

func (e *Error) Unwrap() error { return e.Err }

// Missing reports whether the object or the key does not exist.
func (e *Error) Missing() bool {
	return errors.Is(e.Err, errKeyNotFound) || errors.Is(e.Err, fs.ErrNotExist)
}

// Hint returns advice for a known mistake, or "".
func (e *Error) Hint() string { return e.hint }

var errKeyNotFound = errors.New("key not found")

// Trace merges the values of the references in their order, and the inline values over them, and also returns the origin of each
// value. It passes the error of an optional reference whose object or key does not exist to forgiven.
func Trace(namespace string, refs []meta.ValuesReference, inline map[string]any, lookup Lookup, forgiven func(error)) (map[string]any, *Origins, error) {
	// A target path may change the inline values; the origins need them unchanged.
	given := runtime.DeepCopyJSON(inline)
	c := &composition{namespace: namespace, inline: inline, lookup: lookup, result: map[string]any{}, objects: map[[2]string]object{}, origins: &Origins{}}
	for i, ref := range refs {
		r := Reference{namespace, ref}
		data, found, err := c.data(r)
		switch {
		case err != nil && !found && ref.Optional:
			forgiven(&Error{Reference: r, Index: i, Err: err})
			continue
		case err == nil:
			err = c.add(r, data)
		}
		if err == nil && c.merged > maxMerged {
			err = errTooMuch
		}
		if err != nil {
			return nil, c.origins, &Error{Reference: r, Index: i, Err: err, hint: c.hint(r, err)}
		}
	}
	c.origins.note(nil, given, nil)
	return c.merge(c.result, inline), c.origins, nil
}

// composition is the state of a merge.
type composition struct {
	namespace string
	inline    map[string]any
	lookup    Lookup
	result    map[string]any
	objects   map[[2]string]object // each is looked up once
	origins   *Origins

	dataSize, items, merged int // used amounts, see limits.go
}

type object struct {
	data map[string][]byte
	err  error
}

// data returns the data of a reference. Found is false if the object or key does not exist, which is an error, too.
func (c *composition) data(r Reference) (data []byte, found bool, err error) {
	id := [2]string{r.Kind, r.Name}
	o, known := c.objects[id]
	if !known {
		o.data, o.err = c.lookup(r.Kind, r.Name)
		c.objects[id] = o
	}
	if o.err != nil {
		return nil, !errors.Is(o.err, fs.ErrNotExist), o.err
	}
	data, ok := o.data[r.GetValuesKey()]
	if !ok {
		return nil, false, errKeyNotFound
	}
	return data, true, nil
}

// add merges the data of a reference into the result.
//
// A target path is set over the inline values, and changes the maps that the result then shares with them. So it wins over
// inline values if its parent is a map that only they have, and loses if the last merge copies the parent: helm-controller
// does the same.
func (c *composition) add(r Reference, data []byte) error {
	if r.TargetPath != "" {
		c.result = c.merge(c.result, c.inline)
		err := c.set(r, string(data))
		if err == nil {
			c.origins.note(&r, nil, setter(r, string(data)))
		}
		if _, ok := errors.AsType[*limitError](err); ok {
			return err // it contains no values
		}
		return concealed(r, "cannot be set at its target path", err)
	}
	values, err := c.decode(data, func(err error) error {
		hint := fmt.Sprintf("write a YAML map under the key %s of %s %s/%s", r.GetValuesKey(), r.Kind, r.Namespace, r.Name)
		return finding.WithHint(concealed(r, "is not a YAML map", err), hint)
	})
	if err != nil {
		return err
	}
	c.result = c.merge(c.result, values)
	c.origins.note(&r, values, nil)
	return nil
}

// decode parses a map of values. Unreadable wraps an error of the parser.
func (c *composition) decode(data []byte, unreadable func(error) error) (values map[string]any, err error) {
	if err := c.spendData(data); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(data, &values); err != nil {
		return nil, unreadable(err)
	}
	return values, checkDepth(values, 0)
}

func (c *composition) set(r Reference, value string) error {
	expression := r.TargetPath
	if !r.Literal {
		expression += "=" + value
	}
	if err := c.spendItems(expression); err != nil {
		return err
	}
	return setter(r, value)(c.result)
}

func unquoted(value string) (text string, quoted bool) {
	for _, quote := range []string{"'", `"`} {
		if strings.HasPrefix(value, quote) && strings.HasSuffix(value, quote) {
			return strings.Trim(value, `'"`), true
		}
	}
	return value, false
}

// concealed replaces an error that may quote a value of a Secret.
func concealed(r Reference, what string, err error) error {
	if err == nil || r.Kind != kindSecret {
		return err
	}
	return fmt.Errorf("the value %s", what)
}

func (c *composition) hint(r Reference, err error) string {
	var limit *limitError
	switch {
	case errors.As(err, &limit):
		return "Helm stores a release in a Secret, which is limited to 1 MiB"
	case errors.Is(err, errKeyNotFound):
		return keysHint(r, c.objects[[2]string{r.Kind, r.Name}].data)
	case errors.Is(err, fs.ErrNotExist):
		return "" // there is no value to read
	case r.TargetPath != "" && !r.Literal:
		return "with a targetPath, the value is parsed as by helm --set; with literal: true it is not"
	}
	return ""
}

// maxListed is the number of keys of an object that a hint lists.
const maxListed = 8

func keysHint(r Reference, data map[string][]byte) string {
	keys := slices.Sorted(maps.Keys(data))
	text := fmt.Sprintf("%s %s/%s has the keys %s", r.Kind, r.Namespace, r.Name, strings.Join(keys[:min(len(keys), maxListed)], ", "))
	switch near, ok := finding.Nearest(r.GetValuesKey(), keys); {
	case len(keys) == 0:
		text = fmt.Sprintf("%s %s/%s has no keys", r.Kind, r.Namespace, r.Name)
	case len(keys) > maxListed:
		text += fmt.Sprintf(" and %d more", len(keys)-maxListed)
	case len(keys) == 1:
		text = fmt.Sprintf("%s %s/%s has the key %s", r.Kind, r.Namespace, r.Name, keys[0])
		fallthrough
	case ok:
		if ok && r.ValuesKey != "" {
			text += ": did you mean " + near + "?"
		}
	}
	if r.ValuesKey == "" {
		text += ": without valuesKey the key is values.yaml"
	}
	return text
}

// merge returns a with b over it: maps are merged, other values are replaced. The result shares maps that only a or only b
// has.
func (c *composition) merge(a, b map[string]any) map[string]any {
	c.merged += len(a) + len(b)
	merged := make(map[string]any, len(a)+len(b))
	maps.Copy(merged, a)
	for k, v := range b {
		over, isMap := v.(map[string]any)
		under, wasMap := merged[k].(map[string]any)
		if isMap && wasMap {
			v = c.merge(under, over)
		}
		merged[k] = v
	}
	return merged
}
