package credential

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch/bucket"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

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

// bucketLogin reads the Secret of a Bucket with this provider and endpoint, without a request to a server. The name is
// the Secret's, for the errors, which quote no values.
func bucketLogin(provider, endpoint, name string, data map[string][]byte) (*bucket.Login, error) {
	k := bucket.Keys{Hidden: hiddenValues(data)}
	var err error
	switch provider {
	case sourcev1.BucketProviderGoogle:
		k.Google, err = googleKey(name, data)
	case sourcev1.BucketProviderAzure:
		err = readAzure(&k, endpoint, name, data)
	default:
		k.Access, k.Secret, err = accessKey(name, data)
	}
	if err != nil {
		return nil, err
	}
	return bucket.NewLogin(k), nil
}

func accessKey(name string, data map[string][]byte) (access, secret string, err error) {
	_, hasAccess := data[keyAccess]
	_, hasSecret := data[keySecret]
	if !hasAccess || !hasSecret {
		return "", "", fmt.Errorf("invalid '%s' secret data: required fields '%s' and '%s'", name, keyAccess, keySecret)
	}
	return string(data[keyAccess]), string(data[keySecret]), nil
}

func googleKey(name string, data map[string][]byte) (*auth.GoogleKey, error) {
	text, found := data[keyServiceAccount]
	if !found {
		return nil, fmt.Errorf("invalid '%s' secret data: required fields '%s'", name, keyServiceAccount)
	}
	key, err := auth.ReadGoogleKey(text)
	if err != nil {
		return nil, fmt.Errorf("failed to create Google credentials from secret '%s': %w", name, err)
	}
	return key, nil
}

// readAzure reads the first login in the Secret, in the order of precedence: client, account key, SAS token.
func readAzure(k *bucket.Keys, endpoint, name string, data map[string][]byte) error {
	has := func(key string) bool { _, found := data[key]; return found }
	if !slices.ContainsFunc([]string{keyClientID, keyAccountKey, keySAS, keyAuthorityHost}, has) {
		return fmt.Errorf("invalid '%s' secret data: requires a '%s' or '%s' field, a combination of '%s', '%s' and '%s', or '%s', '%s' and '%s'",
			name, keyClientID, keyAccountKey, keyTenantID, keyClientID, keyClientSecret, keyTenantID, keyClientID, keyClientCert)
	}
	k.Authority = string(data[keyAuthorityHost])
	u, err := bucket.AzureEndpoint(endpoint)
	if err != nil {
		return nil // reported when the bucket is opened
	}
	if k.Azure, err = auth.ReadAzureClient(data); err != nil {
		return fmt.Errorf("failed to create token credential from '%s' Secret: %w", name, err)
	}
	if k.Azure != nil {
		return nil
	}
	if has(keyAccountKey) {
		shared, err := sharedKey(u, string(data[keyAccountKey]))
		if err != nil {
			return fmt.Errorf("failed to create shared credential from '%s' Secret data: %w", name, err)
		}
		if len(data[keyAccountKey]) > 0 {
			k.Account = shared
			return nil
		}
	}
	if len(data[keySAS]) > 0 {
		k.Signature, err = url.ParseQuery(strings.TrimPrefix(strings.TrimSpace(string(data[keySAS])), "?"))
		if err != nil {
			return fmt.Errorf("unable to parse SAS token: '%s' is not a URL query", keySAS)
		}
	}
	return nil
}

// sharedKey returns the key of the account, whose name is the first label of the host.
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

// hiddenValues returns the secret values in a Secret, whole and in the parts that are sent to a server.
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

// ldapLogin returns the user for the STS of a provider from its Secret. It returns nil for providers other than ldap.
func ldapLogin(provider string, secret *manifest.Secret) (*auth.Identity, error) {
	if provider != sourcev1.STSProviderLDAP || secret == nil {
		return nil, nil
	}
	username, password := string(secret.Data["username"]), string(secret.Data["password"])
	if username == "" || password == "" {
		return nil, fmt.Errorf("invalid '%s' secret data for '%s' STS provider: required fields username, password", secret.Name, provider)
	}
	return auth.NewBasic(username, password), nil
}
