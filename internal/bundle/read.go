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
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/file"
)

// Read puts the contents of a bundle into an empty cache, and returns its lock. The further names are those of the bundles
// that it stands on. Nothing is trusted whose digest does not match. Errors are of type *Error.
func Read(ctx context.Context, names []string, into *cache.Cache) (lock []byte, err error) {
	r := &reader{ctx: ctx}
	defer r.close()
	m, err := r.openAll(names)
	if err != nil {
		return nil, err
	}
	lock, err = r.layers(m, into)
	return lock, wrap(names[0], err)
}

// ReadBase returns what a bundle has, together with those that it stands on. Errors are of type *Error.
func ReadBase(ctx context.Context, name string) (Base, error) {
	r := &reader{ctx: ctx}
	defer r.close()
	m, err := r.open(name)
	if err != nil {
		return Base{}, wrap(name, err)
	}
	base := Base{r.bundle, map[digest.Digest]bool{}}
	for _, d := range m.Layers {
		base.has[d.Digest] = true
		if d.MediaType != contentsType {
			continue
		}
		text, err := r.readAll(d, maxManifest)
		if err != nil {
			return Base{}, wrap(name, err)
		}
		for line := range strings.Lines(string(text)) {
			base.has[digestOf(strings.TrimSpace(line))] = true
		}
	}
	return base, nil
}

func wrap(name string, err error) error {
	var named *Error
	if err == nil || errors.As(err, &named) {
		return err
	}
	var mismatch *digest.MismatchError
	return &Error{File: name, Err: err, altered: errors.As(err, &mismatch)}
}

type reader struct {
	ctx     context.Context
	files   []io.Closer
	layouts []fs.FS
	index   ocispec.Index // of all layouts
	bundle  digest.Digest // of the manifest that was read last
	on      digest.Digest // the bundle that it stands on, "" for none
}

func (r *reader) close() {
	for _, f := range r.files {
		_ = f.Close() // it was only read
	}
}

// openAll opens a bundle and those that it stands on, and returns its manifest.
func (r *reader) openAll(names []string) (*ocispec.Manifest, error) {
	for _, name := range names[1:] {
		if _, err := r.open(name); err != nil {
			return nil, wrap(name, err)
		}
	}
	m, err := r.open(names[0])
	return m, wrap(names[0], err)
}

var errCut = errors.New("the bundle is cut off: its " + ocispec.ImageIndexFile + ", which comes last, is missing")

// open finds out what a file or a directory has, and returns the manifest of the bundle.
func (r *reader) open(name string) (*ocispec.Manifest, error) {
	layout, err := r.layout(name)
	if err != nil {
		return nil, err
	}
	r.layouts = append(r.layouts, layout)
	text, err := layout.Open(ocispec.ImageIndexFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errCut
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = text.Close() }()
	var index ocispec.Index
	if err := decode(text, maxIndex, &index); err != nil {
		return nil, err
	}
	r.index.Manifests = append(r.index.Manifests, index.Manifests...)
	d, err := find(&index)
	if err != nil {
		return nil, err
	}
	var manifest ocispec.Manifest
	if err := r.decodeBlob(d, &manifest); err != nil {
		return nil, err
	}
	r.bundle, r.on = d.Digest, ""
	if manifest.Config.MediaType == sinceType {
		var base since
		if err := r.decodeBlob(manifest.Config, &base); err != nil {
			return nil, err
		}
		r.on = base.Bundle
	}
	return &manifest, nil
}

// layout opens the files of a layout, in a directory or in an archive.
func (r *reader) layout(name string) (fs.FS, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, cause(err)
	case info.IsDir():
		root, err := file.OpenRoot(name)
		if err != nil {
			return nil, cause(err)
		}
		r.files = append(r.files, root)
		if _, err := root.Stat(ocispec.ImageIndexFile); err != nil {
			return nil, errForeign
		}
		return directory{root}, nil
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	f, err := file.Open(name)
	if err != nil {
		return nil, cause(err)
	}
	r.files = append(r.files, f)
	return scan(f, info.Size())
}

func (r *reader) decodeBlob(d ocispec.Descriptor, into any) error {
	content, err := r.blob(d, maxManifest)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	return decode(content, maxManifest, into)
}

func cause(err error) error {
	var failed *os.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// scan finds out where in the file each entry is. Entries of other names than a layout has are left alone.
func scan(f *os.File, size int64) (archive, error) {
	in := tar.NewReader(f)
	found := archive{}
	for n := 0; ; n++ {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
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
		case h.Typeflag != tar.TypeReg, h.Size > size, !filepath.IsLocal(h.Name):
			return nil, fmt.Errorf("%.80q is not the name of a plain file in an image layout", h.Name)
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		found[path.Clean(h.Name)] = io.NewSectionReader(f, at, h.Size)
	}
}

func decode(in io.Reader, limit int64, into any) error {
	text, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return err
	}
	if int64(len(text)) > limit {
		return fmt.Errorf("the index or the manifest of the layout has more than %d bytes", limit)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("the index or the manifest of the layout cannot be read: %w", err)
	}
	return nil
}

// blob returns bytes, at most limit, which end with an error if they do not fit their digest.
func (r *reader) blob(d ocispec.Descriptor, limit int64) (io.ReadCloser, error) {
	if err := context.Cause(r.ctx); err != nil {
		return nil, err
	}
	if _, err := digest.Parse(d.Digest.String()); err != nil {
		return nil, err
	}
	content, err := r.Open(blobName(d.Digest))
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.on != "":
		return nil, &baseError{r.on}
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is missing: the bundle is not whole", d.Digest)
	case err != nil:
		return nil, err
	}
	info, err := content.Stat()
	if err == nil && info.Size() > limit {
		err = fmt.Errorf("%s has %d bytes, more than the limit of %d", d.Digest, info.Size(), limit)
	}
	if err != nil {
		_ = content.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{digest.NewReader(content, d.Digest), content}, nil
}

// baseError is a bundle without those that it stands on.
type baseError struct{ bundle digest.Digest }

func (e *baseError) Error() string {
	return fmt.Sprintf("it has only what is new since the bundle %.80s", e.bundle)
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
			err = r.bytes(d, into)
		case contentsType: // for those who read the charts
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

// maxBytes bounds one archive, layer or pack. None that is fetched is as large.
const maxBytes = 4 << 30

func (r *reader) bytes(d ocispec.Descriptor, into *cache.Cache) error {
	content, err := r.blob(d, maxBytes)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	return into.PutBlob(d.Digest, content)
}
