package oci

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"oras.land/oras-go/v2/registry"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// plainHTTPTimeout bounds the probe for TLS. It is used for registries that may be without TLS.
const plainHTTPTimeout = 5 * time.Second

// hubRegistry is the name by which the client library knows Docker Hub.
const hubRegistry = "docker.io"

// Name is the place of an artifact: a registry and a repository in it.
type Name struct {
	ref   registry.Reference
	shown string // host/repository as Flux shows it
}

// ParseURL reads spec.url of an OCIRepository. A host without a dot, a port, or the name localhost is no host, but the
// first part of a repository at Docker Hub.
func ParseURL(raw string) (Name, error) {
	refuse := func(reason, hint string) (Name, error) { return Name{}, &finding.Problem{Text: reason, Advice: hint} }
	rest, ok := strings.CutPrefix(raw, scheme)
	last := path.Base(rest)
	switch tag := strings.IndexByte(last, ':'); {
	case !ok:
		return refuse("URL must be in format 'oci://<domain>/<org>/<repo>'", "")
	case strings.ContainsAny(rest, "?#"):
		return refuse("URL must end with the repository", "")
	case strings.Contains(last, "@") && strings.Contains(strings.TrimSuffix(rest, "/"), "/"):
		digest := last[strings.IndexByte(last, '@'):]
		return refuse(fmt.Sprintf("URL must not contain a digest; remove '%s'", finding.OneLine(digest, fetch.MaxName)), finding.DigestInRef)
	case strings.Contains(rest, "@"):
		return refuse("URL must not contain credentials", finding.LoginOfRegistry)
	case tag >= 0 && strings.Contains(strings.TrimSuffix(rest, "/"), "/"):
		return refuse(fmt.Sprintf("URL must not contain a tag; remove '%s'", finding.OneLine(last[tag:], fetch.MaxName)), finding.TagInRef)
	}
	parsed, err := name.NewRepository(rest)
	if err != nil {
		hint := ""
		if lower := strings.ToLower(rest); lower != rest {
			if _, err := name.NewRepository(lower); err == nil {
				hint = "names in registries are lower case: " + scheme + lower
			}
		}
		return refuse(finding.OneLine(err.Error(), fetch.MaxErrorText), hint)
	}
	return newName(parsed)
}

func newName(parsed name.Repository) (Name, error) {
	n := Name{
		ref:   registry.Reference{Registry: parsed.RegistryStr(), Repository: parsed.RepositoryStr()},
		shown: parsed.Name(),
	}
	if auth.RegistryHost(n.ref.Registry) == hubRegistry {
		n.ref.Registry = hubRegistry
	}
	if err := n.ref.ValidateRegistry(); err != nil {
		return Name{}, &finding.Problem{Text: "URL does not begin with the host and port of a registry"}
	}
	// A slash at the end passes the controller, which then asks the registry for that name.
	named := n.ref
	named.Repository = strings.TrimSuffix(named.Repository, "/")
	if err := named.ValidateRepository(); err != nil {
		return Name{}, &finding.Problem{Text: fmt.Sprintf("%v: %q", errRepositoryName, n.ref.Repository)}
	}
	return n, nil
}

// Host is the registry's host and port.
func (n Name) Host() string { return n.ref.Registry }

// Path is the repository in the registry.
func (n Name) Path() string { return n.ref.Repository }

// Tagged is the name with a tag, as Flux shows it.
func (n Name) Tagged(tag string) string { return n.shown + ":" + tag }

// At is the name with a digest, as Flux shows it.
func (n Name) At(digest string) string { return n.shown + "@" + digest }

// Repository is the name as client libraries know it.
func (n Name) Repository() string { return n.ref.Registry + "/" + n.ref.Repository }

// Loopback reports whether the registry is on this machine by its name.
func (n Name) Loopback() bool {
	host := n.ref.Registry
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// Route is how the registry is reached with these settings.
func (n Name) Route(o Options) auth.Route {
	return auth.NewRoute(&url.URL{Scheme: o.scheme(), Host: n.ref.Host()}, o.Identity, o.Proxy)
}

// Shown returns the login that the registry receives for the repository.
func (r *Repository) Shown(ctx context.Context) auth.Login {
	return r.login(ctx, r.Path())
}

// PlainHTTP reports whether a registry is without TLS, with a request of these settings. If it cannot be reached, it is true.
func (c *Client) PlainHTTP(ctx context.Context, n Name, o Options) (bool, error) {
	probe, cancel := context.WithTimeout(ctx, plainHTTPTimeout)
	defer cancel()
	pool := auth.Connections(c.Connect(o.Identity, o.Proxy))
	defer pool.CloseIdleConnections()
	u := &url.URL{Scheme: "https", Host: n.ref.Host(), Path: "/v2/"}
	r, err := http.NewRequestWithContext(probe, http.MethodGet, u.String(), nil)
	if err != nil {
		return false, err
	}
	r.Header.Set("User-Agent", c.Config.UserAgent)
	answer, err := pool.RoundTrip(r)
	switch {
	case ctx.Err() != nil:
		return false, fetch.NewRequestError(ctx, u.String(), err)
	case err != nil:
		return !fetch.CertificateFailure(err) && !fetch.TLSAlert(err), nil
	}
	return false, answer.Body.Close()
}

// A Repository is one repository of a registry. It is safe for concurrent use.
type Repository struct {
	Name
	*endpoint
}

// Repository opens a repository, without asking the registry anything.
func (c *Client) Repository(n Name, o Options) *Repository {
	return &Repository{n, c.open(registry.Reference{Registry: n.ref.Registry}, o)}
}

// operation runs a function within spec.timeout. Waiting for this process's own transfers does not count.
func (r *Repository) operation(ctx context.Context, what func(context.Context, *exchange) error) error {
	err := r.endpoint.operation(ctx, r.ref, "", func(x *exchange) error {
		ctx, cancel := fetch.Within(ctx, r.options.Timeout)
		defer cancel()
		return what(ctx, x)
	})
	return asFlux(err)
}

// asFlux gives a registry's refusal the text that it has in source-controller.
func asFlux(err error) error {
	var refused *RegistryError
	if !errors.As(err, &refused) || len(refused.Codes) == 0 || refused.Codes[0] == "" {
		return err
	}
	text := refused.Codes[0]
	if refused.Reason != "" {
		text += ": " + refused.Reason
	}
	address, _, _ := strings.Cut(refused.URL, "?")
	return &finding.Problem{Text: fmt.Sprintf("GET %s: %s", address, text), Err: err}
}

// Tags lists the tags of the repository in the registry's order.
func (r *Repository) Tags(ctx context.Context) (tags []string, err error) {
	err = r.operation(ctx, func(ctx context.Context, x *exchange) error {
		tags, err = x.listTags(ctx)
		return err
	})
	return tags, err
}

// CheckTag refuses text that cannot be a tag.
func CheckTag(tag string) error {
	ref := registry.Reference{Reference: tag}
	if ref.ValidateReferenceAsTag() == nil {
		return nil
	}
	hint := ""
	if strings.Contains(tag, "+") {
		hint = "a tag cannot contain \"+\": tags of charts have \"_\" instead"
	}
	return finding.WithHint(fmt.Errorf("%q cannot be a tag", finding.OneLine(tag, fetch.MaxName)), hint)
}

// Digest returns the digest of a tag, which may be that of an image index. It sends a HEAD request, of which some
// registries allow more; if that fails, for any reason, a GET request returns the reason.
func (r *Repository) Digest(ctx context.Context, tag string) (found digest.Digest, err error) {
	if err := CheckTag(tag); err != nil {
		return "", err
	}
	err = r.operation(ctx, func(ctx context.Context, x *exchange) error {
		x.ref.Reference = tag
		if x.memory().Offline() {
			found, err = x.rememberedTag(tag)
			return err
		}
		if found, err = x.head(ctx, tag); err == nil {
			x.rememberTag(tag, found)
			return nil
		}
		if _, err := x.manifest(ctx, tag); err != nil {
			return err
		}
		found = x.digest
		return nil
	})
	return found, err
}

// head requests the digest of a manifest, once.
func (x *exchange) head(ctx context.Context, tag string) (digest.Digest, error) {
	ctx, watch := watchProgress(ctx, x.oci.options.NoProgress)
	defer watch.stop()
	u := *x.oci.origin
	u.Path = "/v2/" + x.ref.Repository + "/manifests/" + tag
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
	if err != nil {
		return "", err
	}
	r.Header["Accept"] = []string{strings.Join(manifestTypes(), ", ")}
	answer, err := x.get(ctx, r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	return digest.Parse(answer.Header.Get(headerContentDigest))
}
