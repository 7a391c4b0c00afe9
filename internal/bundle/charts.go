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
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/work"
)

// The media types of a chart as `helm push` stores it.
const (
	configType     = "application/vnd.cncf.helm.config.v1+json"
	chartType      = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	provenanceType = "application/vnd.cncf.helm.chart.provenance.v1.prov"
)

// What refers to something is bounded: a registry may list anything.
const (
	maxReferrers = 1000
	maxReferring = 4 // how long a chain of referrers is
)

// Charts are those that are carried, each a manifest of its own with all that refers to it. They are kept in an image layout. It
// is safe for many goroutines.
type Charts struct {
	store  *oci.Store
	dir    string
	limits chart.Limits

	copied work.Memo[Name, struct{}]

	mu        sync.Mutex
	manifests map[digest.Digest]ocispec.Descriptor
	packages  map[string]digest.Digest // archives
	listed    []*indexEntry
	refused   []string
}

// NewCharts returns an empty collection, which is kept in a directory that is made by a scratch. Archives have the limits.
func NewCharts(scratch *store.Scratch, l chart.Limits) (*Charts, error) {
	dir, err := scratch.Dir()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "layout")
	s, err := oci.New(dir)
	if err != nil {
		return nil, err
	}
	s.AutoSaveIndex = false // the index is written with the bundle
	return &Charts{store: s, dir: dir, limits: l, manifests: map[digest.Digest]ocispec.Descriptor{}, packages: map[string]digest.Digest{}}, nil
}

// Refused records that a source does not say whether it has a file. Several goroutines may call it.
func (c *Charts) Refused(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = append(c.refused, fmt.Sprintf("%s is not carried, if there is one: %v", what, err))
}

// Missing returns a sorted line for each file that is not carried because its source refused it.
func (c *Charts) Missing() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.refused)
	return slices.Compact(c.refused)
}

// Image adds what a registry has under a digest, with all that refers to it: what the registry lists as such, and what cosign
// stores under tags that are made of the digest.
func (c *Charts) Image(ctx context.Context, from *remote.Repository, d digest.Digest, tag string) error {
	p := Name{RepositoryOf(from.Reference.Registry + "/" + from.Reference.Repository), tag, d}
	_, err := c.copied.Do(ctx, p, func() (struct{}, error) { return struct{}{}, c.image(ctx, from, p) })
	return err
}

func (c *Charts) image(ctx context.Context, from *remote.Repository, p Name) error {
	root, err := from.Resolve(ctx, p.Digest.String())
	if err != nil {
		return err
	}
	if err := oras.ExtendedCopyGraph(ctx, from, c.store, root, c.options()); err != nil {
		return err
	}
	if err := c.put(ctx, root, p); err != nil {
		return err
	}
	for _, suffix := range []string{".sig", ".att", ".sbom"} {
		if err := c.tagged(ctx, from, p, suffix); err != nil {
			return err
		}
	}
	return c.list(ctx, root)
}

// tagged adds what a tag names that is made of a digest, if it is there.
func (c *Charts) tagged(ctx context.Context, from *remote.Repository, p Name, suffix string) error {
	p.Tag = strings.Replace(p.Digest.String(), ":", "-", 1) + suffix
	found, err := from.Resolve(ctx, p.Tag)
	if errors.Is(err, errdef.ErrNotFound) || err == nil && tags().FindString(p.Tag) == "" {
		return nil
	}
	if err == nil {
		err = oras.CopyGraph(ctx, from, c.store, found, c.options().CopyGraphOptions)
	}
	if err != nil {
		return err
	}
	return c.put(ctx, found, p)
}

// options bound a copy, and record the manifests in it.
func (c *Charts) options() oras.ExtendedCopyGraphOptions {
	o := oras.ExtendedCopyGraphOptions{Depth: maxReferring}
	o.PreCopy = func(_ context.Context, d ocispec.Descriptor) error {
		if d.Size > maxBytes {
			return fmt.Errorf("%s has %d bytes, more than the limit of %d", d.Digest, d.Size, int64(maxBytes))
		}
		return nil
	}
	o.PostCopy = func(_ context.Context, d ocispec.Descriptor) error { c.found(d); return nil }
	o.FindPredecessors = func(ctx context.Context, from content.ReadOnlyGraphStorage, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		referrers, err := from.Predecessors(ctx, d)
		if len(referrers) > maxReferrers {
			return nil, fmt.Errorf("more than %d artifacts refer to %s", maxReferrers, d.Digest)
		}
		return referrers, err
	}
	return o
}

// found records a manifest.
func (c *Charts) found(d ocispec.Descriptor) {
	if !isManifest(d.MediaType) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.manifests[d.Digest] = ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
}

func isManifest(mediaType string) bool {
	switch mediaType {
	case ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex, "application/vnd.docker.distribution.manifest.v2+json",
		"application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.oci.artifact.manifest.v1+json":
		return true
	}
	return false
}

// put gives something a name.
func (c *Charts) put(ctx context.Context, d ocispec.Descriptor, p Name) error {
	c.found(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, err := c.store.Resolve(ctx, p.String()); err == nil && was.Digest != d.Digest {
		return fmt.Errorf("%s and %s would both be %s", was.Digest, d.Digest, p)
	}
	return c.store.Tag(ctx, d, p.String())
}

// list adds a chart in a registry to the index of charts. What is no chart is left out.
func (c *Charts) list(ctx context.Context, root ocispec.Descriptor) error {
	if root.MediaType != ocispec.MediaTypeImageManifest {
		return nil
	}
	text, err := content.FetchAll(ctx, c.store, root)
	if err != nil {
		return err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(text, &m); err != nil || m.Config.MediaType != configType {
		return err
	}
	i := slices.IndexFunc(m.Layers, func(d ocispec.Descriptor) bool { return d.MediaType == chartType })
	if text, err = content.FetchAll(ctx, c.store, m.Config); err != nil || i < 0 {
		return err
	}
	metadata := &helmchart.Metadata{}
	if err := json.Unmarshal(text, metadata); err != nil {
		return err
	}
	c.enter(metadata, m.Layers[i].Digest)
	return nil
}

func (c *Charts) enter(m *helmchart.Metadata, archive digest.Digest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.listed, func(e *indexEntry) bool { return e.Digest == archive.Encoded() && e.Name == m.Name }) {
		return
	}
	c.listed = append(c.listed, &indexEntry{m, []string{blobName(archive)}, archive.Encoded()})
}

// Archive adds an archive of a chart, and its provenance file unless that is nil, as `helm push` would to a repository that is
// called by a URL.
func (c *Charts) Archive(ctx context.Context, repository string, archive *io.SectionReader, provenance []byte) error {
	p, metadata, err := c.nameOf(repository, archive)
	if err == nil {
		_, err = c.copied.Do(ctx, p, func() (struct{}, error) {
			return struct{}{}, c.push(ctx, p, metadata, archive, provenance)
		})
	}
	return err
}

// Package adds a chart that was packaged of files. Another one with its name and version has another tag: two branches may have
// one each.
func (c *Charts) Package(ctx context.Context, repository string, archive *io.SectionReader) error {
	p, metadata, err := c.nameOf(repository, archive)
	if err != nil {
		return err
	}
	c.mu.Lock()
	was, taken := c.packages[p.String()]
	if !taken {
		c.packages[p.String()] = p.Digest
	}
	c.mu.Unlock()
	if taken && was == p.Digest {
		return nil
	}
	if taken {
		p.Tag += "-" + p.Digest.Encoded()[:12]
	}
	return c.push(ctx, p, metadata, archive, nil)
}

// nameOf is the name of a chart, with the digest of its archive.
func (c *Charts) nameOf(repository string, archive *io.SectionReader) (Name, *helmchart.Metadata, error) {
	metadata, _, err := chart.Check(io.NewSectionReader(archive, 0, archive.Size()), c.limits)
	if err != nil {
		return Name{}, nil, err
	}
	w := digest.NewWriter(godigest.Canonical)
	if _, err := io.Copy(w, io.NewSectionReader(archive, 0, archive.Size())); err != nil {
		return Name{}, nil, err
	}
	repository, _, _ = strings.Cut(repository, "?")
	return Name{RepositoryOf(repository + "/" + metadata.Name), strings.ReplaceAll(metadata.Version, "+", "_"), w.Digest()}, metadata, nil
}

func (c *Charts) push(ctx context.Context, p Name, metadata *helmchart.Metadata, archive *io.SectionReader, provenance []byte) error {
	config, err := json.Marshal(metadata)
	if err != nil {
		return err
	}
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Annotations: annotations(metadata)}
	layer := ocispec.Descriptor{MediaType: chartType, Digest: p.Digest, Size: archive.Size()}
	if err := c.add(ctx, layer, io.NewSectionReader(archive, 0, archive.Size())); err != nil {
		return err
	}
	m.Layers = []ocispec.Descriptor{layer}
	if provenance != nil {
		signed, err := c.addBytes(ctx, provenanceType, provenance)
		if err != nil {
			return err
		}
		m.Layers = append(m.Layers, signed)
	}
	if m.Config, err = c.addBytes(ctx, configType, config); err != nil {
		return err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	root, err := c.addBytes(ctx, m.MediaType, text)
	if err != nil {
		return err
	}
	c.enter(metadata, p.Digest)
	return c.put(ctx, root, p)
}

func (c *Charts) addBytes(ctx context.Context, mediaType string, text []byte) (ocispec.Descriptor, error) {
	d := content.NewDescriptorFromBytes(mediaType, text)
	return d, c.add(ctx, d, bytes.NewReader(text))
}

func (c *Charts) add(ctx context.Context, d ocispec.Descriptor, from io.Reader) error {
	if err := c.store.Push(ctx, d, from); err != nil && !errors.Is(err, errdef.ErrAlreadyExists) {
		return err
	}
	return nil
}

// annotations are those that `helm push` writes, without the time.
func annotations(m *helmchart.Metadata) map[string]string {
	a := maps.Clone(m.Annotations)
	if a == nil {
		a = map[string]string{}
	}
	set := func(key, value string) {
		if a[key] == "" && value != "" {
			a[key] = value
		}
	}
	a[ocispec.AnnotationTitle], a[ocispec.AnnotationVersion] = m.Name, m.Version
	set(ocispec.AnnotationDescription, m.Description)
	set(ocispec.AnnotationURL, m.Home)
	if len(m.Sources) > 0 {
		set(ocispec.AnnotationSource, m.Sources[0])
	}
	var authors []string
	for _, who := range m.Maintainers {
		if who == nil {
			continue
		}
		name := who.Name
		if who.Email != "" {
			name += " (" + who.Email + ")"
		}
		authors = append(authors, name)
	}
	set(ocispec.AnnotationAuthors, strings.Join(authors, ", "))
	return a
}
