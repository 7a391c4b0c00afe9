package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// azureStorageScope asks for a token that is good for object stores alone, in every cloud of Azure.
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
	ambient  bool
}

// NewAzureStorage returns the identity that a Secret names: that of a client with its secret or its certificate, or the
// machine's of this client ID. If it names none, nil. Nobody is asked before the first token.
func NewAzureStorage(o CloudOptions, host string, data map[string][]byte) (*AzureStorage, error) {
	failures := keepFailures(cloudClient(o))
	a := &azureSecret{client: failures.client, home: azureStorageCloud(host), data: data}
	s := &AzureStorage{host: host, failures: failures}
	var err error
	switch tenant, client := a.text(keyAzureTenant), a.text(keyAzureClient); {
	case client == "":
		return nil, nil
	case tenant != "" && a.text(keyAzureSecret) != "":
		s.identity, err = a.clientSecret(tenant, client)
	case tenant != "" && a.text(keyAzureCertificate) != "":
		s.identity, err = a.clientCertificate(tenant, client)
	default:
		s.ambient = true
		s.identity, err = azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{
			ClientOptions: azcore.ClientOptions{Transport: a.client, Retry: noRetries()}, ID: azidentity.ClientID(client),
		})
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// AmbientAzureStorage returns the identity of this machine or job. The authority is that of a Secret, if it is not empty.
func AmbientAzureStorage(o CloudOptions, host, authority string) (*AzureStorage, error) {
	if authority != "" {
		own := o.Getenv
		o.Getenv = func(name string) string {
			if name == envAuthorityHost {
				return authority
			}
			return own(name)
		}
	}
	failures := keepFailures(cloudClient(o))
	p := &azureProvider{failures.client, o.Getenv}
	options := p.options(azureStorageCloud(host))
	options.Retry = noRetries()
	if authority != "" {
		options.Cloud = cloud.Configuration{ActiveDirectoryAuthorityHost: authority}
	}
	identity, err := azidentity.NewDefaultAzureCredential(options)
	if err != nil {
		return nil, storageFailure(azureStorageProvider, host, err)
	}
	return &AzureStorage{identity: identity, failures: failures, host: host, ambient: true}, nil
}

// GetToken implements azcore.TokenCredential. The scope is always the one of object stores: the client's library takes
// it from the server's challenge, so that a server could ask for a token for another service.
func (s *AzureStorage) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if s.ambient && !isAzureStorage(s.host) {
		return azcore.AccessToken{}, storageFailure(azureStorageProvider, s.host, &foreignStorageError{azureStorageProvider, s.host})
	}
	o.Scopes, o.TenantID, o.Claims = []string{azureStorageScope}, "", ""
	token, err := s.identity.GetToken(ctx, o)
	if err != nil && ctx.Err() == nil {
		return azcore.AccessToken{}, storageFailure(azureStorageProvider, s.host, s.failures.cause(err))
	}
	return token, err
}

// azureStorageClouds are the domains of object stores, with the clouds that they belong to.
func azureStorageClouds() map[string]cloud.Configuration {
	return map[string]cloud.Configuration{
		".core.windows.net":       cloud.AzurePublic,
		".storage.azure.net":      cloud.AzurePublic,
		".core.chinacloudapi.cn":  cloud.AzureChina,
		".core.usgovcloudapi.net": cloud.AzureGovernment,
	}
}

func isAzureStorage(host string) bool {
	for suffix := range azureStorageClouds() {
		if strings.HasSuffix(strings.ToLower(host), suffix) {
			return true
		}
	}
	return false
}

func azureStorageCloud(host string) cloud.Configuration {
	for suffix, c := range azureStorageClouds() {
		if strings.HasSuffix(strings.ToLower(host), suffix) {
			return c
		}
	}
	return cloud.AzurePublic
}

// noRetries leaves retries to those who obey the user's settings.
func noRetries() policy.RetryOptions { return policy.RetryOptions{MaxRetries: -1} }

type azureSecret struct {
	client *http.Client
	home   cloud.Configuration
	data   map[string][]byte
}

func (a *azureSecret) text(key string) string { return string(a.data[key]) }

// authority says where to log in. One that is not Microsoft's must not be looked up at Microsoft's.
func (a *azureSecret) authority() (azcore.ClientOptions, bool, error) {
	o := azcore.ClientOptions{Transport: a.client, Cloud: a.home, Retry: noRetries()}
	own := a.text(keyAzureAuthority)
	if own == "" {
		return o, false, nil
	}
	if u, err := url.Parse(own); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return o, false, fmt.Errorf("'%s' is not an https URL", keyAzureAuthority)
	}
	o.Cloud = cloud.Configuration{ActiveDirectoryAuthorityHost: own}
	for _, known := range azureStorageClouds() {
		if strings.TrimRight(own, "/") == strings.TrimRight(known.ActiveDirectoryAuthorityHost, "/") {
			return o, false, nil
		}
	}
	return o, true, nil
}

func (a *azureSecret) clientSecret(tenant, client string) (azcore.TokenCredential, error) {
	o, foreign, err := a.authority()
	if err != nil {
		return nil, err
	}
	return azidentity.NewClientSecretCredential(tenant, client, a.text(keyAzureSecret), &azidentity.ClientSecretCredentialOptions{
		ClientOptions: o, DisableInstanceDiscovery: foreign,
	})
}

var errAzureCertificate = errors.New("failed to parse client certificates: 'clientCertificate' is neither PEM nor PKCS #12 with a key that 'clientCertificatePassword' opens")

func (a *azureSecret) clientCertificate(tenant, client string) (azcore.TokenCredential, error) {
	o, foreign, err := a.authority()
	if err != nil {
		return nil, err
	}
	certificates, key, err := azidentity.ParseCertificates(a.data[keyAzureCertificate], a.data[keyAzurePassphrase])
	if err != nil {
		return nil, errAzureCertificate // the library's error may quote what it could not read
	}
	chain := a.text(keyAzureSendChain)
	return azidentity.NewClientCertificateCredential(tenant, client, certificates, key, &azidentity.ClientCertificateCredentialOptions{
		ClientOptions: o, DisableInstanceDiscovery: foreign, SendCertificateChain: chain == "1" || strings.EqualFold(chain, "true"),
	})
}
