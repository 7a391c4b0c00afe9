package auth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// NewTLS returns an identity with a client certificate, authorities, or both, all PEM, and no credentials. It is for
// Secrets of other kinds than a HelmRepository's. No error quotes the input.
func NewTLS(ca, cert, key []byte) (*Identity, error) {
	s := secrets{ca: ca, cert: cert, key: key}
	if len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return nil, errors.New("failed to parse CA certificate")
	}
	if len(cert) == 0 && len(key) == 0 {
		return newIdentity(s), nil
	}
	if len(cert) == 0 || len(key) == 0 {
		return nil, errors.New("'" + keyCert + "' and '" + keyKey + "' have to be set together")
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, errors.New("failed to parse TLS certificate and key: " + explainPair(cert, key).Error())
	}
	s.pair = &pair
	return newIdentity(s), nil
}
