package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/finding"
)

const (
	// maxTokenBytes bounds a token server's answer. A token has to fit into a header, and comes twice.
	maxTokenBytes = 128 << 10
	// tokenTimeout bounds one request for a token, during which only the answer's headers show progress.
	tokenTimeout = 60 * time.Second
	// defaultTokenLife and tokenLeeway limit the use of a token: the distribution specification sets 60 s if the server
	// sends no lifetime.
	defaultTokenLife = 60 * time.Second
	tokenLeeway      = 10 * time.Second
	// maxTokenLife keeps absurd lifetimes from overflowing.
	maxTokenLife = 24 * time.Hour
	// tokenClientID identifies this client to token servers that ask for it.
	tokenClientID = "helmsrc"
)

// TokenError is a token server's answer without a token.
type TokenError struct {
	Realm  string // scheme and host
	Code   int
	Reason string // the server's text in one line, or its fault

	wait time.Duration
}

func (e *TokenError) Error() string {
	text := fmt.Sprintf("token server '%s'", e.Realm)
	if e.Code != http.StatusOK {
		text += fmt.Sprintf(" answered %d %s", e.Code, http.StatusText(e.Code))
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Finding returns the code of the fault. It is empty for a login that was refused: see AuthFailure.
func (e *TokenError) Finding() finding.Code {
	if e.AuthFailure() {
		return ""
	}
	return finding.OfStatus(e.Code)
}

// AuthFailure reports whether the login was refused. Some servers answer 400 to a password that they do not know.
func (e *TokenError) AuthFailure() bool {
	switch e.Code {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return true
	}
	return false
}

// Transient reports whether asking again may help.
func (e *TokenError) Transient() bool { return finding.TransientStatus(e.Code) }

// RetryAfter returns the wait that the server requested, or 0.
func (e *TokenError) RetryAfter() time.Duration { return e.wait }

// tokenKey identifies a token by its use. The scope is the needed one; the token may have been requested with more.
type tokenKey struct {
	host           string // the key of its options
	realm, service string
	scope          string
	cred           string // its key
}

// token is one token, or the error in its place. The turn is held while it is fetched.
type token struct {
	turn    chan struct{}
	header  string
	asked   string // scope
	expires time.Time
	refusal error // a final answer is remembered for the rest of the run
}

// token returns an Authorization header, from an earlier request if that is still good. stale is the header that the
// registry has just refused, if there was one: it has expired early, or the registry requires a wider scope than before.
func (t *registryTransport) token(ctx context.Context, wanted challenge, scope string, cred Credential, stale string) (string, error) {
	realm, err := checkRealm(wanted.params["realm"], t.options.Base, t.options.ambient() != nil && !cred.IsZero())
	if err != nil {
		return "", err
	}
	service := wanted.params["service"]
	key := tokenKey{t.key, realm.String(), service, scope, cred.key()}
	tok := entry(&t.options.Tokens.tokens, key, &token{turn: make(chan struct{}, 1)})
	if err := takeTurn(ctx, tok.turn, t.options.Leave); err != nil {
		return "", err
	}
	defer func() { <-tok.turn }()
	ask := mergeScopes(scope+" "+tok.asked, wanted.params["scope"])
	now := t.options.Tokens.now
	switch {
	case tok.refusal != nil && ask == tok.asked:
		return "", tok.refusal
	case tok.header != "" && tok.header != stale && now().Before(tok.expires):
		return tok.header, nil
	}
	tok.asked, tok.header, tok.refusal = ask, "", nil
	header, life, err := t.fetchToken(ctx, realm, service, ask, cred)
	if err != nil {
		var refused *TokenError
		if errors.As(err, &refused) && refused.AuthFailure() {
			tok.refusal = err
		}
		return "", err
	}
	tok.header, tok.expires = header, now().Add(life)
	return header, nil
}

// fetchToken sends one request to the token server. It follows no redirect: only the checked server gets the request.
func (t *registryTransport) fetchToken(ctx context.Context, realm *url.URL, service, scope string, cred Credential) (header string, life time.Duration, err error) {
	if err := t.options.enter(ctx, realm); err != nil {
		return "", 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	failed := &TokenError{Realm: realm.Scheme + "://" + realm.Host, Code: http.StatusOK}
	req, err := tokenRequest(ctx, realm, service, scope, cred.login())
	if err != nil {
		failed.Reason = "its URL cannot be used"
		return "", 0, failed
	}
	req.Header.Set("User-Agent", t.options.UserAgent)
	resp, err := t.realm(realm).RoundTrip(req)
	if err != nil {
		return "", 0, fmt.Errorf("token server '%s': %w", failed.Realm, err)
	}
	defer discard(resp)
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenBytes+1))
	if err != nil {
		return "", 0, fmt.Errorf("token server '%s': %w", failed.Realm, err)
	}
	if failed.Code = resp.StatusCode; failed.Code != http.StatusOK {
		failed.refused(resp, t.Scrub(string(body)))
		return "", 0, failed
	}
	header, life, failed.Reason = readToken(body)
	if failed.Reason != "" {
		return "", 0, failed
	}
	t.sent.add(strings.TrimPrefix(header, "Bearer "))
	return header, life, nil
}

func (e *TokenError) refused(resp *http.Response, body string) {
	e.Reason = refusalReason(resp.Header.Get("Content-Type"), body)
	if e.Code >= 300 && e.Code < 400 {
		e.Reason = "redirects of token requests are not followed"
	}
	if seconds, err := strconv.ParseUint(strings.TrimSpace(resp.Header.Get("Retry-After")), 10, 16); err == nil {
		e.wait = time.Duration(seconds) * time.Second
	}
}

// tokenRequest returns a GET request with or without basic credentials, or the OAuth2 grant that exchanges an identity
// token for an access token, as in the distribution specification.
func tokenRequest(ctx context.Context, realm *url.URL, service, scope string, login login) (*http.Request, error) {
	values := url.Values{}
	set := func(name, value string) {
		if value != "" {
			values.Set(name, value)
		}
	}
	set("service", service)
	if login.identityToken != "" {
		set("scope", scope)
		values.Set("grant_type", "refresh_token")
		values.Set("refresh_token", login.identityToken)
		values.Set("client_id", tokenClientID)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, realm.String(), strings.NewReader(values.Encode()))
		if err == nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return req, err
	}
	if scope != "" {
		values["scope"] = strings.Fields(scope)
	}
	target := *realm
	query := target.Query()
	for name, list := range values {
		query[name] = list
	}
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err == nil && login.hasBasic() {
		req.SetBasicAuth(login.username, login.password)
	}
	return req, err
}

// readToken understands both names that token servers have for the same thing.
func readToken(body []byte) (header string, life time.Duration, problem string) {
	if len(body) > maxTokenBytes {
		return "", 0, "its answer is too large for a token"
	}
	var answer struct {
		Token       string      `json:"token"`
		AccessToken string      `json:"access_token"`
		ExpiresIn   json.Number `json:"expires_in"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return "", 0, "its answer is not the JSON of a token"
	}
	text := cmp.Or(answer.Token, answer.AccessToken)
	if text == "" {
		return "", 0, "its answer contains no token"
	}
	header, err := bearer(text)
	if err != nil {
		return "", 0, err.Error()
	}
	life = defaultTokenLife
	if seconds, err := answer.ExpiresIn.Int64(); err == nil && seconds > 0 {
		life = time.Duration(min(seconds, int64(maxTokenLife/time.Second))) * time.Second
	}
	return header, max(life-tokenLeeway, life/2), ""
}

// realm returns the connections to a token server. The registry's own are used if it is the same server.
func (t *registryTransport) realm(realm *url.URL) http.RoundTripper {
	if SameOrigin(realm, t.options.Base) {
		return t.own
	}
	pool, found := t.realms.Load(Origin(realm))
	if !found {
		o := t.options.TransportOptions
		o.Dial = t.guard.realmDial(orPlain(o.Dial), realm)
		pool, _ = t.realms.LoadOrStore(Origin(realm), Connections(o))
	}
	return pool.(*Pool)
}

// orPlain returns dial, or a plain dialer if it is nil.
func orPlain(dial DialFunc) DialFunc {
	if dial == nil {
		return new(net.Dialer).DialContext
	}
	return dial
}
