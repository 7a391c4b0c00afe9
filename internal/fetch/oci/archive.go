package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// Archive downloads a pinned chart's archive into dst, at most limit bytes, and checks it against the manifest while it is
// read.
func (o *Namespace) Archive(ctx context.Context, m *Manifest, dst fetch.Sink, limit int64) error {
	return o.blob(ctx, m, &blob{desc: m.Layer, dst: dst, limit: limit})
}

// A blob is something to download.
type blob struct {
	desc  ocispec.Descriptor
	dst   fetch.Sink
	limit int64
	also  digest.Digest // the digest in an index, if it is of another algorithm
}

func (o *Namespace) blob(ctx context.Context, m *Manifest, b *blob) error {
	var err error
	if b.desc.Size > b.limit {
		err = fetch.TooLargeArchive(m.file(), b.limit)
	} else {
		err = o.operation(ctx, m.ref, m.chart, func(x *exchange) error {
			x.stream = true
			return o.client.Retry(ctx, func(ctx context.Context) error { return x.download(ctx, b) })
		})
	}
	if err != nil {
		return fmt.Errorf("failed to get '%s': %w", m.Ref, err)
	}
	return nil
}

func (m *Manifest) file() string {
	return finding.OneLine(path.Base(m.ref.Repository)+"-"+m.Version()+".tgz", fetch.MaxName)
}

// download makes one attempt.
func (x *exchange) download(ctx context.Context, b *blob) error {
	if err := b.dst.Reset(); err != nil {
		return fmt.Errorf("cannot start over: %w", err)
	}
	ctx, watch := watchProgress(ctx, x.oci.options.NoProgress)
	defer watch.stop()
	x.ctx = ctx
	content, err := x.repository().Blobs().Fetch(ctx, b.desc)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	in := &fetch.Body{
		Ctx: ctx, Raw: watch.reader(content), URL: x.oci.origin.String(), Left: b.desc.Size, TooLarge: b.wrong(errSize),
		Progress: fetch.Progress{Total: b.desc.Size},
	}
	return fetch.Pump(in, b.dst, func(r io.Reader) error { return b.check(in, r) })
}

func (b *blob) wrong(err error) error {
	return notPromised("layer "+b.desc.Digest.String(), err)
}

// check reads to the end.
func (b *blob) check(in *fetch.Body, r io.Reader) error {
	r = digest.NewReader(r, b.desc.Digest)
	if b.also != "" {
		r = digest.NewReader(r, b.also)
	}
	_, err := io.Copy(io.Discard, r)
	var mismatch *digest.MismatchError
	switch isMismatch := errors.As(err, &mismatch); {
	case isMismatch && mismatch.Want == b.also:
		return &fetch.DigestError{File: b.desc.Digest.String(), Err: mismatch}
	case err != nil && !isMismatch:
		return err
	case in.Left > 0:
		return b.wrong(errSize)
	case isMismatch:
		return b.wrong(err)
	}
	return nil
}

// Candidate downloads the archive of a candidate whose index entry points at a registry: the URL is oci://host/repository, with a
// tag, a digest, or neither, in which case the version is the tag. The options' TLS settings are for that registry. The policy
// decides whether a different digest in the index is an error, a warning, or ignored.
func (c *Client) Candidate(ctx context.Context, cand resolve.Candidate, policy fetch.DigestPolicy, o Options, dst fetch.Sink, limit int64) error {
	want := fetch.CandidateDigest(ctx, cand, policy)
	repo, m, err := c.pinReference(ctx, cand.URLs[0], cand.Version, o)
	if err != nil {
		return err
	}
	b := &blob{desc: m.Layer, dst: dst, limit: limit}
	if want != "" && want.Algorithm() != m.Layer.Digest.Algorithm() {
		b.also = want
	} else if want != "" && want != m.Layer.Digest { // no need to download it
		err = &fetch.DigestError{File: m.Ref, Err: &digest.MismatchError{Want: want, Got: m.Layer.Digest}}
	}
	if err == nil {
		err = repo.blob(ctx, m, b)
	}
	if wrong, ok := errors.AsType[*fetch.DigestError](err); ok && policy == fetch.DigestWarn {
		fetch.Warn(ctx, wrong)
		b.also = ""
		err = repo.blob(ctx, m, b)
	}
	return err
}

// pinReference opens the registry of a reference, and resolves the reference. It warns of a login that is withheld.
func (c *Client) pinReference(ctx context.Context, ref, version string, o Options) (*Namespace, *Manifest, error) {
	name, err := parseReference(ref)
	if err != nil {
		return nil, nil, err
	}
	chart := path.Base(name.Repository)
	reference := name.Reference
	name.Reference = ""
	name.Repository = strings.Trim(strings.TrimSuffix(name.Repository, chart), "/")
	repo := &Namespace{c.open(name, o)}
	if err := repo.Withheld(ctx); err != nil {
		fetch.Warn(ctx, err)
	}
	var m *Manifest
	switch {
	case strings.Contains(reference, ":"):
		m, err = repo.PinDigest(ctx, chart, digest.Digest(reference))
	case reference != "":
		m, err = repo.Pin(ctx, chart, reference)
	default:
		m, err = repo.Pin(ctx, chart, version)
	}
	return repo, m, err
}

// parseReference returns host, repository and, if given, tag or digest.
func parseReference(raw string) (registry.Reference, error) {
	refuse := func(reason string) (registry.Reference, error) {
		return registry.Reference{}, invalidURL(raw, reason, "")
	}
	rest, ok := strings.CutPrefix(raw, scheme)
	if !ok {
		return refuse("")
	}
	host, rest, _ := strings.Cut(rest, "/")
	if strings.Contains(host, "@") {
		return refuse("credentials in the URL are not used")
	}
	ref, err := registry.ParseReference(host + "/" + rest)
	if err != nil || ref.Repository == "" {
		return refuse("not a reference to a chart in a registry")
	}
	return ref, nil
}
