package tree

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

const (
	// maxName is the limit of Linux for a path, in bytes.
	maxName = 4096

	unpackedDirMode  fs.FileMode = 0o700
	unpackedFileMode fs.FileMode = 0o600
)

// Unpack reads a gzipped tar and writes its files and directories below root, which should be empty: after an error, the
// files that were already unpacked stay. It never writes outside of root. It refuses links and devices, keeps of the modes
// only whether a file can be executed, and does not keep times.
func Unpack(ctx context.Context, r io.Reader, root *os.Root, l Limits) error {
	return unpack(ctx, r, root, l, false)
}

// UnpackFiles is like Unpack, but silently skips symbolic links, as Flux does for artifacts from registries.
func UnpackFiles(ctx context.Context, r io.Reader, root *os.Root, l Limits) error {
	return unpack(ctx, r, root, l, true)
}

const (
	unpackedTooLarge = "archive has more than %d bytes without compression"
	tooManyEntries   = "archive has more than %d files and directories"
)

func unpack(ctx context.Context, r io.Reader, root *os.Root, l Limits, skipLinks bool) error {
	l = l.withDefaults()
	u := &unpacker{
		root:  root,
		file:  l.File,
		total: newBudget(l.Total, unpackedTooLarge),
		dirs:  newBudget(int64(l.Entries), tooManyEntries),
		made:  map[string]bool{".": true},

		skipLinks: skipLinks,
	}
	return readEntries(ctx, r, l, u.entry)
}

// readEntries visits the entries of an archive except its root, and reads the archive to its end.
func readEntries(ctx context.Context, r io.Reader, l Limits, visit func(name string, h *tar.Header, content io.Reader) error) error {
	zr, err := gzip.NewReader(interrupted{ctx, r})
	if err != nil {
		return fmt.Errorf("requires gzip-compressed body: %w", err)
	}
	stream := &bounded{zr, newBudget(l.Total, unpackedTooLarge)}
	entries := newBudget(int64(l.Entries), tooManyEntries)
	for archive := tar.NewReader(stream); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return drain(stream)
		}
		if err != nil {
			return fmt.Errorf("tar error: %w", err)
		}
		// git archive writes this header first. It describes the archive, not a file.
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		name, err := entryName(h.Name)
		if err != nil {
			return err
		}
		if name == "." && h.Typeflag == tar.TypeDir {
			continue
		}
		if err := entries.spend(1); err != nil {
			return err
		}
		if err := visit(name, h, archive); err != nil {
			return err
		}
	}
}

// drain reads the rest of the archive, to the checksum of the compression. Bytes after the last gzip member are not part of
// the archive: tapes and some servers add padding.
func drain(r io.Reader) error {
	if _, err := io.Copy(io.Discard, r); err != nil && !errors.Is(err, gzip.ErrHeader) {
		return fmt.Errorf("tar error: %w", err)
	}
	return nil
}

type bounded struct {
	r     io.Reader
	total *budget
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err := b.total.spend(int64(n)); err != nil {
		return 0, err
	}
	return n, err
}

type unpacker struct {
	root  *os.Root
	file  int64
	total *budget // of the files: a sparse file has more bytes than its entry in the archive
	dirs  *budget // created directories, as an archive need not have entries for them
	made  map[string]bool

	skipLinks bool
}

func (u *unpacker) entry(name string, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return u.makeDir(name)
	case tar.TypeReg, tar.TypeRegA, tar.TypeCont, tar.TypeGNUSparse: //nolint:staticcheck // old archives have TypeRegA
		return u.makeFile(name, h, content)
	case tar.TypeSymlink:
		if u.skipLinks {
			return nil
		}
		return fmt.Errorf("tar file entry %s is a symlink, which is not allowed in this context", name)
	case tar.TypeLink:
		return fmt.Errorf("tar file entry %s is a hard link, which is not allowed in this context", name)
	}
	return fmt.Errorf("tar file entry %s contained unsupported file type %v", name, h.FileInfo().Mode())
}

// entryName returns the cleaned name of an entry, or an error if it does not name a file or directory below the root.
func entryName(name string) (string, error) {
	if len(name) > maxName {
		return "", limitError("tar contained a name of %d bytes, more than %d", len(name), maxName)
	}
	clean := path.Clean(name)
	if name == "" || strings.Contains(name, `\`) || hasDotDot(name) || strings.ContainsFunc(name, unicode.IsControl) ||
		!filepath.IsLocal(clean) {
		return "", fmt.Errorf("tar contained invalid name error %q", name)
	}
	if strings.Count(clean, "/") > maxDepth {
		return "", limitError("tar contained a name that is nested more than %d directories deep", maxDepth)
	}
	return clean, nil
}

// hasDotDot reports whether a name contains "..", even if cleaning the name would remove it.
func hasDotDot(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

func (u *unpacker) makeDir(name string) error {
	if u.made[name] {
		return nil
	}
	if err := u.makeDir(path.Dir(name)); err != nil {
		return err
	}
	if err := u.dirs.spend(1); err != nil {
		return err
	}
	if err := u.root.Mkdir(name, unpackedDirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if fi, err := u.root.Lstat(name); err != nil || !fi.IsDir() {
		return twofoldError(name)
	}
	u.made[name] = true
	return nil
}

func (u *unpacker) makeFile(name string, h *tar.Header, content io.Reader) error {
	if h.Size > u.file {
		return limitError("tar file entry %s has %d bytes, more than %d", name, h.Size, u.file)
	}
	if err := u.total.spend(h.Size); err != nil {
		return err
	}
	if u.made[name] {
		return twofoldError(name)
	}
	if err := u.makeDir(path.Dir(name)); err != nil {
		return err
	}
	mode := unpackedFileMode
	if h.FileInfo().Mode()&0o111 != 0 {
		mode |= 0o100
	}
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, content); err != nil {
		return errors.Join(fmt.Errorf("error writing to %s: %w", name, err), f.Close())
	}
	return f.Close()
}

func twofoldError(name string) error {
	return fmt.Errorf("tar has %s as a file and as a directory", name)
}
