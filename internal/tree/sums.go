package tree

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// Sums reads an archive that Archive wrote and returns digests of the files below a directory, by their names relative to it. The
// digest of an executable file has a suffix. It unpacks nothing.
func Sums(ctx context.Context, r io.Reader, dir string, l Limits) (map[string]string, error) {
	l = l.withDefaults()
	sums := map[string]string{}
	err := readEntries(ctx, r, l, func(name string, h *tar.Header, content io.Reader) error {
		below, ok := strings.CutPrefix(name, dir+"/")
		if dir == "." {
			below, ok = name, true
		}
		if !ok || h.Typeflag != tar.TypeReg {
			return nil
		}
		if h.Size > l.File {
			return limitError("file %q has %d bytes, more than %d", h.Name, h.Size, l.File)
		}
		hash := sha256.New()
		if _, err := io.Copy(hash, content); err != nil {
			return fmt.Errorf("tar error: %w", err)
		}
		sums[below] = hex.EncodeToString(hash.Sum(nil))
		if h.FileInfo().Mode()&0o111 != 0 {
			sums[below] += " executable"
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sums, nil
}
