package bundle

import (
	"archive/tar"
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

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/file"
)

// Write makes a bundle of the charts, a lock, and what a cache has: a file or, with directory, a directory that is not there or
// empty, on the file system of the charts. It appears whole or not at all, and nothing can be added after. Equal contents give
// equal bytes. What a base has is named, and left out, manifests excepted. It returns how many bytes the files in it have.
func (c *Charts) Write(ctx context.Context, name string, directory bool, lock []byte, from *cache.Cache, on Base) (size int64, err error) {
	if err := c.complete(ctx, lock, from, on); err != nil {
		return 0, err
	}
	files, err := c.blobs()
	if err != nil {
		return 0, err
	}
	// The index comes last: a file that is cut off has none.
	files = append(files, ocispec.ImageLayoutFile, indexName, ocispec.ImageIndexFile)
	for _, name := range files {
		info, err := os.Stat(c.path(name))
		if err != nil {
			return 0, err
		}
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

// complete adds all that makes a bundle of the charts.
func (c *Charts) complete(ctx context.Context, lock []byte, from *cache.Cache, on Base) error {
	of, err := c.blobs()
	if err != nil {
		return err
	}
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType}
	layer := func(d ocispec.Descriptor, err error) error {
		m.Layers = append(m.Layers, d)
		return errors.Join(err, context.Cause(ctx))
	}
	err = from.Answers(func(name string, text json.RawMessage) error {
		d, err := c.addBytes(ctx, answerType, text)
		d.Annotations = map[string]string{ocispec.AnnotationTitle: name}
		return layer(d, err)
	})
	if err != nil {
		return err
	}
	err = from.Blobs(func(d digest.Digest, size int64, content io.Reader) error {
		blob := ocispec.Descriptor{MediaType: bytesType, Digest: d, Size: size}
		return layer(blob, c.add(ctx, blob, content))
	})
	if err != nil {
		return err
	}
	if m.Config, err = c.stand(ctx, on); err != nil {
		return err
	}
	// What charts have is listed in a layer. As layers they would lead from each chart to the bundle, which tools would copy with it.
	err = errors.Join(layer(c.addBytes(ctx, lockType, lock)), layer(c.addBytes(ctx, contentsType, []byte(strings.Join(of, "\n")))))
	if err != nil {
		return err
	}
	return c.indexes(ctx, m)
}

// stand takes out what a base has, and returns the configuration that says so.
func (c *Charts) stand(ctx context.Context, on Base) (ocispec.Descriptor, error) {
	if on.Bundle == "" {
		return c.addBytes(ctx, ocispec.MediaTypeEmptyJSON, ocispec.DescriptorEmptyJSON.Data)
	}
	names, err := c.blobs()
	s := since{Bundle: on.Bundle}
	for _, name := range names {
		d := digestOf(name)
		if _, always := c.manifests[d]; on.has[d] && !always && err == nil {
			s.Lacks = append(s.Lacks, d)
			err = os.Remove(c.path(name))
		}
	}
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return c.addBytes(ctx, sinceType, text)
}

// indexes writes the manifest of the bundle, the index of the layout, and that of a Helm repository.
func (c *Charts) indexes(ctx context.Context, m ocispec.Manifest) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	bundle, err := c.addBytes(ctx, m.MediaType, text)
	if err != nil {
		return err
	}
	bundle.ArtifactType = artifactType
	charts, err := c.descriptors(ctx)
	if err != nil {
		return err
	}
	text, err = json.Marshal(ocispec.Index{Versioned: m.Versioned, MediaType: ocispec.MediaTypeImageIndex, Manifests: append([]ocispec.Descriptor{bundle}, charts...)})
	if err != nil {
		return err
	}
	list, err := c.index()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(c.path(ocispec.ImageIndexFile), text, 0o666), os.WriteFile(c.path(indexName), list, 0o666), os.Remove(c.path("ingest")))
}

// descriptors are the manifests as an index of a layout has them: each under its names, then what refers to them.
func (c *Charts) descriptors(ctx context.Context) ([]ocispec.Descriptor, error) {
	names, err := namesIn(ctx, c.store)
	rest := maps.Clone(c.manifests)
	var list []ocispec.Descriptor
	for _, name := range names {
		d := c.manifests[name.Digest]
		delete(rest, d.Digest)
		d.Annotations = map[string]string{ocispec.AnnotationRefName: name.String()}
		list = append(list, d)
	}
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		list = append(list, rest[key])
	}
	return list, err
}

// archive writes files of the layout into a new archive.
func (c *Charts) archive(ctx context.Context, name string, files []string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	to := tar.NewWriter(f)
	for _, name := range files {
		if err = errors.Join(context.Cause(ctx), c.entry(to, name)); err != nil {
			break
		}
	}
	return errors.Join(err, to.Close(), f.Sync(), f.Close())
}

func (c *Charts) entry(to *tar.Writer, name string) error {
	f, err := file.Open(c.path(name))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil {
		err = to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644})
	}
	if err == nil {
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

// blobs are the names of all that is in the layout, sorted.
func (c *Charts) blobs() ([]string, error) {
	return fs.Glob(os.DirFS(c.dir), path.Join(ocispec.ImageBlobsDir, "*", "*"))
}
