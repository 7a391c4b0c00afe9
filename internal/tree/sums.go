package tree

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Sums reads an archive that Archive wrote and returns digests of the files below a directory, by their names in it. A file that
// becomes executable has another one. Nothing is unpacked.
func Sums(ctx context.Context, r io.Reader, dir string, l Limits) (map[string]string, error) {
	zr, err := gzip.NewReader(interrupted{ctx, r})
	if err != nil {
		return nil, fmt.Errorf("requires gzip-compressed body: %w", err)
	}
	l = l.withDefaults()
	stream := &bounded{zr, newBudget(l.Total, "archive has more than %d bytes without compression")}
	entries := newBudget(int64(l.Entries), "archive has more than %d files and directories")
	sums := map[string]string{}
	for archive := tar.NewReader(stream); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return sums, drain(stream)
		}
		if err != nil {
			return nil, fmt.Errorf("tar error: %w", err)
		}
		if err := entries.spend(1); err != nil {
			return nil, err
		}
		name, err := entryName(h.Name)
		if err != nil {
			return nil, err
		}
		below, ok := strings.CutPrefix(name, dir+"/")
		if dir == "." {
			below, ok = name, true
		}
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		if h.Size > l.File {
			return nil, limitError("file %q has %d bytes, more than %d", h.Name, h.Size, l.File)
		}
		hash := sha256.New()
		if _, err := io.Copy(hash, archive); err != nil {
			return nil, fmt.Errorf("tar error: %w", err)
		}
		sums[below] = hex.EncodeToString(hash.Sum(nil))
		if h.FileInfo().Mode()&0o111 != 0 {
			sums[below] += " executable"
		}
	}
}
