// Package auth turns Secrets and logins into HTTP transports that can only carry them to the host they are for.
// It does not fetch anything itself.
package auth

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"sync"
)

// Identity is the TLS and login settings for one repository: basic credentials, a client certificate, the authorities
// that its server's certificate may come from. It prints as "REDACTED" by every means. It is immutable; nil and the
// zero value are an anonymous identity.
type Identity struct {
	Redacted
	secrets func() secrets
}

func newIdentity(s secrets) *Identity { return &Identity{secrets: func() secrets { return s }} }

type secrets struct {
	username, password string
	// half lets one of them be sent without the other. In a URL a token may be the only value; in a Secret an empty
	// value means that no login is sent.
	half bool

	ca        []byte // PEM, added to the system's authorities
	cert, key []byte // PEM
	pair      *tls.Certificate

	unverified bool
	skipped    bool // --insecure-skip-tls-verify is why

	// ambient marks an identity that comes from the environment, not from a Secret. source names its place.
	ambient bool
	reach   Reach
	source  string
}

// NewBasic returns an identity with a user name and a password and no TLS settings.
func NewBasic(username, password string) *Identity {
	return (*Identity)(nil).WithBasic(username, password)
}

// WithBasic returns a copy of id with this user name and password.
func (id *Identity) WithBasic(username, password string) *Identity {
	s := id.reveal()
	s.username, s.password, s.half = username, password, false
	return newIdentity(s)
}

// WithUserinfo returns id if it has credentials, else a copy of it with the credentials of a URL.
func (id *Identity) WithUserinfo(u *url.Userinfo) *Identity {
	if _, _, ok := id.basic(); ok || u == nil {
		return id
	}
	s := id.reveal()
	s.username, s.half = u.Username(), true
	s.password, _ = u.Password()
	return newIdentity(s)
}

// Basic returns the user name and the password, and whether they are to be sent. From Secrets and logins, one is never
// sent without the other. The credentials of an ambient identity are for its own transport alone.
func (id *Identity) Basic() (username, password string, ok bool) {
	if id.IsAmbient() {
		return "", "", false
	}
	return id.basic()
}

func (id *Identity) basic() (username, password string, ok bool) {
	s := id.reveal()
	both, any := s.username != "" && s.password != "", s.username != "" || s.password != ""
	if !both && !(s.half && any) {
		return "", "", false
	}
	return s.username, s.password, true
}

// IsAmbient reports whether the environment brought the identity, and no manifest.
func (id *Identity) IsAmbient() bool { return id.reveal().ambient }

// fromEnvironment returns a copy of id that is ambient.
func (id *Identity) fromEnvironment(source string, reach Reach) *Identity {
	s := id.reveal()
	s.ambient, s.reach, s.source = true, reach, source
	return newIdentity(s)
}

// HasCA reports whether the identity trusts an authority of its own.
func (id *Identity) HasCA() bool { return len(id.reveal().ca) > 0 }

// HasCertificate reports whether the identity has a client certificate.
func (id *Identity) HasCertificate() bool { return id.reveal().pair != nil }

// Unverified returns a copy of id that verifies no server certificate. It is for registries with which plain HTTP
// would do as well.
func (id *Identity) Unverified() *Identity {
	s := id.reveal()
	s.unverified = true
	return newIdentity(s)
}

// SkipVerification returns a copy of id that verifies no server certificate, for --insecure-skip-tls-verify.
// Credentials of the environment are never sent on a route with it, regardless of their reach.
func (id *Identity) SkipVerification() *Identity {
	s := id.reveal()
	s.unverified, s.skipped = true, true
	return newIdentity(s)
}

// TLSConfig returns a new client configuration: the system's authorities and the identity's own, and its client
// certificate. Only [Identity.Unverified] and
// [Identity.SkipVerification] turn the verification of the server off.
func (id *Identity) TLSConfig() *tls.Config {
	s := id.reveal()
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.unverified} //nolint:gosec // see Unverified
	if s.pair != nil {
		config.Certificates = []tls.Certificate{*s.pair}
	}
	if len(s.ca) > 0 {
		config.RootCAs = rootsWith(s.ca)
	}
	return config
}

// rootsWith adds to the system's authorities instead of replacing them: a repository with a private authority may
// serve its archives from a public host. source-controller does the same.
func rootsWith(ca []byte) *x509.CertPool {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	roots.AppendCertsFromPEM(ca)
	return roots
}

// WithoutCertificate returns the part of id that other hosts may see: the authorities, without any credential.
func (id *Identity) WithoutCertificate() *Identity {
	s := id.reveal()
	return newIdentity(secrets{ca: s.ca, unverified: s.unverified, skipped: s.skipped, ambient: s.ambient, reach: s.reach, source: s.source})
}

// reveal returns a copy, which the caller may change.
func (id *Identity) reveal() secrets {
	if id == nil || id.secrets == nil {
		return secrets{}
	}
	return id.secrets()
}

// Key is equal for two identities iff their credentials and TLS settings are. It does not disclose them, and has no
// meaning for another process: it is made with a key that is not kept.
func (id *Identity) Key() string {
	s := id.reveal()
	settings := fmt.Sprint(s.half, s.unverified, s.skipped, s.ambient, s.reach)
	return fingerprint(s.username, s.password, settings, string(s.ca), string(s.cert), string(s.key))
}

var processKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	// Read never fails: the program ends when the system has no randomness.
	_, _ = rand.Read(key)
	return key
})

// Scrub replaces the identity's own secrets in a text from outside, in the spellings that a server would echo them in.
func (id *Identity) Scrub(text string) string {
	s := id.reveal()
	secret := cmp.Or(s.password, s.username)
	if secret == "" {
		return text
	}
	return scrub(text, echoes(s.username+":"+s.password, secret)...)
}
