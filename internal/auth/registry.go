package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// maxChallengeBody is how much of a 401's body is read to use its connection again.
const maxChallengeBody = 64 << 10

// Tokens keeps the challenges and tokens of the registries of one run, so that each repository needs one token for any
// number of objects. Different credentials or TLS settings share nothing.
type Tokens struct {
	now    func() time.Time
	hosts  sync.Map // of *hostState, by the key of their options
	tokens sync.Map // of *token, by tokenKey
}

// NewTokens returns an empty store.
func NewTokens(now func() time.Time) *Tokens {
	return &Tokens{now: now}
}

// hostState records the challenge of a registry, for one set of credentials and TLS settings. The turn is held until the
// challenge is known, so that only the first of many requests is refused.
type hostState struct {
	turn   chan struct{}
	wanted atomic.Pointer[challenge] // nil while it is unknown, scheme "" without a challenge
}

// RegistryOptions configures the transport to one registry. Its API is at Base: https, or http if the user chose it. The
// Identity has the TLS settings; its user name and password are not used: they have to be among the Logins.
type RegistryOptions struct {
	TransportOptions

	Logins Logins // nil is anonymous
	Tokens *Tokens
	// Enter waits for one of the places that a host has for this process, and gives up the request's place at another
	// host. Leave gives up the place. The context is the request's. With nil there is no limit.
	Enter func(ctx context.Context, at *url.URL) error
	Leave func(ctx context.Context)
	// Write requests the right to write to a repository, too.
	Write bool
}

// ambient returns the logins if they are the environment's, else nil.
func (o RegistryOptions) ambient() withholder {
	ambient, _ := o.Logins.(withholder)
	return ambient
}

// A withholder is logins that do not go by every route.
type withholder interface {
	withheld(context.Context, Route) error
}

// Key is equal for options with the same registry, credentials, TLS settings and proxy.
func (o RegistryOptions) Key() string {
	key := fmt.Sprint(Origin(o.Base), " ", o.Identity.Key(), " ", o.Proxy.Key(), " ", o.Write)
	if o.Logins == nil {
		return key
	}
	return key + " " + o.Logins.Key()
}

func (o RegistryOptions) enter(ctx context.Context, at *url.URL) error {
	if o.Enter == nil {
		return nil
	}
	return o.Enter(ctx, at)
}

// takeTurn takes the turn, which another request may have for long: this one leaves its place at a host then. Leave may be
// nil.
func takeTurn(ctx context.Context, turn chan struct{}, leave func(context.Context)) error {
	select {
	case turn <- struct{}{}:
		return nil
	default:
	}
	if leave != nil {
		leave(ctx)
	}
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// NewRegistryTransport returns a transport that logs in to one registry when challenged, with a bearer token or with
// basic credentials. Requests to other hosts, where blobs are redirected to, are sent without credentials and without
// the client certificate. Credentials are sent to the registry and to the token server that it names, if checkRealm and
// realmGuard allow it.
func NewRegistryTransport(o RegistryOptions) http.RoundTripper {
	return &registryTransport{options: o, key: o.Key(), connections: connect(o.TransportOptions, o.ambient() != nil)}
}

type registryTransport struct {
	connections
	options RegistryOptions
	key     string

	sent   secretSet
	realms sync.Map // of *Pool, by origin
}

// CloseIdleConnections implements the method that http.Client's method of this name calls.
func (t *registryTransport) CloseIdleConnections() {
	t.connections.CloseIdleConnections()
	for _, realm := range t.realms.Range {
		realm.(*Pool).CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper. If a registry refuses even the token of its own token server, the request is
// sent twice at most, and once if its body cannot be read again; the last answer is returned unchanged.
func (t *registryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	out := outgoing(r, t.options.UserAgent)
	if !SameOrigin(out.URL, t.options.Base) || isForeign(r.Context()) {
		return t.guard.foreign(out, t.foreign)
	}
	resp, err := t.firstTry(out)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || out.Body != nil && out.GetBody == nil {
		return resp, err
	}
	return t.secondTry(out, resp)
}

func (t *registryTransport) send(r *http.Request) (*http.Response, error) {
	if err := t.options.enter(r.Context(), r.URL); err != nil {
		return nil, err
	}
	return t.own.RoundTrip(r)
}

// firstTry sends the request with the known challenge. The first request to a registry is sent alone, to learn it.
func (t *registryTransport) firstTry(r *http.Request) (*http.Response, error) {
	host := t.host()
	if host.wanted.Load() == nil {
		if err := takeTurn(r.Context(), host.turn, nil); err != nil {
			return nil, err
		}
		defer func() { <-host.turn }()
	}
	if wanted := host.wanted.Load(); wanted != nil {
		if header := t.foresee(r, *wanted); header != "" {
			r.Header.Set("Authorization", header)
		}
		return t.send(r)
	}
	resp, err := t.own.RoundTrip(r)
	if err == nil {
		c, _ := chooseChallenge(parseChallenges(resp.Header))
		if resp.StatusCode != http.StatusUnauthorized {
			c = challenge{}
		}
		host.learn(c)
	}
	return resp, err
}

// foresee answers the challenge that the registry has made for another repository, and will make for this one. A token
// that is not available is no reason not to ask: the repository may be public.
func (t *registryTransport) foresee(r *http.Request, wanted challenge) string {
	if wanted.scheme == "bearer" && pullScope(r.URL.Path) == "" {
		return ""
	}
	header, err := t.authorization(r, wanted, "")
	if err != nil {
		return ""
	}
	return header
}

// secondTry answers the challenge in a 401.
func (t *registryTransport) secondTry(r *http.Request, refused *http.Response) (*http.Response, error) {
	wanted, ok := chooseChallenge(parseChallenges(refused.Header))
	if !ok {
		return refused, nil
	}
	t.host().learn(wanted)
	stale := r.Header.Get("Authorization")
	header, err := t.authorization(r, wanted, stale)
	if err != nil {
		discard(refused)
		return nil, err
	}
	if header == "" || header == stale {
		return refused, nil
	}
	discard(refused)
	again := r.Clone(r.Context())
	again.Header.Set("Authorization", header)
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.send(again)
}

// authorization returns the header that answers a challenge, or "" without a suitable login.
func (t *registryTransport) authorization(r *http.Request, wanted challenge, stale string) (string, error) {
	if wanted.scheme == "" {
		return "", nil
	}
	scope := pullScope(r.URL.Path)
	found, err := t.login(r.Context(), repositoryOf(scope))
	if err != nil {
		return "", err
	}
	if t.options.Write && scope != "" {
		scope += ",push"
	}
	login := found.Credential.login()
	t.sent.add(login.secrets()...)
	switch {
	case wanted.scheme == "basic" && login.hasBasic():
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(login.username+":"+login.password)), nil
	case wanted.scheme == "basic":
		return "", nil
	case login.registryToken != "":
		return bearer(login.registryToken)
	}
	return t.token(r.Context(), wanted, scope, found.Credential, stale)
}

// Scrub replaces every secret that this transport has sent in a text from outside: servers echo credentials.
func (t *registryTransport) Scrub(text string) string { return t.sent.scrub(text) }

// login fetches the credential, which may run a helper or call a cloud: only after a registry has required a login.
func (t *registryTransport) login(ctx context.Context, repository string) (Login, error) {
	if t.options.Logins == nil {
		return Login{}, nil
	}
	return t.options.Logins.login(ctx, t.options.route(), repository)
}

// ShownBy returns the login that a transport of [NewRegistryTransport] sends to the registry for a repository.
func ShownBy(ctx context.Context, rt http.RoundTripper, repository string) Login {
	t, ok := rt.(*registryTransport)
	if !ok {
		return Login{}
	}
	// An error of login has been reported by the request already.
	login, _ := t.login(ctx, repository)
	return login
}

// WithheldBy returns a *WithheldError if the transport has a login of the environment for the registry that it does not
// show, because a manifest chose the route.
func WithheldBy(ctx context.Context, rt http.RoundTripper) error {
	t, ok := rt.(*registryTransport)
	if !ok || t.options.ambient() == nil {
		return nil
	}
	return t.options.ambient().withheld(ctx, t.options.route())
}

func (t *registryTransport) host() *hostState {
	return entry(&t.options.Tokens.hosts, t.key, &hostState{turn: make(chan struct{}, 1)})
}

// entry returns the value of a map for a key. If the map has no value, it stores this one.
func entry[V any](of *sync.Map, key any, value *V) *V {
	found, _ := of.LoadOrStore(key, value)
	return found.(*V)
}

func (h *hostState) learn(c challenge) {
	// The scope is for one repository, and the next request may be for another.
	c.params = maps.Clone(c.params)
	delete(c.params, "scope")
	h.wanted.Store(&c)
}

var errTokenCharacters = errors.New("the token contains invalid characters")

// bearer refuses a token that cannot be sent: the error of net/http would not name the source of the token.
func bearer(token string) (string, error) {
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return "", errTokenCharacters
		}
	}
	return "Bearer " + token, nil
}

func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxChallengeBody)
	_ = resp.Body.Close()
}
