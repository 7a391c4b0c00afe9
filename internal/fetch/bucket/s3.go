package bucket

import (
	"context"
	"errors"
	"net/http"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/helmsrc/helmsrc/internal/fetch"
)

// s3Store is a bucket of S3, or of one of the many servers that speak its protocol.
type s3Store struct {
	client *minio.Client
	bucket string
	prefix string
	page   int
}

func openS3(c *fetch.Client, o Options, connect *bucketTransport) (*s3Store, error) {
	client, err := minio.New(o.Endpoint, &minio.Options{
		Creds:     newCredentials(c, o, connect),
		Secure:    !o.Insecure,
		Region:    o.Region,
		Transport: connect,
		// Retries are ours: they obey the user's settings.
		MaxRetries: 1,
	})
	if err != nil {
		return nil, &Error{text: "failed to construct S3 client: " + fetch.OneLine(err.Error(), fetch.MaxErrorText)}
	}
	return &s3Store{client: client, bucket: o.Bucket, prefix: o.Prefix, page: o.pageKeys}, nil
}

func (s *s3Store) exists(ctx context.Context) (bool, error) {
	found, err := s.client.BucketExists(ctx, s.bucket)
	return found, s3Error(err)
}

func (s *s3Store) list(ctx context.Context, visit func(listedObject) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	for o := range s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{
		Prefix: s.prefix, Recursive: true, MaxKeys: s.page, UseV1: s3utils.IsGoogleEndpoint(*s.client.EndpointURL()),
	}) {
		if o.Err != nil {
			return s3Error(o.Err)
		}
		if err := visit(listedObject{key: o.Key, etag: o.ETag, size: o.Size}); err != nil {
			return err
		}
	}
	return nil
}

func (s *s3Store) open(ctx context.Context, o listedObject) (*openObject, error) {
	core := minio.Core{Client: s.client}
	body, info, _, err := core.GetObject(ctx, s.bucket, o.key, minio.GetObjectOptions{})
	if err != nil {
		return nil, s3Error(err)
	}
	return &openObject{body, info.ETag, info.Size}, nil
}

func (s *s3Store) hints() storeHints {
	return storeHints{
		credentials: "the bucket may want credentials: refer with spec.secretRef to a Secret with accesskey and secretkey",
		permissions: "the permissions s3:ListBucket and s3:GetObject",
	}
}

func s3Error(err error) error {
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return err
	}
	return &objectError{status: answer.StatusCode, code: answer.Code, missing: answer.Code == minio.NoSuchKey, err: err}
}

// newCredentials decides as source-controller does: the Secret first, then STS, then, with aws, the machine's own.
func newCredentials(c *fetch.Client, o Options, connect http.RoundTripper) *credentials.Credentials {
	switch {
	case o.Login != nil:
		access, secret := o.Login.reveal(keyAccess), o.Login.reveal(keySecret)
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
		return awsCredentials(c, iam)
	case o.STS != nil:
		username, password, _ := o.STS.login.Basic()
		return credentials.New(&credentials.LDAPIdentity{
			Client:       &http.Client{Transport: &stsTransport{c, newTransport(c, o.Proxy, o.STS.identity), o.STS}, CheckRedirect: noRedirect},
			STSEndpoint:  o.STS.endpoint,
			LDAPUsername: username,
			LDAPPassword: password,
		})
	}
	return nil
}

// awsCredentials takes keys from the environment, or else what the machine is allowed to.
func awsCredentials(c *fetch.Client, iam *credentials.IAM) *credentials.Credentials {
	getenv := c.Config.Getenv
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
