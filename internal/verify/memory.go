package verify

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"

	godigest "github.com/opencontainers/go-digest"
	"golang.org/x/crypto/ocsp"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// cachedSignatures is the kind of the kept answers in the cache.
const cachedSignatures = "signature"

// A Memory holds the answers to earlier runs' searches for signatures. Content that is named by its digest is served from
// it; tags and lists of referrers are requested each time, because a signature may be withdrawn: unless no connection is to
// be opened, or the caller accepts the last answer.
type Memory struct {
	Answers cache.Memory
	// Settled is true if the last answer of the source suffices, as for locked sources. A caller verifies again without
	// it before it accepts a refusal that rests on kept answers.
	Settled bool

	used atomic.Bool
}

// Used reports whether an answer was served that the source may have changed since.
func (m *Memory) Used() bool { return m != nil && m.used.Load() }

func (m *Memory) offline() bool { return m != nil && m.Answers.Offline() }

// A keptAnswer is an answer on disk.
type keptAnswer struct {
	Code    int      `json:"code"`
	Type    string   `json:"type,omitempty"`
	Links   []string `json:"links,omitempty"`
	Content []byte   `json:"content,omitempty"`
}

// recall returns a kept answer. With fixed, the name contains a digest, and the answer never changes.
func (m *Memory) recall(name string, fixed bool) (*answer, bool) {
	if m == nil || !fixed && !m.Settled && !m.offline() {
		return nil, false
	}
	var kept keptAnswer
	if !m.Answers.Recall(cachedSignatures, name, &kept) {
		return nil, false
	}
	if !fixed {
		m.used.Store(true)
	}
	return &answer{kept.Code, http.Header{"Content-Type": {kept.Type}, "Link": kept.Links}, kept.Content}, true
}

// remember keeps an answer with content and, unless its name contains a digest, the answer that the registry has none.
func (m *Memory) remember(name string, a *answer, fixed bool) {
	if m == nil || a.code != http.StatusOK && (fixed || !noReferrersAPI(a)) {
		return
	}
	m.Answers.Remember(cachedSignatures, name, keptAnswer{a.code, a.header.Get("Content-Type"), a.header.Values("Link"), a.content})
}

// missing returns the error for an answer that is not kept, in a run that opens no connection.
func (m *Memory) missing(what string) error { return m.Answers.Missing(what) }

// revocationsKept is a transport to the servers that list revoked certificates. In a run without connections it serves
// their last answers; the library checks that the answers are still valid.
type revocationsKept struct {
	next   http.RoundTripper
	memory *Memory
}

// RoundTrip implements http.RoundTripper.
func (k *revocationsKept) RoundTrip(r *http.Request) (*http.Response, error) {
	name, err := nameOf(r)
	if err != nil {
		return nil, err
	}
	if k.memory.offline() {
		a, found := k.memory.recall(name, false)
		if !found {
			return nil, k.memory.missing("the revocation data of " + shownHost(r.URL))
		}
		return &http.Response{
			Status: http.StatusText(a.code), StatusCode: a.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: a.header, Request: r, ContentLength: int64(len(a.content)), Body: io.NopCloser(bytes.NewReader(a.content)),
		}, nil
	}
	resp, err := k.next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxManifestBytes+1))
	if err == nil && len(content) <= maxManifestBytes && aboutRevocation(content) {
		k.memory.remember(name, &answer{resp.StatusCode, resp.Header, content}, false)
	}
	rest := io.MultiReader(bytes.NewReader(content), failing{err}, resp.Body)
	resp.Body = fetch.ReadCloser{Reader: rest, Closer: resp.Body}
	return resp, nil
}

// aboutRevocation reports whether an answer is an OCSP response or a revocation list. Other answers are not kept: a
// certificate may name any server.
func aboutRevocation(content []byte) bool {
	_, notOCSP := ocsp.ParseResponse(content, nil)
	_, notList := x509.ParseRevocationList(content)
	return notOCSP == nil || notList == nil
}

// failing returns its error, or io.EOF so that the next reader follows.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, cmp.Or(f.err, io.EOF) }

// nameOf returns equal names for equal requests. It replaces the request's body, so that it can be read again.
func nameOf(r *http.Request) (string, error) {
	name := r.Method + " " + r.URL.String()
	if r.Body == nil || r.Body == http.NoBody {
		return name, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxManifestBytes))
	if err != nil {
		return "", err
	}
	_ = r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(body))
	return name + " " + godigest.FromBytes(body).String(), nil
}

func shownHost(u *url.URL) string { return u.Scheme + "://" + u.Host }
