package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	godigest "github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	layouts "oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/work"
)

// Limits on referrers: a registry may list anything.
const (
	maxReferrers = 1000
	maxReferring = 4 // the length of a chain of referrers
)

// Charts collects the charts of a bundle in an image layout, each as a manifest with its referrers. Many goroutines may use it at
// once, except to add packaged charts.
type Charts struct {
	store  *layouts.Store
	dir    string
	limits chart.Limits

	copied work.Memo[Name, struct{}]

	refused sync.Map // in words
	naming  sync.Mutex
}

// NewCharts returns an empty collection in a new directory of the scratch. Archives are checked against the limits.
func NewCharts(scratch *store.Scratch, l chart.Limits) (*Charts, error) {
	dir, err := scratch.Dir()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "layout")
	s, err := layouts.New(dir)
	if err != nil {
		return nil, err
	}
	s.AutoSaveIndex = false // the index is written with the bundle
	return &Charts{store: s, dir: dir, limits: l}, nil
}

// Source returns the charts, to mirror them.
func (c *Charts) Source(ctx context.Context) (*Source, error) {
	return newSource(ctx, c.store, c.store, func() {})
}

// Refused records that a source refused to answer whether it has a file. Several goroutines may call it.
func (c *Charts) Refused(what string, err error) {
	c.refused.Store(fmt.Sprintf("%s, if it exists, is not bundled: %v", what, err), true)
}

// Missing returns a sorted line for each file that is not carried because its source refused it.
func (c *Charts) Missing() (lines []string) {
	for line := range c.refused.Range {
		lines = append(lines, fmt.Sprint(line))
	}
	slices.Sort(lines)
	return lines
}

// Image adds the artifact that a registry has under a digest, with the referrers that the registry lists and the artifacts that
// cosign stores under tags made of the digest.
func (c *Charts) Image(ctx context.Context, from *remote.Repository, d digest.Digest, tag string) error {
	n := Name{RepositoryOf(from.Reference.Registry + "/" + from.Reference.Repository), tag, d}
	_, err := c.copied.Do(ctx, n, func() (struct{}, error) { return struct{}{}, c.image(ctx, from, n) })
	return err
}

func (c *Charts) image(ctx context.Context, from *remote.Repository, n Name) error {
	root, err := from.Resolve(ctx, n.Digest.String())
	if err != nil {
		return err
	}
	o := oras.ExtendedCopyGraphOptions{Depth: maxReferring, FindPredecessors: referrers}
	to := content.LimitStorage(c.store, maxBytes)
	if err := oras.ExtendedCopyGraph(ctx, from, to, root, o); err != nil {
		return err
	}
	if err := c.put(ctx, root, n); err != nil {
		return err
	}
	for _, suffix := range []string{".sig", ".att", ".sbom"} {
		n.Tag = strings.Replace(n.Digest.String(), ":", "-", 1) + suffix
		found, err := from.Resolve(ctx, n.Tag)
		if errors.Is(err, errdef.ErrNotFound) {
			continue
		}
		if err == nil {
			err = oras.CopyGraph(ctx, from, to, found, o.CopyGraphOptions)
		}
		if err == nil {
			err = c.put(ctx, found, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// referrers returns the referrers that a registry lists. It reads the list page by page, which may have no end.
func referrers(ctx context.Context, from content.ReadOnlyGraphStorage, d ocispec.Descriptor) (found []ocispec.Descriptor, err error) {
	err = from.(registry.ReferrerLister).Referrers(ctx, d, "", func(page []ocispec.Descriptor) error {
		if found = append(found, page...); len(found) > maxReferrers {
			return fmt.Errorf("more than %d artifacts refer to %s", maxReferrers, d.Digest)
		}
		return nil
	})
	return found, err
}

// put tags a manifest with a name. A name that another manifest has is an error.
func (c *Charts) put(ctx context.Context, d ocispec.Descriptor, n Name) error {
	c.naming.Lock()
	defer c.naming.Unlock()
	if was, err := c.store.Resolve(ctx, n.String()); err == nil && was.Digest != d.Digest {
		return fmt.Errorf("%s and %s would both be %s", was.Digest, d.Digest, n)
	}
	return c.store.Tag(ctx, d, n.String())
}

// Archive adds an archive of a chart, and its provenance file unless that is nil, as `helm push` would to a repository with that
// URL. Two packaged charts with the same name and version, as from two branches, get different tags. One goroutine at a time may
// add packaged charts.
func (c *Charts) Archive(ctx context.Context, repository string, archive *io.SectionReader, provenance []byte, packaged bool) error {
	section := func() *io.SectionReader { return io.NewSectionReader(archive, 0, archive.Size()) }
	metadata, _, err := chart.Check(section(), c.limits)
	if err != nil {
		return err
	}
	sum, err := godigest.FromReader(section())
	if err != nil {
		return err
	}
	layer := ocispec.Descriptor{MediaType: oci.HelmChartType, Digest: sum, Size: archive.Size()}
	m := manifestOf(layer)
	m.Annotations = annotations(metadata)
	err = c.add(ctx, layer, section())
	if err == nil && provenance != nil {
		layer, err = c.addBytes(ctx, oci.HelmProvenanceType, provenance)
		m.Layers = append(m.Layers, layer)
	}
	if err == nil {
		m.Config, err = c.addJSON(ctx, oci.HelmConfigType, metadata)
	}
	if err != nil {
		return err
	}
	root, err := c.addJSON(ctx, m.MediaType, m)
	if err != nil {
		return err
	}
	repository, _, _ = strings.Cut(repository, "?")
	n := Name{RepositoryOf(repository + "/" + metadata.Name), strings.ReplaceAll(metadata.Version, "+", "_"), sum}
	if was, err := c.store.Resolve(ctx, n.String()); packaged && err == nil && was.Digest != root.Digest {
		n.Tag += "-" + sum.Encoded()[:12]
	}
	return c.put(ctx, root, n)
}

func manifestOf(layers ...ocispec.Descriptor) *ocispec.Manifest {
	return &ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Layers: layers}
}

func (c *Charts) addJSON(ctx context.Context, mediaType string, value any) (ocispec.Descriptor, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return c.addBytes(ctx, mediaType, text)
}

func (c *Charts) addBytes(ctx context.Context, mediaType string, text []byte) (ocispec.Descriptor, error) {
	d := content.NewDescriptorFromBytes(mediaType, text)
	return d, c.add(ctx, d, bytes.NewReader(text))
}

func (c *Charts) add(ctx context.Context, d ocispec.Descriptor, from io.Reader) error {
	if err := c.store.Push(ctx, d, from); !errors.Is(err, errdef.ErrAlreadyExists) {
		return err
	}
	return nil
}

// annotations returns the annotations that `helm push` writes, without the time.
func annotations(m *helmchart.Metadata) map[string]string {
	var authors []string
	for _, who := range m.Maintainers {
		name := who.Name
		if who.Email != "" {
			name += " (" + who.Email + ")"
		}
		authors = append(authors, name)
	}
	a := map[string]string{
		ocispec.AnnotationDescription: m.Description, ocispec.AnnotationURL: m.Home, ocispec.AnnotationAuthors: strings.Join(authors, ", "),
		ocispec.AnnotationSource: strings.Join(m.Sources[:min(1, len(m.Sources))], ""),
	}
	maps.DeleteFunc(a, func(_, value string) bool { return value == "" })
	maps.Copy(a, m.Annotations)
	a[ocispec.AnnotationTitle], a[ocispec.AnnotationVersion] = m.Name, m.Version
	return a
}
