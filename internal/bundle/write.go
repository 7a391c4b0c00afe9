package bundle

import (
	"archive/tar"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// Write makes a bundle of the charts, a lock and the contents of a cache: a file or, with directory, a directory that is missing
// or empty, on the file system of the charts. The bundle appears whole or not at all, and the charts cannot be used after. Equal
// contents give equal bytes. Blobs of a base, except manifests, are listed and left out. It returns the size of all files in bytes.
func (c *Charts) Write(ctx context.Context, name string, directory bool, lock []byte, from *cache.Cache, on Base) (size int64, err error) {
	if err := c.complete(ctx, lock, from, on); err != nil {
		return 0, err
	}
	// The index comes last: a file that was cut off lacks it.
	var files []*tar.Header
	for _, name := range append(c.blobs(), ocispec.ImageLayoutFile, indexName, ocispec.ImageIndexFile) {
		info, err := os.Stat(c.path(name))
		if err != nil {
			return 0, err
		}
		files = append(files, &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644})
		size += info.Size()
	}
	made := c.dir
	if !directory {
		made += ".tar"
		if err := c.archive(ctx, made, files); err != nil {
			return 0, err
		}
	}
	return size, os.Rename(made, name)
}

func (c *Charts) path(name string) string { return filepath.Join(c.dir, filepath.FromSlash(name)) }

// complete adds the contents of the cache, the lock and both indexes to the layout of the charts.
func (c *Charts) complete(ctx context.Context, lock []byte, from *cache.Cache, on Base) error {
	of := c.blobs()
	charts, err := c.manifests()
	if err == nil {
		err = c.index(ctx, charts)
	}
	if err != nil {
		return err
	}
	m := manifestOf()
	m.ArtifactType = artifactType
	layer := func(d ocispec.Descriptor, err error) error {
		m.Layers = append(m.Layers, d)
		return errors.Join(err, context.Cause(ctx))
	}
	err = from.Contents(func(answer string, d digest.Digest, content *io.SectionReader) error {
		if answer == "" {
			blob := ocispec.Descriptor{MediaType: bytesType, Digest: d, Size: content.Size()}
			return layer(blob, c.add(ctx, blob, content))
		}
		text, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		blob, err := c.addBytes(ctx, answerType, text)
		blob.Annotations = map[string]string{ocispec.AnnotationTitle: answer}
		return layer(blob, err)
	})
	if err == nil {
		m.Config, err = c.stand(ctx, on, charts)
	}
	if err != nil {
		return err
	}
	// A layer lists the blobs of the charts. Were they layers, tools that copy a chart with its referrers would copy the bundle too.
	err = errors.Join(layer(c.addBytes(ctx, lockType, lock)), layer(c.addBytes(ctx, contentsType, []byte(strings.Join(of, "\n")))))
	if err != nil {
		return err
	}
	bundle, err := c.addJSON(ctx, m.MediaType, m)
	bundle.ArtifactType = artifactType
	index := ocispec.Index{Versioned: m.Versioned, MediaType: ocispec.MediaTypeImageIndex, Manifests: slices.Insert(charts, 0, bundle)}
	text, _ := json.Marshal(index) // of texts and numbers
	return errors.Join(err, os.WriteFile(c.path(ocispec.ImageIndexFile), text, 0o666), os.Remove(c.path("ingest")))
}

// stand removes the blobs of a base, except manifests of charts, and returns the configuration that lists them.
func (c *Charts) stand(ctx context.Context, on Base, charts []ocispec.Descriptor) (ocispec.Descriptor, error) {
	if on.Bundle == "" {
		return c.addBytes(ctx, ocispec.MediaTypeEmptyJSON, ocispec.DescriptorEmptyJSON.Data)
	}
	for _, d := range charts {
		delete(on.has, d.Digest)
	}
	s := since{Bundle: on.Bundle}
	for _, name := range c.blobs() {
		if d := digestOf(name); on.has[d] {
			s.Lacks = append(s.Lacks, d)
			if err := os.Remove(c.path(name)); err != nil {
				return ocispec.Descriptor{}, err
			}
		}
	}
	return c.addJSON(ctx, sinceType, s)
}

// indexName is the file that makes a Helm repository of a layout.
const indexName = "index.yaml"

// index writes the index of a Helm repository with the charts, newest first.
func (c *Charts) index(ctx context.Context, manifests []ocispec.Descriptor) error {
	entries := map[string][]*indexEntry{}
	for _, d := range manifests {
		e, err := c.chart(ctx, d)
		if err != nil {
			return err
		}
		if e != nil && !slices.ContainsFunc(entries[e.Name], func(other *indexEntry) bool { return other.Digest == e.Digest }) {
			entries[e.Name] = append(entries[e.Name], e)
		}
	}
	for _, list := range entries {
		slices.SortFunc(list, func(a, b *indexEntry) int {
			switch {
			case resolve.Newer(a.Version, b.Version):
				return -1
			case resolve.Newer(b.Version, a.Version):
				return 1
			}
			return cmp.Or(strings.Compare(b.Version, a.Version), strings.Compare(a.Digest, b.Digest))
		})
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "entries": entries})
	if err != nil {
		return err
	}
	return os.WriteFile(c.path(indexName), text, 0o666)
}

type indexEntry struct {
	*helmchart.Metadata

	URLs   []string `json:"urls"`
	Digest string   `json:"digest"`
}

// chart returns the entry of a manifest, or nil if the manifest is not a chart.
func (c *Charts) chart(ctx context.Context, d ocispec.Descriptor) (*indexEntry, error) {
	var m ocispec.Manifest
	if err := decode(&m)(c.store.Fetch(ctx, d)); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(m.Layers, func(d ocispec.Descriptor) bool { return d.MediaType == oci.HelmChartType })
	if m.Config.MediaType != oci.HelmConfigType || i < 0 {
		return nil, nil
	}
	archive := m.Layers[i].Digest
	e := &indexEntry{&helmchart.Metadata{}, []string{blobName(archive)}, archive.Encoded()}
	return e, decode(e.Metadata)(c.store.Fetch(ctx, m.Config))
}

// manifests returns the descriptors for the index of the bundle: first the manifests with a name, then their referrers.
func (c *Charts) manifests() ([]ocispec.Descriptor, error) {
	if err := c.store.SaveIndex(); err != nil {
		return nil, err
	}
	var index ocispec.Index
	if err := decode(&index)(file.Open(c.path(ocispec.ImageIndexFile))); err != nil {
		return nil, err
	}
	for i, d := range index.Manifests {
		maps.DeleteFunc(d.Annotations, func(key, _ string) bool { return key != ocispec.AnnotationRefName })
		index.Manifests[i] = ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size, Annotations: d.Annotations}
	}
	slices.SortFunc(index.Manifests, func(a, b ocispec.Descriptor) int { return strings.Compare(sortKey(a), sortKey(b)) })
	return index.Manifests, nil
}

// sortKey returns a key that sorts names, which are in lower case, before digests.
func sortKey(d ocispec.Descriptor) string {
	return cmp.Or(d.Annotations[ocispec.AnnotationRefName], "~"+d.Digest.String())
}

// archive writes files of the layout into a new tar archive.
func (c *Charts) archive(ctx context.Context, name string, files []*tar.Header) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	to := tar.NewWriter(f)
	for _, h := range files {
		if err = errors.Join(context.Cause(ctx), c.entry(to, h)); err != nil {
			break
		}
	}
	return errors.Join(err, to.Close(), f.Sync(), f.Close())
}

func (c *Charts) entry(to *tar.Writer, h *tar.Header) error {
	f, err := file.Open(c.path(h.Name))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err = to.WriteHeader(h); err == nil {
		_, err = io.Copy(to, f)
	}
	return err
}

func blobName(d digest.Digest) string {
	return ocispec.ImageBlobsDir + "/" + d.Algorithm().String() + "/" + d.Encoded()
}

func digestOf(blob string) digest.Digest {
	return digest.Digest(path.Base(path.Dir(blob)) + ":" + path.Base(blob))
}

// blobs returns the names of all blobs in the layout, sorted.
func (c *Charts) blobs() []string {
	names, _ := fs.Glob(os.DirFS(c.dir), path.Join(ocispec.ImageBlobsDir, "*", "*")) // an error is about the pattern
	return names
}
