package helmtest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The identity of the App of the tests at GitHub.
const (
	GitHubAppID        = "12345"
	GitHubInstallation = "678"
	GitHubOwner        = "someone"
)

// GitHub is the part of GitHub's API that gives an App the tokens of its installation, and an access control for repositories
// that accepts only these tokens.
type GitHub struct {
	Issuer

	Key, Other []byte // PEM, of the App, and of another one

	public *rsa.PublicKey
}

// NewGitHub returns an App with a new key.
func NewGitHub() (*GitHub, error) {
	g := &GitHub{}
	for _, into := range []*[]byte{&g.Other, &g.Key} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, err
		}
		g.public = &key.PublicKey
		*into = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	}
	return g, nil
}

// ServeHTTP serves the API.
func (g *GitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if err := g.claim(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": err.Error()})
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /users/" + GitHubOwner + "/installation":
		fmt.Fprintf(w, `{"id": %s}`, GitHubInstallation)
	case "POST /app/installations/" + GitHubInstallation + "/access_tokens":
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token": %q, "expires_at": %q}`, g.issue("ghs_"), time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message": "Not Found"}`)
	}
}

// claim returns an error if a claim to be the App is invalid.
func (g *GitHub) claim(token string) error {
	var claims struct {
		Iss string `json:"iss"`
		Iat int64  `json:"iat"`
		Exp int64  `json:"exp"`
	}
	if err := readClaims(token, g.public, &claims); err != nil {
		return err
	}
	now := time.Now().Unix()
	switch {
	case claims.Iss != GitHubAppID:
		return errors.New("'Issuer' claim ('iss') must be an Integer")
	case claims.Exp <= now || claims.Exp > now+600 || claims.Iat > now:
		return errors.New("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	}
	return nil
}

// Door returns a handler that requires a token.
func (g *GitHub) Door(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "x-access-token" || !slices.Contains(g.Issued(), password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// data returns the data of a Secret of the App.
func (g *GitHub) data(api string, ca []byte) map[string][]byte {
	return map[string][]byte{
		"githubAppID": []byte(GitHubAppID), "githubAppInstallationID": []byte(GitHubInstallation),
		"githubAppPrivateKey": g.Key, "githubAppBaseURL": []byte(api), "ca.crt": ca,
	}
}

// Secrets returns the Secrets of the App by name: `NAME-app`; with the owner of the installation, `NAME-owner`; and some that
// are refused.
func (g *GitHub) Secrets(name, api string, ca []byte) map[string][]byte {
	files := map[string][]byte{}
	add := func(suffix string, change func(map[string][]byte)) {
		data := g.data(api, ca)
		change(data)
		files[name+suffix+".yaml"] = Secret(name+suffix, data)
	}
	add("-app", func(map[string][]byte) {})
	add("-owner", func(d map[string][]byte) {
		delete(d, "githubAppInstallationID")
		d["githubAppInstallationOwner"] = []byte(GitHubOwner)
	})
	add("-nobody", func(d map[string][]byte) {
		delete(d, "githubAppInstallationID")
		d["githubAppInstallationOwner"] = []byte("nobody")
	})
	add("-key", func(d map[string][]byte) { d["githubAppPrivateKey"] = g.Other })
	add("-both", func(d map[string][]byte) { d["githubAppInstallationOwner"] = []byte(GitHubOwner) })
	return files
}
