package oci

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	godigest "github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// maxMetadataBytes bounds a manifest and one page of tags. Registries refuse manifests above 4 MiB as well.
const maxMetadataBytes = 4 << 20

const headerContentDigest = "Docker-Content-Digest"

// An exchange is one operation on one repository of a registry. It is the HTTP client of the client library: it
// retries, follows redirects, bounds the bytes read, watches over progress, and returns only answers with status 200,
// in a form that the library cannot misread.
type exchange struct {
	oci   *endpoint
	ref   registry.Reference
	chart string
	slot  *fetch.Slot

	// stream is for blobs: the body is passed on as it arrives, and the caller retries.
	stream bool
	ctx    context.Context // of the attempt, for stream
	// page is called before each request, which it may refuse.
	page func(*url.URL) error
	// digest is the digest of the last manifest.
	digest digest.Digest
	// failure is the last request's.
	failure error
}

// operation runs a function on a repository, in one slot.
func (o *endpoint) operation(ctx context.Context, ref registry.Reference, chart string, what func(*exchange) error) error {
	s := o.client.NewSlot()
	defer s.Free()
	if err := s.Move(ctx, o.origin); err != nil {
		return fetch.NewRequestError(ctx, o.origin.String(), err)
	}
	return what(&exchange{oci: o, ref: ref, chart: chart, slot: s})
}

// repository returns the library's view, with this exchange as its HTTP client.
func (x *exchange) repository() *remote.Repository {
	return &remote.Repository{
		Client:             x,
		Reference:          x.ref,
		PlainHTTP:          x.oci.options.Insecure,
		ManifestMediaTypes: manifestTypes(),
		TagListPageSize:    tagPageSize,
		MaxMetadataBytes:   maxMetadataBytes,
	}
}

// Do implements the library's HTTP client.
func (x *exchange) Do(r *http.Request) (*http.Response, error) {
	answer, err := x.do(r)
	x.failure = err
	return answer, err
}

func (x *exchange) do(r *http.Request) (*http.Response, error) {
	if x.page != nil {
		if err := x.page(r.URL); err != nil {
			return nil, err
		}
	}
	if x.stream {
		return x.blob(r)
	}
	return x.again(r, x.metadata)
}

// again sends a request until it is answered or fails for good. A request with a body is sent once.
func (x *exchange) again(r *http.Request, send func(context.Context, *http.Request) (*http.Response, error)) (answer *http.Response, err error) {
	if r.Body != nil && r.Body != http.NoBody {
		return send(r.Context(), r)
	}
	err = x.oci.client.Retry(r.Context(), func(ctx context.Context) (err error) {
		answer, err = send(ctx, r) //nolint:bodyclose // the caller closes it
		return err
	})
	return answer, err
}

// blob returns an answer whose length and digest are checked by the reader of its body, not by the library: that one's
// errors show the URL of the last redirect, which is signed.
func (x *exchange) blob(r *http.Request) (*http.Response, error) {
	answer, err := x.get(x.ctx, r)
	if err != nil {
		return nil, err
	}
	answer.Request = r
	answer.ContentLength = -1
	answer.Header = http.Header{}
	return answer, nil
}

// metadata reads a whole answer within one attempt.
func (x *exchange) metadata(ctx context.Context, r *http.Request) (*http.Response, error) {
	ctx, watch := watchProgress(ctx, x.oci.options.NoProgress)
	defer watch.stop()
	answer, err := x.get(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(watch.reader(answer.Body), maxMetadataBytes+1))
	if err != nil {
		return nil, fetch.NewBodyError(ctx, fetch.ShownURL(r.URL), err)
	}
	if len(content) > maxMetadataBytes {
		return nil, fmt.Errorf("the registry's answer to %s exceeds %d bytes", r.URL.Path, maxMetadataBytes)
	}
	header := http.Header{"Content-Type": {contentType(answer)}, "Link": answer.Header.Values("Link")}
	if strings.Contains(r.URL.Path, "/manifests/") {
		if x.digest, err = manifestDigest(r.URL, answer.Header.Get(headerContentDigest), content); err != nil {
			return nil, err
		}
		header.Set(headerContentDigest, x.digest.String())
	}
	return &http.Response{
		Status: answer.Status, StatusCode: answer.StatusCode, Proto: answer.Proto,
		Header: header, Request: r,
		ContentLength: int64(len(content)), Body: io.NopCloser(bytes.NewReader(content)),
	}, nil
}

// contentType returns a type that the library can parse. The type of a manifest is in its content.
func contentType(answer *http.Response) string {
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || kind == "" {
		return "application/octet-stream"
	}
	return kind
}

// get sends the request and follows redirects, with the credentials only where they may go. The answer's status is 200.
func (x *exchange) get(ctx context.Context, r *http.Request) (*http.Response, error) {
	answer, at, err := fetch.Follow(ctx, x.oci.origin, r.URL, func(ctx context.Context, at *url.URL) (*http.Response, error) {
		if err := x.slot.Move(ctx, at); err != nil {
			return nil, fetch.NewRequestError(ctx, fetch.ShownURL(r.URL), err)
		}
		return x.roundTrip(fetch.WithSlot(ctx, x.slot), r, at)
	})
	if err != nil || answer.StatusCode == http.StatusOK {
		return answer, err
	}
	return nil, x.registryError(ctx, answer, at)
}

// roundTrip sends the request to a place that it was redirected to.
func (x *exchange) roundTrip(ctx context.Context, r *http.Request, at *url.URL) (*http.Response, error) {
	out := r.Clone(ctx)
	out.URL, out.Host = at, ""
	answer, err := x.oci.transport.RoundTrip(out)
	if err != nil {
		return nil, x.requestError(ctx, r.URL, at, err)
	}
	return answer, nil
}

// progressWatch ends a context if no bytes arrive for too long.
type progressWatch struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func watchProgress(ctx context.Context, limit time.Duration) (context.Context, *progressWatch) {
	ctx, cancel := context.WithCancelCause(ctx)
	stalled := fetch.NewTimeout("no-progress limit", limit)
	return ctx, &progressWatch{limit, time.AfterFunc(limit, func() { cancel(stalled) }), cancel}
}

func (w *progressWatch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// reader counts every read that brings something as progress.
func (w *progressWatch) reader(r io.Reader) io.Reader {
	w.timer.Reset(w.limit)
	return &watchedReader{r, w}
}

type watchedReader struct {
	from  io.Reader
	watch *progressWatch
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if n > 0 {
		r.watch.timer.Reset(r.watch.limit)
	}
	return n, err
}

// manifestDigest computes the digest of a manifest with the algorithm that it was requested by, or that the registry
// names it by, and compares.
func manifestDigest(u *url.URL, named string, content []byte) (digest.Digest, error) {
	asked := u.Path[strings.LastIndex(u.Path, "/")+1:]
	var got digest.Digest
	for _, want := range []string{asked, named} {
		// A tag is not a digest, and a header need not be one: such values are not compared.
		d, err := digest.Parse(want)
		if err != nil {
			continue
		}
		if found := d.Algorithm().FromBytes(content); found != d {
			return "", notPromised("manifest", &digest.MismatchError{Want: d, Got: found})
		}
		got = cmp.Or(got, d)
	}
	return cmp.Or(got, godigest.FromBytes(content)), nil
}

var errSize = errors.New("its size differs from its manifest")

// notPromised reports that the content from a registry does not match its digest. A retry would not help.
func notPromised(what string, err error) error {
	return &finding.Problem{
		Code: finding.DigestMismatch, Class: finding.Untrusted | finding.Lasting, Text: fmt.Sprintf("%s has the wrong content: %v", what, err), Err: err,
	}
}
