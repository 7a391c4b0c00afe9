package bucket

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// Login is what the Secret of a Bucket holds. It prints as "REDACTED".
type Login struct {
	secret func() map[string][]byte // a function cannot be printed, see auth.Identity
	hidden func() []string          // what no text from outside may repeat
}

// Format serves every verb of the fmt package.
func (l Login) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, fetch.Redacted) }

// MarshalText covers most encoders.
func (l Login) MarshalText() ([]byte, error) { return []byte(fetch.Redacted), nil }

// The keys of the Secrets of Buckets.
const (
	keyAccess         = "accesskey"
	keySecret         = "secretkey"
	keyServiceAccount = "serviceaccount"
	keyAccountKey     = "accountKey"
	keySAS            = "sasKey"
	keyAuthorityHost  = "authorityHost"
	keyClientID       = "clientId"
	keyTenantID       = "tenantId"
	keyClientSecret   = "clientSecret"
	keyClientCert     = "clientCertificate"
	keyClientCertPass = "clientCertificatePassword"
)

// NewLogin reads the Secret of a Bucket with this provider and endpoint, and asks no server. The name is the Secret's,
// for the errors, which hold nothing from the values.
func NewLogin(provider, endpoint, name string, data map[string][]byte) (*Login, error) {
	l := &Login{
		secret: func() map[string][]byte { return data },
		hidden: func() []string { return hiddenValues(data) },
	}
	var err error
	switch provider {
	case providerGoogle:
		err = checkGoogleSecret(name, data)
	case providerAzure:
		err = checkAzureSecret(endpoint, name, data)
	default:
		err = checkKeys(name, data)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

func checkKeys(name string, data map[string][]byte) error {
	_, hasAccess := data[keyAccess]
	_, hasSecret := data[keySecret]
	if !hasAccess || !hasSecret {
		return fmt.Errorf("invalid '%s' secret data: required fields '%s' and '%s'", name, keyAccess, keySecret)
	}
	return nil
}

func checkGoogleSecret(name string, data map[string][]byte) error {
	key, found := data[keyServiceAccount]
	if !found {
		return fmt.Errorf("invalid '%s' secret data: required fields '%s'", name, keyServiceAccount)
	}
	if _, err := auth.NewGoogleStorage(auth.CloudOptions{}, "", key); err != nil {
		return fmt.Errorf("failed to create Google credentials from secret '%s': %w", name, err)
	}
	return nil
}

// checkAzureSecret tries each way in, in the order in which they are taken.
func checkAzureSecret(endpoint, name string, data map[string][]byte) error {
	has := func(key string) bool { _, found := data[key]; return found }
	if !slices.ContainsFunc([]string{keyClientID, keyAccountKey, keySAS, keyAuthorityHost}, has) {
		return fmt.Errorf("invalid '%s' secret data: requires a '%s' or '%s' field, a combination of '%s', '%s' and '%s', or '%s', '%s' and '%s'",
			name, keyClientID, keyAccountKey, keyTenantID, keyClientID, keyClientSecret, keyTenantID, keyClientID, keyClientCert)
	}
	u, err := azureEndpoint(endpoint)
	if err != nil {
		return nil // reported when the bucket is opened
	}
	// Whether the machine's identity takes the way to the bucket is another question.
	anyhow := auth.NewRoute(&url.URL{Scheme: "https", Host: u.Host}, nil, nil)
	identity, err := auth.NewAzureStorage(auth.CloudOptions{}, anyhow, data)
	if err != nil {
		return fmt.Errorf("failed to create token credential from '%s' Secret: %w", name, err)
	}
	if identity != nil {
		return nil
	}
	if has(keyAccountKey) {
		if _, err := sharedKey(u, string(data[keyAccountKey])); err != nil {
			return fmt.Errorf("failed to create shared credential from '%s' Secret data: %w", name, err)
		}
		return nil
	}
	_, err = sasQuery(u, string(data[keySAS]))
	return err
}

// sharedKey is the key of the account whose name is the first part of the host's.
func sharedKey(u *url.URL, key string) (*azblob.SharedKeyCredential, error) {
	account, rest, _ := strings.Cut(u.Hostname(), ".")
	if !strings.Contains(rest, ".") {
		return nil, fmt.Errorf("expected '%s' to be a subdomain", u.Hostname())
	}
	shared, err := azblob.NewSharedKeyCredential(account, key)
	if err != nil {
		return nil, fmt.Errorf("'%s' is not in base64", keyAccountKey)
	}
	return shared, nil
}

// sasQuery is the query of the endpoint with that of a shared access signature, which counts where both have something.
func sasQuery(u *url.URL, sas string) (url.Values, error) {
	query, err := url.ParseQuery(strings.TrimPrefix(strings.TrimSpace(sas), "?"))
	if err != nil {
		return nil, fmt.Errorf("unable to parse SAS token: '%s' is no query of a URL", keySAS)
	}
	for key, values := range u.Query() {
		if !query.Has(key) {
			query[key] = values
		}
	}
	return query, nil
}

// hiddenValues are the secrets in a Secret, whole and in the parts that a server is shown.
func hiddenValues(data map[string][]byte) []string {
	var hidden []string
	for _, key := range []string{keySecret, keyAccountKey, keySAS, keyClientSecret, keyClientCertPass} {
		hidden = append(hidden, string(data[key]))
	}
	if query, err := url.ParseQuery(strings.TrimPrefix(string(data[keySAS]), "?")); err == nil {
		hidden = append(hidden, query.Get("sig"))
	}
	var account struct {
		PrivateKey   string `json:"private_key"`
		RefreshToken string `json:"refresh_token"`
		ClientSecret string `json:"client_secret"`
	}
	if json.Unmarshal(data[keyServiceAccount], &account) == nil {
		hidden = append(hidden, account.PrivateKey, account.RefreshToken, account.ClientSecret)
	}
	return slices.DeleteFunc(hidden, func(s string) bool { return s == "" })
}

// reveal is one value of the Secret. A login that is not there has none.
func (l *Login) reveal(key string) string { return string(l.all()[key]) }

func (l *Login) all() map[string][]byte {
	if l == nil {
		return nil
	}
	return l.secret()
}

func (l *Login) scrub(text string) string {
	if l == nil {
		return text
	}
	text = auth.NewBasic(l.reveal(keyAccess), l.reveal(keySecret)).Scrub(text)
	for _, secret := range l.hidden() {
		text = auth.NewBasic("", secret).Scrub(text)
	}
	return text
}

// STS is spec.sts of a Bucket. It prints as "REDACTED".
type STS struct {
	provider, endpoint string
	login, identity    *auth.Identity
}

// Format serves every verb of the fmt package.
func (s STS) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, fetch.Redacted) }

// NewSTS reads spec.sts: provider aws, or ldap with the Secret of its secretRef, which may be nil, and the TLS
// settings of its certSecretRef. The name is the Secret's.
func NewSTS(provider, endpoint, name string, data map[string][]byte, id *auth.Identity) (*STS, error) {
	s := &STS{provider: provider, endpoint: endpoint, identity: id}
	if _, err := auth.ParseURL(endpoint); err != nil {
		return nil, &STSEndpointError{URL: auth.RedactURL(endpoint), err: err}
	}
	if provider != "ldap" || data == nil {
		return s, nil
	}
	if len(data["username"]) == 0 || len(data["password"]) == 0 {
		return nil, fmt.Errorf("invalid '%s' secret data for '%s' STS provider: required fields username, password", name, provider)
	}
	s.login = auth.NewBasic(string(data["username"]), string(data["password"]))
	return s, nil
}

func (s *STS) scrub(text string) string {
	if s == nil {
		return text
	}
	return s.login.Scrub(text)
}

// A STSEndpointError reports that the endpoint of spec.sts is no URL.
type STSEndpointError struct {
	URL string // redacted
	err error
}

func (e *STSEndpointError) Error() string {
	return fmt.Sprintf("failed to parse STS endpoint '%s': %v", e.URL, e.err)
}

func (e *STSEndpointError) Unwrap() error { return e.err }

// Transient is false.
func (e *STSEndpointError) Transient() bool { return false }
