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
	"oras.land/oras-go/v2/content/oci"

	"github.com/helmsrc/helmsrc/internal/file"
)

// A Layout has the charts of a bundle. Open makes it, and Close ends it.
type Layout struct {
	*oci.ReadOnlyStore

	names  []Name
	reader *reader
}

// Open opens the bundle of the first name; the further names are those of the bundles that it stands on. Errors are of type
// *Error.
func Open(ctx context.Context, names []string) (*Layout, error) {
	r := &reader{ctx: ctx}
	l := &Layout{reader: r}
	_, err := r.openAll(names)
	if err == nil {
		l.ReadOnlyStore, err = oci.NewFromFS(ctx, r)
	}
	if err == nil {
		l.names, err = namesIn(ctx, l)
	}
	if err != nil {
		r.close()
		return nil, wrap(names[0], err)
	}
	return l, nil
}

// Fetch returns bytes that end with an error if they do not fit their digest.
func (l *Layout) Fetch(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	return l.reader.blob(d, maxBytes)
}

// Names are those of the charts, sorted.
func (l *Layout) Names() []Name { return l.names }

// Close closes the files.
func (l *Layout) Close() { l.reader.close() }

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
