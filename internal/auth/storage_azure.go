package auth

import (
	"cmp"
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// azureStorageScope limits a token to object stores, in every cloud of Azure.
const azureStorageScope = "https://storage.azure.com/.default"

// The keys of the Secret of a Bucket at Azure that name an identity. source-controller has the same.
const (
	keyAzureTenant       = "tenantId"
	keyAzureClient       = "clientId"
	keyAzureSecret       = "clientSecret"
	keyAzureCertificate  = "clientCertificate"
	keyAzurePassphrase   = "clientCertificatePassword"
	keyAzureSendChain    = "clientCertificateSendChain"
	keyAzureAuthority    = "authorityHost"
	azureStorageProvider = "azure"
)

// AzureStorage gives the tokens for Azure's object store.
type AzureStorage struct {
	identity azcore.TokenCredential
	failures *failureKeeper
	host     string
	home     cloud.Configuration // that the host belongs to
	own      bool                // the host is Azure's
	ambient  bool
}

func newAzureStorage(o CloudOptions, on Route) *AzureStorage {
	s := &AzureStorage{failures: keepFailures(cloudClient(o)), host: on.to.Hostname()}
	s.home, s.own = storageDomains().of(s.host)
	return s
}

// azureOfMachine returns an identity that is this machine's or job's.
func azureOfMachine(o CloudOptions, on Route) (*AzureStorage, error) {
	s := newAzureStorage(o.ofMachine(), on)
	s.ambient = true
	return s, o.withhold(on, azureStorageProvider, s.own)
}

// NewAzureStorage returns the identity that a Secret names: a client with its secret or its certificate, or the
// machine's identity with this client ID. No request is sent before the first token is needed. If a manifest chose the
// route and the machine's own identity would be needed, the error is a *WithheldError.
func NewAzureStorage(o CloudOptions, on Route, c *AzureClient) (*AzureStorage, error) {
	s := newAzureStorage(o, on)
	var err error
	switch {
	case c.secret != "":
		s.identity, err = azidentity.NewClientSecretCredential(c.tenant, c.id, c.secret, &azidentity.ClientSecretCredentialOptions{
			ClientOptions: c.options(s), DisableInstanceDiscovery: c.foreign(),
		})
	case c.key != nil:
		s.identity, err = azidentity.NewClientCertificateCredential(c.tenant, c.id, c.certificates, c.key, &azidentity.ClientCertificateCredentialOptions{
			ClientOptions: c.options(s), DisableInstanceDiscovery: c.foreign(), SendCertificateChain: c.sendChain,
		})
	default:
		if s, err = azureOfMachine(o, on); err != nil {
			return nil, err
		}
		s.identity, err = azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{
			ClientOptions: azcore.ClientOptions{Transport: s.failures.client, Retry: noRetries()}, ID: azidentity.ClientID(c.id),
		})
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// MachineAzureStorage returns the identity of this machine or job. The authority is the one in a Secret, if it is not
// empty: it has to be Microsoft's. If a manifest chose the route, the error is a *WithheldError.
func MachineAzureStorage(o CloudOptions, on Route, authority string) (*AzureStorage, error) {
	s, err := azureOfMachine(o, on)
	if err != nil {
		return nil, err
	}
	if authority != "" && !isMicrosoft(authority) && !(o.Reach == ReachAnywhere && isAuthority(authority)) {
		return nil, storageFailure(azureStorageProvider, &finding.Problem{
			Text:   "'" + keyAzureAuthority + "' of the Secret is not an authority of Microsoft: the identity of this machine is not sent to it",
			Advice: finding.IdentityAnywhere,
		})
	}
	options := azureOptions(s.failures.client, cmp.Or(authority, o.ofMachine().Getenv(envAuthorityHost)), s.home)
	options.Retry = noRetries()
	if authority != "" {
		options.Cloud = cloud.Configuration{ActiveDirectoryAuthorityHost: authority}
	}
	if s.identity, err = azidentity.NewDefaultAzureCredential(options); err != nil {
		return nil, storageFailure(azureStorageProvider, err)
	}
	return s, nil
}

// OfMachine reports whether the identity is this machine's or job's. It is false for nil.
func (s *AzureStorage) OfMachine() bool { return s != nil && s.ambient }

// GetToken implements azcore.TokenCredential. The scope is always the one of object stores: the client's library takes
// it from the server's challenge, so that a server could ask for a token for another service.
func (s *AzureStorage) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if s.ambient && !s.own {
		return azcore.AccessToken{}, storageFailure(azureStorageProvider, foreignStorage(azureStorageProvider, s.host))
	}
	o.Scopes, o.TenantID, o.Claims = []string{azureStorageScope}, "", ""
	token, err := s.identity.GetToken(ctx, o)
	if err != nil && ctx.Err() == nil {
		return azcore.AccessToken{}, storageFailure(azureStorageProvider, s.failures.cause(err))
	}
	return token, err
}

// storageDomains returns the domains of object stores.
func storageDomains() azureDomains {
	return azureDomains{
		".core.windows.net":       cloud.AzurePublic,
		".storage.azure.net":      cloud.AzurePublic,
		".core.chinacloudapi.cn":  cloud.AzureChina,
		".core.usgovcloudapi.net": cloud.AzureGovernment,
	}
}

// noRetries leaves retries to those who obey the user's settings.
func noRetries() policy.RetryOptions { return policy.RetryOptions{MaxRetries: -1} }

// AzureClient is the identity that the Secret of a Bucket at Azure names. It prints as "REDACTED".
type AzureClient struct {
	Redacted
	tenant, id   string
	authority    string // where to log in; empty is Microsoft's
	secret       string // and without secret and key it is an identity of this machine
	certificates []*x509.Certificate
	key          crypto.PrivateKey
	sendChain    bool
}

// ReadAzureClient reads the Secret of a Bucket at Azure. If it names no client, the result is nil. An error does not quote
// the values.
func ReadAzureClient(data map[string][]byte) (*AzureClient, error) {
	text := func(key string) string { return string(data[key]) }
	c := &AzureClient{tenant: text(keyAzureTenant), id: text(keyAzureClient)}
	if c.id == "" {
		return nil, nil
	}
	// A value may not become another part of the authority's URL than it is meant for.
	if c.tenant != "" {
		if err := TenantPart.Check("'"+keyAzureTenant+"'", c.tenant); err != nil {
			return nil, err
		}
	}
	if err := ClientPart.Check("'"+keyAzureClient+"'", c.id); err != nil {
		return nil, err
	}
	if c.tenant == "" || text(keyAzureSecret) == "" && text(keyAzureCertificate) == "" {
		return c, nil
	}
	if c.authority = text(keyAzureAuthority); c.authority != "" && !isAuthority(c.authority) {
		return nil, fmt.Errorf("'%s' is not an https URL", keyAzureAuthority)
	}
	if c.secret = text(keyAzureSecret); c.secret != "" {
		return c, nil
	}
	var err error
	if c.certificates, c.key, err = azidentity.ParseCertificates(data[keyAzureCertificate], data[keyAzurePassphrase]); err != nil {
		return nil, errAzureCertificate // the library's error may quote the input
	}
	chain := text(keyAzureSendChain)
	c.sendChain = chain == "1" || strings.EqualFold(chain, "true")
	return c, nil
}

// options say where to log in.
func (c *AzureClient) options(s *AzureStorage) azcore.ClientOptions {
	o := azcore.ClientOptions{Transport: s.failures.client, Cloud: s.home, Retry: noRetries()}
	if c.authority != "" {
		o.Cloud = cloud.Configuration{ActiveDirectoryAuthorityHost: c.authority}
	}
	return o
}

// foreign reports whether the authority is another one than Microsoft's, which must not be looked up there.
func (c *AzureClient) foreign() bool { return c.authority != "" && !isMicrosoft(c.authority) }

// isAuthority reports whether a text is the https URL of a host, which secrets may be sent to.
func isAuthority(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// isMicrosoft reports whether an authority belongs to Microsoft.
func isMicrosoft(authority string) bool {
	u, err := url.Parse(authority)
	if err != nil || !isAuthority(authority) || u.Port() != "" && u.Port() != "443" || strings.Trim(u.Path, "/") != "" {
		return false
	}
	switch strings.ToLower(u.Hostname()) {
	case "login.microsoftonline.com", "login.microsoftonline.us", "login.chinacloudapi.cn", "login.partner.microsoftonline.cn",
		"login.windows.net", "login.microsoft.com", "sts.windows.net":
		return true
	}
	return false
}

var errAzureCertificate = errors.New("failed to parse client certificates: 'clientCertificate' is neither PEM nor PKCS #12 with a key that 'clientCertificatePassword' opens")
