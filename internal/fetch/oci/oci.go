// Package oci talks to registries: Helm repositories in them, and single repositories of artifacts. It pins tags, lists them
// and downloads layers; it does not choose among versions.
package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

const scheme = "oci://"

// defaultNoProgress is how long a registry may keep a transfer waiting. It stands in for spec.timeout, which does not
// apply to OCI repositories.
const defaultNoProgress = 60 * time.Second

// Options are the settings of one HelmRepository of type oci, or of one OCIRepository.
type Options struct {
	Identity   *auth.Identity // TLS settings; its user name and password are not used
	Logins     auth.Logins    // nil is anonymous
	Insecure   bool           // plain HTTP
	NoProgress time.Duration  // 0 is defaultNoProgress
	Memory     cache.Memory   // of the registry's answers
	Write      bool           // requests the right to write

	// Only OCIRepositories have the rest.

	Proxy   *auth.Proxy   // of proxySecretRef; nil is the environment's
	Timeout time.Duration // spec.timeout: of one list, digest, manifest or layer, with its retries; 0 for no limit
}

func (o Options) scheme() string {
	if o.Insecure {
		return "http"
	}
	return "https"
}

// An endpoint is a registry with the settings of its repositories. It is safe for concurrent use.
type endpoint struct {
	client    *Client
	name      registry.Reference // host as it was written and, without a chart, the namespace
	origin    *url.URL           // of the registry's API
	options   Options
	transport http.RoundTripper
}

// Namespace is a Helm repository in a registry: the namespace in which its charts are repositories.
type Namespace struct{ *endpoint }

// Namespace opens the repository at an oci:// URL, without asking the registry anything.
func (c *Client) Namespace(raw string, o Options) (*Namespace, error) {
	name, err := parseURL(raw)
	if err != nil {
		return nil, err
	}
	return &Namespace{c.open(name, o)}, nil
}

func (c *Client) open(name registry.Reference, o Options) *endpoint {
	if o.NoProgress <= 0 {
		o.NoProgress = defaultNoProgress
	}
	// The library knows the API host of docker.io; Docker Hub's other names serve the API themselves.
	origin := &url.URL{Scheme: o.scheme(), Host: name.Host()}
	return &endpoint{client: c, name: name, origin: origin, options: o, transport: c.registryTransport(origin, o)}
}

// invalidURL reports that a URL is not the URL of a registry, with a reason that may be "".
func invalidURL(raw, reason, hint string) error {
	text := "invalid OCI registry URL: " + auth.RedactURL(raw)
	if reason != "" {
		text += ": " + reason
	}
	return &finding.Problem{Code: finding.InvalidURL, Text: text, Advice: hint}
}

// parseURL returns the host and the namespace of a repository's URL. The namespace may be empty.
func parseURL(raw string) (registry.Reference, error) {
	refuse := func(reason, hint string) (registry.Reference, error) {
		return registry.Reference{}, invalidURL(raw, reason, hint)
	}
	rest, ok := strings.CutPrefix(raw, scheme)
	if !ok {
		return refuse("", schemeHint(raw))
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "":
		return refuse("no host in it", "")
	case u.User != nil:
		return refuse("credentials in the URL are not used", finding.LoginInSecret)
	case u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(rest, "?#"):
		return refuse("it must end with the path", "")
	}
	ref := registry.Reference{Registry: u.Host, Repository: strings.Trim(path.Clean("/"+u.Path), "/")}
	if err := ref.ValidateRegistry(); err != nil {
		return refuse("not the host and port of a registry", "")
	}
	if ref.Repository != "" && ref.ValidateRepository() != nil {
		return refuse("not the name of a repository", namespaceHint(ref.Repository))
	}
	return ref, nil
}

func schemeHint(raw string) string {
	if _, rest, ok := strings.Cut(raw, "://"); ok {
		return finding.TypeIsOCI + "be " + scheme + auth.RedactURL("//" + rest)[2:]
	}
	return finding.TypeIsOCI + "begin with " + scheme
}

func namespaceHint(name string) string {
	switch {
	case strings.ContainsAny(path.Base(name), ":@"):
		return finding.VersionOfChart
	case name != strings.ToLower(name):
		return "names in registries are lower case: " + strings.ToLower(name)
	}
	return ""
}

// Host returns the registry's host and port, as in the URL.
func (o *Namespace) Host() string { return o.name.Registry }

// Retry tries again after transient failures.
func (o *endpoint) Retry(ctx context.Context, try func(context.Context) error) error {
	return o.client.Retry(ctx, try)
}

// Insecure reports whether the registry is reached over plain HTTP.
func (o *endpoint) Insecure() bool { return o.options.Insecure }

// Transport returns a transport that logs in to this registry only. It bounds nothing.
func (o *endpoint) Transport() http.RoundTripper { return o.transport }

// repository returns where a chart is, by the name in spec.chart.
func (o *Namespace) repository(chart string) (registry.Reference, error) {
	ref := o.name
	ref.Repository = strings.Trim(path.Join(o.name.Repository, chart), "/")
	if err := ref.ValidateRepository(); err != nil {
		return ref, fmt.Errorf("%w: %q", errRepositoryName, ref.Repository)
	}
	return ref, nil
}

var errRepositoryName = errors.New("not the name of a repository")

// Client is shared by all registries of a run: a client, and tokens and connections, one set for all repositories with
// the same credentials and TLS settings. It is safe for concurrent use.
type Client struct {
	*fetch.Client

	tokens *auth.Tokens
}

// NewClient returns a client for registries. It shares the limits and the other state of a run with c.
func NewClient(c *fetch.Client) *Client {
	return &Client{Client: c, tokens: auth.NewTokens(c.Config.Now)}
}

// registryTransport returns the transport to a registry. Repositories with the same credentials and TLS settings share
// it, with its connections, its tokens and the challenge of the registry.
func (c *Client) registryTransport(origin *url.URL, o Options) http.RoundTripper {
	options := auth.RegistryOptions{
		TransportOptions: c.Connect(o.Identity, o.Proxy), Logins: o.Logins, Tokens: c.tokens, Write: o.Write,
		Enter: fetch.EnterHost, Leave: fetch.LeaveHost,
	}
	options.Base = origin
	return c.Shared("registry "+options.Key(), func() http.RoundTripper { return auth.NewRegistryTransport(options) })
}

// login returns the login that the registry has received, for a hint.
func (o *endpoint) login(ctx context.Context, repository string) auth.Login {
	return auth.ShownBy(ctx, o.transport, repository)
}

// Shown returns the login that the registry receives for a chart, by the name in spec.chart.
func (o *Namespace) Shown(ctx context.Context, chart string) auth.Login {
	ref, err := o.repository(chart)
	if err != nil {
		return auth.Login{}
	}
	return o.login(ctx, ref.Repository)
}

// Route is how the registry is reached.
func (o *Namespace) Route() auth.Route {
	return auth.NewRoute(o.origin, o.options.Identity, o.options.Proxy)
}

// Withheld returns a *auth.WithheldError if there is an ambient login for the registry that is not used.
func (o *endpoint) Withheld(ctx context.Context) error { return auth.WithheldBy(ctx, o.transport) }
