package bundle

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
)

// Read puts the contents of a bundle into an empty cache, and returns its lock. The further names are those of the bundles
// that it stands on. Nothing is believed that its digest does not fit. Errors are of type *Error.
func Read(ctx context.Context, names []string, into *cache.Cache) (lock []byte, err error) {
	r := &reader{ctx: ctx, found: map[string]*io.SectionReader{}}
	defer r.close()
	for _, name := range names[1:] {
		if _, err := r.open(name); err != nil {
			return nil, wrap(name, err)
		}
	}
	m, err := r.open(names[0])
	if err == nil {
		lock, err = r.layers(m, into)
	}
	return lock, wrap(names[0], err)
}

// ReadBase returns what a bundle has, together with those that it stands on. Errors are of type *Error.
func ReadBase(ctx context.Context, name string) (Base, error) {
	r := &reader{ctx: ctx, found: map[string]*io.SectionReader{}}
	defer r.close()
	m, err := r.open(name)
	if err != nil {
		return Base{}, wrap(name, err)
	}
	base := Base{r.bundle, map[digest.Digest]bool{}}
	for _, d := range m.Layers {
		base.has[d.Digest] = true
	}
	return base, nil
}

func wrap(name string, err error) error {
	if err == nil {
		return nil
	}
	var mismatch *digest.MismatchError
	return &Error{File: name, Err: err, altered: errors.As(err, &mismatch)}
}

type reader struct {
	ctx    context.Context
	files  []*os.File
	found  map[string]*io.SectionReader // by the names of entries
	bundle digest.Digest                // of the manifest that was read last
	on     digest.Digest                // the bundle that it stands on, "" for none
}

func (r *reader) close() {
	for _, f := range r.files {
		_ = f.Close() // it was only read
	}
}

var errCut = errors.New("the bundle is cut off: its " + ocispec.ImageIndexFile + ", which comes last, is missing")

// open finds out what a file has, and returns the manifest of the bundle.
func (r *reader) open(name string) (*ocispec.Manifest, error) {
	delete(r.found, ocispec.ImageIndexFile) // of another file
	info, err := os.Stat(name)
	if err != nil {
		return nil, cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, cause(err)
	}
	r.files = append(r.files, f)
	if err := r.scan(f, info.Size()); err != nil {
		return nil, err
	}
	text := r.found[ocispec.ImageIndexFile]
	if text == nil {
		return nil, errCut
	}
	var index ocispec.Index
	if err := decode(text, maxIndex, &index); err != nil {
		return nil, err
	}
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

func (r *reader) decodeBlob(d ocispec.Descriptor, into any) error {
	content, err := r.blob(d, maxManifest)
	if err != nil {
		return err
	}
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
func (r *reader) scan(f *os.File, size int64) error {
	in := tar.NewReader(f)
	for n := 0; ; n++ {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && n == 0:
			return errForeign
		case errors.Is(err, io.ErrUnexpectedEOF):
			return errCut
		case err != nil:
			return err
		case n == maxEntries:
			return fmt.Errorf("more than %d entries", maxEntries)
		case h.Typeflag == tar.TypeDir:
			continue
		case h.Typeflag != tar.TypeReg, h.Size > size, !filepath.IsLocal(h.Name):
			return fmt.Errorf("%.80q is not the name of a plain file in an image layout", h.Name)
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		r.found[path.Clean(h.Name)] = io.NewSectionReader(f, at, h.Size)
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
func (r *reader) blob(d ocispec.Descriptor, limit int64) (io.Reader, error) {
	if err := context.Cause(r.ctx); err != nil {
		return nil, err
	}
	if _, err := digest.Parse(d.Digest.String()); err != nil {
		return nil, err
	}
	content := r.found[blobName(d.Digest)]
	switch {
	case content == nil && r.on != "":
		return nil, &baseError{r.on}
	case content == nil:
		return nil, fmt.Errorf("%s is missing: the bundle is not whole", d.Digest)
	case content.Size() > limit:
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d", d.Digest, content.Size(), limit)
	}
	return digest.NewReader(content, d.Digest), nil
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
			var content io.Reader
			if content, err = r.blob(d, maxLock); err == nil {
				lock, err = io.ReadAll(content)
			}
		case answersType:
			err = r.answers(d, into)
		case bytesType:
			err = r.bytes(d, into)
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

// maxBytes bounds one archive, layer or pack. None that is fetched is as large.
const maxBytes = 4 << 30

func (r *reader) bytes(d ocispec.Descriptor, into *cache.Cache) error {
	content, err := r.blob(d, maxBytes)
	if err != nil {
		return err
	}
	return into.PutBlob(d.Digest, content)
}

func (r *reader) answers(d ocispec.Descriptor, into *cache.Cache) error {
	content, err := r.blob(d, maxBytes)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(content)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var l struct {
			Name string          `json:"name"`
			Text json.RawMessage `json:"answer"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("an answer cannot be read: %w", err)
		}
		if err := into.PutAnswer(l.Name, l.Text); err != nil {
			return err
		}
	}
	return lines.Err()
}
