package generate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/fluxcd/pkg/runtime/transform"
	goyaml "go.yaml.in/yaml/v3"
	yaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/edit"
)

// The limits of the content that is read to make a file of an artifact.
const (
	maxMerged    = 8 << 20   // bytes of one merged file
	maxExtracted = 100 << 20 // uncompressed bytes of one archive
)

// merge merges a YAML file over another, as Helm does with values.
func merge(old, over File) (text, error) {
	base, err := mapOf(old)
	if err != nil {
		return nil, err
	}
	top, err := mapOf(over)
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(transform.MergeMaps(base, top))
}

func mapOf(f File) (map[string]any, error) {
	data, err := f.Content.Bytes()
	if err != nil {
		return nil, err
	}
	if len(data) > maxMerged {
		return nil, fmt.Errorf("cannot merge a file of more than %d MiB", maxMerged>>20)
	}
	merged := map[string]any{}
	for d := goyaml.NewDecoder(bytes.NewReader(data)); ; {
		var n goyaml.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			return merged, nil
		}
		if err == nil && aliases(&n) {
			err = errors.New("aliases are not expanded here")
		}
		var doc []byte
		if err == nil {
			doc, err = goyaml.Marshal(&n)
		}
		var m map[string]any
		if err == nil {
			err = yaml.Unmarshal(doc, &m)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot unmarshal YAML document: %w", flat(err))
		}
		merged = transform.MergeMaps(merged, m)
	}
}

// aliases reports whether a document has too many aliases to expand them safely.
func aliases(n *goyaml.Node) bool {
	count := 0
	edit.Each(n, func(n *goyaml.Node) {
		if n.Kind == goyaml.AliasNode {
			count++
		}
	})
	return count > 100
}

func flat(err error) error { return errors.New(strings.Join(strings.Fields(err.Error()), " ")) }

func isTarball(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasSuffix(lower, ".tar.gz") || strings.HasSuffix(lower, ".tgz")
}

// extract unpacks an archive. It refuses names that lead out of the archive, links and devices.
func (b *build) extract(o *operation, name string, f File) error {
	fail := func(err error) error { return fmt.Errorf("failed to extract tarball '%s': %w", name, err) }
	if err := b.out.AddDir(o.to); err != nil {
		return fail(err)
	}
	data, err := f.Content.Bytes()
	if err != nil {
		return fail(err)
	}
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fail(fmt.Errorf("requires gzip-compressed body: %w", err))
	}
	stream := &io.LimitedReader{R: zr, N: maxExtracted + 1}
	left := int64(maxExtracted) // of the content: a sparse file has more than the archive
	for tr := tar.NewReader(stream); ; {
		if err := b.step(); err != nil {
			return err
		}
		h, err := tr.Next()
		if stream.N <= 0 {
			return fail(fmt.Errorf("it unpacks to more than %d MiB", maxExtracted>>20))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fail(fmt.Errorf("tar error: %w", err))
		}
		if err := b.entry(o, h, tr, stream, &left); err != nil {
			return fail(err)
		}
	}
}

func (b *build) entry(o *operation, h *tar.Header, r io.Reader, stream *io.LimitedReader, left *int64) error {
	to := path.Clean(h.Name)
	switch {
	case h.Typeflag == tar.TypeXGlobalHeader:
		return nil
	case climbs(to) || strings.Contains(h.Name, "\\"):
		return fmt.Errorf("%q leads out of the archive", h.Name)
	case h.Typeflag == tar.TypeDir:
		return b.out.AddDir(path.Join(o.to, to))
	case h.Typeflag != tar.TypeReg:
		return fmt.Errorf("%q is not a regular file", h.Name)
	}
	data, err := io.ReadAll(io.LimitReader(r, *left+1))
	if *left -= int64(len(data)); stream.N <= 0 || *left < 0 {
		return fmt.Errorf("it unpacks to more than %d MiB", maxExtracted>>20)
	}
	if err != nil {
		return fmt.Errorf("tar error: %w", err)
	}
	return b.out.Add(path.Join(o.to, to), File{Content: text(data), Executable: h.Mode&0o111 != 0, Copied: b.op})
}
