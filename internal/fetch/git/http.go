package git

import (
	"bytes"
	"context"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

const (
	uploadPack          = "git-upload-pack"
	infoRefs            = "/info/refs"
	advertisementType   = "application/x-git-upload-pack-advertisement"
	uploadPackAskType   = "application/x-git-upload-pack-request"
	uploadPackReplyType = "application/x-git-upload-pack-result"
	gitProtocolHeader   = "Git-Protocol"
	gitProtocolVersion  = "version=2"
)

// gitHTTP is a repository on an HTTP server. The login is sent to the repository's own host alone; a server that
// another one redirects to gets the request without it.
type gitHTTP struct {
	clone *clone
	home  *url.URL // as the user has written it, without user and password
	base  *url.URL // where the server has redirected to
	login *Login

	// own carries the client certificate, foreign does not.
	own, foreign *auth.Pool
}

func (c *clone) openHTTP(u *url.URL, login *Login) *gitHTTP {
	login = login.withUserinfo(u.User)
	home := *u
	home.User, home.Fragment = nil, ""
	home.Path, home.RawPath = strings.TrimRight(home.Path, "/"), strings.TrimRight(home.RawPath, "/")
	id := login.reveal().TLS
	h := &gitHTTP{clone: c, home: &home, base: &home, login: login, own: c.connections(id), foreign: c.connections(id.WithoutCertificate())}
	return h
}

// connections returns a pool of this clone's own.
func (c *clone) connections(id *auth.Identity) *auth.Pool {
	if c.options.SkipTLSVerify {
		id = id.SkipVerification()
	}
	return auth.Connections(c.client.Connect(id, c.options.Proxy))
}

func (h *gitHTTP) Close() error {
	h.own.CloseIdleConnections()
	h.foreign.CloseIdleConnections()
	return nil
}

// Advertise follows redirects, and stays where they lead: that is how repositories are renamed.
func (h *gitHTTP) Advertise(ctx context.Context) (io.ReadCloser, error) {
	at := h.at(h.home, infoRefs)
	at.RawQuery = strings.TrimPrefix(at.RawQuery+"&service="+uploadPack, "&")
	answer, at, err := fetch.Follow(ctx, h.home, at, func(ctx context.Context, at *url.URL) (*http.Response, error) {
		return h.send(ctx, http.MethodGet, at, nil)
	})
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode != http.StatusOK:
		return nil, h.statusError(answer, at)
	}
	return h.advertisement(ctx, answer, at)
}

func (h *gitHTTP) at(base *url.URL, suffix string) *url.URL {
	u := *base
	u.Path += suffix
	if u.RawPath != "" {
		u.RawPath += suffix
	}
	return &u
}

func (h *gitHTTP) advertisement(ctx context.Context, answer *http.Response, at *url.URL) (io.ReadCloser, error) {
	base := *at
	var ok bool
	base.Path, ok = strings.CutSuffix(at.Path, infoRefs)
	base.RawPath = strings.TrimSuffix(at.RawPath, infoRefs)
	base.RawQuery = h.home.RawQuery
	if kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";"); !ok || kind != advertisementType {
		_ = answer.Body.Close()
		return nil, h.notServed()
	}
	h.base = &base
	return h.body(ctx, answer, at), nil
}

// Exchange follows no redirect: the server could have redirected the advertisement.
func (h *gitHTTP) Exchange(ctx context.Context, request []byte) (io.ReadCloser, error) {
	at := h.at(h.base, "/"+uploadPack)
	answer, err := h.send(ctx, http.MethodPost, at, request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, h.statusError(answer, at)
	}
	if kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";"); kind != uploadPackReplyType {
		_ = answer.Body.Close()
		return nil, h.notServed()
	}
	return h.body(ctx, answer, at), nil
}

func (h *gitHTTP) body(ctx context.Context, answer *http.Response, at *url.URL) io.ReadCloser {
	return fetch.ReadCloser{Reader: &fetch.Body{
		Ctx: ctx, Raw: answer.Body, URL: at.String(), Left: math.MaxInt64,
		Progress: fetch.Progress{Total: answer.ContentLength},
	}, Closer: answer.Body}
}

func (h *gitHTTP) send(ctx context.Context, method string, u *url.URL, request []byte) (*http.Response, error) {
	if err := h.clone.slot.Move(ctx, u); err != nil {
		return nil, fetch.NewRequestError(ctx, u.String(), err)
	}
	bare := *u
	bare.User = nil
	r, err := http.NewRequestWithContext(ctx, method, bare.String(), bytes.NewReader(request))
	if err != nil {
		return nil, auth.RedactURLError(err)
	}
	r.Header.Set(gitProtocolHeader, gitProtocolVersion)
	r.Header.Set("User-Agent", "git/"+h.clone.client.Config.UserAgent) // some servers know Git by its name
	r.Header.Set("Accept", advertisementType)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", uploadPackAskType)
		r.Header.Set("Accept", uploadPackReplyType)
	}
	connections := h.foreign
	if auth.SameOrigin(h.home, u) {
		h.login.authorize(r)
		connections = h.own
	}
	answer, err := connections.RoundTrip(r)
	if err != nil {
		return nil, h.requestError(ctx, u, err)
	}
	return answer, nil
}

func (h *gitHTTP) scrub(text string) string { return auth.ScrubURL(h.login.scrub(text), h.home) }

func (h *gitHTTP) requestError(ctx context.Context, u *url.URL, err error) error {
	return fetch.DescribeRequest(ctx, u.String(), err, func(err error) (text, advice string) {
		return finding.OneLine(h.scrub(err.Error()), fetch.MaxErrorText), h.login.requestHint(err)
	})
}

// statusError has the words that Git has for these.
func (h *gitHTTP) statusError(answer *http.Response, at *url.URL) error {
	e := fetch.NewStatusError(answer, at.String(), func(text string) string {
		return auth.ScrubURL(h.scrub(text), at)
	}, h.clone.client.Config.Now())
	stranger := !auth.SameOrigin(h.home, at)
	switch {
	case e.AuthFailure() && stranger && h.login.any():
		e.Advice = "redirected to " + at.Host + ", which does not get the credentials for " + h.home.Host
	case e.AuthFailure() && !h.login.any():
		e.Advice = finding.GitLogin
	case e.Code == http.StatusUnauthorized:
		e.Advice = finding.GitLoginRefused
	case e.Code == http.StatusForbidden:
		e.Advice = finding.GitLoginForbidden
	case e.Code == http.StatusNotFound && !h.login.any():
		e.Advice = finding.GitHidden
	}
	what := "unexpected answer"
	switch e.Code {
	case http.StatusUnauthorized:
		what = "authentication required"
	case http.StatusForbidden:
		what = "authorization failed"
	case http.StatusNotFound:
		what = "repository not found"
	}
	return &finding.Problem{Text: what + ": " + e.Status, Err: e}
}

// notServed reports that an answer does not come from a Git server.
func (h *gitHTTP) notServed() error {
	return &finding.Problem{
		Class: finding.Lasting, Text: "there is no Git repository at " + auth.RedactURL(h.home.String()),
		Advice: finding.URLOfClone,
	}
}
