package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

const (
	// acrScope limits a token to container registries, in every cloud of Azure.
	acrScope = "https://containerregistry.azure.net/.default"
	// acrUser is the user name that goes with a refresh token in place of a password.
	acrUser = "00000000-0000-0000-0000-000000000000"

	envAuthorityHost = "AZURE_AUTHORITY_HOST"
)

// azureDomains maps the domains of a service to their clouds.
type azureDomains map[string]cloud.Configuration

// of returns the cloud of a host, and whether the host is in one of the domains. The default is the public cloud.
func (d azureDomains) of(host string) (home cloud.Configuration, own bool) {
	for suffix, c := range d {
		if len(host) > len(suffix) && strings.HasSuffix(strings.ToLower(host), suffix) {
			return c, true
		}
	}
	return cloud.AzurePublic, false
}

// acrDomains returns the domains of registries.
func acrDomains() azureDomains {
	return azureDomains{
		".azurecr.io": cloud.AzurePublic,
		".azurecr.cn": cloud.AzureChina,
		".azurecr.us": cloud.AzureGovernment,
	}
}

func isACR(host string) bool {
	_, own := acrDomains().of(host)
	return own
}

// azureLogin uses the SDK's default chain: client secret or certificate, workload identity, managed identity, the
// command line tools. The identity's token is exchanged for one of the registry's own.
func azureLogin(ctx context.Context, c *Cloud, host string) (Credential, time.Time, error) {
	home, _ := acrDomains().of(host)
	identity, err := azidentity.NewDefaultAzureCredential(azureOptions(c.client, c.Getenv(envAuthorityHost), home))
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	token, err := identity.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{acrScope}})
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	refresh, err := acrExchange(ctx, c.client, host, token.Token)
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	return BasicCredential(acrUser, refresh), tokenExpiry(refresh, token.ExpiresOn), nil
}

// azureOptions leave the authority to AZURE_AUTHORITY_HOST, which the SDK reads, if it is set. An authority that is not
// Microsoft's must not be looked up at Microsoft's.
func azureOptions(client *http.Client, authority string, home cloud.Configuration) *azidentity.DefaultAzureCredentialOptions {
	o := &azidentity.DefaultAzureCredentialOptions{ClientOptions: azcore.ClientOptions{Transport: client}}
	if authority == "" {
		o.Cloud = home
		return o
	}
	o.DisableInstanceDiscovery = true
	for _, known := range acrDomains() {
		if strings.TrimRight(authority, "/") == strings.TrimRight(known.ActiveDirectoryAuthorityHost, "/") {
			o.DisableInstanceDiscovery = false
		}
	}
	return o
}

// acrExchange turns an Entra ID token into a refresh token of the registry.
func acrExchange(ctx context.Context, client *http.Client, host, token string) (string, error) {
	form := url.Values{"grant_type": {"access_token"}, "service": {host}, "access_token": {token}}
	target := "https://" + host + "/oauth2/exchange"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer discard(resp)
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenBytes))
	if err != nil {
		return "", err
	}
	failed := &TokenError{Realm: "https://" + host, Code: resp.StatusCode}
	if resp.StatusCode != http.StatusOK {
		failed.Reason = scrub(refusalReason(resp.Header.Get("Content-Type"), string(body)), token)
		return "", failed
	}
	var answer struct {
		RefreshToken string `json:"refresh_token"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.RefreshToken == "" {
		failed.Reason = "its answer contains no token"
		return "", failed
	}
	return answer.RefreshToken, nil
}

// tokenExpiry returns the expiry time of a JSON web token. For an unreadable token it returns other, the expiry of the
// token that was exchanged for it.
func tokenExpiry(token string, other time.Time) time.Time {
	var claims struct {
		Ends int64 `json:"exp"`
	}
	parts := strings.Split(token, ".")
	if len(parts) == 3 {
		if raw, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil && json.Unmarshal(raw, &claims) == nil && claims.Ends > 0 {
			return time.Unix(claims.Ends, 0)
		}
	}
	return other
}
