package bundle

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	godigest "github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/store"
)

// Write writes a lock, and all that a cache holds, to a file, which appears whole or not at all. Equal contents give equal
// bytes. The layers that a base has are named, and left out. It returns the size of the file.
func Write(ctx context.Context, name string, lock []byte, c *cache.Cache, on Base) (int64, error) {
	scratch := store.Scratch{Parent: filepath.Dir(name), Hidden: true}
	dir, err := scratch.Dir()
	if err != nil {
		return 0, err
	}
	defer func() { _ = scratch.Close() }() // the next run clears what cannot be removed now
	f, err := os.OpenFile(filepath.Join(dir, "bundle"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return 0, err
	}
	w := &writer{ctx: ctx, tar: tar.NewWriter(f), on: on}
	err = w.all(lock, c, filepath.Join(dir, "answers"))
	if err == nil {
		err = f.Sync()
	}
	info, failed := f.Stat()
	if err = errors.Join(err, failed, f.Close()); err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(f.Name(), name)
}

type writer struct {
	ctx    context.Context
	tar    *tar.Writer
	layers []ocispec.Descriptor
	on     Base
	lacks  []digest.Digest
}

func (w *writer) all(lock []byte, c *cache.Cache, temp string) error {
	if err := w.content(lockType, lock); err != nil {
		return err
	}
	if err := w.answers(c, temp); err != nil {
		return err
	}
	err := c.Blobs(func(d digest.Digest, size int64, content io.Reader) error {
		return w.blob(ocispec.Descriptor{MediaType: bytesType, Digest: d, Size: size}, content)
	})
	if err != nil {
		return err
	}
	layers := w.layers
	kind, text := ocispec.MediaTypeEmptyJSON, ocispec.DescriptorEmptyJSON.Data
	if w.on.Bundle != "" {
		kind = sinceType
		if text, err = json.Marshal(since{w.on.Bundle, w.lacks}); err != nil {
			return err
		}
	}
	if err := w.content(kind, text); err != nil {
		return err
	}
	config := w.layers[len(layers)]
	manifest, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType, Config: config, Layers: layers,
	})
	if err == nil {
		err = w.content(ocispec.MediaTypeImageManifest, manifest)
	}
	if err != nil {
		return err
	}
	found := w.layers[len(w.layers)-1]
	found.ArtifactType = artifactType
	index, err := json.Marshal(ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{found},
	})
	if err != nil {
		return err
	}
	// The index comes last: a file that is cut off has none.
	return errors.Join(w.entry(ocispec.ImageLayoutFile, []byte(`{"imageLayoutVersion":"`+ocispec.ImageLayoutVersion+`"}`)),
		w.entry(ocispec.ImageIndexFile, index), w.tar.Close())
}

// answers writes the answers, one a line, by way of a file: their size stands before them.
func (w *writer) answers(c *cache.Cache, temp string) error {
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	sum := digest.NewWriter(godigest.Canonical)
	lines := json.NewEncoder(io.MultiWriter(f, sum))
	err = c.Answers(func(name string, text json.RawMessage) error { return lines.Encode(line{name, text}) })
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return w.blob(ocispec.Descriptor{MediaType: answersType, Digest: sum.Digest(), Size: sum.Size()}, f)
}

func (w *writer) content(mediaType string, content []byte) error {
	d := ocispec.Descriptor{MediaType: mediaType, Digest: godigest.FromBytes(content), Size: int64(len(content))}
	if err := w.entry(blobName(d.Digest), content); err != nil {
		return err
	}
	w.layers = append(w.layers, d)
	return nil
}

func blobName(d digest.Digest) string {
	return ocispec.ImageBlobsDir + "/" + d.Algorithm().String() + "/" + d.Encoded()
}

// blob writes bytes that are compared with their digest.
func (w *writer) blob(d ocispec.Descriptor, content io.Reader) error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	if w.on.has[d.Digest] {
		w.layers, w.lacks = append(w.layers, d), append(w.lacks, d.Digest)
		return nil
	}
	err := w.tar.WriteHeader(header(blobName(d.Digest), d.Size))
	if err == nil {
		_, err = io.Copy(w.tar, digest.NewReader(content, d.Digest))
	}
	w.layers = append(w.layers, d)
	return err
}

func (w *writer) entry(name string, content []byte) error {
	if err := w.tar.WriteHeader(header(name, int64(len(content)))); err != nil {
		return err
	}
	_, err := w.tar.Write(content)
	return err
}

func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644}
}
