package auth

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// The keys that Flux reads in Secrets. Legacy keys are used only if the standard key is absent.
const (
	keyUsername = "username"
	keyPassword = "password"

	keyCert = "tls.crt"
	keyKey  = "tls.key"
	keyCA   = "ca.crt"

	keyGitHubAppID                = "githubAppID"
	keyGitHubAppPrivateKey        = "githubAppPrivateKey"
	keyGitHubAppInstallationID    = "githubAppInstallationID"
	keyGitHubAppInstallationOwner = "githubAppInstallationOwner"
)

func legacyKey(key string) string {
	return map[string]string{keyCert: "certFile", keyKey: "keyFile", keyCA: "caFile"}[key]
}

const (
	typeOpaque       = "Opaque"
	typeTLS          = "kubernetes.io/tls"
	typeDockerConfig = "kubernetes.io/dockerconfigjson"
)

// SecretWarning is something unusual about a Secret that can still be used. Its text quotes no values.
type SecretWarning struct {
	Secret *manifest.Secret
	// Certificates is set if the Secret was read for certSecretRef, and not for a reference to logins.
	Certificates bool
	Text         string
}

// SecretError is a Secret that cannot be used. Its text quotes no values.
type SecretError struct {
	Secret *manifest.Secret
	// Certificates is set if the Secret was read for certSecretRef, and not for a reference to logins.
	Certificates bool
	Err          error
}

func (e *SecretError) Error() string { return e.Err.Error() }

// Finding returns the code of the fault.
func (e *SecretError) Finding() finding.Code {
	if e.Certificates {
		return finding.BrokenTLS
	}
	return cmp.Or(finding.CodeOf(e.Err), finding.IncompleteLogin)
}

func (e *SecretError) Unwrap() error { return e.Err }

// FromCertificates returns the identity of a source other than a HelmRepository with this Secret in certSecretRef. The
// error is a [*SecretError].
func FromCertificates(cert *manifest.Secret) (*Identity, []SecretWarning, error) {
	var s secrets
	warnings, err := s.readCertificates(cert)
	if err != nil {
		return nil, warnings, &SecretError{cert, true, err}
	}
	return newIdentity(s), warnings, nil
}

// FromSecrets returns the identity of a HelmRepository with these Secrets in secretRef and certSecretRef; either may be
// nil. The rules and the words are source-controller's. The error is a [*SecretError].
func FromSecrets(secret, cert *manifest.Secret) (*Identity, []SecretWarning, error) {
	var s secrets
	var warnings []SecretWarning
	if cert != nil {
		var err error
		if warnings, err = s.readCertificates(cert); err != nil {
			return nil, warnings, &SecretError{cert, true, fmt.Errorf("failed to construct Helm client's TLS config: %w", err)}
		}
	}
	if secret != nil {
		more, err := s.readSecretRef(secret, cert != nil)
		for _, text := range more {
			warnings = append(warnings, SecretWarning{Secret: secret, Text: text})
		}
		if err != nil {
			return nil, warnings, &SecretError{secret, false, fmt.Errorf("failed to detect authentication methods: %w", err)}
		}
	}
	return newIdentity(s), warnings, nil
}

// readCertificates reads the Secret of certSecretRef.
func (s *secrets) readCertificates(cert *manifest.Secret) (warnings []SecretWarning, err error) {
	texts, err := s.readTLS(cert)
	switch cert.Type {
	case "", typeOpaque, typeTLS:
	default:
		texts = slices.Insert(texts, 0, fmt.Sprintf(finding.TLSType, ref(cert), typeOpaque, typeTLS))
	}
	for _, text := range texts {
		warnings = append(warnings, SecretWarning{cert, true, text})
	}
	return warnings, err
}

func ref(s *manifest.Secret) string { return s.Namespace + "/" + s.Name }

// readSecretRef reads basic credentials, and the TLS settings that certSecretRef was made for later.
func (s *secrets) readSecretRef(secret *manifest.Secret, haveTLS bool) (warnings []string, err error) {
	if err := checkBasic(secret); err != nil {
		return nil, err
	}
	if err := checkGitHubApp(secret); err != nil {
		return nil, err
	}
	if secret.Type == typeDockerConfig {
		warnings = append(warnings, fmt.Sprintf("credentials in secret '%s' of type %s are for OCI registries and not used for an HTTP repository", ref(secret), typeDockerConfig))
	} else {
		s.username, s.password = string(secret.Data[keyUsername]), string(secret.Data[keyPassword])
	}
	more, err := s.readDeprecatedTLS(secret, haveTLS)
	return append(warnings, more...), err
}

// checkBasic refuses half of the credentials. Empty values are whole ones.
func checkBasic(secret *manifest.Secret) error {
	_, hasUsername := secret.Data[keyUsername]
	_, hasPassword := secret.Data[keyPassword]
	present, missing := keyUsername, keyPassword
	switch {
	case hasUsername == hasPassword:
		return nil
	case hasPassword:
		present, missing = missing, present
	}
	return fmt.Errorf("secret '%s': malformed basic auth - has '%s' but missing '%s'", ref(secret), present, missing)
}

// checkGitHubApp refuses half of a login that no Helm repository uses. source-controller does, because one function
// reads the Secrets of all kinds.
func checkGitHubApp(secret *manifest.Secret) error {
	has := func(key string) bool { _, found := secret.Data[key]; return found }
	if !has(keyGitHubAppID) || !has(keyGitHubAppPrivateKey) ||
		has(keyGitHubAppInstallationOwner) != has(keyGitHubAppInstallationID) {
		return nil
	}
	return fmt.Errorf("secret '%s' must contain exactly one of '%s' or '%s'", ref(secret),
		keyGitHubAppInstallationOwner, keyGitHubAppInstallationID)
}

// readDeprecatedTLS reports incomplete keys as a warning, but invalid keys as an error.
func (s *secrets) readDeprecatedTLS(secret *manifest.Secret, haveTLS bool) ([]string, error) {
	var fromSecret secrets
	warnings, err := fromSecret.readTLS(secret)
	var incomplete *incompleteTLSError
	switch {
	case errors.As(err, &incomplete) && incomplete.nothing():
		return nil, nil
	case errors.As(err, &incomplete):
		return []string{fmt.Sprintf(finding.TLSUnusable, err)}, nil
	case err != nil:
		return nil, err
	case haveTLS:
		return []string{fmt.Sprintf(finding.TLSIgnored, ref(secret))}, nil
	}
	s.ca, s.cert, s.key, s.pair = fromSecret.ca, fromSecret.cert, fromSecret.key, fromSecret.pair
	deprecated := fmt.Sprintf(finding.TLSDeprecated, ref(secret))
	return append(warnings, deprecated), nil
}

// readTLS reads a client certificate, authorities, or both. The warnings are about legacy keys.
func (s *secrets) readTLS(secret *manifest.Secret) (warnings []string, err error) {
	get := func(key string) []byte {
		if value, found := secret.Data[key]; found {
			return value
		}
		legacy := legacyKey(key)
		value, found := secret.Data[legacy]
		if found {
			warnings = append(warnings, fmt.Sprintf("secret '%s' has the legacy key '%s': use '%s'", ref(secret), legacy, key))
		}
		return value
	}
	s.cert, s.key, s.ca = get(keyCert), get(keyKey), get(keyCA)
	if err := s.checkTLSKeys(secret); err != nil {
		return nil, err
	}
	if err := s.parseTLS(); err != nil {
		return nil, err
	}
	return warnings, nil
}

// parseTLS parses the certificate with its key, and the authorities. Both are optional.
func (s *secrets) parseTLS() error {
	if len(s.cert) > 0 {
		pair, err := tls.X509KeyPair(s.cert, s.key)
		if err != nil {
			return fmt.Errorf("failed to parse TLS certificate and key: %w", explainPair(s.cert, s.key))
		}
		s.pair = &pair
	}
	if len(s.ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(s.ca) {
		return errors.New("failed to parse CA certificate")
	}
	return nil
}

func (s *secrets) checkTLSKeys(secret *manifest.Secret) error {
	cert, key, ca := len(s.cert) > 0, len(s.key) > 0, len(s.ca) > 0
	if cert == key && (cert || ca) {
		return nil
	}
	return &incompleteTLSError{secret: ref(secret), cert: cert, key: key}
}

// An incompleteTLSError reports which TLS keys a Secret lacks.
type incompleteTLSError struct {
	secret    string
	cert, key bool
}

func (e *incompleteTLSError) nothing() bool { return !e.cert && !e.key }

func (e *incompleteTLSError) Error() string {
	switch {
	case e.cert:
		return fmt.Sprintf("secret '%s' contains '%s' but missing '%s'", e.secret, keyCert, keyKey)
	case e.key:
		return fmt.Sprintf("secret '%s' contains '%s' but missing '%s'", e.secret, keyKey, keyCert)
	}
	return fmt.Sprintf("secret '%s' must contain either '%s' or both '%s' and '%s'", e.secret, keyCA, keyCert, keyKey)
}

// explainPair reports why a certificate and a key do not match. The errors of package tls quote the input.
func explainPair(cert, key []byte) error {
	block := findBlock(cert, "CERTIFICATE")
	if block == nil {
		return fmt.Errorf("'%s' contains no PEM certificate", keyCert)
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return fmt.Errorf("'%s' contains an unreadable certificate", keyCert)
	}
	block = findBlock(key, "PRIVATE KEY")
	switch {
	case block == nil:
		return fmt.Errorf("'%s' contains no PEM private key", keyKey)
	case strings.HasPrefix(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
		return fmt.Errorf("'%s' is encrypted", keyKey)
	}
	return fmt.Errorf("'%s' is not the private key of '%s', or of a kind that is not supported", keyKey, keyCert)
}

func findBlock(text []byte, kind string) *pem.Block {
	for {
		block, rest := pem.Decode(text)
		if block == nil || strings.HasSuffix(block.Type, kind) {
			return block
		}
		text = rest
	}
}
