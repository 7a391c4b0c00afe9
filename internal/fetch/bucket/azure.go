package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// azureStore is a container of Azure Blob Storage. Like [s3Store] it has functions instead of the client.
type azureStore struct {
	pages     func(container string, o *azblob.ListBlobsFlatOptions) *runtime.Pager[azblob.ListBlobsFlatResponse]
	download  func(ctx context.Context, container, blob string, o *azblob.DownloadStreamOptions) (azblob.DownloadStreamResponse, error)
	container string
	prefix    string
	page      int32
}

func openAzure(c *fetch.Client, o Options, connect *bucketTransport) (objectStore, error) {
	u, err := AzureEndpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	connect.object = func(r *http.Request) bool { return !r.URL.Query().Has("comp") }
	client, err := newAzureClient(c, o, u, &azblob.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: connect.client(),
		Retry:     policy.RetryOptions{MaxRetries: -1}, // retries are ours
	}})
	if err != nil {
		return nil, err
	}
	return &azureStore{pages: client.NewListBlobsFlatPager, download: client.DownloadStream, container: o.Bucket, prefix: o.Prefix, page: int32(o.pageKeys)}, nil
}

// AzureEndpoint is the URL of a storage account.
func AzureEndpoint(endpoint string) (*url.URL, error) {
	u, err := auth.ParseURL(endpoint)
	switch {
	case err != nil:
		return nil, wrong("", "unable to parse endpoint URL: %v", err)
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil:
		return nil, wrong(finding.URLOfAzure, "endpoint '%s' is not the URL of a storage account", auth.RedactURL(endpoint))
	}
	u.Fragment = ""
	return u, nil
}

// newAzureClient selects the login like source-controller: the identity in the Secret, the account's key, a shared
// access signature; without a Secret the machine's own identity, or no login.
func newAzureClient(c *fetch.Client, o Options, u *url.URL, options *azblob.ClientOptions) (*azblob.Client, error) {
	identity, err := azureIdentity(c, o, u)
	switch {
	case err != nil:
		return nil, err
	case identity != nil:
		return azureConstructed(azblob.NewClient(u.String(), identity, options))
	case o.Login.reveal().Account != nil:
		return azureConstructed(azblob.NewClientWithSharedKeyCredential(u.String(), o.Login.reveal().Account, options))
	case o.Login.reveal().Signature != nil:
		return azureConstructed(azblob.NewClientWithNoCredential(signed(u, o.Login.reveal().Signature), options))
	}
	return azureConstructed(azblob.NewClientWithNoCredential(u.String(), options))
}

// azureIdentity returns nil if there is no login.
func azureIdentity(c *fetch.Client, o Options, u *url.URL) (azcore.TokenCredential, error) {
	identity, err := unlessWithheld(azureStorage(c, o, u))
	if err != nil || identity == nil {
		return nil, err
	}
	return identity, nil
}

// azureStorage returns the identity of the Secret, or else of the machine. Without either it returns nil.
func azureStorage(c *fetch.Client, o Options, u *url.URL) (*auth.AzureStorage, error) {
	k := o.Login.reveal()
	switch {
	case k.Azure != nil:
		identity, err := auth.NewAzureStorage(cloudOptions(c, o), o.route(u), k.Azure)
		if err == nil && identity.OfMachine() && !o.Ambient {
			return nil, wrong("the Secret may contain a clientSecret, a clientCertificate, an accountKey or a sasKey", "%s", finding.IdentityLeftOut)
		}
		return identity, err
	case k.Account != nil || k.Signature != nil:
		return nil, nil
	}
	if !o.Ambient {
		return nil, nil
	}
	return auth.MachineAzureStorage(cloudOptions(c, o), o.route(u), k.Authority)
}

func azureConstructed(client *azblob.Client, err error) (*azblob.Client, error) {
	if err != nil {
		return nil, wrong("", "failed to construct Azure client") // the library's error may quote the URL
	}
	return client, nil
}

// exists looks at a page of one object: that needs no other permission than to list.
func (s *azureStore) exists(ctx context.Context) (bool, error) {
	one := int32(1)
	_, err := s.pages(s.container, &azblob.ListBlobsFlatOptions{MaxResults: &one}).NextPage(ctx)
	switch {
	case bloberror.HasCode(err, bloberror.ContainerNotFound):
		return false, nil
	case bloberror.HasCode(err, bloberror.AuthenticationFailed):
		return false, fmt.Errorf("the specified bucket name may be incorrect, nonexistent, or the caller might lack sufficient permissions to access it: %w", azureError(err))
	}
	return err == nil, azureError(err)
}

func (s *azureStore) list(ctx context.Context, visit func(listedObject) error) error {
	options := &azblob.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Metadata: true}}
	if s.prefix != "" {
		options.Prefix = &s.prefix
	}
	if s.page > 0 {
		options.MaxResults = &s.page
	}
	for pages := s.pages(s.container, options); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return azureError(err)
		}
		if page.Segment == nil {
			continue
		}
		for _, blob := range page.Segment.BlobItems {
			if blob == nil || blob.Name == nil || blob.Properties == nil || isAzureDirectory(blob) {
				continue
			}
			if err := visit(listedObject{key: *blob.Name, etag: azureTag(blob.Properties.ETag), size: orZero(blob.Properties.ContentLength)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// isAzureDirectory reports whether an object represents a directory, in accounts with directories.
func isAzureDirectory(blob *container.BlobItem) bool {
	for key, value := range blob.Metadata {
		if strings.EqualFold(key, "hdi_isfolder") && value != nil && strings.EqualFold(*value, "true") {
			return true
		}
	}
	return false
}

// azureTag returns an entity tag as in the header of a download, of which source-controller makes revisions: listings
// leave the quotes out.
func azureTag(tag *azcore.ETag) string {
	if tag == nil {
		return ""
	}
	text := string(*tag)
	if strings.HasPrefix(text, `"`) || strings.HasPrefix(text, `W/"`) {
		return text
	}
	return `"` + text + `"`
}

func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func (s *azureStore) open(ctx context.Context, o listedObject) (*openObject, error) {
	answer, err := s.download(ctx, s.container, o.key, nil)
	if err != nil {
		return nil, azureError(err)
	}
	open := &openObject{body: answer.Body, etag: azureTag(answer.ETag), size: -1}
	if answer.ContentLength != nil {
		open.size = *answer.ContentLength
	}
	return open, nil
}

// azureError translates the library's error. Its text would be the whole exchange.
func azureError(err error) error {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return err
	}
	text := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	if answer.ErrorCode != "" {
		text += ": " + answer.ErrorCode
	}
	if r := answer.RawResponse; r != nil && r.Request != nil {
		u := *r.Request.URL
		u.RawQuery = "" // where signatures are
		text = fmt.Sprintf("%s %q: %s", r.Request.Method, auth.RedactURL(u.String()), text)
	}
	return &objectError{
		status: answer.StatusCode, code: answer.ErrorCode, text: text, err: err,
		missing: answer.ErrorCode == string(bloberror.BlobNotFound),
	}
}
