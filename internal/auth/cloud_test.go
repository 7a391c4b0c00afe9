package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// cloudWorld is a network in which a test starts the servers of a cloud under their real names.
type cloudWorld struct {
	network  *helmtest.Network
	ca       *helmtest.CA
	identity *auth.Identity
	now      time.Time
}

// newCloudWorld also clears the environment variables of the process that the clouds' libraries read.
func newCloudWorld(t *testing.T) *cloudWorld {
	t.Helper()
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		for _, prefix := range []string{"AWS_", "AZURE_", "GOOGLE_", "GCE_", "IDENTITY_", "MSI_", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
			if strings.HasPrefix(name, prefix) {
				t.Setenv(name, "")
				if err := os.Unsetenv(name); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE", "APPDATA"} {
		t.Setenv(name, home)
	}
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "prod") // no command line tools
	ca, err := systemCA()
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := auth.FromSecrets(nil, &manifest.Secret{Name: "ca", Type: "Opaque", Data: map[string][]byte{"ca.crt": ca.Cert}})
	if err != nil {
		t.Fatal(err)
	}
	return &cloudWorld{network: helmtest.NewNetwork(), ca: ca, identity: id, now: time.Now()}
}

// serve starts a server, with TLS if the port is 443.
func (w *cloudWorld) serve(t *testing.T, addr string, h http.HandlerFunc) *helmtest.Server {
	t.Helper()
	host, secure := strings.CutSuffix(addr, ":443")
	if !secure {
		s, err := helmtest.Serve(w.network, addr, nil, h)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	config, err := w.ca.ServerConfig(host, false)
	if err != nil {
		t.Fatal(err)
	}
	s, err := helmtest.Serve(w.network, addr, config, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (w *cloudWorld) cloud() *auth.Cloud {
	return auth.NewCloud(auth.CloudOptions{Dial: w.network.Dial, Getenv: os.Getenv, Now: func() time.Time { return w.now }})
}

// wantBasic pulls from a registry that requires a user and a password. The server, if it is not nil, becomes that registry.
func (w *cloudWorld) wantBasic(t *testing.T, logins auth.Logins, s *helmtest.Server, host, user string) {
	t.Helper()
	registry := func(rw http.ResponseWriter, r *http.Request) {
		if name, password, _ := r.BasicAuth(); name+":"+password != user {
			rw.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			rw.WriteHeader(http.StatusUnauthorized)
		}
	}
	if s == nil {
		w.serve(t, host+":443", registry)
	} else {
		s.Use(http.HandlerFunc(registry))
	}
	rt := auth.NewRegistryTransport(auth.RegistryOptions{
		TransportOptions: auth.TransportOptions{Base: &url.URL{Scheme: "https", Host: host}, Dial: w.network.Dial},
		Logins:           logins, Tokens: auth.NewTokens(func() time.Time { return w.now }),
	})
	wantGet(t, rt, "https://"+host+"/v2/charts/podinfo/manifests/1.0.0", 200)
}

func wantCloudError(t *testing.T, err error, want, hint string, transient bool) {
	t.Helper()
	const prefix = "unable to get authentication data from OIDC: failed to get access token for artifact registry: "
	var failed *auth.CloudError
	if !errors.As(err, &failed) {
		t.Fatalf("got %v", err)
	}
	if text := err.Error(); !strings.HasPrefix(text, prefix) || !strings.Contains(text, want) || strings.Contains(text, "canary") || strings.Contains(text, "\n") {
		t.Errorf("got %q, want %q", text, want)
	}
	if !strings.Contains(failed.Hint(), hint) || failed.Transient() != transient || !failed.AuthFailure() {
		t.Errorf("hint %q, transient %v", failed.Hint(), failed.Transient())
	}
}

// §12 case 59
func TestCloudsElsewhere(t *testing.T) {
	for _, test := range []struct{ name, provider, host, want, hint string }{
		{"case 59: aws without a cloud", "aws", "localhost:5000", "invalid AWS registry: 'localhost:5000'", ""},
		{"azure", "azure", "localhost:5000", "invalid Azure registry: 'localhost:5000'", ""},
		{"gcp", "gcp", "localhost:5000", "invalid GCP registry: 'localhost:5000'", ""},
		{"unknown", "oracle", "localhost:5000", "unknown provider 'oracle'", ""},
		{"a name that begins like one", "aws", "123456789012.dkr.ecr.eu-west-1.amazonaws.com.evil.test", "invalid AWS registry", ""},
		{"a name that ends like one", "azure", "azurecr.io", "invalid Azure registry", ""},
		{"another one", "gcp", "evil-gcr.io", "invalid GCP registry", ""},
		{"the wrong cloud", "aws", "x.azurecr.io", "invalid AWS registry", "spec.provider should be azure"},
		{"aws without credentials", "aws", "123456789012.dkr.ecr.eu-west-1.amazonaws.com", "no EC2 IMDS role found", ""},
		{"azure without credentials", "azure", "x.azurecr.io", "DefaultAzureCredential: failed to acquire a token", ""},
		{"gcp without credentials", "gcp", "europe-docker.pkg.dev", "no application default credentials, and from the metadata server", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newCloudWorld(t)
			c := w.cloud()
			_, err := c.Logins(t.Context(), test.provider, auth.To(test.host))
			wantCloudError(t, err, test.want, test.hint, false)
			if _, again := c.Logins(t.Context(), test.provider, auth.To(test.host)); again != err {
				t.Errorf("the failure is not remembered: %v", again)
			}
		})
	}
}

func TestCloudsAreAskedOnce(t *testing.T) {
	w := newCloudWorld(t)
	s := w.serve(t, "169.254.169.254:80", func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(rw, `{"access_token":"x","expires_in":3600}`)
	})
	c := w.cloud()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := c.Logins(t.Context(), "gcp", auth.To("gcr.io")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	wantRequests(t, s, 1)
}

func TestCloudPermission(t *testing.T) {
	for host, want := range map[string]string{
		"123456789012.dkr.ecr.eu-west-1.amazonaws.com": "ecr:BatchGetImage", "public.ecr.aws": "ecr:BatchGetImage",
		"x.azurecr.io": "AcrPull", "gcr.io": "artifactregistry.", "us-docker.pkg.dev": "artifactregistry.", "ghcr.io": "",
	} {
		if got := auth.CloudPermission(host); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q", host, got)
		}
	}
}

func TestCloudErrorTransient(t *testing.T) {
	dial := func(ip string) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 80}, Err: errors.New("i/o timeout")}
	}
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"no metadata server", dial("169.254.169.254"), false},
		{"no metadata server of a container", dial("127.0.0.1"), false},
		{"server of a cloud is down", dial("203.0.113.1"), true},
		{"no name", &net.DNSError{Name: "sts.amazonaws.com"}, true},
		{"no name of a metadata server", &net.DNSError{Name: "metadata.google.internal"}, false},
		{"took too long", context.DeadlineExceeded, true},
		{"a proxy is down", &net.OpError{Op: "proxyconnect", Err: dial("203.0.113.1")}, true},
		{"cut off", &net.OpError{Op: "read", Err: errors.New("connection reset")}, true},
		{"a TLS alert", &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, false},
		{"anything else", errors.New("x"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := (&auth.CloudError{Err: fmt.Errorf("wrapped: %w", test.err)}).Transient(); got != test.want {
				t.Errorf("%v", got)
			}
		})
	}
}
