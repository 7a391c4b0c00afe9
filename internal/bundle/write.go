package bundle

import (
	"bytes"
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

	godigest "github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/store"
)

// Contents are what is written into a bundle.
type Contents struct {
	Lock   []byte
	Cache  *cache.Cache
	Charts *Charts // nil for none
}

// Write writes contents to a file, or with Directory to a directory that is not there or empty. It appears whole or not at all.
// Equal contents give equal bytes. What a base has is named, and left out, manifests excepted. It returns the size.
func Write(ctx context.Context, name string, directory bool, what Contents, on Base) (int64, error) {
	scratch := store.Scratch{Parent: filepath.Dir(name), Hidden: true}
	dir, err := scratch.Dir()
	if err != nil {
		return 0, err
	}
	defer func() { _ = scratch.Close() }() // the next run clears what cannot be removed now
	made := filepath.Join(dir, "bundle")
	to, err := newSink(made, directory)
	if err != nil {
		return 0, err
	}
	w := &writer{ctx: ctx, to: to, on: on, written: map[digest.Digest]bool{}}
	if err := errors.Join(w.all(what, filepath.Join(dir, "answers")), to.close()); err != nil {
		return 0, err
	}
	return to.size(), os.Rename(made, name)
}

type writer struct {
	ctx     context.Context
	to      sink
	layers  []ocispec.Descriptor
	of      []string // the digests of what charts have
	on      Base
	lacks   []digest.Digest
	written map[digest.Digest]bool
}

func (w *writer) all(what Contents, temp string) error {
	if err := w.content(lockType, what.Lock); err != nil {
		return err
	}
	if err := w.answers(what.Cache, temp); err != nil {
		return err
	}
	err := what.Cache.Blobs(func(d digest.Digest, size int64, content io.Reader) error {
		return w.blob(ocispec.Descriptor{MediaType: bytesType, Digest: d, Size: size}, content)
	})
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	if err == nil && what.Charts != nil {
		index.Manifests, err = w.charts(what.Charts)
	}
	if err != nil {
		return err
	}
	// As layers they would lead from each chart to the bundle, which tools would copy with it.
	err = w.content(contentsType, []byte(strings.Join(w.of, "\n")))
	if err != nil {
		return err
	}
	manifest, err := w.manifest()
	if err != nil {
		return err
	}
	index.Manifests = append([]ocispec.Descriptor{manifest}, index.Manifests...)
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	// The index comes last: a file that is cut off has none.
	return errors.Join(w.entry(ocispec.ImageLayoutFile, []byte(`{"imageLayoutVersion":"`+ocispec.ImageLayoutVersion+`"}`)),
		w.entry(ocispec.ImageIndexFile, text))
}

// manifest writes that of the bundle, which lists all layers.
func (w *writer) manifest() (ocispec.Descriptor, error) {
	layers := slices.Clone(w.layers)
	kind, text := ocispec.MediaTypeEmptyJSON, ocispec.DescriptorEmptyJSON.Data
	if w.on.Bundle != "" {
		var err error
		kind = sinceType
		if text, err = json.Marshal(since{w.on.Bundle, w.lacks}); err != nil {
			return ocispec.Descriptor{}, err
		}
	}
	if err := w.content(kind, text); err != nil {
		return ocispec.Descriptor{}, err
	}
	config := ocispec.Descriptor{MediaType: kind, Digest: godigest.FromBytes(text), Size: int64(len(text))}
	manifest, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType, Config: config, Layers: layers,
	})
	if err == nil {
		err = w.content(ocispec.MediaTypeImageManifest, manifest)
	}
	return ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType, Digest: godigest.FromBytes(manifest), Size: int64(len(manifest)),
	}, err
}

// charts writes the charts, and the index of them as a Helm repository. It returns what the index of the layout has of them:
// each under its name, then what refers to them.
func (w *writer) charts(c *Charts) ([]ocispec.Descriptor, error) {
	names, err := fs.Glob(os.DirFS(c.dir), path.Join(ocispec.ImageBlobsDir, "*", "*")) // sorted
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := w.chartBlob(c, name); err != nil {
			return nil, err
		}
	}
	text, err := c.index()
	if err != nil {
		return nil, err
	}
	return c.descriptors(), w.entry(indexName, text)
}

func (w *writer) chartBlob(c *Charts, name string) error {
	f, err := file.Open(filepath.Join(c.dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	d := ocispec.Descriptor{Digest: digest.Digest(path.Base(path.Dir(name)) + ":" + path.Base(name)), Size: info.Size()}
	if _, always := c.manifests[d.Digest]; always {
		return w.put(d, f)
	}
	return w.blob(d, f)
}

// descriptors are the manifests as an index of a layout has them.
func (c *Charts) descriptors() []ocispec.Descriptor {
	named := map[digest.Digest]bool{}
	var list []ocispec.Descriptor
	for _, name := range slices.Sorted(maps.Keys(c.names)) {
		d := c.manifests[c.names[name].Digest]
		named[d.Digest] = true
		d.Annotations = map[string]string{ocispec.AnnotationRefName: name}
		list = append(list, d)
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.manifests), cmp.Compare[digest.Digest]) {
		if !named[key] {
			list = append(list, c.manifests[key])
		}
	}
	return list
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
	return w.put(d, bytes.NewReader(content))
}

func blobName(d digest.Digest) string {
	return ocispec.ImageBlobsDir + "/" + d.Algorithm().String() + "/" + d.Encoded()
}

// blob writes bytes, unless the base has them.
func (w *writer) blob(d ocispec.Descriptor, content io.Reader) error {
	if w.on.has[d.Digest] && !w.written[d.Digest] {
		w.written[d.Digest] = true
		w.list(d)
		w.lacks = append(w.lacks, d.Digest)
		return nil
	}
	return w.put(d, content)
}

// put writes bytes that are compared with their digest, once.
func (w *writer) put(d ocispec.Descriptor, content io.Reader) error {
	if err := context.Cause(w.ctx); err != nil || w.written[d.Digest] {
		return err
	}
	w.written[d.Digest] = true
	w.list(d)
	return w.to.write(blobName(d.Digest), d.Size, digest.NewReader(content, d.Digest))
}

// list records what the bundle has.
func (w *writer) list(d ocispec.Descriptor) {
	if d.MediaType == "" {
		w.of = append(w.of, d.Digest.String())
		return
	}
	w.layers = append(w.layers, d)
}

func (w *writer) entry(name string, content []byte) error {
	return w.to.write(name, int64(len(content)), bytes.NewReader(content))
}
