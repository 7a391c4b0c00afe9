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
)

const refusedHint = "the server does not accept the username and password of spec.secretRef, or of the URL"

// statusHint recognises known mistakes behind an answer to a request for u that came, after redirects, from at.
func (h *Repository) statusHint(e *fetch.StatusError, u, at *url.URL) string {
	_, _, credentials := h.identity.Basic()
	switch {
	case e.AuthFailure() && credentials && !auth.SameOrigin(h.base, at):
		return h.strangerHint(u, at)
	case e.AuthFailure() && !credentials && h.options.Useless != "":
		return h.options.Useless
	case e.AuthFailure() && !credentials:
		return "the server may want credentials: refer with spec.secretRef to a Secret with username and password"
	case e.Code == http.StatusUnauthorized:
		return refusedHint
	case e.Code == http.StatusForbidden:
		return "the user of spec.secretRef may lack the permission to read this repository"
	case e.Code == http.StatusTooManyRequests && !credentials:
		return "the server limits requests without a login: one in spec.secretRef may raise the limit"
	case e.Code == http.StatusProxyAuthRequired:
		return (&auth.ProxyError{Code: e.Code}).Hint()
	case e.Code == http.StatusNotFound && path.Base(u.Path) == indexFile:
		return "spec.url is the directory that holds index.yaml; a registry has an oci:// URL and type: oci"
	}
	return ""
}

// strangerHint is for a host that did not get the credentials because it is not the repository's.
func (h *Repository) strangerHint(u, at *url.URL) string {
	switch {
	case !auth.SameOrigin(u, at) && !(h.options.PassCredentials && fetch.SameSite(u, at)):
		return fmt.Sprintf("redirected to %s, which does not get the credentials for %s: if the repository has moved, change spec.url",
			auth.Origin(at), auth.Origin(h.base))
	case h.base.Scheme == "https" && at.Scheme == "http":
		return "credentials for an https repository are never sent over plain http"
	case !h.options.PassCredentials:
		return fmt.Sprintf("the archive is on %s, but the credentials are for %s: spec.passCredentials: true sends them there too",
			at.Host, h.base.Host)
	}
	return refusedHint
}

// requestHint recognises known mistakes behind a request without an answer.
func (h *Repository) requestHint(err error) string {
	var authority x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	switch {
	case fetch.CertificateHint(err) != "":
		return fetch.CertificateHint(err)
	case errors.As(err, &authority) && !h.identity.HasCA():
		return "if the server's certificate is from a private CA, refer with spec.certSecretRef to a Secret with that CA in ca.crt"
	case errors.As(err, &authority):
		return "the CA in ca.crt did not issue the server's certificate"
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return "the server speaks plain HTTP on this port: spec.url has to begin with http://"
	case fetch.TLSAlert(err) && !h.identity.HasCertificate():
		return "the server may want a client certificate: refer with spec.certSecretRef to a Secret with tls.crt and tls.key"
	case fetch.TLSAlert(err):
		return "the server may not accept the client certificate of spec.certSecretRef"
	}
	return ""
}
