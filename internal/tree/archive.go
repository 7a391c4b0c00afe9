package tree

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/digest"
)

// The modes in an archive do not depend on the umask of the user who checked the files out.
const (
	dirMode        = 0o750
	fileMode       = 0o600
	executableMode = 0o700
)

// Options configure an archive.
type Options struct {
	Filter Filter
	// ModTime is the time of every entry. With the zero time, entries have no time, as in source-controller.
	ModTime time.Time
	Limits  Limits
}

// Archive writes the tree below root as a gzipped tar, as source-controller writes the artifacts of its sources: equal
// files give equal bytes, whatever their owners and times. It silently leaves out symbolic links.
func Archive(ctx context.Context, w io.Writer, root *os.Root, o Options) error {
	zw := gzip.NewWriter(w)
	if err := writeTar(ctx, zw, root, o); err != nil {
		return err
	}
	return zw.Close()
}

// Sum returns the digest of the tar that [Archive] writes, before compression: a better compression does not change it.
func Sum(ctx context.Context, a godigest.Algorithm, root *os.Root, o Options) (digest.Digest, error) {
	w := digest.NewWriter(a)
	if err := writeTar(ctx, w, root, o); err != nil {
		return "", err
	}
	return w.Digest(), nil
}

type archiver struct {
	ctx     context.Context
	tar     *tar.Writer
	root    *os.Root
	modTime time.Time
	limits  Limits
}

func writeTar(ctx context.Context, w io.Writer, root *os.Root, o Options) error {
	limits := o.Limits.withDefaults()
	// The limit is that of Unpack: an archive that is written here can be unpacked.
	w = &capped{w, newBudget(limits.Total, "archive has more than %d bytes without compression")}
	a := &archiver{ctx: ctx, tar: tar.NewWriter(w), root: root, modTime: o.ModTime, limits: limits}
	if err := a.add(".", true); err != nil {
		return err
	}
	steps := &walk{ctx: ctx, root: root, filter: o.Filter, visit: a.add, entries: limits.Entries}
	if err := steps.dir(".", 0); err != nil {
		return err
	}
	return a.tar.Close()
}

type capped struct {
	w     io.Writer
	total *budget
}

func (c *capped) Write(p []byte) (int, error) {
	if err := c.total.spend(int64(len(p))); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}

func (a *archiver) add(name string, dir bool) error {
	h := &tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: dirMode}
	if !a.modTime.IsZero() {
		// Fractions of seconds would need an extended header.
		h.ModTime = a.modTime.UTC().Truncate(time.Second)
	}
	if dir {
		return a.header(h)
	}
	return a.file(h)
}

func (a *archiver) header(h *tar.Header) error {
	if err := a.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("archive %q: %w", h.Name, err)
	}
	return nil
}

func (a *archiver) file(h *tar.Header) error {
	there, err := a.root.Lstat(h.Name)
	if err != nil {
		return err
	}
	// Opening a pipe would wait for a writer.
	if !there.Mode().IsRegular() {
		return changedError(h.Name)
	}
	f, err := a.root.Open(h.Name)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	// The file may have been replaced by a link in the meantime.
	if !os.SameFile(there, fi) {
		return changedError(h.Name)
	}
	if fi.Size() > a.limits.File {
		return limitError("file %q has %d bytes, more than %d", h.Name, fi.Size(), a.limits.File)
	}
	h.Typeflag, h.Mode, h.Size = tar.TypeReg, fileMode, fi.Size()
	if fi.Mode()&0o111 != 0 {
		h.Mode = executableMode
	}
	if err := a.header(h); err != nil {
		return err
	}
	return a.copy(h, f)
}

// copy writes exactly the number of bytes that the header states.
func (a *archiver) copy(h *tar.Header, f *os.File) error {
	_, err := io.CopyN(a.tar, interrupted{a.ctx, f}, h.Size)
	if errors.Is(err, io.EOF) {
		return changedError(h.Name)
	}
	if err != nil {
		return fmt.Errorf("archive %q: %w", h.Name, err)
	}
	if n, _ := f.Read(make([]byte, 1)); n > 0 {
		return changedError(h.Name)
	}
	return nil
}

func changedError(name string) error { return fmt.Errorf("%q changed while it was archived", name) }
