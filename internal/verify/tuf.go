package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/tuf"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

const (
	// trustValidDays is how many days the fetched trust root is used without a new request.
	trustValidDays = 1
	// tufTimeout is the timeout for one file.
	tufTimeout = time.Minute
	// maxTUFBytes is the limit, in bytes, of one file. It is more than the client ever requests.
	maxTUFBytes = 8 << 20
)

// PublicTrustOptions holds the place of a trusted root that is published with TUF.
type PublicTrustOptions struct {
	// CacheDir keeps the fetched trust root between runs. If empty, it is not kept.
	CacheDir string
	// Mirror is the URL of the repository, and Root its initial root of trust. If empty, the public Sigstore's are
	// used, whose root is part of the program.
	Mirror string
	Root   []byte

	Transport http.RoundTripper
}

// PublicTrust returns the trust root of a TUF repository, by default the public Sigstore's. It is fetched when it is
// first needed, and again when it is older than a day. If that fails, the root in the cache is used until it expires.
func PublicTrust(o PublicTrustOptions) *Trust {
	if o.Mirror == "" {
		o.Mirror = tuf.DefaultMirror
	}
	if len(o.Root) == 0 {
		o.Root = tuf.DefaultRoot()
	}
	return &Trust{load: o.load}
}

func (o PublicTrustOptions) load(ctx context.Context) (root.TrustedMaterial, error) {
	f := &tufFetcher{ctx: ctx, transport: o.Transport}
	m, err := o.fetch(f, false)
	if err != nil && f.failed() != nil && o.CacheDir != "" {
		if cached, cacheErr := o.fetch(&tufFetcher{ctx: ctx}, true); cacheErr == nil {
			return cached, nil
		}
	}
	if err != nil {
		return nil, f.describe(err)
	}
	return m, nil
}

// fetch fetches the trusted root, or reads it from the cache. It recovers from panics of the library on some metadata.
func (o PublicTrustOptions) fetch(f *tufFetcher, cached bool) (m root.TrustedMaterial, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("malformed metadata: %v", p)
		}
	}()
	client, err := tuf.New(&tuf.Options{
		CacheValidity:     trustValidDays,
		ForceCache:        cached,
		Root:              o.Root,
		CachePath:         o.CacheDir,
		DisableLocalCache: o.CacheDir == "",
		RepositoryBaseURL: o.Mirror,
		Fetcher:           f,
	})
	if err != nil {
		return nil, err
	}
	trusted, err := root.GetTrustedRoot(client)
	if err != nil {
		return nil, err // a nil *TrustedRoot would make an interface that is not nil
	}
	return trusted, nil
}

// A tufFetcher fetches files for the client, which has no context and does not keep the errors.
type tufFetcher struct {
	ctx       context.Context // kept here because the client's interface has no context
	transport http.RoundTripper

	mu      sync.Mutex
	failure error // of the network, not an invalid answer
}

var errOffline = errors.New("not asked")

// DownloadFile implements the client's interface.
func (f *tufFetcher) DownloadFile(address string, limit int64, _ time.Duration) ([]byte, error) {
	if f.transport == nil {
		return nil, errOffline
	}
	content, err := f.download(address, min(limit, maxTUFBytes))
	var missing *metadata.ErrDownloadHTTP
	var length *metadata.ErrDownloadLengthMismatch
	if err != nil && !errors.As(err, &missing) && !errors.As(err, &length) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failure = err
	}
	return content, err
}

func (f *tufFetcher) download(address string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(f.ctx, tufTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: f.transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusForbidden:
		// The client takes this error for the absence of a newer root.
		return nil, &metadata.ErrDownloadHTTP{StatusCode: http.StatusNotFound, URL: fetch.ShownURL(req.URL)}
	default:
		return nil, badAnswer(req.URL, resp.StatusCode)
	}
	content, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, fetch.NewBodyError(ctx, fetch.ShownURL(req.URL), err)
	case int64(len(content)) > limit:
		return nil, &metadata.ErrDownloadLengthMismatch{Msg: fmt.Sprintf("%s exceeds the limit of %d bytes", fetch.ShownURL(req.URL), limit)}
	}
	return content, nil
}

func (f *tufFetcher) failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failure
}

// describe returns a failure of the network or the disk, or else the refusal of metadata that cannot be trusted.
func (f *tufFetcher) describe(err error) error {
	var missing *metadata.ErrDownloadHTTP
	var file *fs.PathError
	failure := f.failed()
	switch {
	case failure != nil:
		return noTrust(failure)
	case errors.As(err, &file), errors.As(err, &missing):
		return noTrust(err)
	}
	return refused("", "unable to initialize trusted root", err)
}

// noTrust returns the error of a trusted root that could not be fetched.
func noTrust(err error) error {
	return &finding.Problem{
		Text:   fmt.Sprintf("unable to initialize trusted root: %v", err),
		Advice: finding.TrustedRoot,
		Err:    err,
	}
}
