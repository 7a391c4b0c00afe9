package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"
)

// The names of files and directories that have a meaning for Helm.
const (
	chartFile        = "Chart.yaml"
	lockFile         = "Chart.lock"
	valuesFile       = "values.yaml"
	schemaFile       = "values.schema.json"
	requirementsFile = "requirements.yaml"
	requirementsLock = "requirements.lock"
	chartsDir        = "charts/"
)

// ErrNoChart reports an archive without a chart, in the words of source-controller.
var ErrNoChart = errors.New("no 'Chart.yaml' found")

var byteOrderMark = []byte{0xef, 0xbb, 0xbf}

// contents holds the files of one chart, and the charts below its charts directory.
type contents struct {
	depth int // archives around this one
	own   []*loader.BufferedFile
	subs  map[string]*contents
	found bool // a Chart.yaml is among own
}

// keeper decides which part of a file stays in memory: it returns nil for a file that need not be kept.
type keeper func(name string, size int64, body io.Reader) (*loader.BufferedFile, error)

func (c *contents) read(rd *reading, r io.Reader, keep keeper) error {
	return rd.walk(r, func(name string, size int64, body io.Reader) error {
		return c.add(rd, name, size, body, keep)
	})
}

// add stores a file in the place where Helm's loader would store it.
func (c *contents) add(rd *reading, name string, size int64, body io.Reader, keep keeper) error {
	inCharts, ok := strings.CutPrefix(name, chartsDir)
	if !ok || path.Ext(name) == ".prov" {
		return c.addOwn(name, size, body, keep)
	}
	sub, rest, isDir := strings.Cut(inCharts, "/")
	if strings.HasPrefix(sub, "_") || strings.HasPrefix(sub, ".") {
		return nil
	}
	if path.Ext(sub) == ".tgz" {
		return c.addArchive(rd, sub, isDir, body, keep)
	}
	s := c.sub(sub, c.depth)
	if !isDir {
		return nil // a file beside the subcharts: a subchart without a Chart.yaml, to Helm as well
	}
	return inSubchart(sub, s.add(rd, rest, size, body, keep))
}

func (c *contents) addOwn(name string, size int64, body io.Reader, keep keeper) error {
	if name == chartFile {
		// Helm reads one over the other, and other tools take the first or the last: refuse to guess which chart it is.
		if c.found {
			return fmt.Errorf("archive contains '%s' twice", chartFile)
		}
		c.found = true
	}
	file, err := keep(name, size, body)
	if err != nil {
		return err
	}
	if file != nil {
		c.own = append(c.own, file)
	}
	return nil
}

// addArchive unpacks charts/<name>.tgz. It ignores later entries with the same name.
func (c *contents) addArchive(rd *reading, name string, isDir bool, body io.Reader, keep keeper) error {
	if _, seen := c.subs[name]; seen {
		return nil
	}
	if isDir {
		return fmt.Errorf("subchart archive '%s' is a directory", printable(name))
	}
	if c.depth >= maxNesting {
		return fmt.Errorf("subchart archives are nested deeper than %d", maxNesting)
	}
	s := c.sub(name, c.depth+1)
	return inSubchart(name, s.read(rd, body, keep))
}

func (c *contents) sub(name string, depth int) *contents {
	if s := c.subs[name]; s != nil {
		return s
	}
	if c.subs == nil {
		c.subs = map[string]*contents{}
	}
	s := &contents{depth: depth}
	c.subs[name] = s
	return s
}

type inMemory struct {
	*bytes.Reader
	data []byte
}

// readFile reads a whole file, without a byte order mark, which Helm strips too.
func readFile(size int64, body io.Reader) ([]byte, error) {
	if f, ok := body.(inMemory); ok {
		return bytes.TrimPrefix(f.data, byteOrderMark), nil
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(body, data); err != nil {
		return nil, archiveError(err)
	}
	return bytes.TrimPrefix(data, byteOrderMark), nil
}

// metadata parses and validates Chart.yaml, overridden by requirements.yaml.
func (c *contents) metadata() (*helmchart.Metadata, error) {
	if !c.found {
		return nil, ErrNoChart
	}
	m := new(helmchart.Metadata)
	for _, name := range []string{chartFile, requirementsFile} {
		for _, f := range c.own {
			if f.Name != name {
				continue
			}
			if err := yaml.Unmarshal(f.Data, m); err != nil {
				return nil, fmt.Errorf("cannot load '%s': %w", name, err)
			}
		}
		if name == chartFile && m.APIVersion == "" {
			// Helm 2 charts did not need an apiVersion.
			m.APIVersion = helmchart.APIVersionV1
		}
	}
	return m, m.Validate()
}

func inSubchart(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("subchart '%s': %w", printable(name), err)
}

func (c *contents) subNames() []string { return slices.Sorted(maps.Keys(c.subs)) }
