// Package bundle writes and reads the file that carries charts over a gap between networks: an OCI image layout with a
// lock, with the answers that sources gave, and with the bytes that belong to them. It prints nothing and knows no flags.
package bundle

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/oci"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// The media types of a bundle and of its layers.
const (
	artifactType = "application/vnd.helmsrc.bundle.v1"
	lockType     = "application/vnd.helmsrc.lock.v1+yaml"
	answerType   = "application/vnd.helmsrc.answer.v1+json" // its title is the name in the cache
	bytesType    = "application/octet-stream"
	contentsType = "application/vnd.helmsrc.contents.v1" // the digests of what charts have, which are no layers of the bundle
	sinceType    = "application/vnd.helmsrc.since.v1+json"
)

// Limits on reading a bundle, in bytes and entries. A manifest of 20,000 layers has some 4 MiB.
const (
	maxManifest = 16 << 20 // also of the index
	maxLock     = 64 << 20
	maxAnswer   = 40 << 20 // a list of tags is the longest
	maxBytes    = 4 << 30  // one archive, layer or pack; the fetchers have lower limits
	maxEntries  = 200_000
)

// A Base is an earlier bundle that the other side has completely. The zero value means no bundle.
type Base struct {
	Bundle digest.Digest          // of its manifest
	has    map[digest.Digest]bool // the layers
}

// since is the configuration of a bundle that is based on an earlier one.
type since struct {
	Bundle digest.Digest   `json:"bundle"`
	Lacks  []digest.Digest `json:"lacks"` // the layers that only the earlier bundle has
}

var errForeign = finding.WithHint(errors.New("not a bundle of helmsrc"), finding.WriteBundle)

// problem returns the error of a bundle that cannot be read, with advice. Altered bytes make it finding.Untrusted.
func problem(name string, err error) error {
	p := &finding.Problem{Text: name + ": " + err.Error(), Err: err}
	if len(finding.Hints(err)) == 0 && !errors.Is(err, fs.ErrNotExist) {
		p.Advice = "copy the file again, and compare its digest with that of the original"
	}
	if _, altered := errors.AsType[*digest.MismatchError](err); altered {
		p.Class = finding.Untrusted
	}
	return p
}

// Read puts the contents of the first bundle into an empty cache, and returns its lock. The further names are the earlier
// bundles that it is based on. Bytes that do not match their digest are an error.
func Read(ctx context.Context, names []string, into *cache.Cache) (lock []byte, err error) {
	r, m, err := open(ctx, names)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if lock, err = r.layers(m, into); err != nil {
		return nil, problem(names[0], err)
	}
	return lock, nil
}

// ReadBase returns a bundle as the base of a later one, with the digests of its layers and of the blobs of its charts.
func ReadBase(ctx context.Context, name string) (Base, error) {
	r, m, err := open(ctx, []string{name})
	if err != nil {
		return Base{}, err
	}
	defer r.close()
	base := Base{r.bundle, map[digest.Digest]bool{}}
	for _, d := range m.Layers {
		base.has[d.Digest] = true
		if d.MediaType != contentsType {
			continue
		}
		text, err := r.readAll(d, maxManifest)
		if err != nil {
			return Base{}, problem(name, err)
		}
		for line := range strings.Lines(string(text)) {
			base.has[digestOf(strings.TrimSpace(line))] = true
		}
	}
	return base, nil
}

// Open opens the bundle of the first name, to mirror its charts. The further names are the bundles that it is based on.
func Open(ctx context.Context, names []string) (s *Source, err error) {
	r, _, err := open(ctx, names)
	if err != nil {
		return nil, err
	}
	from, err := oci.NewFromFS(ctx, r)
	if err == nil {
		s, err = newSource(ctx, from, from, r.close)
	}
	if err != nil {
		r.close()
		return nil, problem(names[0], err)
	}
	return s, nil
}

// A layout opens its files by their names.
type layout func(name string) (fs.File, error)

type reader struct {
	ctx     context.Context
	files   []io.Closer
	layouts []layout
	bundle  digest.Digest // of the manifest that was read last
	on      digest.Digest // the bundle that it is based on, "" without a base
}

func (r *reader) close() {
	for _, f := range r.files {
		_ = f.Close() // it was only read
	}
}

// open opens the first bundle and the bundles that it is based on, and returns its manifest.
func open(ctx context.Context, names []string) (r *reader, m *ocispec.Manifest, err error) {
	r = &reader{ctx: ctx}
	for _, name := range slices.Concat(names[1:], names[:1]) {
		if m, err = r.manifest(name); err != nil {
			r.close()
			return nil, nil, problem(name, err)
		}
	}
	return r, m, nil
}

// Open implements fs.FS: it opens a file of any layout, the last layout first. Reading a blob ends with an error if its bytes do
// not match the digest in its name.
func (r *reader) Open(name string) (f fs.File, err error) {
	for _, layout := range slices.Backward(r.layouts) {
		if f, err = layout(name); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	d := digestOf(name)
	switch {
	case name != blobName(d):
		return f, err
	case errors.Is(err, fs.ErrNotExist) && r.on != "":
		return nil, &finding.Problem{Text: fmt.Sprintf("it contains only the content that is new since the bundle %.80s", r.on), Advice: finding.EarlierBundle}
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is missing: the bundle is incomplete", d)
	case err != nil:
		return nil, err
	}
	return &blob{f, digest.NewReader(f, d)}, nil
}

// A blob is a file that is compared with its digest while it is read.
type blob struct {
	fs.File

	content io.Reader
}

func (b *blob) Read(p []byte) (int, error) { return b.content.Read(p) }

// entry is a file of an archive.
type entry struct {
	name string
	*io.SectionReader
}

func (e entry) Stat() (fs.FileInfo, error) {
	return (&tar.Header{Name: e.name, Size: e.Size()}).FileInfo(), nil
}
func (entry) Close() error { return nil }

var errCut = errors.New("the bundle is truncated: its " + ocispec.ImageIndexFile + ", which comes last, is missing")

// manifest opens the layout in a file or a directory, adds it to the reader, and returns the manifest of its bundle.
func (r *reader) manifest(name string) (*ocispec.Manifest, error) {
	layout, err := r.layout(name)
	if err != nil {
		return nil, file.Cause(err)
	}
	r.layouts = append(r.layouts, layout)
	var index ocispec.Index
	err = decode(&index)(layout(ocispec.ImageIndexFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errCut
	}
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(index.Manifests, func(d ocispec.Descriptor) bool { return d.ArtifactType == artifactType })
	if i < 0 {
		return nil, errForeign
	}
	var m ocispec.Manifest
	if err := decode(&m)(r.blob(index.Manifests[i], maxManifest)); err != nil {
		return nil, err
	}
	var base since
	if m.Config.MediaType == sinceType {
		err = decode(&base)(r.blob(m.Config, maxManifest))
	}
	r.bundle, r.on = index.Manifests[i].Digest, base.Bundle
	return &m, err
}

// layout returns the layout in a directory or an archive. The reader closes it.
func (r *reader) layout(name string) (layout, error) {
	if file.IsDir(name) {
		root, err := file.OpenRoot(name)
		if err != nil {
			return nil, err
		}
		r.files = append(r.files, root)
		if _, err := root.Stat(ocispec.ImageIndexFile); err != nil {
			return nil, errForeign
		}
		return func(name string) (fs.File, error) { return file.OpenIn(root, name) }, nil
	}
	f, err := file.Open(name)
	if err != nil {
		return nil, err
	}
	r.files = append(r.files, f)
	return scan(f)
}

// scan returns the layout in an archive, which it reads once to record the position of each entry.
func scan(f *os.File) (layout, error) {
	in := tar.NewReader(f)
	found := map[string]*io.SectionReader{}
	open := func(name string) (fs.File, error) {
		if content := found[name]; content != nil {
			return entry{name, io.NewSectionReader(content, 0, content.Size())}, nil
		}
		return nil, fs.ErrNotExist
	}
	for n := 0; ; n++ {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return open, nil
		case err != nil && n == 0:
			return nil, errForeign
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errCut
		case err != nil:
			return nil, err
		case n == maxEntries:
			return nil, fmt.Errorf("more than %d entries", maxEntries)
		case h.Typeflag == tar.TypeDir:
			continue
		case h.Typeflag != tar.TypeReg, !filepath.IsLocal(h.Name):
			return nil, fmt.Errorf("%.80q is not the name of a plain file in an image layout", h.Name)
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		found[path.Clean(h.Name)] = io.NewSectionReader(f, at, h.Size)
	}
}

// decode returns a function that parses an index or a manifest into a value, and closes its input.
func decode(into any) func(io.ReadCloser, error) error {
	return func(in io.ReadCloser, err error) error {
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		text, err := file.Bounded(in, maxManifest)
		if _, large := errors.AsType[*file.SizeError](err); large {
			return fmt.Errorf("the index or the manifest of the layout has more than %d bytes", maxManifest)
		}
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, into); err != nil {
			return fmt.Errorf("the index or the manifest of the layout cannot be read: %w", err)
		}
		return nil
	}
}

// blob opens the bytes of a descriptor. More than limit bytes are an error.
func (r *reader) blob(d ocispec.Descriptor, limit int64) (io.ReadCloser, error) {
	if err := context.Cause(r.ctx); err != nil {
		return nil, err
	}
	if _, err := digest.Parse(d.Digest.String()); err != nil {
		return nil, err
	}
	f, err := r.Open(blobName(d.Digest))
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Size() > limit {
		_ = f.Close()
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d", d.Digest, info.Size(), limit)
	}
	return f, nil
}

func (r *reader) layers(m *ocispec.Manifest, into *cache.Cache) (lock []byte, err error) {
	for _, d := range m.Layers {
		switch d.MediaType {
		case lockType:
			lock, err = r.readAll(d, maxLock)
		case answerType:
			var text []byte
			if text, err = r.readAll(d, maxAnswer); err == nil {
				err = into.PutAnswer(d.Annotations[ocispec.AnnotationTitle], text)
			}
		case bytesType:
			var content io.ReadCloser
			if content, err = r.blob(d, maxBytes); err == nil {
				err = errors.Join(into.PutBlob(d.Digest, content), content.Close())
			}
		case contentsType: // only ReadBase needs it
		default:
			err = fmt.Errorf("a layer of the unknown type %.80q: a newer version of helmsrc may have written it", d.MediaType)
		}
		if err != nil {
			return nil, err
		}
	}
	if lock == nil {
		return nil, errForeign
	}
	return lock, nil
}

func (r *reader) readAll(d ocispec.Descriptor, limit int64) ([]byte, error) {
	content, err := r.blob(d, limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	return io.ReadAll(content)
}
