package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/digest"
)

// Archive downloads a pinned chart's archive into dst, at most limit bytes, and checks it against the manifest while it is
// read.
func (o *OCI) Archive(ctx context.Context, m *Manifest, dst Sink, limit int64) error {
	return o.blob(ctx, m, m.Layer, dst, limit)
}

// ProvenanceFile downloads a pinned chart's .prov file. A chart without one is an error.
func (o *OCI) ProvenanceFile(ctx context.Context, m *Manifest, dst Sink, limit int64) error {
	if m.Provenance == nil {
		return fmt.Errorf("failed to get '%s': %w", m.Ref, errNoProvenance)
	}
	return o.blob(ctx, m, *m.Provenance, dst, limit)
}

var errNoProvenance = errors.New("the chart has no provenance layer")

func (o *OCI) blob(ctx context.Context, m *Manifest, desc ocispec.Descriptor, dst Sink, limit int64) error {
	var err error
	if desc.Size > limit {
		err = tooLargeArchive(m.file(), limit)
	} else {
		err = o.operation(ctx, m.ref, m.chart, func(x *ociExchange) error {
			x.stream = true
			return o.client.retry(ctx, func(ctx context.Context, n int) error { return x.download(ctx, desc, dst, n) })
		})
	}
	if err != nil {
		return fmt.Errorf("failed to get '%s': %w", m.Ref, err)
	}
	return nil
}

func (m *Manifest) file() string {
	return oneLine(path.Base(m.ref.Repository)+"-"+m.Version()+".tgz", maxName)
}

// download makes one attempt.
func (x *ociExchange) download(ctx context.Context, desc ocispec.Descriptor, dst Sink, attempt int) error {
	if err := dst.Reset(); err != nil {
		return fmt.Errorf("cannot start over: %w", err)
	}
	ctx, watch := watchProgress(ctx, x.oci.options.NoProgress)
	defer watch.stop()
	x.ctx = ctx
	content, err := x.repository().Blobs().Fetch(ctx, desc)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	wrong := func(err error) error { return &BlobError{What: "layer " + desc.Digest.String(), Err: err} }
	b := &body{
		ctx: ctx, raw: watch.reader(content), url: x.oci.origin.String(), left: desc.Size, tooLarge: wrong(errSize),
		progress: Progress{Attempt: attempt, Total: desc.Size},
	}
	return pump(b, dst, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, digest.NewReader(r, desc.Digest))
		var mismatch *digest.MismatchError
		switch {
		case !errors.As(err, &mismatch):
			return err
		case b.left > 0:
			return wrong(errSize)
		}
		return wrong(err)
	})
}

// OCIArchive downloads an archive that an entry of an HTTP index keeps in a registry: ref is oci://host/repository, with
// a tag, a digest, or neither, in which case the version is the tag. The options' TLS settings are for that registry.
// A want that is not empty is what the index says the archive's digest is.
func (c *Client) OCIArchive(ctx context.Context, ref, version string, want digest.Digest, o OCIOptions, dst Sink, limit int64) (*Manifest, error) {
	name, err := parseOCIReference(ref)
	if err != nil {
		return nil, err
	}
	chart := path.Base(name.Repository)
	reference := name.Reference
	name.Reference = ""
	name.Repository = strings.Trim(strings.TrimSuffix(name.Repository, chart), "/")
	repo := c.openOCI(name, o)
	var m *Manifest
	switch {
	case strings.Contains(reference, ":"):
		m, err = repo.PinDigest(ctx, chart, digest.Digest(reference))
	case reference != "":
		m, err = repo.Pin(ctx, chart, reference)
	default:
		m, err = repo.Pin(ctx, chart, version)
	}
	if err != nil {
		return nil, err
	}
	if err := m.compare(want); err != nil {
		return nil, err
	}
	if err := repo.Archive(ctx, m, dst, limit); err != nil {
		return nil, err
	}
	return m, nil
}

// compare refuses, before a download, a chart that is not the one that an index names.
func (m *Manifest) compare(want digest.Digest) error {
	if want == "" || want == m.Layer.Digest || want.Algorithm() != m.Layer.Digest.Algorithm() {
		return nil
	}
	return &DigestError{File: m.Ref, Err: &digest.MismatchError{Want: want, Got: m.Layer.Digest}}
}

// parseOCIReference returns host, repository and, if there is one, tag or digest.
func parseOCIReference(raw string) (registry.Reference, error) {
	refuse := func(reason string) (registry.Reference, error) {
		return registry.Reference{}, &RegistryURLError{URL: auth.RedactURL(raw), Reason: reason}
	}
	rest, ok := strings.CutPrefix(raw, ociScheme)
	if !ok || strings.ContainsAny(rest, "?#") {
		return refuse("")
	}
	host, rest, _ := strings.Cut(rest, "/")
	if strings.Contains(host, "@") {
		return refuse("credentials in the URL are not used")
	}
	ref, err := registry.ParseReference(registryName(host) + "/" + rest)
	if err != nil || ref.Repository == "" {
		return refuse("not a reference to a chart in a registry")
	}
	return ref, nil
}
