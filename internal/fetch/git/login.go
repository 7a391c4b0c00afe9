package git

import (
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"

	"golang.org/x/crypto/ssh"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// Login is the login to one repository. It prints as REDACTED by every means; nil is anonymous.
type Login struct {
	auth.Redacted
	keys func() Keys
}

// Keys are the parts of a Login. Empty fields are not used.
type Keys struct {
	auth.Redacted

	Username, Password string
	Bearer             string // instead of both

	TLS *auth.Identity // authorities and client certificate

	Signer     ssh.Signer // for SSH, with the hosts in the format of known_hosts
	KnownHosts []byte

	App *GitHubApp // which provides user and password
}

// NewLogin keeps the keys of a repository.
func NewLogin(k Keys) *Login { return &Login{keys: func() Keys { return k }} }

func (l *Login) reveal() Keys {
	if l == nil || l.keys == nil {
		return Keys{}
	}
	return l.keys()
}

// withUserinfo adds the user name and password of a URL that the Secret does not set.
func (l *Login) withUserinfo(u *url.Userinfo) *Login {
	s := l.reveal()
	if s.Bearer != "" || u == nil {
		return l
	}
	if s.Username == "" {
		s.Username = u.Username()
	}
	if s.Password == "" {
		s.Password, _ = u.Password()
	}
	return NewLogin(s)
}

// any reports whether there is something to log in with.
func (l *Login) any() bool {
	s := l.reveal()
	return s.Username != "" || s.Bearer != "" || s.TLS.HasCertificate() || s.Signer != nil || s.App != nil
}

func (l *Login) authorize(r *http.Request) {
	switch s := l.reveal(); {
	case s.Bearer != "":
		r.Header.Set("Authorization", "Bearer "+s.Bearer)
	case s.Username != "" || s.Password != "":
		r.SetBasicAuth(s.Username, s.Password)
	}
}

func (l *Login) scrub(text string) string {
	s := l.reveal()
	if s.Signer == nil { // over SSH the user is no secret, and mostly "git"
		text = auth.NewBasic(s.Username, s.Password).Scrub(text)
	}
	return auth.NewBasic("", s.Bearer).Scrub(text)
}

func (l *Login) requestHint(err error) string {
	var authority x509.UnknownAuthorityError
	switch {
	case fetch.CertificateHint(err) != "":
		return fetch.CertificateHint(err)
	case errors.As(err, &authority) && !l.reveal().TLS.HasCA():
		return finding.GitCA
	case errors.As(err, &authority):
		return "the CA in ca.crt did not issue the server's certificate"
	case errors.Is(err, http.ErrSchemeMismatch):
		return finding.ServerPlain
	}
	return ""
}
