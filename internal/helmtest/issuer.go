package helmtest

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"slices"
	"sync"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// An Issuer records the tokens that a server issued.
type Issuer struct {
	mu     sync.Mutex
	issued []string
}

// Add records a token.
func (t *Issuer) Add(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.issued = append(t.issued, token)
}

// Issued returns the tokens issued so far.
func (t *Issuer) Issued() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.issued)
}

// issue issues a token with a prefix.
func (t *Issuer) issue(prefix string) string {
	token := prefix + rand.Text()
	t.Add(token)
	return token
}

// readClaims decodes a JSON web token that a key signed.
func readClaims(token string, key *rsa.PublicKey, claims any) error {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
	if err == nil {
		err = parsed.Claims(key, claims)
	}
	if err != nil {
		return errors.New("the JSON web token could not be decoded")
	}
	return nil
}
