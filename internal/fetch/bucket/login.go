package bucket

import (
	"fmt"
	"maps"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// Login is the login in the Secret of a Bucket. It prints as "REDACTED".
type Login struct {
	auth.Redacted
	keys func() Keys
}

// Keys are the parts of a Login. Empty fields are not used.
type Keys struct {
	auth.Redacted

	Access, Secret string // S3

	Google *auth.GoogleKey

	// At Azure an identity is used before the key of the account, and that before a shared access signature.
	Azure     *auth.AzureClient
	Account   *azblob.SharedKeyCredential
	Signature url.Values
	Authority string // of the machine's identity, if no other key is set

	Hidden []string // secrets to remove from texts from outside
}

// NewLogin keeps the keys of a bucket.
func NewLogin(k Keys) *Login { return &Login{keys: func() Keys { return k }} }

// reveal returns the keys, the zero value for a nil login.
func (l *Login) reveal() Keys {
	if l == nil {
		return Keys{}
	}
	return l.keys()
}

// signed is the endpoint with the query of a shared access signature, which counts where both have something.
func signed(u *url.URL, signature url.Values) string {
	query := u.Query()
	maps.Copy(query, signature)
	at := *u
	at.RawQuery = query.Encode()
	return at.String()
}

func (l *Login) scrub(text string) string {
	k := l.reveal()
	text = auth.NewBasic(k.Access, k.Secret).Scrub(text)
	for _, secret := range k.Hidden {
		text = auth.NewBasic("", secret).Scrub(text)
	}
	return text
}

// STS is spec.sts of a Bucket. It prints as "REDACTED".
type STS struct {
	auth.Redacted
	endpoint        string
	login, identity *auth.Identity
}

// NewSTS is spec.sts: of the provider aws, or ldap with a login, which may be nil, and the identity for TLS.
func NewSTS(endpoint string, login, id *auth.Identity) (*STS, error) {
	if _, err := auth.ParseURL(endpoint); err != nil {
		return nil, &STSEndpointError{finding.Problem{
			Class: finding.Lasting, Text: fmt.Sprintf("failed to parse STS endpoint '%s': %v", auth.RedactURL(endpoint), err), Err: err,
		}}
	}
	return &STS{endpoint: endpoint, login: login, identity: id}, nil
}

func (s *STS) scrub(text string) string {
	if s == nil {
		return text
	}
	return s.login.Scrub(text)
}

// An STSEndpointError reports that the endpoint of spec.sts is not a URL.
type STSEndpointError struct{ finding.Problem }
