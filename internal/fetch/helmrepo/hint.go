package helmrepo

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

const refusedHint = finding.HelmLoginRefused

// statusHint returns a hint at a known mistake behind an answer to a request for u that came, after redirects, from at.
func (h *Repository) statusHint(e *fetch.StatusError, u, at *url.URL) string {
	_, _, credentials := h.identity.Basic()
	switch {
	case e.AuthFailure() && credentials && !auth.SameOrigin(h.base, at):
		return h.strangerHint(u, at)
	case e.AuthFailure() && !credentials && h.options.Useless != "":
		return h.options.Useless
	case e.AuthFailure() && !credentials:
		return finding.HelmLogin
	case e.Code == http.StatusUnauthorized:
		return refusedHint
	case e.Code == http.StatusForbidden:
		return finding.HelmLoginForbidden
	case e.Code == http.StatusTooManyRequests && !credentials:
		return finding.HelmLoginRate
	case e.Code == http.StatusProxyAuthRequired:
		return (&auth.ProxyError{Code: e.Code}).Hint()
	case e.Code == http.StatusNotFound && path.Base(u.Path) == indexFile:
		return finding.URLOfIndexOrRegistry
	}
	return ""
}

// strangerHint returns a hint for a host that did not get the credentials because it is not the repository's.
func (h *Repository) strangerHint(u, at *url.URL) string {
	switch {
	case !auth.SameOrigin(u, at) && !(h.options.PassCredentials && fetch.SameSite(u, at)):
		return fmt.Sprintf(finding.URLMoved,
			auth.Origin(at), auth.Origin(h.base))
	case h.base.Scheme == "https" && at.Scheme == "http":
		return "credentials for an https repository are never sent over plain http"
	case !h.options.PassCredentials:
		return fmt.Sprintf(finding.PassLogin,
			at.Host, h.base.Host)
	}
	return refusedHint
}

// requestHint returns a hint at a known mistake behind a request without an answer.
func (h *Repository) requestHint(err error) string {
	var authority x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	switch {
	case fetch.CertificateHint(err) != "":
		return fetch.CertificateHint(err)
	case errors.As(err, &authority) && !h.identity.HasCA():
		return finding.ServerCA
	case errors.As(err, &authority):
		return "the CA in ca.crt did not issue the server's certificate"
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return finding.ServerPlain
	case fetch.TLSAlert(err) && !h.identity.HasCertificate():
		return finding.ClientCertificate
	case fetch.TLSAlert(err):
		return finding.ClientCertificateRefused
	}
	return ""
}
