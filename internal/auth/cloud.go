package auth

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/oauth2"

	"github.com/helmsrc/helmsrc/internal/finding"
)

const (
	// cloudTimeout bounds one login to a cloud with all that its library tries.
	cloudTimeout = 60 * time.Second
	// metadataDialTimeout is how long a metadata server may take to accept a connection. Outside its cloud, nothing
	// listens at the address, and the connection is not refused either.
	metadataDialTimeout = 2 * time.Second
	// cloudLeeway is how long before its end a login is renewed.
	cloudLeeway = time.Minute
)

// CloudOptions configure cloud logins. The clouds' libraries read their variables from the process's own environment,
// and their files from disk.
type CloudOptions struct {
	Dial   DialFunc
	Getenv func(string) string
	Now    func() time.Time

	// Of a manifest: they lead to where the keys of its Secrets log in, and the identity of the machine never.

	Identity *Identity // its authorities are trusted; it is not sent to any server
	Proxy    *Proxy

	Reach Reach // of the identity of the machine
	// Acquire waits for one of the places that a host has for this process, until release is called. Nil is without limit.
	Acquire func(ctx context.Context, host string) (release func(), err error)
	// Leave gives up the place that the request of a context has at its registry, while it waits for a cloud's login: the
	// login may need places at the same host. It is nil if requests have no places.
	Leave func(ctx context.Context)

	// Offline asks no cloud: there are no logins.
	Offline bool
}

// ofMachine returns the options for the identity of the machine: only those of the environment.
func (o CloudOptions) ofMachine() CloudOptions {
	o.Identity, o.Proxy = nil, nil
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	return o
}

// withhold returns a *WithheldError if the identity of the machine may not be used on a route to a server of the provider.
// If the server is not the provider's own, it returns nil: asking for the identity fails there, and discloses nothing.
func (o CloudOptions) withhold(on Route, provider string, own bool) error {
	if !own {
		return nil
	}
	return on.withhold(machineAt(provider), o.Reach)
}

func machineAt(provider string) string { return "the identity of this machine at " + provider }

// Cloud logs in to the registries of all clouds, once per registry and run. The clouds' libraries do not run before that.
type Cloud struct {
	CloudOptions
	client *http.Client
	logins sync.Map // of *cloudLogin, by cloudKey
}

// NewCloud returns the logins of aws, azure and gcp.
func NewCloud(o CloudOptions) *Cloud {
	o = o.ofMachine()
	return &Cloud{CloudOptions: o, client: cloudClient(o)}
}

// A CloudError reports why a cloud gave no login.
type CloudError struct {
	Err error

	what string // could not be done; empty is the login to a registry
	hint string
}

func (e *CloudError) Error() string {
	return cmp.Or(e.what, "unable to get authentication data from OIDC: failed to get access token for artifact registry") + ": " + cloudText(e.Err)
}

// Unwrap returns the library's error.
func (e *CloudError) Unwrap() error { return e.Err }

// AuthFailure is true.
func (e *CloudError) AuthFailure() bool { return true }

// Transient reports whether a retry may help: the cloud was out of order for a moment, or could not be reached. A
// missing metadata server is not transient: the program does not run in this cloud.
func (e *CloudError) Transient() bool {
	if code := cloudStatus(e.Err); code != 0 {
		return code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500
	}
	var dns *net.DNSError
	var op *net.OpError
	var proxy *ProxyError
	switch {
	case errors.As(e.Err, &proxy):
		return proxy.Code == http.StatusTooManyRequests || proxy.Code >= 500
	case errors.As(e.Err, &dns):
		return !isMetadataHost(dns.Name)
	case errors.As(e.Err, &op) && op.Op == "dial":
		return !isMetadataAddr(op.Addr)
	case errors.As(e.Err, &op):
		return op.Op == "proxyconnect" || op.Op == "read" || op.Op == "write" // and not a TLS alert
	}
	return errors.Is(e.Err, context.DeadlineExceeded)
}

// Hint returns advice for the user, or "".
func (e *CloudError) Hint() string { return e.hint }

func isMetadataAddr(addr net.Addr) bool {
	return addr == nil || isMetadataHost(strings.TrimSuffix(addr.String(), ":80"))
}

// cloudStatus returns the HTTP status in the error of a cloud's library, or 0.
func cloudStatus(err error) int {
	var aws *smithyhttp.ResponseError
	var azure *azcore.ResponseError
	var entra *azidentity.AuthenticationFailedError
	var google *oauth2.RetrieveError
	var exchange *TokenError
	switch {
	case errors.As(err, &aws):
		return aws.HTTPStatusCode()
	case errors.As(err, &azure):
		return azure.StatusCode
	case errors.As(err, &entra) && entra.RawResponse != nil:
		return entra.RawResponse.StatusCode
	case errors.As(err, &google) && google.Response != nil:
		return google.Response.StatusCode
	case errors.As(err, &exchange):
		return exchange.Code
	}
	return 0
}

// maxCloudText is how much is shown of the clouds' errors, some of which list everything that was tried.
const maxCloudText = 600

// longSecret matches a possible token or key in an error of a library: no word is that long.
var longSecret = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z0-9+/_=.~-]{80,}`) })

func cloudText(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if strings.Trim(line, "-=\n") != "" { // Azure's have rules between their parts
			lines = append(lines, longSecret().ReplaceAllString(line, redacted))
		}
	}
	return finding.OneLine(strings.Join(lines, ""), maxCloudText)
}

type cloudKey struct{ provider, host string }

// cloudLogin is one login, renewed when it expires. The turn is held during a request to the cloud.
type cloudLogin struct {
	*Cloud
	key     cloudKey
	turn    chan struct{}
	cred    Credential
	expires time.Time
	err     error // remembered for the rest of the run
}

// Logins logs in to a registry at once, so that a failed login is not mistaken for a refusal by the registry. The login
// may be renewed later. An error is a *CloudError. If a manifest chose the route, no request is sent, and the result
// has no login.
func (c *Cloud) Logins(ctx context.Context, provider string, to Route) (Logins, error) {
	key := cloudKey{provider, RegistryHost(to.host())}
	l := entry(&c.logins, key, &cloudLogin{Cloud: c, key: key, turn: make(chan struct{}, 1)})
	_, err := l.login(ctx, to, "")
	return l, err
}

// Key depends on the names: the identity is the machine's.
func (l *cloudLogin) Key() string { return fingerprint("cloud", l.key.provider, l.key.host) }

// withheld returns a *WithheldError for a route that the login does not take.
func (l *cloudLogin) withheld(_ context.Context, on Route) error {
	if cloudOf(l.key.host).name != l.key.provider && l.Reach != ReachNowhere {
		return nil // asking fails, and discloses nothing
	}
	return on.withhold(machineAt(l.key.provider), l.Reach)
}

// login returns the login that there is, or the next one, if no manifest chose the route.
func (l *cloudLogin) login(ctx context.Context, on Route, _ string) (Login, error) {
	if err := l.withheld(ctx, on); err != nil {
		return Login{Problem: err}, nil
	}
	if l.Offline {
		return Login{}, nil // the cache reports missing content itself
	}
	if err := takeTurn(ctx, l.turn, l.Leave); err != nil {
		return Login{}, err
	}
	defer func() { <-l.turn }()
	if l.err == nil && (l.cred.IsZero() || !l.Now().Before(l.expires)) {
		if l.Leave != nil {
			l.Leave(ctx)
		}
		cred, expires, err := l.ask(ctx)
		if ctx.Err() != nil {
			return Login{}, context.Cause(ctx)
		}
		l.cred, l.expires, l.err = cred, expires.Add(-cloudLeeway), err
	}
	return Login{Credential: l.cred, Source: machineAt(l.key.provider)}, l.err
}

func (l *cloudLogin) ask(ctx context.Context) (cred Credential, expires time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, cloudTimeout)
	defer cancel()
	err = fmt.Errorf("unknown provider '%s'", l.key.provider)
	for _, c := range registryClouds() {
		switch {
		case c.name != l.key.provider:
		case !c.has(l.key.host):
			err = fmt.Errorf(c.foreign, l.key.host)
		default:
			cred, expires, err = c.ask(ctx, l.Cloud, l.key.host)
		}
	}
	if err != nil {
		return Credential{}, time.Time{}, l.fail(err)
	}
	return cred, expires, nil
}

func (l *cloudLogin) fail(err error) error {
	e := &CloudError{Err: err}
	switch own, status := cloudOf(l.key.host), cloudStatus(err); {
	case own.name != "" && own.name != l.key.provider:
		e.hint = fmt.Sprintf(finding.OtherProvider, l.key.host, own.name, own.name)
	case status == http.StatusForbidden, status == http.StatusBadRequest:
		e.hint = own.login
	}
	return e
}

// registryCloud is a cloud that has registries.
type registryCloud struct {
	name    string
	has     func(host string) bool
	foreign string // the error for another host: it must not see the cloud's credentials
	login   string // the permission that an identity needs to log in
	pull    string // and to pull
	// ask returns the credential for a registry of the cloud, and when it expires.
	ask func(ctx context.Context, c *Cloud, host string) (Credential, time.Time, error)
}

func registryClouds() []registryCloud {
	return []registryCloud{{
		"aws", isECR, "invalid AWS registry: '%s' is not ACCOUNT.dkr.ecr.REGION.amazonaws.com or " + ecrPublic,
		"the role needs ecr:GetAuthorizationToken, and a trust policy that lets this identity assume it",
		"ecr:BatchGetImage and ecr:GetDownloadUrlForLayer, as in AmazonEC2ContainerRegistryReadOnly", awsLogin,
	}, {
		"azure", isACR, "invalid Azure registry: '%s' is not NAME.azurecr.io, .cn or .us",
		"the identity needs the role AcrPull on the registry", "the role AcrPull", azureLogin,
	}, {
		"gcp", isGoogleRegistry, "invalid GCP registry: '%s' is neither gcr.io, nor below it, nor LOCATION-docker.pkg.dev",
		"the service account needs the scope devstorage.read_only and the role Artifact Registry Reader",
		"artifactregistry.repositories.downloadArtifacts, as in the role Artifact Registry Reader", gcpLogin,
	}}
}

// cloudOf returns the cloud whose registry a host is, by its name. It is the zero value for another host.
func cloudOf(host string) registryCloud {
	for _, c := range registryClouds() {
		if c.has(host) {
			return c
		}
	}
	return registryCloud{}
}

// CloudPermission names the permission that a login needs to pull from a cloud's registry. It is "" for other hosts.
func CloudPermission(host string) string { return cloudOf(RegistryHost(host)).pull }

// cloudClient is the HTTP client of the clouds' libraries: the run's connections and proxies, no client certificate, no
// redirects, and a short wait for metadata servers, to which no proxy leads.
func cloudClient(o CloudOptions) *http.Client {
	authorities := o.Identity.WithoutCertificate()
	return &http.Client{
		Transport: &cloudTransport{
			cloud:   Connections(TransportOptions{Identity: authorities, Dial: o.Dial, Getenv: o.Getenv, Proxy: o.Proxy}),
			local:   Connections(TransportOptions{Identity: authorities, Dial: dialWithin(o.Dial, metadataDialTimeout)}),
			acquire: o.Acquire,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A cloudTransport gives each request a place at its host until its answer is closed.
type cloudTransport struct {
	cloud, local *Pool
	acquire      func(ctx context.Context, host string) (release func(), err error)
}

// RoundTrip implements http.RoundTripper. Secrets that a server echoes in an error answer are removed from it.
func (t *cloudTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r, form, err := readForm(r)
	if err != nil {
		return nil, err
	}
	answer, err := t.send(r)
	if err != nil || answer.StatusCode < http.StatusMultipleChoices {
		return answer, err
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxCloudAnswer))
	text = []byte(scrubSent(string(text), r.Header, form))
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), failing{err}), answer.Body}
	answer.ContentLength = -1
	answer.Header.Del("Content-Length")
	for _, values := range answer.Header {
		for i := range values {
			values[i] = scrubSent(values[i], r.Header, form)
		}
	}
	answer.Status = scrubSent(answer.Status, r.Header, form)
	return answer, nil
}

// maxCloudAnswer is how much is read of the answer of a cloud that refuses, in bytes.
const maxCloudAnswer = 64 << 10

// failing ends with an error, or as a text does.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, cmp.Or(f.err, io.EOF) }

// scrubSent removes the secrets of a request from a text: the headers and form fields whose names match sentLogin.
func scrubSent(text string, sent ...map[string][]string) string {
	for _, fields := range sent {
		for name, values := range fields {
			if !sentLogin().MatchString(name) {
				continue
			}
			for _, value := range values {
				_, credentials, _ := strings.Cut(value, " ") // behind the name of a scheme
				for _, secret := range []string{value, credentials} {
					text = scrub(text, secret, url.QueryEscape(secret), quotedText(secret))
				}
			}
		}
	}
	return text
}

// sentLogin matches the names of headers and fields that hold credentials.
var sentLogin = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)auth|token$|secret|identity-header|assertion|password`)
})

func quotedText(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// readForm reads the form that a request sends, and returns the request with a body that can be sent.
func readForm(r *http.Request) (*http.Request, url.Values, error) {
	if r.Body == nil || r.ContentLength <= 0 || r.ContentLength > maxCloudAnswer {
		return r, nil, nil
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxCloudAnswer))
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, nil, err
	}
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(text))
	form, _ := url.ParseQuery(string(text)) // no form has no fields
	return again, form, nil
}

func (t *cloudTransport) send(r *http.Request) (*http.Response, error) {
	pool := t.cloud
	if isMetadataHost(r.URL.Hostname()) {
		pool = t.local
	}
	if t.acquire == nil {
		return pool.RoundTrip(r)
	}
	release, err := t.acquire(r.Context(), r.URL.Host)
	if err != nil {
		return nil, err
	}
	answer, err := pool.RoundTrip(r)
	if err != nil {
		release()
		return nil, err
	}
	answer.Body = &releasingBody{answer.Body, release}
	return answer, nil
}

type releasingBody struct {
	io.ReadCloser
	release func()
}

func (b *releasingBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// isMetadataHost reports whether a host is this machine's neighbour: link-local, loopback, Google's name for its
// server, the unique local address of Amazon's.
func isMetadataHost(host string) bool {
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return host == "localhost" || host == "metadata.google.internal" || host == "metadata"
	}
	return a.IsLinkLocalUnicast() || a.IsLoopback() || a == netip.MustParseAddr("fd00:ec2::254") || a == netip.MustParseAddr("fd00:ec2::23")
}
