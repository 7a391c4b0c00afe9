package git

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// GitHubAPI is where tokens of GitHub itself are requested.
const GitHubAPI = "https://api.github.com"

// HeaderValue reports whether a text can be sent in a header.
func HeaderValue(text string) bool {
	for _, c := range []byte(text) {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

const (
	// githubUser goes with an installation's token in place of a password.
	githubUser = "x-access-token"

	maxGitHubAnswer = 1 << 20
	githubSkew      = 30 * time.Second // between clocks; Flux allows it as well
	githubLifetime  = 2 * time.Minute  // of a claim to be the App
)

// GitHubApp is the login of a GitHub App, at one of its installations.
type GitHubApp struct {
	ID           string
	Installation string // an ID, or empty: the owner's
	Owner        string
	Key          *rsa.PrivateKey
	API          *url.URL // https
}

// claim returns a JSON web token that identifies the App, valid for a short time from now on.
func (a *GitHubApp) claim(now time.Time) (string, error) {
	from := now.Add(-githubSkew)
	payload, err := json.Marshal(map[string]any{"iss": a.ID, "iat": from.Unix(), "exp": from.Add(githubLifetime).Unix()})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(payload)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.Key, crypto.SHA256, sum[:])
	return text + "." + encode(signature), err
}

// login exchanges the key of a GitHub App for the token of an installation. Logins without an App are returned unchanged.
func (c *clone) login(ctx context.Context, l *Login) (*Login, error) {
	s := l.reveal()
	if s.App == nil {
		return l, nil
	}
	id := s.TLS
	if s.App.API.String() == GitHubAPI {
		id = id.WithoutCertificate()
	}
	g := &githubExchange{clone: c, app: s.App, connections: c.connections(id), now: c.client.Config.Now}
	defer g.connections.CloseIdleConnections()
	token, err := g.token(ctx)
	if err != nil {
		return nil, &plainError{finding.Problem{Class: finding.Login, Text: "failed to configure authentication options: " + err.Error(), Err: err}}
	}
	s.App, s.Username, s.Password = nil, githubUser, token
	return NewLogin(s), nil
}

// githubExchange talks to GitHub's API as an App.
type githubExchange struct {
	clone       *clone
	app         *GitHubApp
	connections *auth.Pool
	now         func() time.Time
}

func (g *githubExchange) token(ctx context.Context) (string, error) {
	installation := g.app.Installation
	if installation == "" {
		var err error
		if installation, err = g.find(ctx); err != nil {
			return "", err
		}
	}
	var answer struct{ Token string }
	err := g.ask(ctx, http.MethodPost, g.app.API.JoinPath("app", "installations", installation, "access_tokens"), &answer)
	if err == nil && (answer.Token == "" || !HeaderValue(answer.Token)) {
		err = errors.New("the server's answer contains no token")
	}
	return answer.Token, err
}

// find looks for the installation of an owner: an organization, or else a user.
func (g *githubExchange) find(ctx context.Context) (string, error) {
	var answer struct{ ID int64 }
	err := g.ask(ctx, http.MethodGet, g.app.API.JoinPath("orgs", g.app.Owner, "installation"), &answer)
	if status, ok := errors.AsType[*fetch.StatusError](err); ok && status.Code == http.StatusNotFound {
		err = g.ask(ctx, http.MethodGet, g.app.API.JoinPath("users", g.app.Owner, "installation"), &answer)
	}
	return strconv.FormatInt(answer.ID, 10), err
}

// ask sends a claim with the time of this machine, or, if that is refused and the server has another time, with its.
func (g *githubExchange) ask(ctx context.Context, method string, at *url.URL, into any) error {
	now := g.now()
	answer, err := g.send(ctx, method, at, now)
	if err != nil {
		return err
	}
	if served, err := http.ParseTime(answer.Header.Get("Date")); answer.StatusCode == http.StatusUnauthorized && err == nil &&
		served.Sub(now).Abs() > githubSkew {
		_ = answer.Body.Close()
		g.now = func() time.Time { return served } // for the moment that this takes
		if answer, err = g.send(ctx, method, at, served); err != nil {
			return err
		}
	}
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusCreated {
		return g.refused(answer, at)
	}
	defer func() { _ = answer.Body.Close() }()
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxGitHubAnswer)).Decode(into); err != nil {
		return fmt.Errorf("the answer of %s cannot be read: %w", at, err)
	}
	return nil
}

func (g *githubExchange) send(ctx context.Context, method string, at *url.URL, now time.Time) (*http.Response, error) {
	claim, err := g.app.claim(now)
	if err != nil {
		return nil, err
	}
	if err := g.clone.slot.Move(ctx, at); err != nil {
		return nil, fetch.NewRequestError(ctx, at.String(), err)
	}
	r, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(nil))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/vnd.github+json")
	r.Header.Set("Authorization", "Bearer "+claim)
	r.Header.Set("User-Agent", g.clone.client.Config.UserAgent)
	answer, err := g.connections.RoundTrip(r)
	if err != nil {
		return nil, fetch.NewRequestError(ctx, at.String(), err)
	}
	return answer, nil
}

func (g *githubExchange) refused(answer *http.Response, at *url.URL) error {
	e := fetch.NewStatusError(answer, at.String(), func(text string) string { return text }, g.now())
	switch e.Code {
	case http.StatusUnauthorized:
		e.Advice = "githubAppID and githubAppPrivateKey must belong to the same GitHub App"
	case http.StatusNotFound:
		e.Advice = "the GitHub App may not be installed there: see githubAppInstallationID and githubAppInstallationOwner"
	}
	return e
}
