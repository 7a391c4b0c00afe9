package auth_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// neighbour is a server on this machine that names lead to.
func neighbour(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// A request with a login of this machine is not led to private addresses by a public host.
func TestPrivateRedirects(t *testing.T) {
	w := newCloudWorld(t)
	w.serve(t, "registry.test:443", func(http.ResponseWriter, *http.Request) {})
	inside := neighbour(t)
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.HasPrefix(addr, "blobs.test:") || strings.HasPrefix(addr, "inside.test:") {
			return new(net.Dialer).DialContext(ctx, network, inside)
		}
		return w.network.Dial(ctx, network, addr)
	}
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"auths": {"registry.test": {"auth": "dTpwYXNz"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	user := auth.NewAmbient(auth.AmbientOptions{Getenv: w.options().Getenv, RegistryConfig: file})
	own := auth.StaticLogin{Credential: auth.BasicCredential("u", "pass")}
	for _, v := range []struct {
		name, registry, to string
		logins             auth.Logins
		allow, refused     bool
	}{
		{"a name that leads inside", "https://registry.test", "http://blobs.test/x", user, false, true},
		{"an address", "https://registry.test", "http://" + inside + "/x", user, false, true},
		{"the metadata of a cloud", "https://registry.test", "http://169.254.169.254/x", user, false, true},
		{"allowed", "https://registry.test", "http://blobs.test/x", user, true, false},
		{"a login of a Secret", "https://registry.test", "http://blobs.test/x", own, false, false},
		{"a registry that is inside", "http://" + inside, "http://blobs.test/x", user, false, false},
	} {
		t.Run(v.name, func(t *testing.T) {
			registry, err := url.Parse(v.registry)
			if err != nil {
				t.Fatal(err)
			}
			rt := auth.NewRegistryTransport(auth.RegistryOptions{
				TransportOptions: auth.TransportOptions{Base: registry, Dial: dial, AllowPrivate: v.allow},
				Logins:           v.logins, Tokens: auth.NewTokens(w.options().Now),
			})
			if _, err := get(t, rt, v.registry+"/v2/org/app/manifests/1"); err != nil {
				t.Fatal(err)
			}
			_, err = get(t, rt, v.to)
			var private *finding.Problem
			if errors.As(err, &private) != v.refused || !v.refused && err != nil {
				t.Fatalf("error %v", err)
			}
			if v.refused && (!strings.Contains(private.Text, "'registry.test' resolves to") || !strings.Contains(private.Advice, "--allow-private-redirects") || private.Class.Transient()) {
				t.Errorf("%+v", private)
			}
		})
	}
}

// Helm's own login for a repository is not sent to private addresses either, nor does passCredentials send it to other
// hosts.
func TestAmbientRepository(t *testing.T) {
	w := newCloudWorld(t)
	home := w.serve(t, "repo.test:443", func(http.ResponseWriter, *http.Request) {})
	other := w.serve(t, "other.test:443", func(http.ResponseWriter, *http.Request) {})
	plain := w.serve(t, "repo.test:80", func(http.ResponseWriter, *http.Request) {})
	inside := neighbour(t)
	file := filepath.Join(t.TempDir(), "repositories.yaml")
	content := "repositories:\n- {name: a, url: 'https://repo.test/charts', username: u, password: canary-pass}\n- {name: b, url: 'http://repo.test/charts', username: u, password: canary-pass}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(at string, reach auth.Reach) (http.RoundTripper, auth.TransportOptions) {
		id, _, err := auth.HelmRepositories(t.Context(), auth.AmbientOptions{Getenv: w.options().Getenv, Reach: reach}, file, at)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := id.Basic(); ok {
			t.Error("others may have the password")
		}
		base, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		o := auth.TransportOptions{Identity: id, Base: base, PassCredentials: true, Dial: w.network.Dial}
		return auth.NewTransport(o), o
	}
	shown := func(rt http.RoundTripper, at string) bool {
		t.Helper()
		wantGet(t, rt, at, http.StatusOK)
		found := false
		for _, r := range append(append(home.Log.Drain(), other.Log.Drain()...), plain.Log.Drain()...) {
			found = found || r.Header.Get("Authorization") != ""
		}
		return found
	}
	rt, o := open("https://repo.test/charts", auth.ReachHome)
	if !shown(rt, "https://repo.test/charts/index.yaml") || shown(rt, "https://other.test/x.tgz") || shown(rt, "http://repo.test/x.tgz") {
		t.Error("the login is for its own origin")
	}
	wantWithheld(t, o.Withheld(), "")
	var private *finding.Problem
	if _, err := get(t, rt, "http://"+inside+"/x.tgz"); !errors.As(err, &private) {
		t.Errorf("error %v", err)
	}
	rt, o = open("http://repo.test/charts", auth.ReachHome)
	if shown(rt, "http://repo.test/charts/index.yaml") {
		t.Error("shown in plain HTTP")
	}
	wantWithheld(t, o.Withheld(), "http")
	rt, o = open("http://repo.test/charts", auth.ReachAnywhere)
	if !shown(rt, "http://repo.test/charts/index.yaml") {
		t.Error("not shown")
	}
	wantWithheld(t, o.Withheld(), "")
	rt, o = open("https://repo.test/charts", auth.ReachNowhere)
	if shown(rt, "https://repo.test/charts/index.yaml") || o.Withheld() == nil {
		t.Error("shown although the manifests are a stranger's")
	}
}

// The dialer of --untrusted opens no connection to addresses that are not public, but to the proxy of the environment.
func TestPublicDial(t *testing.T) {
	inside := neighbour(t)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, inside)
	}
	env := map[string]string{"HTTPS_PROXY": "proxy.internal:3128", "http_proxy": "http://10.0.0.1"}
	public := auth.PublicDial(dial, func(name string) string { return env[name] })
	for addr, ok := range map[string]bool{
		"proxy.internal:3128": true, "10.0.0.1:80": true,
		"10.0.0.1:443": false, "proxy.internal:80": false, "name.test:443": false, "localhost:80": false, "127.0.0.1:80": false,
		"169.254.169.254:80": false, "[::1]:80": false, "[fd00::1]:80": false, "192.168.1.1:22": false,
	} {
		conn, err := public(t.Context(), "tcp", addr)
		var private *finding.Problem
		if ok != (err == nil) || !ok && (!errors.As(err, &private) || !strings.Contains(private.Hint(), "--untrusted")) {
			t.Errorf("%s: %v", addr, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	outside := auth.PublicDial(newCloudWorld(t).network.Dial, func(string) string { return "" })
	if _, err := outside(t.Context(), "tcp", "nowhere.test:80"); err == nil || errors.As(err, new(*finding.Problem)) {
		t.Errorf("error %v", err)
	}
}

// Logins of this machine are not used for untrusted manifests, on any route.
func TestUntrustedRoutes(t *testing.T) {
	w := newCloudWorld(t)
	asked := w.serve(t, "169.254.169.254:80", func(http.ResponseWriter, *http.Request) {})
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"auths": {"registry.test": {"auth": "dTpwYXNz"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	o := w.options()
	o.Reach = auth.ReachNowhere
	user := auth.NewAmbient(auth.AmbientOptions{Getenv: o.Getenv, RegistryConfig: file, Reach: o.Reach})
	login, err := auth.LoginAt(t.Context(), user, "registry.test", "x")
	if err != nil || !login.Credential.IsZero() {
		t.Errorf("%v, %v", login.Source, err)
	}
	problems := []error{login.Problem}
	for provider, host := range map[string]string{"aws": "public.ecr.aws", "azure": "x.azurecr.io", "gcp": "gcr.io"} {
		logins, err := auth.NewCloud(o).Logins(t.Context(), provider, auth.To(host))
		if err != nil {
			t.Fatal(err)
		}
		login, err := auth.LoginAt(t.Context(), logins, host, "x")
		if err != nil || !login.Credential.IsZero() {
			t.Errorf("%v, %v", login.Source, err)
		}
		problems = append(problems, login.Problem)
	}
	_, err = auth.MachineGoogleStorage(o, auth.To("storage.googleapis.com"))
	problems = append(problems, err)
	_, err = auth.MachineAWSStorage(o, auth.To("s3.amazonaws.com"), "", "")
	problems = append(problems, err)
	_, err = auth.MachineAzureStorage(o, auth.To("x.blob.core.windows.net"), "")
	problems = append(problems, err)
	_, err = auth.NewAzureStorage(o, auth.To("x.blob.core.windows.net"), azureClient(t, map[string][]byte{"clientId": []byte("client")}))
	problems = append(problems, err)
	for i, problem := range problems {
		var withheld *auth.WithheldError
		if !errors.As(problem, &withheld) || withheld.By != "untrusted" || !strings.Contains(withheld.Hint(), "leave out --untrusted") {
			t.Errorf("%d: %v", i, problem)
		}
	}
	wantRequests(t, asked, 0)
}
