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

// An Issuer knows the tokens that a server has given away.
type Issuer struct {
	mu     sync.Mutex
	issued []string
}

// Add notes a token.
func (t *Issuer) Add(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.issued = append(t.issued, token)
}

// Issued lists the tokens so far.
func (t *Issuer) Issued() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.issued)
}

// issue makes a token that begins so.
func (t *Issuer) issue(prefix string) string {
	token := prefix + rand.Text()
	t.Add(token)
	return token
}

// readClaims reads a JSON web token that a key has signed.
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
