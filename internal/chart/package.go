package chart

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"
)

// PackageFormat is the version of the format that Package writes. It grows with every change that gives the same chart
// other bytes, so that older archives are not taken for current.
const PackageFormat = 1

// earliest is the time of entries without a known time, the earliest that every archive format can record.
var earliest = time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC)

// Package writes a chart as an archive with the contents that Helm's own Save would give it. The same chart and time
// give the same bytes on any machine: entries are in a fixed order, with the given time and without owners, and
// subcharts are directories in the order of the chart's dependencies. The zero time means 1980-01-01. The archive is
// within the limits that Load and Check would apply to it.
func Package(w io.Writer, c *helmchart.Chart, modTime time.Time, l Limits) error {
	if modTime.IsZero() || modTime.Unix() < 0 {
		modTime = earliest
	}
	l = l.withDefaults()
	if l.Name == "" && c.Metadata != nil {
		l.Name = c.Metadata.Name + "-" + c.Metadata.Version + ".tgz"
	}
	// This compressor is twice as fast as Go's own, and its output does not change with the version of Go.
	zipper := gzip.NewWriter(&limitedWriter{w: w, left: l.Archive, err: l.archiveError()})
	zipper.Comment = "Helm"
	zipper.ModTime = time.Unix(0, 0) // in gzip, no time
	p := &packer{out: tar.NewWriter(zipper), modTime: modTime.UTC().Truncate(time.Second), limits: l, unpacked: l.Unpacked, entries: l.Entries}
	if err := p.chart(c, c.Name()); err != nil {
		return err
	}
	if err := p.out.Close(); err != nil {
		return err
	}
	return zipper.Close()
}

type packer struct {
	out      *tar.Writer
	modTime  time.Time
	limits   Limits
	unpacked int64 // bytes still allowed
	entries  int   // entries still allowed
}

func (p *packer) chart(c *helmchart.Chart, base string) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("chart validation: %w", err)
	}
	for _, write := range []func(*helmchart.Chart, string) error{
		p.metadata, p.lock, p.values, p.schema, p.files, p.subcharts,
	} {
		if err := write(c, base); err != nil {
			return err
		}
	}
	return nil
}

func (p *packer) metadata(c *helmchart.Chart, base string) error {
	m := *c.Metadata
	if m.APIVersion == helmchart.APIVersionV1 {
		m.Dependencies = nil // they are in requirements.yaml, which is one of the files
	}
	data, err := yaml.Marshal(&m)
	if err != nil {
		return err
	}
	return p.file(base, chartFile, data)
}

func (p *packer) lock(c *helmchart.Chart, base string) error {
	if c.Lock == nil || c.Metadata.APIVersion != helmchart.APIVersionV2 {
		return nil
	}
	data, err := yaml.Marshal(c.Lock)
	if err != nil {
		return err
	}
	return p.file(base, lockFile, data)
}

func (p *packer) values(c *helmchart.Chart, base string) error {
	if !slices.ContainsFunc(c.Raw, func(f *helmchart.File) bool { return f.Name == valuesFile }) {
		return nil
	}
	return p.file(base, valuesFile, rawValues(c))
}

func (p *packer) schema(c *helmchart.Chart, base string) error {
	if c.Schema == nil {
		return nil
	}
	if !json.Valid(c.Schema) {
		return fmt.Errorf("invalid JSON in '%s'", path.Join(base, schemaFile))
	}
	return p.file(base, schemaFile, c.Schema)
}

func (p *packer) files(c *helmchart.Chart, base string) error {
	for _, files := range [][]*helmchart.File{c.Templates, c.Files} {
		files = slices.Clone(files)
		slices.SortStableFunc(files, func(a, b *helmchart.File) int { return strings.Compare(a.Name, b.Name) })
		for _, f := range files {
			if err := p.file(base, f.Name, f.Data); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *packer) subcharts(c *helmchart.Chart, base string) error {
	taken := map[string]bool{}
	for _, sub := range c.Dependencies() {
		if sub.Metadata == nil {
			return fmt.Errorf("subchart of '%s' has no metadata", c.Name())
		}
		dir := directory(sub.Metadata, taken)
		if err := p.chart(sub, base+"/"+chartsDir+dir); err != nil {
			return inSubchart(sub.Name(), err)
		}
	}
	return nil
}

// directory chooses the name of a subchart's directory. It is the chart's own name unless Helm would then lose the
// chart: because it skips such directories, takes them for archives, or has two charts in one. The name of the subchart
// is defined by its Chart.yaml only.
func directory(m *helmchart.Metadata, taken map[string]bool) string {
	name := m.Name
	if strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") || path.Ext(name) == ".tgz" {
		name = "chart-" + strings.TrimSuffix(name, ".tgz")
	}
	if taken[name] {
		name += "-" + m.Version
	}
	for unique, i := name, 2; ; i++ {
		if !taken[unique] {
			taken[unique] = true
			return unique
		}
		unique = fmt.Sprintf("%s-%d", name, i)
	}
}

// file writes one entry. It returns an error for a name that a reader would refuse or change.
func (p *packer) file(base, name string, data []byte) error {
	full := base + "/" + name
	if err := p.admit(full, int64(len(data))); err != nil {
		return err
	}
	err := p.out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: full, Mode: 0o644, Size: int64(len(data)), ModTime: p.modTime})
	if err != nil {
		return fmt.Errorf("'%s': %w", printable(full), err)
	}
	_, err = p.out.Write(data)
	return err
}

// admit applies the rules of reading to a file that is about to be written.
func (p *packer) admit(full string, size int64) error {
	read, err := entryName(full)
	if err != nil {
		return err
	}
	if _, name, _ := strings.Cut(full, "/"); read != name || len(full) > maxNameLength {
		return fmt.Errorf("'%s' cannot be the name of a file in a chart archive", printable(full))
	}
	if size > p.limits.File {
		return p.limits.fileError(read)
	}
	if p.unpacked -= size; p.unpacked <= 0 {
		return p.limits.unpackedError()
	}
	if p.entries--; p.entries < 0 {
		return p.limits.entriesError()
	}
	return nil
}

type limitedWriter struct {
	w    io.Writer
	left int64
	err  error
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, l.err
	}
	return l.w.Write(p)
}
