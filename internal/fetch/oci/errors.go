package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// A RegistryError is a registry's answer with another status than 200.
type RegistryError struct {
	*fetch.StatusError
	Codes  []string // as the distribution specification has them, if it has any
	Reason string   // the registry's own words, may be empty
	What   string   // the missing object: "repository", "tag", "manifest", "blob", or empty
}

func (e *RegistryError) Error() string {
	text := e.Status
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	if e.What != "" {
		text = "no such " + e.What + " in the registry: " + text
	}
	return text
}

// Unwrap returns the answer as a plain HTTP error.
func (e *RegistryError) Unwrap() error { return e.StatusError }

// Is makes a 404 an fs.ErrNotExist.
func (e *RegistryError) Is(target error) bool {
	return target == fs.ErrNotExist && e.Code == http.StatusNotFound
}

// ErrUnparsable is matched by errors about content that is not a manifest at all.
var ErrUnparsable = errors.New("no manifest")

// noChart reports that an artifact in a registry is not a chart. The hint at its real type may be empty.
func noChart(text, hint string) error {
	return &finding.Problem{Code: finding.InvalidArchive, Class: finding.Lasting, Text: text, Advice: hint}
}

// registryError describes an answer that came, after redirects, from the URL at.
func (x *exchange) registryError(ctx context.Context, answer *http.Response, at *url.URL) error {
	scrub := x.scrubber(at)
	refusal := auth.ReadRefusal(answer.Header.Get("Content-Type"), scrub(string(fetch.Snippet(answer))))
	status := fetch.NewStatusError(answer, at.String(), scrub, x.oci.client.Config.Now())
	e := &RegistryError{StatusError: status, Codes: refusal.Codes, Reason: refusal.Reason}
	if e.Code == http.StatusNotFound {
		e.What = missing(refusal.Codes, at.Path)
	}
	e.Advice = x.statusHint(ctx, e, at)
	return e
}

// scrubber removes the registry's credentials from a text from outside, and the signature in the URL of a redirect.
func (x *exchange) scrubber(at *url.URL) func(string) string {
	return func(text string) string {
		if s, ok := x.oci.transport.(interface{ Scrub(string) string }); ok {
			text = s.Scrub(text)
		}
		return auth.ScrubURL(text, at)
	}
}

// missing returns the kind of object that a 404 is about. Some registries have one code for all, or no code.
func missing(codes []string, urlPath string) string {
	switch {
	case slices.Contains(codes, "NAME_UNKNOWN"), slices.Contains(codes, "NAME_INVALID"):
		return "repository"
	case slices.Contains(codes, "BLOB_UNKNOWN"):
		return "blob"
	case !slices.Contains(codes, "MANIFEST_UNKNOWN"):
		return ""
	case strings.Contains(path.Base(urlPath), ":"):
		return "manifest"
	}
	return "tag"
}

// statusHint recognises known mistakes behind an answer.
func (x *exchange) statusHint(ctx context.Context, e *RegistryError, at *url.URL) string {
	switch {
	case !auth.SameOrigin(at, x.oci.origin):
		return ""
	case e.AuthFailure():
		return x.authHint(ctx, e)
	case e.Code == http.StatusNotFound:
		return x.notFoundHint(e)
	case e.Code == http.StatusTooManyRequests && x.oci.login(ctx, x.ref.Repository).Credential.IsZero():
		return "the registry limits anonymous requests: a login may raise the limit"
	case e.Code == http.StatusBadRequest && x.oci.options.Insecure:
		return finding.PlainHTTP
	}
	return ""
}

func (x *exchange) notFoundHint(e *RegistryError) string {
	namespace := x.oci.name.Repository
	switch {
	case x.chart != "" && (namespace == x.chart || strings.HasSuffix(namespace, "/"+x.chart)):
		parent := strings.Trim(strings.TrimSuffix(namespace, x.chart), "/")
		return fmt.Sprintf(finding.URLHasChart,
			scheme, path.Join(x.oci.name.Registry, parent))
	case len(e.Codes) == 0:
		return fmt.Sprintf("'%s' may not be a registry", x.oci.name.Registry)
	}
	return ""
}

func (x *exchange) authHint(ctx context.Context, e *RegistryError) string {
	login := x.oci.login(ctx, x.ref.Repository)
	anonymous := login.Credential.IsZero()
	var withheld *auth.WithheldError
	permission := auth.CloudPermission(x.oci.name.Registry)
	switch {
	case errors.As(login.Problem, &withheld):
		return withheld.Error() + ": " + withheld.Hint()
	case login.Problem != nil:
		return login.Problem.Error()
	case anonymous && auth.RegistryHost(x.oci.name.Registry) == "docker.io":
		return "the repository is private or does not exist: Docker Hub gives the same answer to both"
	case anonymous && x.oci.options.Write:
		return fmt.Sprintf("log in with 'helm registry login %s'", x.oci.name.Registry)
	case x.oci.options.Write:
		return fmt.Sprintf("the registry does not accept the login from %s, or it lacks the permission to write to '%s'", login.Source, x.ref.Repository)
	case anonymous:
		return fmt.Sprintf(finding.RegistryLogin, x.oci.name.Registry)
	case e.Code == http.StatusForbidden && permission != "":
		return "the login is accepted, but may lack the permission to pull: " + permission
	case e.Code == http.StatusForbidden:
		return fmt.Sprintf("the login from %s may lack the permission to read '%s'", login.Source, x.ref.Repository)
	}
	return fmt.Sprintf("the registry does not accept the login from %s", login.Source)
}

// requestError describes a request for u that got no answer from where it was redirected to.
func (x *exchange) requestError(ctx context.Context, u, at *url.URL, err error) error {
	if proxy := (*auth.ProxyError)(nil); errors.As(err, &proxy) && x.oci.options.Proxy != nil {
		// The object names the proxy: an [auth.ProxyError] would point to the environment.
		own := &finding.Problem{Class: finding.Retryable(finding.TransientStatus(proxy.Code)), Text: err.Error()}
		if proxy.Code == http.StatusProxyAuthRequired {
			own.Advice = finding.ProxyLoginRefused
		}
		err = own
	}
	return fetch.DescribeRequest(ctx, fetch.ShownURL(u), err, func(err error) (text, advice string) {
		return finding.OneLine(x.scrubber(at)(err.Error()), fetch.MaxErrorText), x.requestHint(ctx, err)
	})
}

// notTLS reports whether a server answered a TLS handshake with plain HTTP.
func notTLS(err error) bool {
	var record tls.RecordHeaderError
	return errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/"
}

func (x *exchange) requestHint(ctx context.Context, err error) string {
	var authority x509.UnknownAuthorityError
	var token *auth.TokenError
	switch {
	case x.oci.origin == nil: // no registry
		return ""
	case fetch.CertificateHint(err) != "":
		return fetch.CertificateHint(err)
	case errors.As(err, &authority) && !x.oci.options.Identity.HasCA():
		return finding.RegistryCA
	case errors.As(err, &authority):
		return "the CA in ca.crt did not issue the registry's certificate"
	case notTLS(err):
		return finding.RegistryPlain
	case errors.As(err, &token) && token.AuthFailure():
		return x.authHint(ctx, &RegistryError{StatusError: &fetch.StatusError{Code: token.Code}})
	}
	return ""
}
