package git

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// The keys of a Secret with the data of a GitHub App.
const (
	keyAppID    = "githubAppID"
	keyAppKey   = "githubAppPrivateKey"
	keyAppOwner = "githubAppInstallationOwner"
	keyAppInst  = "githubAppInstallationID"
	keyAppBase  = "githubAppBaseURL"
)

const (
	githubAPI = "https://api.github.com"
	// githubUser goes with an installation's token in place of a password.
	githubUser = "x-access-token"

	maxGitHubAnswer = 1 << 20
	githubSkew      = 30 * time.Second // between clocks; Flux allows it as well
	githubLifetime  = 2 * time.Minute  // of a claim to be the App
)

// githubApp is what a GitHub App logs in with, at one of its installations.
type githubApp struct {
	id           string
	installation string // an ID, or empty: the owner's
	owner        string
	key          *rsa.PrivateKey
	api          *url.URL
}

// HasGitHubApp reports whether a Secret is that of a GitHub App.
func HasGitHubApp(data map[string][]byte) bool {
	return len(data[keyAppID]) > 0
}

// NewGitHubLogin reads the Secret of a GitRepository with the provider github. The name is the Secret's, for the
// errors.
func NewGitHubLogin(rawURL, name string, data map[string][]byte) (*Login, error) {
	l, err := NewLogin(rawURL, name, data)
	if err != nil {
		return nil, err
	}
	app, err := newGitHubApp(data)
	if err != nil {
		return nil, fmt.Errorf("secret '%s': %w", name, err)
	}
	s := l.reveal()
	s.app = app
	return &Login{func() gitSecrets { return s }}, nil
}

func newGitHubApp(data map[string][]byte) (*githubApp, error) {
	text := func(key string) string { return strings.TrimSpace(string(data[key])) }
	a := &githubApp{id: text(keyAppID), installation: text(keyAppInst), owner: text(keyAppOwner)}
	_, wrong := strconv.ParseUint(a.id, 10, 63)
	_, wrongInstallation := strconv.ParseUint(a.installation, 10, 63)
	switch {
	case wrong != nil:
		return nil, errors.New("app ID must be provided to use github app authentication")
	case (a.installation == "") == (a.owner == ""):
		return nil, fmt.Errorf("must contain exactly one of '%s' or '%s'", keyAppOwner, keyAppInst)
	case a.installation != "" && wrongInstallation != nil:
		return nil, fmt.Errorf("'%s' is no number", keyAppInst)
	case len(data[keyAppKey]) == 0:
		return nil, errors.New("private key must be provided to use github app authentication")
	}
	var err error
	if a.owner != "" {
		if err := auth.OwnerPart.Check("'"+keyAppOwner+"'", a.owner); err != nil {
			return nil, err
		}
	}
	if a.key, err = parseRSAKey(data[keyAppKey]); err != nil {
		return nil, err
	}
	base := text(keyAppBase)
	if base == "" {
		base = githubAPI
	}
	a.api, err = url.Parse(base)
	if err != nil || a.api.Scheme != "https" || a.api.Host == "" || a.api.User != nil || a.api.RawQuery != "" {
		return nil, fmt.Errorf("'%s' is not an https URL", keyAppBase)
	}
	return a, nil
}

func parseRSAKey(text []byte) (*rsa.PrivateKey, error) {
	if block, _ := pem.Decode(text); block != nil {
		if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return key, nil
		}
		if any, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := any.(*rsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, fmt.Errorf("could not parse private key: '%s' holds no RSA key that can be read", keyAppKey)
}

// claim is a JSON web token that says to be the App, for a short time from now on.
func (a *githubApp) claim(now time.Time) (string, error) {
	from := now.Add(-githubSkew)
	payload, err := json.Marshal(map[string]any{"iss": a.id, "iat": from.Unix(), "exp": from.Add(githubLifetime).Unix()})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(payload)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	return text + "." + encode(signature), err
}

// login exchanges what a GitHub App has for the token of an installation. Other logins are returned as they are.
func (c *clone) login(ctx context.Context, l *Login) (*Login, error) {
	s := l.reveal()
	if s.app == nil {
		return l, nil
	}
	id := s.tls
	if s.app.api.String() == githubAPI {
		id = id.WithoutCertificate()
	}
	g := &githubExchange{clone: c, app: s.app, connections: c.connections(id), now: c.client.Config.Now}
	defer g.connections.CloseIdleConnections()
	token, err := g.token(ctx)
	if err != nil {
		return nil, &appError{err}
	}
	s.app, s.username, s.password = nil, githubUser, token
	return &Login{func() gitSecrets { return s }}, nil
}

// githubExchange talks to GitHub's API as an App.
type githubExchange struct {
	clone       *clone
	app         *githubApp
	connections *auth.Pool
	now         func() time.Time
}

func (g *githubExchange) token(ctx context.Context) (string, error) {
	installation := g.app.installation
	if installation == "" {
		var err error
		if installation, err = g.find(ctx); err != nil {
			return "", err
		}
	}
	var answer struct{ Token string }
	err := g.ask(ctx, http.MethodPost, g.app.api.JoinPath("app", "installations", installation, "access_tokens"), &answer)
	if err == nil && (answer.Token == "" || !headerValue(answer.Token)) {
		err = errors.New("the server's answer holds no token")
	}
	return answer.Token, err
}

// find looks for the installation of an owner: an organization, or else a user.
func (g *githubExchange) find(ctx context.Context) (string, error) {
	var answer struct{ ID int64 }
	err := g.ask(ctx, http.MethodGet, g.app.api.JoinPath("orgs", g.app.owner, "installation"), &answer)
	var status *fetch.StatusError
	if errors.As(err, &status) && status.Code == http.StatusNotFound {
		err = g.ask(ctx, http.MethodGet, g.app.api.JoinPath("users", g.app.owner, "installation"), &answer)
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
	e := fetch.NewStatusError(answer, at.String(), fetch.Snippet(answer), func(text string) string { return text }, g.now())
	switch e.Code {
	case http.StatusUnauthorized:
		e.Advice = "githubAppID and githubAppPrivateKey have to be of the same GitHub App"
	case http.StatusNotFound:
		e.Advice = "the GitHub App may not be installed there: see githubAppInstallationID and githubAppInstallationOwner"
	}
	return e
}

// An appError says why a GitHub App got no token.
type appError struct{ err error }

func (e *appError) Error() string {
	return "failed to configure authentication options: " + e.err.Error()
}

func (e *appError) Unwrap() error { return e.err }

// AuthFailure is true.
func (e *appError) AuthFailure() bool { return true }
