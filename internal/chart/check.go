// Package chart reads, edits and packages one Helm chart, reproducibly. It does not know where charts come from, and
// it never writes to disk.
package chart

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	goyaml "go.yaml.in/yaml/v2"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/bound"
)

// maxDepth is the depth of nested values up to which they are checked without JSON.
const maxDepth = 1000

// Check reads a chart archive once, as it streams by, and returns its metadata if Helm would load it within the limits.
// Only Chart.yaml and requirements.yaml stay in memory; other files that Helm parses are parsed and dropped. On success
// r has been read to its end, so a copy made by an io.TeeReader is complete; on failure it has not.
//
// An error that matches helm.sh/helm/v3/pkg/chart.ValidationError is about the metadata, any other is about the
// archive. The warnings describe unusual content that was accepted.
func Check(r io.Reader, l Limits) (*helmchart.Metadata, []string, error) {
	rd := newReading(l)
	c := &contents{}
	if err := c.read(rd, rd.bound(r), rd.keepMetadata); err != nil {
		return nil, nil, err
	}
	m, err := c.check()
	if err != nil {
		return nil, nil, err
	}
	if m.APIVersion != helmchart.APIVersionV1 && m.APIVersion != helmchart.APIVersionV2 {
		rd.warn("chart has apiVersion '%s', which Helm 3 does not know", printable(m.APIVersion))
	}
	return m, rd.report(), nil
}

func (rd *reading) bound(r io.Reader) io.Reader {
	left := rd.limits.Archive
	return &budget{r: r, left: &left, err: rd.limits.archiveError()}
}

// check validates the metadata of the chart and all charts inside it.
func (c *contents) check() (*helmchart.Metadata, error) {
	m, err := c.metadata()
	if err != nil {
		return nil, err
	}
	for _, name := range c.subNames() {
		if _, err := c.subs[name].check(); err != nil {
			return nil, inSubchart(name, err)
		}
	}
	return m, nil
}

// keepMetadata keeps the files that identify the chart, parses the files that Helm would parse, and skips the rest.
func (rd *reading) keepMetadata(name string, size int64, body io.Reader) (*loader.BufferedFile, error) {
	parse := func([]byte) error { return nil }
	switch name {
	case chartFile, requirementsFile:
	case lockFile, requirementsLock:
		parse = func(data []byte) error { return yaml.Unmarshal(data, new(helmchart.Lock)) }
	case valuesFile:
		parse = checkValues
	default:
		return nil, nil
	}
	if rd.yaml -= size; rd.yaml < 0 {
		return nil, limitError("metadata and values of chart exceed '%d' bytes limit", rd.limits.yaml())
	}
	data, err := readFile(size, body)
	if err == nil {
		err = bound.Check(data)
	}
	if err != nil {
		return nil, err
	}
	if err := parse(data); err != nil {
		return nil, fmt.Errorf("cannot load '%s': %w", name, err)
	}
	if name == chartFile || name == requirementsFile {
		return &loader.BufferedFile{Name: name, Data: data}, nil
	}
	return nil, nil
}

// checkValues returns the error that Helm would return for values.yaml. Helm converts the YAML to JSON and parses that;
// if the YAML is clearly a map that JSON can express, checkValues only parses the YAML, which takes less time.
func checkValues(data []byte) error {
	var values any
	if err := goyaml.Unmarshal(data, &values); err == nil && (values == nil || isMap(values)) && isJSON(values, 0) {
		return nil
	}
	return yaml.Unmarshal(data, new(map[string]any))
}

func isMap(v any) bool {
	_, ok := v.(map[any]any)
	return ok
}

// isJSON reports whether a value surely survives a conversion to JSON. The depth is well below the limit of Go's
// decoder.
func isJSON(v any, depth int) bool {
	switch v := v.(type) {
	case nil, bool, string, int, int64, uint64:
		return true
	case float64:
		return !math.IsNaN(v) && !math.IsInf(v, 0)
	case []any:
		return depth < maxDepth && !slices.ContainsFunc(v, func(v any) bool { return !isJSON(v, depth+1) })
	case map[any]any:
		for k, v := range v {
			if _, ok := k.(string); !ok || depth >= maxDepth || !isJSON(v, depth+1) {
				return false
			}
		}
		return true
	}
	return false
}

var errFound = errors.New("found")

// Metadata reads the metadata of an archive that Check has accepted before, and stops there.
func Metadata(r io.Reader, l Limits) (*helmchart.Metadata, error) {
	rd := newReading(l)
	c := &contents{}
	err := rd.walk(rd.bound(r), func(name string, size int64, body io.Reader) error {
		if name != chartFile {
			return nil
		}
		if err := c.addOwn(name, size, body, keepAll); err != nil {
			return err
		}
		return errFound
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	return c.metadata()
}

// MatchName reports whether a chart's own name is the requested name. In an OCI registry a chart may be requested by a
// path, whose last element is its name.
func MatchName(got, want string) bool {
	return path.Base(got) == path.Base(want)
}

// MatchVersion reports whether two spellings mean the same version, build metadata included. A leading v and the
// underscore in place of a plus in OCI tags make no difference. Texts that are not semantic versions must be equal.
func MatchVersion(got, want string) bool {
	if got == want {
		return true
	}
	g, err := parseTag(got)
	if err != nil {
		return false
	}
	w, err := parseTag(want)
	if err != nil {
		return false
	}
	return g.Equal(w) && g.Metadata() == w.Metadata()
}

func parseTag(s string) (*semver.Version, error) {
	return semver.NewVersion(strings.ReplaceAll(s, "_", "+"))
}
