package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"oras.land/oras-go/v2/registry"

	"github.com/helmsrc/helmsrc/internal/auth"
)

const ociScheme = "oci://"

// DefaultNoProgress is how long a registry may keep a transfer waiting. It stands in for spec.timeout, which does not
// apply to OCI repositories.
const DefaultNoProgress = 60 * time.Second

// OCIOptions are the settings of one HelmRepository of type oci, or of one OCIRepository.
type OCIOptions struct {
	Identity   *auth.Identity // TLS settings; its user name and password are not used
	Logins     auth.Logins    // nil is anonymous
	Insecure   bool           // plain HTTP
	NoProgress time.Duration  // 0 is DefaultNoProgress

	// Only OCIRepositories have the rest.

	Proxy   *Proxy        // of proxySecretRef; nil is the environment's
	Timeout time.Duration // spec.timeout: of one list, digest, manifest or layer, with its retries; 0 is none
}

// getenv is where the proxy is looked for.
func (o OCIOptions) getenv(c *Client) func(string) string {
	if o.Proxy != nil {
		return o.Proxy.getenv()
	}
	return c.config.Getenv
}

// OCI is a Helm repository in a registry: the namespace in which its charts are repositories. It is safe for use by many
// goroutines.
type OCI struct {
	client    *Client
	name      registry.Reference // host as it was written and, without a chart, the namespace
	origin    *url.URL           // of the registry's API
	options   OCIOptions
	transport http.RoundTripper
}

// A RegistryURLError tells that a URL is not one of a registry.
type RegistryURLError struct {
	URL    string // redacted
	Reason string
	hint   string
}

func (e *RegistryURLError) Error() string {
	text := "invalid OCI registry URL: " + e.URL
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Hint tells what to write instead, or is empty.
func (e *RegistryURLError) Hint() string { return e.hint }

// OCI opens the repository at an oci:// URL, without asking the registry anything. An error is a *RegistryURLError.
func (c *Client) OCI(raw string, o OCIOptions) (*OCI, error) {
	name, err := parseOCIURL(raw)
	if err != nil {
		return nil, err
	}
	return c.openOCI(name, o), nil
}

func (c *Client) openOCI(name registry.Reference, o OCIOptions) *OCI {
	if o.NoProgress <= 0 {
		o.NoProgress = DefaultNoProgress
	}
	// The library knows that docker.io is served elsewhere; Docker Hub's other names serve themselves.
	origin := &url.URL{Scheme: "https", Host: name.Host()}
	if o.Insecure {
		origin.Scheme = "http"
	}
	return &OCI{client: c, name: name, origin: origin, options: o, transport: c.registryTransport(origin, o)}
}

// parseOCIURL returns the host and the namespace of a repository's URL. The namespace may be empty.
func parseOCIURL(raw string) (registry.Reference, error) {
	refuse := func(reason, hint string) (registry.Reference, error) {
		return registry.Reference{}, &RegistryURLError{URL: auth.RedactURL(raw), Reason: reason, hint: hint}
	}
	rest, ok := strings.CutPrefix(raw, ociScheme)
	if !ok {
		return refuse("", schemeHint(raw))
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "":
		return refuse("no host in it", "")
	case u.User != nil:
		return refuse("credentials in the URL are not used", "write them into a Secret and refer to it with spec.secretRef")
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
		return "spec.type is oci, so the URL has to be " + ociScheme + auth.RedactURL("//" + rest)[2:]
	}
	return "spec.type is oci, so the URL has to begin with " + ociScheme
}

func namespaceHint(name string) string {
	switch {
	case strings.ContainsAny(path.Base(name), ":@"):
		return "the URL is that of a repository: the version goes into the chart's spec.version"
	case name != strings.ToLower(name):
		return "names in registries are lower case: " + strings.ToLower(name)
	}
	return ""
}

// Host is the registry's host and port, as the URL names it.
func (o *OCI) Host() string { return o.name.Registry }

// Insecure tells whether the registry is reached over plain HTTP.
func (o *OCI) Insecure() bool { return o.options.Insecure }

// Transport logs in to this registry, and only to this one. It bounds nothing.
func (o *OCI) Transport() http.RoundTripper { return o.transport }

// repository returns where a chart is, by the name in spec.chart.
func (o *OCI) repository(chart string) (registry.Reference, error) {
	ref := o.name
	ref.Repository = strings.Trim(path.Join(o.name.Repository, chart), "/")
	if err := ref.ValidateRepository(); err != nil {
		return ref, fmt.Errorf("%w: %q", errRepositoryName, ref.Repository)
	}
	return ref, nil
}

var errRepositoryName = errors.New("not the name of a repository")

// registries is what all registries of a run share. The zero value is ready for use.
type registries struct {
	mu         sync.Mutex
	tokens     *auth.Tokens
	transports map[string]http.RoundTripper
}

// registryTransport returns the transport to a registry. Repositories with the same credentials and TLS settings share
// it: connections, tokens and what is known of the registry.
func (c *Client) registryTransport(origin *url.URL, o OCIOptions) http.RoundTripper {
	key := auth.Origin(origin) + " " + o.Identity.Key()
	if o.Logins != nil {
		key += " " + o.Logins.Key()
	}
	key += " " + o.Proxy.Key()
	r := &c.registries
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tokens == nil {
		r.tokens, r.transports = auth.NewTokens(c.config.Now), map[string]http.RoundTripper{}
	}
	t, found := r.transports[key]
	if !found {
		t = auth.NewRegistryTransport(auth.RegistryOptions{
			Registry:  origin,
			Identity:  o.Identity,
			Logins:    o.Logins,
			Tokens:    r.tokens,
			Dial:      c.config.Dial,
			Getenv:    o.getenv(c),
			UserAgent: c.config.UserAgent,
		})
		r.transports[key] = t
	}
	return t
}

func (r *registries) closeIdleConnections() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.transports {
		if closer, ok := t.(interface{ CloseIdleConnections() }); ok {
			closer.CloseIdleConnections()
		}
	}
}

// login asks again who the registry was told one is, for a hint.
func (o *OCI) login(ctx context.Context, repository string) auth.Login {
	if o.options.Logins == nil {
		return auth.Login{}
	}
	// An error of its own has been reported instead of an answer, and does not get here.
	login, _ := o.options.Logins.Login(ctx, o.name.Registry, repository)
	return login
}
