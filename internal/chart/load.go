package chart

import (
	"errors"
	"io"
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"
)

// Load reads a chart archive into memory, with the archives of subcharts unpacked under the same limits. The
// dependencies of each chart are in the order in which the chart declares them, undeclared dependencies after them by name.
func Load(r io.Reader, l Limits) (*helmchart.Chart, error) {
	rd := newReading(l)
	c := &contents{}
	if err := c.read(rd, rd.bound(r), keepAll); err != nil {
		return nil, err
	}
	return c.load()
}

func keepAll(name string, size int64, body io.Reader) (*loader.BufferedFile, error) {
	data, err := readFile(size, body)
	if err != nil {
		return nil, err
	}
	return &loader.BufferedFile{Name: name, Data: data}, nil
}

func (c *contents) load() (*helmchart.Chart, error) {
	loaded, err := c.chart()
	if err != nil {
		return nil, err
	}
	switch loaded.Metadata.APIVersion {
	case helmchart.APIVersionV1, helmchart.APIVersionV2:
		return loaded, nil
	case "v3":
		return nil, errors.New("only the Chart API v2 is supported")
	}
	return nil, errors.New("unsupported chart version")
}

// chart passes the files to Helm's loader, one chart at a time: the loader would unpack the archives of subcharts
// without counting the unpacked bytes, and order them by the iteration over a map.
func (c *contents) chart() (*helmchart.Chart, error) {
	m, err := c.metadata()
	if err != nil {
		return nil, err
	}
	files, err := c.forHelm(m)
	if err != nil {
		return nil, err
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	for _, name := range c.subNames() {
		sub, err := c.subs[name].chart()
		if err != nil {
			return nil, inSubchart(name, err)
		}
		loaded.AddDependency(sub)
	}
	sortDependencies(loaded)
	return loaded, nil
}

// forHelm returns the chart's own files in a form that Helm's loader accepts without a warning: the loader prints to the
// program's log when a chart of API version 2 has the files of version 1, although it reads them.
func (c *contents) forHelm(m *helmchart.Metadata) ([]*loader.BufferedFile, error) {
	if m.APIVersion == helmchart.APIVersionV1 || !c.has(requirementsFile) && !c.has(requirementsLock) {
		return c.own, nil
	}
	merged, err := yaml.Marshal(m)
	if err != nil {
		return nil, err
	}
	files := make([]*loader.BufferedFile, 0, len(c.own))
	for _, f := range c.own {
		switch f.Name {
		case requirementsFile:
			continue
		case chartFile:
			f = &loader.BufferedFile{Name: chartFile, Data: merged}
		case requirementsLock:
			f = &loader.BufferedFile{Name: lockFile, Data: f.Data}
		}
		files = append(files, f)
	}
	return files, nil
}

func (c *contents) has(name string) bool {
	return slices.ContainsFunc(c.own, func(f *loader.BufferedFile) bool { return f.Name == name })
}

// sortDependencies sorts subcharts into the order in which the chart declares them, by name or alias. Undeclared
// subcharts follow in their present order.
func sortDependencies(c *helmchart.Chart) {
	index := map[string]int{}
	for i, d := range slices.Backward(c.Metadata.Dependencies) {
		index[d.Name] = i
		if d.Alias != "" {
			index[d.Alias] = i
		}
	}
	rank := func(sub *helmchart.Chart) int {
		if i, ok := index[sub.Name()]; ok {
			return i
		}
		return len(c.Metadata.Dependencies)
	}
	subs := slices.Clone(c.Dependencies())
	slices.SortStableFunc(subs, func(a, b *helmchart.Chart) int { return rank(a) - rank(b) })
	c.SetDependencies(subs...)
}
