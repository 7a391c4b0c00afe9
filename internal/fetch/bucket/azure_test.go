package bucket

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// azureWorld has the account "account" at account.blob.test, with and without TLS, with the container charts, and the
// login server at login.test.
type azureWorld struct {
	*bucketWorld
	azure  *helmtest.Azure
	secure *helmtest.Server
	entra  *helmtest.Server
}

const azureHost = "account.blob.test"

func newAzureWorld(t *testing.T) *azureWorld {
	t.Helper()
	w := &azureWorld{bucketWorld: &bucketWorld{World: fetchtest.NewWorld(t)}, azure: helmtest.NewAzure("account")}
	w.azure.MakeContainer("charts")
	w.server = w.Serve(t, azureHost+":80", w.azure)
	w.secure = w.ServeTLS(t, azureHost+":443", w.ServerTLS(t, azureHost, false), w.azure)
	w.entra = w.ServeTLS(t, "login.test:443", w.ServerTLS(t, "login.test", false), w.azure.Login("login.test"))
	return w
}

func (w *azureWorld) login(t *testing.T, data map[string]string) *Login {
	t.Helper()
	bytes := map[string][]byte{}
	k := Keys{Authority: data["authorityHost"]}
	for key, value := range data {
		bytes[key] = []byte(value)
		if key == "accountKey" || key == "clientSecret" {
			k.Hidden = append(k.Hidden, value)
		}
	}
	var err error
	if k.Azure, err = auth.ReadAzureClient(bytes); err != nil {
		t.Fatal(err)
	}
	if key := data["accountKey"]; key != "" {
		if k.Account, err = azblob.NewSharedKeyCredential("account", key); err != nil {
			t.Fatal(err)
		}
	}
	if sas := data["sasKey"]; sas != "" {
		if k.Signature, err = url.ParseQuery(strings.TrimPrefix(sas, "?")); err != nil {
			t.Fatal(err)
		}
		k.Hidden = append(k.Hidden, sas, k.Signature.Get("sig"))
	}
	return NewLogin(k)
}

func (w *azureWorld) options(t *testing.T) Options {
	t.Helper()
	return Options{
		Provider: "azure", Bucket: "charts", Endpoint: "http://" + azureHost,
		Login: w.login(t, map[string]string{"accountKey": helmtest.AzureAccountKey}),
	}
}

// azureClient are the fields of a client's identity.
func azureClient(more ...string) map[string]string {
	data := map[string]string{"tenantId": helmtest.AzureTenant, "clientId": helmtest.AzureClient, "authorityHost": "https://login.test/"}
	for i := 0; i < len(more); i += 2 {
		data[more[i]] = more[i+1]
	}
	return data
}

func TestAzureBucket(t *testing.T) {
	w := newAzureWorld(t)
	for key, content := range map[string]string{"a/Chart.yaml": "a", "a/b/ä +%?.yaml": "b", "x.txt": "x", "logs/1": "1", ".sourceignore": "*.txt", "a/": "", "empty": ""} {
		w.azure.Put("charts", key, []byte(content))
	}
	o := w.options(t)
	o.pageKeys = 2
	got := w.mustGet(t, o)
	fetchtest.WantFiles(t, got, ".sourceignore=*.txt", "a/Chart.yaml=a", "a/b/ä +%?.yaml=b", "empty=", "logs/1=1")
	// As source-controller computes it, of the headers.
	text := ""
	for _, o := range []string{"a/Chart.yaml=a", "a/b/ä +%?.yaml=b", "empty=", "logs/1=1"} {
		key, content, _ := strings.Cut(o, "=")
		text += key + " " + helmtest.AzureTag([]byte(content)) + "\n"
	}
	if want := godigest.FromString(text).String(); got.Revision != want {
		t.Errorf("revision %s, want %s", got.Revision, want)
	}
	pages := 0
	for _, r := range w.server.Log.Drain() {
		if strings.Contains(r.URI, "comp=list") && strings.Contains(r.URI, "maxresults=2") {
			pages++
		}
	}
	if pages != 4 {
		t.Errorf("%d pages", pages)
	}
	t.Run("unless", func(t *testing.T) {
		o := o
		o.Unless = got.Revision
		if again := w.mustGet(t, o); !again.Unchanged || again.Root != nil {
			t.Errorf("%+v", again)
		}
	})
	t.Run("prefix and ignore", func(t *testing.T) {
		o := o
		o.Prefix, o.Ignore = "a/", "b/"
		fetchtest.WantFiles(t, w.mustGet(t, o), ".sourceignore=*.txt", "a/Chart.yaml=a")
	})
}

// rsaCertificate is a certificate with its key, which has to be of this kind.
func rsaCertificate(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

func TestAzureLogins(t *testing.T) {
	w := newAzureWorld(t)
	w.azure.Put("charts", "a", []byte("1"))
	trusted := fetchtest.Identity(t, nil, map[string][]byte{"ca.crt": w.Kit.CA.Cert})
	certificate := rsaCertificate(t)
	for _, v := range []struct {
		name, endpoint string
		login          map[string]string
		want           string // of the error
	}{
		{"account key", "http://" + azureHost, map[string]string{"accountKey": helmtest.AzureAccountKey}, ""},
		{"wrong account key", "http://" + azureHost, map[string]string{"accountKey": "d3JvbmcgYWNjb3VudCBrZXk="}, "the specified bucket name may be incorrect, nonexistent, or the caller might lack sufficient permissions to access it: GET \"http://account.blob.test/charts\": 403 Forbidden: AuthenticationFailed"},
		{"shared access signature", "http://" + azureHost, map[string]string{"sasKey": "?" + w.azure.SAS("charts", "rl")}, ""},
		{"its query in the endpoint", "http://" + azureHost + "?" + w.azure.SAS("charts", "rl"), nil, ""},
		{"the Secret's before the endpoint's", "http://" + azureHost + "?sig=wrongsignature", map[string]string{"sasKey": w.azure.SAS("charts", "rl")}, ""},
		{"signature of another container", "http://" + azureHost, map[string]string{"sasKey": w.azure.SAS("other", "rl")}, "403 Forbidden: AuthenticationFailed"},
		{"signature without the right to list", "http://" + azureHost, map[string]string{"sasKey": w.azure.SAS("charts", "r")}, "403 Forbidden: AuthorizationPermissionMismatch"},
		{"client secret", "https://" + azureHost, azureClient("clientSecret", helmtest.AzureClientSecret), ""},
		{"client secret before account key", "https://" + azureHost, azureClient("clientSecret", helmtest.AzureClientSecret, "accountKey", "d3Jvbmc="), ""},
		{"wrong client secret", "https://" + azureHost, azureClient("clientSecret", "wr0ngsecret"), "failed to get an access token: ClientSecretCredential authentication failed"},
		{"client certificate", "https://" + azureHost, azureClient("clientCertificate", certificate, "clientCertificateSendChain", "true"), ""},
		{"tokens over plain HTTP", "http://" + azureHost, azureClient("clientSecret", helmtest.AzureClientSecret), "authorized requests are not permitted for non-TLS protected (https) endpoints"},
		{"nothing", "http://" + azureHost, nil, "401 Unauthorized: NoAuthenticationInformation"},
	} {
		t.Run(v.name, func(t *testing.T) {
			o := w.options(t)
			o.Endpoint, o.Identity, o.Login = v.endpoint, trusted, nil
			if v.login != nil {
				o.Login = w.login(t, v.login)
			}
			_, err := w.get(t, o)
			if v.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "failed to confirm existence of 'charts' bucket: ") || !strings.Contains(err.Error(), v.want) || fetch.Transient(err) {
				t.Fatalf("error %v", err)
			}
			for _, secret := range append(o.Login.reveal().Hidden, "wr0ng", "sig=", "Signature") {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q is in %v", secret, err)
				}
			}
		})
	}
	w.azure.Anonymous = true
	o := w.options(t)
	o.Login = nil
	fetchtest.WantFiles(t, w.mustGet(t, o), "a=1")
}

// A server may request another token, but gets no token for another service.
func TestAzureChallenge(t *testing.T) {
	w := newAzureWorld(t)
	w.azure.Resource = "https://vault.azure.net"
	o := w.options(t)
	o.Endpoint = "https://" + azureHost
	o.Identity = fetchtest.Identity(t, nil, map[string][]byte{"ca.crt": w.Kit.CA.Cert})
	o.Login = w.login(t, azureClient("clientSecret", helmtest.AzureClientSecret))
	// This server refuses every token.
	w.secure.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r.Header.Del("Authorization")
		w.azure.ServeHTTP(rw, r)
	}))
	if _, err := w.get(t, o); !fetch.AuthFailure(err) || fetch.Transient(err) {
		t.Errorf("error %v", err)
	}
	if len(w.azure.Issued()) == 0 {
		t.Error("no token was asked for") // the login server refuses any other scope
	}
	for _, r := range w.entra.Log.All() {
		if r.Status != http.StatusOK {
			t.Errorf("%s", r)
		}
	}
}

func TestAzureBucketErrors(t *testing.T) {
	w := newAzureWorld(t)
	w.azure.Put("charts", "a", []byte("1"))
	for _, v := range []struct {
		name            string
		change          func(*Options)
		want, hint      string
		auth, transient bool
	}{
		{"no container", func(o *Options) { o.Bucket = "none" }, "bucket 'none' not found", "", false, false},
		{"no container's name", func(o *Options) { o.Bucket = "charts?sig=x" }, "spec.bucketName is not the name of a bucket, of letters, digits, '.', '-' and '_'", "", false, false},
		{"no host", func(o *Options) { o.Endpoint = "http://other.blob.test" }, "failed to confirm existence of 'charts' bucket: ", "", false, true},
		{"no URL", func(o *Options) { o.Endpoint = "account.blob.test" }, "endpoint 'account.blob.test' is not the URL of a storage account", "with the provider azure spec.endpoint looks like https://ACCOUNT.blob.core.windows.net", false, false},
		{"identity of the machine elsewhere", func(o *Options) { o.Login, o.Ambient, o.Endpoint = nil, true, "https://account.blob.test" }, "failed to confirm existence of 'charts' bucket: failed to get an access token: 'account.blob.test' is not a host of the provider azure", "", true, false},
	} {
		t.Run(v.name, func(t *testing.T) {
			o := w.options(t)
			o.Identity = fetchtest.Identity(t, nil, map[string][]byte{"ca.crt": w.Kit.CA.Cert})
			v.change(&o)
			_, err := w.get(t, o)
			if err == nil || !strings.HasPrefix(err.Error(), v.want) {
				t.Fatalf("error %v", err)
			}
			if fetch.AuthFailure(err) != v.auth || fetch.Transient(err) != v.transient {
				t.Errorf("auth %v, transient %v: %v", fetch.AuthFailure(err), fetch.Transient(err), err)
			}
			var hinted interface{ Hint() string }
			if v.hint != "" && (!errors.As(err, &hinted) || hinted.Hint() != v.hint) {
				t.Errorf("hint of %v", err)
			}
		})
	}
}

func TestAzureBucketChanges(t *testing.T) {
	w := newAzureWorld(t)
	for _, key := range []string{"gone", "stays", "changes"} {
		w.azure.Put("charts", key, []byte("1"))
	}
	var done atomic.Bool
	w.server.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.azure.ServeHTTP(rw, r)
		if r.URL.Query().Has("include") && done.CompareAndSwap(false, true) {
			w.azure.Remove("charts", "gone")
			w.azure.Put("charts", "changes", []byte("2"))
		}
	}))
	got := w.mustGet(t, w.options(t))
	fetchtest.WantFiles(t, got, "changes=2", "stays=1")
	text := "changes " + helmtest.AzureTag([]byte("2")) + "\nstays " + helmtest.AzureTag([]byte("1")) + "\n"
	if want := godigest.FromString(text).String(); got.Revision != want {
		t.Errorf("%s, want %s", got.Revision, want)
	}
}

func TestAzureTransient(t *testing.T) {
	w := newAzureWorld(t)
	w.azure.Put("charts", "a", []byte("1"))
	var failures atomic.Int32
	w.server.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if failures.Add(-1) >= 0 {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.azure.ServeHTTP(rw, r)
	}))
	failures.Store(2)
	fetchtest.WantFiles(t, w.mustGet(t, w.options(t)), "a=1")
	failures.Store(1000)
	if _, err := w.get(t, w.options(t)); !fetch.Transient(err) || failures.Load() != 996 {
		t.Errorf("error %v after %d attempts", err, 1000-failures.Load())
	}
}

// The login server has bad moments, too.
func TestAzureLoginTransient(t *testing.T) {
	w := newAzureWorld(t)
	w.azure.Put("charts", "a", []byte("1"))
	o := w.options(t)
	o.Endpoint, o.Identity = "https://"+azureHost, fetchtest.Identity(t, nil, map[string][]byte{"ca.crt": w.Kit.CA.Cert})
	o.Login = w.login(t, azureClient("clientSecret", helmtest.AzureClientSecret))
	w.Config.Retries = 0
	login := w.azure.Login("login.test")
	w.entra.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/token") {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		login.ServeHTTP(rw, r)
	}))
	if _, err := w.get(t, o); !fetch.Transient(err) || !fetch.AuthFailure(err) {
		t.Errorf("503: error %v", err)
	}
	w.entra.Close()
	if _, err := w.get(t, o); !fetch.Transient(err) || !fetch.AuthFailure(err) {
		t.Errorf("down: error %v", err)
	}
}
