package fetch

import (
	"fmt"
	"io"
	"net/http"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// BucketLogin is the key of a bucket. It prints as "REDACTED".
type BucketLogin struct {
	keys func() (access, secret string) // a function cannot be printed, see auth.Identity
}

// Format serves every verb of the fmt package.
func (l BucketLogin) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redactedSecret) }

// MarshalText covers most encoders.
func (l BucketLogin) MarshalText() ([]byte, error) { return []byte(redactedSecret), nil }

const redactedSecret = "REDACTED"

// NewBucketLogin reads the Secret of a Bucket of the providers generic and aws. The name is the Secret's.
func NewBucketLogin(name string, data map[string][]byte) (*BucketLogin, error) {
	access, hasAccess := data["accesskey"]
	secret, hasSecret := data["secretkey"]
	if !hasAccess || !hasSecret {
		return nil, fmt.Errorf("invalid '%s' secret data: required fields 'accesskey' and 'secretkey'", name)
	}
	return &BucketLogin{func() (string, string) { return string(access), string(secret) }}, nil
}

func (l *BucketLogin) scrub(text string) string {
	if l == nil {
		return text
	}
	return auth.NewBasic(l.keys()).Scrub(text)
}

// BucketSTS is spec.sts of a Bucket. It prints as "REDACTED".
type BucketSTS struct {
	provider, endpoint string
	login, identity    *auth.Identity
}

// Format serves every verb of the fmt package.
func (s BucketSTS) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redactedSecret) }

// NewBucketSTS reads spec.sts: provider aws, or ldap with the Secret of its secretRef, which may be nil, and the TLS
// settings of its certSecretRef. The name is the Secret's.
func NewBucketSTS(provider, endpoint, name string, data map[string][]byte, id *auth.Identity) (*BucketSTS, error) {
	s := &BucketSTS{provider: provider, endpoint: endpoint, identity: id}
	if _, err := auth.ParseURL(endpoint); err != nil {
		return nil, err
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

func (s *BucketSTS) scrub(text string) string {
	if s == nil {
		return text
	}
	return s.login.Scrub(text)
}

// openBucket makes the client, without asking the server anything.
func (c *Client) openBucket(o BucketOptions) (*bucket, error) {
	b := &bucket{BucketOptions: o, connect: c.bucketTransport(o.Proxy, o.Identity)}
	var err error
	b.client, err = minio.New(o.Endpoint, &minio.Options{
		Creds:     c.bucketCredentials(o, b.connect),
		Secure:    !o.Insecure,
		Region:    o.Region,
		Transport: b.connect,
		// Retries are ours: they obey the user's settings.
		MaxRetries: 1,
	})
	if err != nil {
		return nil, &BucketError{text: "failed to construct S3 client: " + oneLine(err.Error(), maxErrorText)}
	}
	return b, nil
}

func (b *bucket) close() { b.connect.CloseIdleConnections() }

// bucketCredentials decides as source-controller does: the Secret first, then STS, then, with aws, the machine's own.
func (c *Client) bucketCredentials(o BucketOptions, connect http.RoundTripper) *credentials.Credentials {
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	switch {
	case o.Login != nil:
		access, secret := o.Login.keys()
		if access == "" || secret == "" {
			return nil
		}
		return credentials.NewStaticV4(access, secret, "")
	case o.Provider == providerAWS && !o.Ambient:
		return nil
	case o.Provider == providerAWS:
		iam := &credentials.IAM{Client: &http.Client{Transport: connect, CheckRedirect: noRedirect}, Region: o.Region}
		if o.STS != nil {
			iam.Endpoint = o.STS.endpoint
		}
		return c.awsCredentials(iam)
	case o.STS != nil:
		username, password, _ := o.STS.login.Basic()
		return credentials.New(&credentials.LDAPIdentity{
			Client:       &http.Client{Transport: &stsTransport{c, c.bucketTransport(o.Proxy, o.STS.identity), o.STS}, CheckRedirect: noRedirect},
			STSEndpoint:  o.STS.endpoint,
			LDAPUsername: username,
			LDAPPassword: password,
		})
	}
	return nil
}

// awsCredentials takes keys from the environment, or else what the machine is allowed to.
func (c *Client) awsCredentials(iam *credentials.IAM) *credentials.Credentials {
	getenv := c.config.Getenv
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	if access, secret := getenv("AWS_ACCESS_KEY_ID"), getenv("AWS_SECRET_ACCESS_KEY"); access != "" && secret != "" {
		return credentials.NewStaticV4(access, secret, getenv("AWS_SESSION_TOKEN"))
	}
	iam.Container.AuthorizationToken = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	iam.Container.AuthorizationTokenFile = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
	iam.Container.CredentialsFullURI = getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	iam.Container.CredentialsRelativeURI = getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
	iam.EKSIdentity.TokenFile = getenv("AWS_WEB_IDENTITY_TOKEN_FILE")
	iam.EKSIdentity.RoleARN = getenv("AWS_ROLE_ARN")
	iam.EKSIdentity.RoleSessionName = getenv("AWS_ROLE_SESSION_NAME")
	return credentials.New(iam)
}
