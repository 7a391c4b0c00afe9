package bucket

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// s3Store is a bucket of S3, or of a server with the same protocol. It holds three functions of a client instead of the
// client: a type that is converted to an interface keeps all its methods in the program, and the client's methods are
// 1.6 MB, of which these need a tenth.
type s3Store struct {
	find   func(ctx context.Context, bucket string) (bool, error)
	pages  func(ctx context.Context, bucket string, o minio.ListObjectsOptions) <-chan minio.ObjectInfo
	get    func(ctx context.Context, bucket, key string, o minio.GetObjectOptions) (io.ReadCloser, minio.ObjectInfo, http.Header, error)
	google bool
	bucket string
	prefix string
	page   int
}

func openS3(c *fetch.Client, o Options, connect *bucketTransport) (objectStore, error) {
	client, err := minio.New(o.Endpoint, &minio.Options{
		Creds:     newCredentials(c, o),
		Secure:    !o.Insecure,
		Region:    o.Region,
		Transport: connect,
		// Retries are ours: they obey the user's settings.
		MaxRetries: 1,
	})
	if err != nil {
		return nil, wrong("", "failed to construct S3 client: %s", finding.OneLine(err.Error(), fetch.MaxErrorText))
	}
	return &s3Store{
		find: client.BucketExists, pages: client.ListObjects, get: minio.Core{Client: client}.GetObject,
		google: s3utils.IsGoogleEndpoint(*client.EndpointURL()),
		bucket: o.Bucket, prefix: o.Prefix, page: o.pageKeys,
	}, nil
}

func (s *s3Store) exists(ctx context.Context) (bool, error) {
	found, err := s.find(ctx, s.bucket)
	return found, s3Error(err)
}

func (s *s3Store) list(ctx context.Context, visit func(listedObject) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	for o := range s.pages(ctx, s.bucket, minio.ListObjectsOptions{
		Prefix: s.prefix, Recursive: true, MaxKeys: s.page, UseV1: s.google,
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
	body, info, _, err := s.get(ctx, s.bucket, o.key, minio.GetObjectOptions{})
	if err != nil {
		return nil, s3Error(err)
	}
	return &openObject{body, info.ETag, info.Size}, nil
}

func s3Error(err error) error {
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return err
	}
	return &objectError{status: answer.StatusCode, code: answer.Code, missing: answer.Code == minio.NoSuchKey, err: err}
}

// newCredentials decides as source-controller does: the Secret first, then STS, then, with aws, the machine's own.
func newCredentials(c *fetch.Client, o Options) *credentials.Credentials {
	switch {
	case o.Login != nil:
		access, secret := o.Login.reveal().Access, o.Login.reveal().Secret
		if access == "" || secret == "" {
			return nil
		}
		return credentials.NewStaticV4(access, secret, "")
	case o.Provider == providerAWS && !o.Ambient:
		return nil
	case o.Provider == providerAWS:
		sts := ""
		if o.STS != nil {
			sts = o.STS.endpoint
		}
		identity, err := unlessWithheld(auth.MachineAWSStorage(cloudOptions(c, o), o.route(o.s3URL()), o.Region, sts))
		if err != nil || identity == nil {
			return nil
		}
		return credentials.New(&machineKeys{identity: identity})
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

// machineKeys are the keys of the machine's or job's identity, renewed before they expire.
type machineKeys struct {
	credentials.Expiry
	identity *auth.AWSStorage
	forever  bool // they are there, and do not expire
}

// IsExpired implements credentials.Provider.
func (m *machineKeys) IsExpired() bool { return !m.forever && m.Expiry.IsExpired() }

// RetrieveWithCredContext implements credentials.Provider.
func (m *machineKeys) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	ctx := context.Background()
	if cc != nil && cc.Context != nil {
		ctx = cc.Context
	}
	keys, err := m.identity.Keys(ctx)
	if err != nil {
		return credentials.Value{}, err
	}
	if m.forever = keys.Expires.IsZero(); !m.forever {
		m.SetExpiration(keys.Expires, credentials.DefaultExpiryWindow)
	}
	return credentials.Value{
		AccessKeyID: keys.Access, SecretAccessKey: keys.Secret, SessionToken: keys.Session,
		Expiration: keys.Expires, SignerType: credentials.SignatureV4,
	}, nil
}

// Retrieve implements credentials.Provider.
func (m *machineKeys) Retrieve() (credentials.Value, error) { return m.RetrieveWithCredContext(nil) }
