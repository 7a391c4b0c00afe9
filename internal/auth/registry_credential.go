package auth

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/url"
)

// Credential is what one registry host may be shown. It is comparable, and it prints as REDACTED in every format.
type Credential struct {
	username, password string
	identityToken      string // exchanged at the token server with an OAuth2 refresh_token grant
	registryToken      string // sent to the registry as it is
}

// BasicCredential is a username with a password, or with whatever a registry takes as one.
func BasicCredential(username, password string) Credential {
	return Credential{username: username, password: password}
}

// IdentityTokenCredential is a token that the registry's token server exchanges for access tokens.
func IdentityTokenCredential(token string) Credential { return Credential{identityToken: token} }

// IsZero tells whether there is nothing to show: the request is anonymous.
func (c Credential) IsZero() bool { return c == Credential{} }

func (c Credential) hasBasic() bool { return c.username != "" && c.password != "" }

// secrets lists the credential's secrets in every spelling in which a server could echo them.
func (c Credential) secrets() []string {
	var all []string
	for _, s := range []string{c.password, c.identityToken, c.registryToken} {
		if s != "" {
			all = append(all, s, url.QueryEscape(s), url.PathEscape(s), base64.StdEncoding.EncodeToString([]byte(s)))
		}
	}
	if c.hasBasic() {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(c.username+":"+c.password)))
	}
	return all
}

// Format keeps credentials out of every verb, %#v and %d included.
func (c Credential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// String never shows the credential.
func (c Credential) String() string {
	if c.IsZero() {
		return "none"
	}
	return "REDACTED"
}

// MarshalText never shows the credential. It covers JSON and YAML.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// LogValue never shows the credential.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }
