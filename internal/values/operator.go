package values

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// A Part is a file of values as the Helm Operator of Flux 1 merges them: a key of a ConfigMap or Secret, a file of the chart, or
// the content of a URL.
type Part struct {
	Namespace, Kind, Name, Key string // Kind is ConfigMap, Secret, ChartFile or URL; the last two have only a Name
	Path                       []any  // of the field of the release that names it
	Optional                   bool
	Read                       func() ([]byte, error)
}

// Kinds of parts that are not objects.
const (
	kindChartFile = "ChartFile"
	kindURL       = "URL"
)

// reference returns the part as a reference for Origins.
func (p *Part) reference() *Reference {
	return &Reference{p.Namespace, meta.ValuesReference{Kind: p.Kind, Name: p.Name, ValuesKey: p.Key, Optional: p.Optional}}
}

func (p *Part) String() string {
	switch p.Kind {
	case kindChartFile:
		return "chart file " + p.Name
	case kindURL:
		return p.Name
	}
	return fmt.Sprintf("key %s in %s %s/%s", p.Key, p.Kind, p.Namespace, p.Name)
}

// PartError reports a part whose values cannot be read or merged.
type PartError struct {
	Part *Part
	Err  error
}

func (e *PartError) Error() string { return e.Err.Error() }

// Finding returns the code of the error.
func (e *PartError) Finding() finding.Code {
	if code := finding.CodeOf(e.Err); code != "" {
		return code
	}
	return finding.InvalidValues
}

func (e *PartError) Unwrap() error { return e.Err }

// Path returns the field of the release that names the part.
func (e *PartError) Path() []any { return e.Part.Path }

// MergeParts merges parts in their order, and the inline values over them, as the Helm Operator does: maps are merged, other values
// are replaced, by null, too. It passes any error of an optional part to forgiven, and otherwise returns a [*PartError]. It does not
// change the inline values.
func MergeParts(parts []Part, inline map[string]any, forgiven func(error)) (map[string]any, *Origins, error) {
	c := &composition{result: map[string]any{}, origins: &Origins{}}
	for i := range parts {
		p := &parts[i]
		values, err := c.readPart(p)
		if err != nil && p.Optional {
			forgiven(&PartError{p, err})
			continue
		}
		if err == nil {
			c.result = c.merge(c.result, values)
			if c.merged > maxMerged {
				err = errTooMuch
			}
		}
		if err != nil {
			return nil, nil, &PartError{p, err}
		}
		c.origins.note(p.reference(), values, nil)
	}
	given := runtime.DeepCopyJSON(inline)
	c.origins.note(nil, given, nil)
	return c.merge(c.result, given), c.origins, nil
}

func (c *composition) readPart(p *Part) (map[string]any, error) {
	data, err := p.Read()
	if err != nil {
		return nil, err
	}
	return c.decode(data, func(err error) error {
		if p.Kind == kindSecret {
			err = errors.New("not a YAML map")
		}
		return finding.WithHint(fmt.Errorf("unable to read the values of %s: %w", p, err), "write a YAML map: the Helm Operator accepts nothing else")
	})
}

// Checksum returns the Helm Operator's checksum of composed values: SHA-256 of the YAML with sorted keys, in hexadecimal digits.
func Checksum(values map[string]any) (string, error) {
	if values == nil {
		values = map[string]any{}
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("checksum of values: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
