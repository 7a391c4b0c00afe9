package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry"

	"github.com/helmsrc/helmsrc/internal/file"
)

// A Source has what is mirrored.
type Source struct {
	oras.ReadOnlyGraphTarget

	Names []Name // sorted
	Close func() // closes the files that it has open
}

// tagged is an image layout.
type tagged interface {
	oras.ReadOnlyGraphTarget
	registry.TagLister
}

func newSource(ctx context.Context, from tagged, end func()) (*Source, error) {
	s := &Source{from, nil, end}
	return s, from.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			d, err := from.Resolve(ctx, tag)
			if err != nil {
				return err
			}
			name, err := parseName(tag, d.Digest)
			if err != nil {
				return err
			}
			s.Names = append(s.Names, name)
		}
		return nil
	})
}

// Open opens the bundle of the first name, to mirror its charts; the further names are those of the bundles that it stands on.
func Open(ctx context.Context, names []string) (s *Source, err error) {
	r := &reader{ctx: ctx}
	if _, err = r.open(names); err == nil {
		var from *oci.ReadOnlyStore
		if from, err = oci.NewFromFS(ctx, r); err == nil {
			s, err = newSource(ctx, &checked{from, r}, r.close)
		}
		if err != nil {
			err = problem(names[0], err)
		}
	}
	if err != nil {
		r.close()
	}
	return s, err
}

// checked is the layout of a reader, whose bytes end with an error if they do not fit their digest.
type checked struct {
	*oci.ReadOnlyStore

	reader *reader
}

// Fetch implements content.Fetcher.
func (c *checked) Fetch(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	return c.reader.blob(d, maxBytes)
}

// Open implements fs.FS: the files of all layouts, with one index.
func (r *reader) Open(name string) (fs.File, error) {
	if name == ocispec.ImageIndexFile {
		text, err := json.Marshal(r.index)
		return &entry{bytes.NewReader(text), &tar.Header{Name: name, Size: int64(len(text))}}, err
	}
	for _, layout := range slices.Backward(r.layouts) {
		f, err := layout.Open(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// directory has the files of a layout on disk.
type directory struct{ root *os.Root }

// Open implements fs.FS.
func (d directory) Open(name string) (fs.File, error) { return file.OpenIn(d.root, name) }

// archive has the files of a layout by name.
type archive map[string]*io.SectionReader

// Open implements fs.FS.
func (a archive) Open(name string) (fs.File, error) {
	content := a[name]
	if content == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &entry{io.NewSectionReader(content, 0, content.Size()), &tar.Header{Name: name, Size: content.Size()}}, nil
}

// entry is a file of an archive.
type entry struct {
	io.Reader

	header *tar.Header
}

func (e *entry) Stat() (fs.FileInfo, error) { return e.header.FileInfo(), nil }
func (*entry) Close() error                 { return nil }
