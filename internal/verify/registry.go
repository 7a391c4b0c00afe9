package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// defaultTimeout is longer than the retries and the watch over progress of a transport take.
const defaultTimeout = 5 * time.Minute

const (
	maxReferrersPages = 20
	dockerManifest    = "application/vnd.docker.distribution.manifest.v2+json"
)

// A reader reads the manifests and blobs of one repository, within limits. The client libraries would read answers of
// any size, the first page only, and take some failures for an empty answer.
type reader struct {
	subject Subject
	ref     registry.Reference
	origin  *url.URL
}

func newReader(s Subject) (*reader, error) {
	ref, err := registry.ParseReference(s.Repository)
	if err == nil {
		_, err = digest.Parse(s.Digest.String())
	}
	if err != nil {
		return nil, fmt.Errorf("invalid chart reference: %w", err)
	}
	origin := &url.URL{Scheme: "https", Host: ref.Host()}
	if s.Insecure {
		origin.Scheme = "http"
	}
	return &reader{subject: s, ref: ref, origin: origin}, nil
}

// url returns the URL of a manifest, a blob or a list of referrers.
func (r *reader) url(kind, reference string) *url.URL {
	u := *r.origin
	u.Path = "/v2/" + r.ref.Repository + "/" + kind + "/" + reference
	return &u
}

// An answer is an HTTP response with its whole content.
type answer struct {
	code    int
	header  http.Header
	content []byte
}

func (a *answer) mediaType() string {
	kind, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

// get returns answers of any status, from memory if allowed. An error of the limit names the content with what; the digest
// is empty unless the content is known by a digest.
func (r *reader) get(ctx context.Context, u *url.URL, accept string, limit int64, what string, d digest.Digest) (*answer, error) {
	m := r.subject.Memory
	if a, found := m.recall(u.String(), d != ""); found && int64(len(a.content)) <= limit {
		return a, nil
	}
	if m.offline() {
		return nil, m.missing("a signature of " + r.subject.Ref())
	}
	a, err := r.ask(ctx, u, accept, limit, what)
	if err == nil && (a.code != http.StatusOK || d != "" && d.Algorithm().FromBytes(a.content) == d || d == "" && a.isManifest()) {
		m.remember(u.String(), a, d != "")
	}
	return a, err
}

// isManifest reports whether an answer is a manifest or an index. Other answers are not kept.
func (a *answer) isManifest() bool {
	var doc struct{ Config, Layers, Blobs, Manifests json.RawMessage }
	return json.Unmarshal(a.content, &doc) == nil && (doc.Config != nil || doc.Layers != nil || doc.Blobs != nil || doc.Manifests != nil)
}

func (r *reader) ask(ctx context.Context, u *url.URL, accept string, limit int64, what string) (*answer, error) {
	timeout := cmp.Or(r.subject.Timeout, defaultTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fetch.NewTimeout("request timeout", timeout))
	defer cancel()
	resp, _, err := fetch.Follow(ctx, r.origin, u, func(ctx context.Context, at *url.URL) (*http.Response, error) { return r.send(ctx, at, accept) })
	if errors.Is(err, fs.ErrNotExist) {
		return &answer{code: http.StatusNotFound}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return &answer{code: resp.StatusCode}, nil
	}
	content, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, fetch.NewBodyError(ctx, fetch.ShownURL(u), err)
	}
	if int64(len(content)) > limit {
		return nil, tooLarge(what, limit)
	}
	return &answer{resp.StatusCode, resp.Header, content}, nil
}

func (r *reader) send(ctx context.Context, u *url.URL, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := r.subject.Transport.RoundTrip(req)
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", fetch.ShownURL(u), err)
	}
	return resp, nil
}

// named returns the manifest of a tag, and nil if the tag does not exist.
func (r *reader) named(ctx context.Context, tag, what string, types ...string) (*answer, error) {
	u := r.url("manifests", tag)
	a, err := r.get(ctx, u, strings.Join(types, ", "), maxManifestBytes, what, "")
	switch {
	case err != nil:
		return nil, err
	case a.code == http.StatusNotFound:
		return nil, nil
	case a.code != http.StatusOK:
		return nil, badAnswer(u, a.code)
	}
	return a, nil
}

// content returns a manifest or a blob by its digest. Its content has to match.
func (r *reader) content(ctx context.Context, kind string, d digest.Digest, limit int64, what string) (*answer, error) {
	if _, err := digest.Parse(d.String()); err != nil {
		return nil, refused("", what+" is not named by a digest", err)
	}
	accept := ""
	if kind == "manifests" {
		accept = strings.Join([]string{ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex, artifactManifest, dockerManifest}, ", ")
	}
	u := r.url(kind, d.String())
	a, err := r.get(ctx, u, accept, limit, what, d)
	if err != nil {
		return nil, err
	}
	switch a.code {
	case http.StatusOK:
	case http.StatusNotFound:
		// Some clients delete a manifest and leave it in the index: a missing manifest is not a signature.
		return nil, refused("", what+" is listed, but missing", nil)
	default:
		return nil, badAnswer(u, a.code)
	}
	if got := d.Algorithm().FromBytes(a.content); got != d {
		return nil, refused("", what+" has the wrong content", &digest.MismatchError{Want: d, Got: got})
	}
	return a, nil
}

// blob returns the content of a descriptor. It has the descriptor's digest; the size is only compared with the limit.
func (r *reader) blob(ctx context.Context, d ocispec.Descriptor, what string) ([]byte, error) {
	if d.Size > maxSignatureBytes {
		return nil, tooLarge(what, maxSignatureBytes)
	}
	a, err := r.content(ctx, "blobs", d.Digest, maxSignatureBytes, what)
	if err != nil {
		return nil, err
	}
	return a.content, nil
}

// An artifact is a manifest that refers to the subject, in the form of the specification or of a draft.
type artifact struct {
	Layers []ocispec.Descriptor `json:"layers"`
	Blobs  []ocispec.Descriptor `json:"blobs"`
}

// artifact returns the manifest of an artifact that refers to the subject.
func (r *reader) artifact(ctx context.Context, d digest.Digest) (*artifact, error) {
	what := "signature manifest " + d.String()
	answer, err := r.content(ctx, "manifests", d, maxManifestBytes, what)
	if err != nil {
		return nil, err
	}
	var a artifact
	if err := json.Unmarshal(answer.content, &a); err != nil {
		return nil, refused("", what+" cannot be read", err)
	}
	a.Layers = append(a.Layers, a.Blobs...)
	if len(a.Layers) > maxSignatures {
		return nil, tooMany("layers in "+what, maxSignatures)
	}
	return &a, nil
}
