package bundle

import (
	"archive/tar"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

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
	charts, err := c.manifests()
	if err != nil {
		return err
	}
	m := manifestOf()
	m.ArtifactType = artifactType
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
	if m.Config, err = c.stand(ctx, on, charts); err != nil {
		return err
	}
	// What charts have is listed in a layer. As layers they would lead from each chart to the bundle, which tools would copy with it.
	err = errors.Join(layer(c.addBytes(ctx, lockType, lock)), layer(c.addBytes(ctx, contentsType, []byte(strings.Join(of, "\n")))))
	if err != nil {
		return err
	}
	bundle, err := c.addJSON(ctx, m.MediaType, m)
	if err != nil {
		return err
	}
	bundle.ArtifactType = artifactType
	return c.indexes(ocispec.Index{Versioned: m.Versioned, MediaType: ocispec.MediaTypeImageIndex, Manifests: slices.Insert(charts, 0, bundle)})
}

// stand takes out what a base has, manifests of charts excepted, and returns the configuration that says so.
func (c *Charts) stand(ctx context.Context, on Base, charts []ocispec.Descriptor) (ocispec.Descriptor, error) {
	if on.Bundle == "" {
		return c.addBytes(ctx, ocispec.MediaTypeEmptyJSON, ocispec.DescriptorEmptyJSON.Data)
	}
	for _, d := range charts {
		delete(on.has, d.Digest)
	}
	names, err := c.blobs()
	s := since{Bundle: on.Bundle}
	for _, name := range names {
		if d := digestOf(name); on.has[d] && err == nil {
			s.Lacks = append(s.Lacks, d)
			err = os.Remove(c.path(name))
		}
	}
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return c.addJSON(ctx, sinceType, s)
}

// indexes writes the index of the layout, and that of a Helm repository.
func (c *Charts) indexes(index ocispec.Index) error {
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	list, err := c.index()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(c.path(ocispec.ImageIndexFile), text, 0o666), os.WriteFile(c.path(indexName), list, 0o666), os.Remove(c.path("ingest")))
}

// manifests are those of the charts as the index of the bundle has them: each under its names, then what refers to them.
func (c *Charts) manifests() ([]ocispec.Descriptor, error) {
	if err := c.store.SaveIndex(); err != nil {
		return nil, err
	}
	text, err := file.ReadRegular(c.path(ocispec.ImageIndexFile), maxManifest)
	if err != nil {
		return nil, err
	}
	var index ocispec.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, err
	}
	for i, d := range index.Manifests {
		plain := ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
		if name := d.Annotations[ocispec.AnnotationRefName]; name != "" {
			plain.Annotations = map[string]string{ocispec.AnnotationRefName: name}
		}
		index.Manifests[i] = plain
	}
	slices.SortFunc(index.Manifests, func(a, b ocispec.Descriptor) int { return strings.Compare(sortKey(a), sortKey(b)) })
	return index.Manifests, nil
}

// sortKey has names, which are in lower case, before digests.
func sortKey(d ocispec.Descriptor) string {
	return cmp.Or(d.Annotations[ocispec.AnnotationRefName], "~"+d.Digest.String())
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
