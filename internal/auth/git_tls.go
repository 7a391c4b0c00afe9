package auth

import "errors"

// NewTLS returns an identity with a client certificate, authorities, or both, all PEM, and no credentials. It is for
// Secrets of other kinds than a HelmRepository's. No error quotes the input.
func NewTLS(ca, cert, key []byte) (*Identity, error) {
	if (len(cert) == 0) != (len(key) == 0) {
		return nil, errors.New("'" + keyCert + "' and '" + keyKey + "' have to be set together")
	}
	s := secrets{ca: ca, cert: cert, key: key}
	if err := s.parseTLS(); err != nil {
		return nil, err
	}
	return newIdentity(s), nil
}
