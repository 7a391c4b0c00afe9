package bucket

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// bucketWorld has an S3 server at s3.test with the bucket charts.
type bucketWorld struct {
	*fetchtest.World
	s3     *helmtest.S3
	server *helmtest.Server
	admin  *minio.Client
}

func newBucketWorld(t *testing.T) *bucketWorld {
	t.Helper()
	s3, err := helmtest.StartS3()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s3.Close)
	w := &bucketWorld{World: fetchtest.NewWorld(t), s3: s3}
	w.server = w.Serve(t, "s3.test:80", s3.Handler)
	transport := &http.Transport{DialContext: w.Dial, MaxIdleConnsPerHost: 4}
	t.Cleanup(transport.CloseIdleConnections)
	w.admin, err = minio.New("s3.test", &minio.Options{
		Creds:     credentials.NewStaticV4(helmtest.S3AccessKey, helmtest.S3SecretKey, ""),
		Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.admin.MakeBucket(t.Context(), "charts", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *bucketWorld) put(t *testing.T, key, content string) {
	t.Helper()
	_, err := w.admin.PutObject(t.Context(), "charts", key, strings.NewReader(content), int64(len(content)), minio.PutObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *bucketWorld) options(t *testing.T) Options {
	t.Helper()
	l := NewLogin(Keys{Access: helmtest.S3AccessKey, Secret: helmtest.S3SecretKey})
	return Options{Bucket: "charts", Endpoint: "s3.test", Insecure: true, Login: l}
}

func (w *bucketWorld) get(t *testing.T, o Options) (*fetch.Tree, error) {
	t.Helper()
	o.TempDir = t.TempDir()
	tree, err := Download(t.Context(), w.Client(t), o)
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(o.TempDir, "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return tree, err
}

func (w *bucketWorld) mustGet(t *testing.T, o Options) *fetch.Tree {
	t.Helper()
	tree, err := w.get(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// bucketRevision is the revision as source-controller computes it, with the tags that S3 gives to small objects.
func bucketRevision(a godigest.Algorithm, objects ...string) string {
	var b bytes.Buffer
	slices.Sort(objects)
	for _, o := range objects {
		key, content, _ := strings.Cut(o, "=")
		fmt.Fprintf(&b, "%s %s\n", key, etag(content))
	}
	return a.FromBytes(b.Bytes()).String()
}

func etag(content string) string { return fmt.Sprintf("%x", md5.Sum([]byte(content))) }

func TestBucket(t *testing.T) {
	w := newBucketWorld(t)
	for key, content := range map[string]string{"a/Chart.yaml": "a", "a/b/values.yaml": "b", "x.txt": "x", "logs/1": "1", "a.b": "ab"} {
		w.put(t, key, content)
	}
	o := w.options(t)
	tree := w.mustGet(t, o)
	fetchtest.WantFiles(t, tree, "a/Chart.yaml=a", "a/b/values.yaml=b", "a.b=ab", "logs/1=1", "x.txt=x")
	if want := bucketRevision(godigest.SHA256, "a/Chart.yaml=a", "a/b/values.yaml=b", "x.txt=x", "logs/1=1", "a.b=ab"); tree.Revision != want {
		t.Errorf("revision %s, want %s", tree.Revision, want)
	}
	t.Run("unless", func(t *testing.T) {
		o := o
		o.Unless = tree.Revision
		if again := w.mustGet(t, o); !again.Unchanged || again.Root != nil || again.Revision != tree.Revision {
			t.Errorf("%+v", again)
		}
	})
	t.Run("prefix", func(t *testing.T) {
		o := o
		o.Prefix, o.Algorithm = "a/", godigest.SHA512
		tree := w.mustGet(t, o)
		fetchtest.WantFiles(t, tree, "a/Chart.yaml=a", "a/b/values.yaml=b")
		if want := bucketRevision(godigest.SHA512, "a/Chart.yaml=a", "a/b/values.yaml=b"); tree.Revision != want {
			t.Errorf("revision %s, want %s", tree.Revision, want)
		}
	})
	t.Run("ignore", func(t *testing.T) {
		w.put(t, ".sourceignore", "logs/\n")
		o := o
		o.Ignore = "*.txt\na.b"
		tree := w.mustGet(t, o)
		fetchtest.WantFiles(t, tree, ".sourceignore=logs/\n", "a/Chart.yaml=a", "a/b/values.yaml=b")
		if want := bucketRevision(godigest.SHA256, "a/Chart.yaml=a", "a/b/values.yaml=b"); tree.Revision != want {
			t.Errorf("revision %s, want %s", tree.Revision, want)
		}
	})
}

func TestBucketErrors(t *testing.T) {
	w := newBucketWorld(t)
	w.put(t, "a", "1")
	wrong := NewLogin(Keys{Access: helmtest.S3AccessKey, Secret: "wr0ngsecret"})
	for _, v := range []struct {
		name       string
		change     func(*Options)
		want, hint string
		auth       bool
		transient  bool
	}{
		{"no bucket", func(o *Options) { o.Bucket = "none" }, "bucket 'none' not found", "", false, false},
		{"wrong key", func(o *Options) { o.Login = wrong }, "failed to confirm existence of 'charts' bucket: ", "the credentials may be wrong, or lack the permissions s3:ListBucket and s3:GetObject", true, false},
		{"no key", func(o *Options) { o.Login = nil }, "failed to confirm existence of 'charts' bucket: ", "the bucket may require credentials: name a Secret with accesskey and secretkey in spec.secretRef", true, false},
		{"no host", func(o *Options) { o.Endpoint = "other.test" }, "failed to confirm existence of 'charts' bucket: ", "", false, true},
		{"no endpoint", func(o *Options) { o.Endpoint = "http://x/y" }, "failed to construct S3 client: ", "", false, false},
		{"provider", func(o *Options) { o.Provider = "oracle" }, "provider oracle of a Bucket is not supported yet", "", false, false},
	} {
		t.Run(v.name, func(t *testing.T) {
			o := w.options(t)
			v.change(&o)
			_, err := w.get(t, o)
			if err == nil || !strings.HasPrefix(err.Error(), v.want) || strings.Contains(err.Error(), "wr0ngsecret") || strings.Contains(err.Error(), "X-Amz") {
				t.Fatalf("error %v", err)
			}
			if fetch.AuthFailure(err) != v.auth || fetch.Transient(err) != v.transient {
				t.Errorf("auth %v, transient %v: %v", fetch.AuthFailure(err), fetch.Transient(err), err)
			}
			var hinted interface{ Hint() string }
			if v.hint != "" && (!errors.As(err, &hinted) || hinted.Hint() != v.hint) {
				t.Errorf("hint %q", hinted.Hint())
			}
		})
	}
}

// More than one page of a listing, and more objects than one host gets requests at a time.
func TestBucketPages(t *testing.T) {
	w := newBucketWorld(t)
	const count = 45
	for i := range count {
		w.put(t, fmt.Sprintf("d%d/f%d", i%7, i), fmt.Sprint(i))
	}
	o := w.options(t)
	o.pageKeys = 20
	w.server.Log.Drain()
	tree := w.mustGet(t, o)
	if tree.Files != count {
		t.Errorf("%d files", tree.Files)
	}
	pages := 0
	for _, r := range w.server.Log.Drain() {
		if strings.Contains(r.URI, "list-type=2") {
			pages++
		}
	}
	if pages != 3 {
		t.Errorf("%d pages", pages)
	}
}

func TestBucketChanges(t *testing.T) {
	w := newBucketWorld(t)
	w.put(t, "gone", "1")
	w.put(t, "stays", "2")
	w.put(t, "changes", "3")
	var change sync.Once // other downloads wait for it: versitygw does not change bytes and ETag of an object in one step
	w.server.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && slices.Contains([]string{"gone", "stays", "changes"}, path.Base(r.URL.Path)) {
			change.Do(func() {
				if err := w.admin.RemoveObject(r.Context(), "charts", "gone", minio.RemoveObjectOptions{}); err != nil {
					t.Error(err)
				}
				w.put(t, "changes", "4")
			})
		}
		w.s3.Handler.ServeHTTP(rw, r)
	}))
	tree := w.mustGet(t, w.options(t))
	files := fetchtest.List(t, tree)
	if tree.Revision != bucketRevision(godigest.SHA256, files...) || !slices.Contains(files, "stays=2") {
		t.Errorf("%s of %q", tree.Revision, files)
	}
}

// Keys that are not paths are never written, regardless of the server.
func TestBucketHostileKeys(t *testing.T) {
	for _, key := range []string{"../x", "a/../../x", "/etc/passwd", "a//b", "./a", "a\\..\\b", "a\ab", "a/./b", "."} {
		t.Run(fmt.Sprintf("%q", key), func(t *testing.T) {
			w := &bucketWorld{World: fetchtest.NewWorld(t)}
			// This server lists keys that a real one does not store.
			w.server = w.Serve(t, "s3.test:80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodHead:
				case strings.Contains(r.URL.RawQuery, "location"):
					fmt.Fprint(rw, `<LocationConstraint/>`)
				case r.URL.RawQuery != "":
					fmt.Fprintf(rw, `<ListBucketResult><EncodingType>url</EncodingType><Name>charts</Name><Contents><Key>%s</Key><ETag>"x"</ETag><Size>1</Size></Contents></ListBucketResult>`, url.QueryEscape(key))
				case strings.HasSuffix(r.URL.Path, ".sourceignore"):
					rw.WriteHeader(http.StatusNotFound)
					fmt.Fprint(rw, `<Error><Code>NoSuchKey</Code></Error>`)
				default:
					fmt.Fprint(rw, "1")
				}
			}))
			_, err := w.get(t, w.options(t))
			if err == nil || fetch.Transient(err) || !strings.Contains(err.Error(), "cannot be the name of a file") || strings.Contains(err.Error(), "\a") {
				t.Errorf("error %v", err)
			}
			o := w.options(t)
			o.Ignore = "*"
			if _, err := w.get(t, o); err != nil {
				t.Errorf("ignored: %v", err)
			}
		})
	}
}

func TestBucketLimits(t *testing.T) {
	w := newBucketWorld(t)
	for i := range 5 {
		w.put(t, fmt.Sprint(i), strings.Repeat("x", 1000))
	}
	for name, l := range map[string]tree.Limits{"file": {File: 999}, "total": {Total: 4999}, "entries": {Entries: 4}} {
		t.Run(name, func(t *testing.T) {
			o := w.options(t)
			o.Limits = l
			if _, err := w.get(t, o); err == nil || fetch.Transient(err) || !strings.Contains(err.Error(), "larger than") {
				t.Errorf("error %v", err)
			}
		})
	}
	o := w.options(t)
	o.Limits = tree.Limits{File: 1000, Total: 5000, Entries: 5}
	w.mustGet(t, o)
}

func TestBucketTransient(t *testing.T) {
	w := newBucketWorld(t)
	w.put(t, "a", "1")
	var failures atomic.Int32
	w.server.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/a") && failures.Add(-1) >= 0 {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.s3.Handler.ServeHTTP(rw, r)
	}))
	failures.Store(2)
	fetchtest.WantFiles(t, w.mustGet(t, w.options(t)), "a=1")
	failures.Store(1000)
	if _, err := w.get(t, w.options(t)); !fetch.Transient(err) || failures.Load() != 996 {
		t.Errorf("error %v after %d attempts", err, 1000-failures.Load())
	}
}

func TestBucketTLS(t *testing.T) {
	w := newBucketWorld(t)
	w.put(t, "a", "1")
	w.ServeTLS(t, "s3.test:443", w.ServerTLS(t, "s3.test", false), w.s3.Handler)
	o := w.options(t)
	o.Insecure = false
	if _, err := w.get(t, o); !fetch.AuthFailure(err) || fetch.Transient(err) {
		t.Errorf("error %v", err)
	}
	o.Identity = fetchtest.Identity(t, nil, map[string][]byte{"ca.crt": w.Kit.CA.Cert})
	fetchtest.WantFiles(t, w.mustGet(t, o), "a=1")
}

func TestBucketSTS(t *testing.T) {
	w := newBucketWorld(t)
	w.put(t, "a", "1")
	sts := w.Serve(t, "sts.test:80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.FormValue("LDAPUsername") != "me" || r.FormValue("LDAPPassword") != "ld4ppass" {
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprintf(rw, `<AssumeRoleWithLDAPIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithLDAPIdentityResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithLDAPIdentityResult></AssumeRoleWithLDAPIdentityResponse>`,
			helmtest.S3AccessKey, helmtest.S3SecretKey)
	}))
	for _, password := range []string{"ld4ppass", "wr0ngpass"} {
		o := w.options(t)
		o.Login = nil
		var err error
		o.STS, err = NewSTS("http://sts.test", auth.NewBasic("me", password), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.get(t, o)
		if (err == nil) != (password == "ld4ppass") {
			t.Errorf("%s: error %v", password, err)
		}
		if err != nil && (strings.Contains(err.Error(), password) || fetch.Transient(err)) {
			t.Errorf("error %v", err)
		}
	}
	if len(sts.Log.All()) < 2 {
		t.Error("STS was not asked")
	}
	// The keys of the environment are for the provider aws.
	w.Config.Getenv = func(name string) string {
		return map[string]string{"AWS_ACCESS_KEY_ID": helmtest.S3AccessKey, "AWS_SECRET_ACCESS_KEY": helmtest.S3SecretKey}[name]
	}
	for provider, ok := range map[string]bool{"aws": true, "generic": false} {
		o := w.options(t)
		o.Login, o.Provider, o.Ambient = nil, provider, true
		if _, err := w.get(t, o); err == nil || provider == "aws" && !strings.Contains(err.Error(), "is not a host of the provider aws") {
			t.Errorf("%s: error %v", provider, err)
		}
		o.Reach = auth.ReachAnywhere
		if _, err := w.get(t, o); (err == nil) != ok {
			t.Errorf("%s, anywhere: error %v", provider, err)
		}
	}
}
