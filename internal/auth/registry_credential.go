package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Credential is a login to one registry host. It prints as REDACTED by every means. The zero value has no login.
type Credential struct {
	Redacted
	reveal func() login
}

type login struct {
	username, password string
	identityToken      string // exchanged at the token server with an OAuth2 refresh_token grant
	registryToken      string // sent to the registry unchanged
}

func newCredential(l login) Credential {
	if l == (login{}) {
		return Credential{}
	}
	return Credential{reveal: func() login { return l }}
}

// BasicCredential returns a username with a password, or with a token that the registry takes as a password.
func BasicCredential(username, password string) Credential {
	return newCredential(login{username: username, password: password})
}

// IdentityTokenCredential is a token that the registry's token server exchanges for access tokens.
func IdentityTokenCredential(token string) Credential {
	return newCredential(login{identityToken: token})
}

// IsZero reports whether there is no login: the request is anonymous.
func (c Credential) IsZero() bool { return c.reveal == nil }

func (c Credential) login() login {
	if c.reveal == nil {
		return login{}
	}
	return c.reveal()
}

// key is equal for equal credentials.
func (c Credential) key() string {
	l := c.login()
	return fingerprint("login", l.username, l.password, l.identityToken, l.registryToken)
}

func (l login) hasBasic() bool { return l.username != "" && l.password != "" }

// secrets lists the secrets of the login in every spelling in which a server could echo them.
func (l login) secrets() []string {
	basic := ""
	if l.hasBasic() {
		basic = l.username + ":" + l.password
	}
	return echoes(basic, l.password, l.identityToken, l.registryToken)
}

// minScrubbed is the minimum length of a secret to be redacted in texts from outside. Redacting shorter ones would
// replace unrelated letters, and protect nothing.
const minScrubbed = 3

// echoes lists secrets in every spelling in which a server could repeat them. A user with a password is sent encoded only.
func echoes(basic string, secrets ...string) []string {
	var all []string
	for _, s := range secrets {
		all = append(all, s, url.QueryEscape(s), url.PathEscape(s))
	}
	for _, s := range append(secrets, basic) {
		text := []byte(s)
		all = append(all, base64.StdEncoding.EncodeToString(text), base64.RawStdEncoding.EncodeToString(text), base64.URLEncoding.EncodeToString(text))
	}
	return all
}

// scrub replaces the longest secrets first, so that no part of a secret is left after a shorter one is replaced.
func scrub(text string, secrets ...string) string {
	slices.SortStableFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
		if len(secret) >= minScrubbed {
			text = strings.ReplaceAll(text, secret, redacted)
		}
	}
	return text
}

// fingerprint is equal for equal parts, and has no meaning for another process.
func fingerprint(parts ...string) string {
	mac := hmac.New(sha256.New, processKey())
	for _, part := range parts {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// maxRemembered bounds how many secrets are looked for in messages. Tokens of a long run push out older ones.
const maxRemembered = 128

// secretSet records the secrets that were sent to servers, to remove them from the texts of the answers.
type secretSet struct {
	mu   sync.Mutex
	list func() []string // a function for the reason that Credential has one
}

func (s *secretSet) add(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.all()
	for _, secret := range secrets {
		if len(secret) >= minScrubbed && !slices.Contains(list, secret) {
			list = append(list, secret)
		}
	}
	list = list[max(0, len(list)-maxRemembered):]
	s.list = func() []string { return list }
}

func (s *secretSet) all() []string {
	if s.list == nil {
		return nil
	}
	return slices.Clone(s.list())
}

// scrub replaces the recorded secrets in a text.
func (s *secretSet) scrub(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return scrub(text, s.all()...)
}
