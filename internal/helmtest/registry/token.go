package registry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/auth/token"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

const (
	issuer  = "helmtest"
	service = "registry.helmtest"
	keyID   = "helmtest"
)

// TokenServer issues the JSON web tokens that a registry of the distribution trusts: to GET with basic credentials, and to
// POST with a password or a refresh token, as in OAuth 2.
type TokenServer struct {
	helmtest.Issuer

	Realm string

	auth helmtest.Auth
	key  *ecdsa.PrivateKey
}

// NewTokenServer returns the token server of a registry.
func NewTokenServer(c *helmtest.Config) (*TokenServer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s := &TokenServer{Realm: c.Auth.Realm, auth: c.Auth, key: key}
	if s.Realm == "" && c.TLS {
		s.Realm = "https://auth.test/token"
	} else if s.Realm == "" {
		s.Realm = "http://auth.test/token"
	}
	return s, err
}

// registryAuth returns the configuration of the registry.
func (s *TokenServer) registryAuth() (configuration.Auth, error) {
	keys := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: s.key.Public(), KeyID: keyID, Algorithm: "ES256", Use: "sig"}}}
	b, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	file, err := tempFile("jwks", b)
	return configuration.Auth{"token": configuration.Parameters{
		"realm": s.Realm, "service": service, "issuer": issuer, "jwks": file,
	}}, err
}

// Issue returns a token for scopes such as "repository:charts/podinfo:pull".
func (s *TokenServer) Issue(subject string, scopes ...string) (string, error) {
	var access []*token.ResourceActions
	for _, scope := range scopes {
		kind, rest, _ := strings.Cut(scope, ":")
		i := strings.LastIndex(rest, ":")
		if i < 0 {
			continue
		}
		access = append(access, &token.ResourceActions{Type: kind, Name: rest[:i], Actions: strings.Split(rest[i+1:], ",")})
	}
	now := time.Now()
	claims := token.ClaimSet{
		Issuer: issuer, Subject: subject, Audience: token.AudienceList{service}, JWTID: rand.Text(),
		Expiration: now.Add(time.Hour).Unix(), NotBefore: now.Add(-time.Minute).Unix(), IssuedAt: now.Unix(),
		Access: access,
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: s.key, KeyID: keyID}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	t, err := jwt.Signed(signer).Claims(claims).Serialize()
	s.Add(t)
	return t, err
}

// ServeHTTP answers a token request.
func (s *TokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	subject, ok := s.subject(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", `Basic realm="helmtest"`)
		problem(w, http.StatusUnauthorized, "UNAUTHORIZED")
		return
	}
	if r.FormValue("service") != service {
		problem(w, http.StatusBadRequest, "UNSUPPORTED")
		return
	}
	var scopes []string
	for _, list := range r.Form["scope"] {
		for scope := range strings.FieldsSeq(list) {
			if subject == "" || !s.auth.Push {
				scope = pullOnly(scope)
			}
			scopes = append(scopes, scope)
		}
	}
	t, err := s.Issue(subject, scopes...)
	if err != nil {
		problem(w, http.StatusInternalServerError, "UNKNOWN")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"token": t, "access_token": t, "expires_in": 3600, "issued_at": time.Now().UTC().Format(time.RFC3339),
	})
}

// subject returns the user of a request, and whether it is allowed.
func (s *TokenServer) subject(r *http.Request) (string, bool) {
	user, password, basic := r.BasicAuth()
	switch {
	case basic:
		return user, user+":"+password == s.auth.Token
	case r.Method == http.MethodPost && r.FormValue("grant_type") == "password":
		return r.FormValue("username"), r.FormValue("username")+":"+r.FormValue("password") == s.auth.Token
	case r.Method == http.MethodPost && r.FormValue("grant_type") == "refresh_token":
		return "identity", s.auth.Identity != "" && r.FormValue("refresh_token") == s.auth.Identity
	}
	return "", s.auth.Anonymous
}

// pullOnly drops the actions that require the right to push.
func pullOnly(scope string) string {
	if i := strings.LastIndex(scope, ":"); i >= 0 && strings.HasPrefix(scope, "repository:") {
		return scope[:i] + ":pull"
	}
	return scope
}

// problem writes an error in the format of the distribution specification.
func problem(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []map[string]string{{"code": code, "message": strings.ToLower(code)}}})
}
