// Package bucket downloads buckets of S3, Google Cloud Storage and Azure Blob Storage. It returns a tree of files,
// without regard to their use.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	godigest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// Options are the settings of one Bucket.
type Options struct {
	Provider string // generic, aws, gcp or azure
	Bucket   string
	Endpoint string
	Region   string
	Prefix   string
	Insecure bool
	Ignore   string // spec.ignore

	Login    *Login         // of secretRef; nil is anonymous, or the keys from STS
	STS      *STS           // may be nil
	Identity *auth.Identity // TLS settings of certSecretRef
	Proxy    *auth.Proxy    // of proxySecretRef; nil is the environment's
	// Ambient lets the clouds' providers use the credentials of the environment and of the machine.
	Ambient bool
	// Reach is how far they may go.
	Reach   auth.Reach
	Timeout time.Duration // spec.timeout: of listing and download together, with their retries; 0 for no limit

	Algorithm godigest.Algorithm // of the revision; empty is sha256
	// Unless is the revision of an existing artifact: if it is still current, nothing is downloaded.
	Unless string
	// Revision is the wanted revision: if it is kept, no request is sent. Empty is the current one.
	Revision string
	// Memory has the objects of earlier runs.
	Memory  cache.Memory
	TempDir string
	Limits  tree.Limits

	pageKeys int // of one page of a listing; 0 is the server's default
}

const (
	providerGeneric = "generic"
	providerAWS     = "aws"
	providerGoogle  = "gcp"
	providerAzure   = "azure"

	// maxDownloads is how many objects are requested at the same time. The limit per host is the narrower one, unless
	// it is raised.
	maxDownloads = 16

	// maxKeys bounds the keys of a listing that are kept in memory. Ignored keys count.
	maxKeys = 5_000_000
)

// An objectStore gives access to one bucket. It is safe for concurrent use. Errors are the library's; objectError
// translates them.
type objectStore interface {
	// exists reports whether the bucket exists.
	exists(ctx context.Context) (bool, error)
	// list visits the objects whose keys begin with the bucket's prefix, in no particular order, until a visit fails.
	list(ctx context.Context, visit func(listedObject) error) error
	// open begins to download the current version of an object.
	open(ctx context.Context, o listedObject) (*openObject, error)
}

// listedObject is an object in a listing.
type listedObject struct {
	key, etag  string
	size       int64
	generation int64 // 0 is not known
}

// openObject is an object on its way.
type openObject struct {
	body io.ReadCloser
	etag string
	size int64 // -1 is not known
}

// Download downloads a bucket. Errors have source-controller's texts.
func Download(ctx context.Context, c *fetch.Client, o Options) (*fetch.Tree, error) {
	o.Limits = fetch.TreeLimits(o.Limits)
	if o.Algorithm == "" {
		o.Algorithm = godigest.SHA256
	}
	ctx, cancel := fetch.Within(ctx, o.Timeout)
	defer cancel()
	if err := o.check(); err != nil {
		return nil, err
	}
	if t, err := (&bucket{Options: o}).known(ctx); t != nil || err != nil {
		return t, err
	}
	b, err := open(c, o)
	if err != nil {
		return nil, err
	}
	defer b.close()
	var t *fetch.Tree
	err = c.Retry(ctx, func(ctx context.Context) error {
		t, err = b.fetch(ctx)
		return err
	})
	return t, err
}

// bucket is a bucket with the client to talk to it.
type bucket struct {
	Options
	provider provider
	store    objectStore
	connect  *bucketTransport

	mu    sync.Mutex
	found map[string]listedObject // by key
	read  int64
	left  int64
}

// A provider is a kind of object stores.
type provider struct {
	open        func(*fetch.Client, Options, *bucketTransport) (objectStore, error)
	credentials string // advice on the credentials that may be missing
	permissions string // that the credentials need
}

// providerOf returns the description of a provider, the zero value for an unknown one.
func providerOf(name string) provider {
	switch name {
	case "", providerGeneric, providerAWS:
		return provider{openS3, finding.S3Login, "the permissions s3:ListBucket and s3:GetObject"}
	case providerGoogle:
		return provider{openGoogle, finding.GoogleLogin, "the permissions storage.buckets.get, storage.objects.list and storage.objects.get"}
	case providerAzure:
		return provider{openAzure, finding.AzureLogin, "the role Storage Blob Data Reader, or the permissions to read and to list"}
	}
	return provider{}
}

// open makes the client, without asking the server anything.
func open(c *fetch.Client, o Options) (*bucket, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	b := &bucket{Options: o, provider: providerOf(o.Provider)}
	if b.provider.open == nil {
		return nil, fetch.NotSupported("provider " + o.Provider + " of a Bucket")
	}
	b.connect = newTransport(c, o.Proxy, o.Identity)
	var err error
	if b.store, err = b.provider.open(c, o, b.connect); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// Check reports invalid settings of a bucket without any request.
func Check(o Options) error {
	b, err := open(fetch.NewClient(fetch.Config{}), o)
	if err == nil {
		b.close()
	}
	return err
}

func (b *bucket) close() { b.connect.CloseIdleConnections() }

func (b *bucket) fetch(ctx context.Context) (*fetch.Tree, error) {
	found, err := b.store.exists(ctx)
	if err != nil {
		return nil, b.failed(ctx, fmt.Sprintf("failed to confirm existence of '%s' bucket", b.Bucket), err)
	}
	if !found {
		return nil, wrong("", "bucket '%s' not found", b.Bucket)
	}
	t, err := fetch.NewTree(b.TempDir)
	if err != nil {
		return nil, err
	}
	filled, err := b.fill(ctx, t)
	if filled == t {
		return t, nil
	}
	return filled, errors.Join(err, t.Close())
}

// fill returns the tree with the listed objects: t with the objects downloaded, or another tree if the caller or the cache
// has this revision.
func (b *bucket) fill(ctx context.Context, t *fetch.Tree) (*fetch.Tree, error) {
	if err := b.list(ctx, t); err != nil {
		return nil, err
	}
	revision := b.revision()
	if revision == b.Unless {
		return &fetch.Tree{Revision: revision, Unchanged: true}, nil
	}
	if kept, err := b.recall(ctx, revision); kept != nil || err != nil {
		return kept, err
	}
	if err := b.download(ctx, t); err != nil {
		return nil, err
	}
	t.Revision, t.Files = b.revision(), len(b.found)
	b.remember(ctx, t)
	return t, nil
}

func (b *bucket) revision() string { return b.revisionOf(b.sorted()) }

// revisionOf returns the digest of the keys and entity tags of objects, in source-controller's format.
func (o Options) revisionOf(objects []listedObject) string {
	w := digest.NewWriter(o.Algorithm)
	for _, object := range objects {
		_, _ = fmt.Fprintf(w, "%s %s\n", object.key, object.etag) // a hash takes everything
	}
	return w.Digest().String()
}

func (b *bucket) sorted() []listedObject {
	return slices.SortedFunc(maps.Values(b.found), func(x, y listedObject) int { return strings.Compare(x.key, y.key) })
}

// list learns which objects there are. The bucket's own .sourceignore is in the tree, but not among them.
func (b *bucket) list(ctx context.Context, t *fetch.Tree) error {
	b.found, b.left, b.read = map[string]listedObject{}, b.Limits.Total, 0
	rules, err := b.rules(ctx, t)
	if err != nil {
		return err
	}
	seen := 0
	err = b.store.list(ctx, func(o listedObject) error {
		if seen++; seen > maxKeys {
			return b.tooLarge("number of objects", maxKeys)
		}
		return b.add(o, rules)
	})
	if err != nil {
		return b.failed(ctx, fmt.Sprintf("listing objects from bucket '%s' failed", b.Bucket), err)
	}
	return nil
}

func (b *bucket) add(o listedObject, rules *tree.Rules) error {
	key := o.key
	if strings.HasSuffix(key, "/") || key == tree.IgnoreFile {
		return nil
	}
	if !validKey(key) {
		if rules.Ignored(strings.TrimLeft(key, "/"), false) {
			return nil
		}
		return wrong(finding.LeaveOut, "fetch from bucket '%s' failed: the key %q cannot be the name of a file", b.Bucket, key)
	}
	if rules.Ignored(key, false) {
		return nil
	}
	if o.size > b.Limits.File {
		return b.tooLarge("object '"+key+"'", b.Limits.File)
	}
	if b.found[key] = o; len(b.found) > b.Limits.Entries {
		return b.tooLarge("number of objects", int64(b.Limits.Entries))
	}
	return nil
}

// validKey reports whether a key is the path of a file on every system, below the directory that it is put in.
func validKey(key string) bool {
	return fs.ValidPath(key) && key != "." && filepath.IsLocal(key) &&
		!strings.ContainsFunc(key, func(c rune) bool { return c == '\\' || c == unicode.ReplacementChar || unicode.IsControl(c) })
}

// rules returns the rules of the .sourceignore at the top of the bucket, for any prefix, and of spec.ignore.
func (b *bucket) rules(ctx context.Context, t *fetch.Tree) (*tree.Rules, error) {
	own := ""
	switch _, err := b.object(ctx, listedObject{key: tree.IgnoreFile}, t); {
	case err == nil:
		text, err := t.Root.ReadFile(tree.IgnoreFile)
		if err != nil {
			return nil, err
		}
		own = string(text)
	case !notFound(err):
		return nil, b.failed(ctx, fmt.Sprintf("fetch from bucket '%s' failed", b.Bucket), err)
	}
	return tree.NewRules(own, b.Ignore)
}

// download downloads all objects. An object that was deleted since the listing is left out; of a changed object the
// current version counts.
func (b *bucket) download(ctx context.Context, t *fetch.Tree) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxDownloads)
	for _, o := range b.sorted() {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			etag, err := b.object(ctx, o, t)
			if err != nil && !notFound(err) {
				return b.failed(ctx, fmt.Sprintf("fetch from bucket '%s' failed: failed to get '%s' object", b.Bucket, o.key), err)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if err != nil {
				delete(b.found, o.key)
				return nil
			}
			o.etag = etag
			b.found[o.key] = o
			return nil
		})
	}
	return group.Wait()
}
