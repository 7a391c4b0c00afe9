package auth_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// route is a way to a registry, and the field with which a manifest chose it.
type route struct {
	name, url string
	identity  *auth.Identity
	proxy     *auth.Proxy
	by        string
}

// skipped is a route on which --insecure-skip-tls-verify verifies no server certificate.
const skipped = "insecure-skip-tls-verify"

// routes are the environment's ways, and all that a manifest can make of them.
func (w *cloudWorld) routes(t *testing.T, host string) []route {
	t.Helper()
	proxy, err := auth.NewProxy("default/proxy", map[string][]byte{"address": []byte("http://proxy.test:3128")})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := w.ca.Client("somebody")
	if err != nil {
		t.Fatal(err)
	}
	certificate, _, err := auth.FromCertificates(&manifest.Secret{Name: "c", Data: map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key}})
	if err != nil {
		t.Fatal(err)
	}
	var none *auth.Identity
	return []route{
		{"the environment's", "https://" + host, nil, nil, ""},
		{"a client certificate", "https://" + host, certificate, nil, ""},
		{"this machine", "http://localhost:5000", none.Unverified(), nil, ""},
		{"this machine by its address", "http://[::1]:5000", w.identity, nil, ""},
		{"this machine by another of its addresses", "http://127.9.9.9:5000", nil, nil, ""},
		{"this machine by a mapped address", "http://[::ffff:127.0.0.1]:5000", nil, nil, ""},
		{"another machine by its address", "http://192.0.2.1:5000", nil, nil, "http"},
		{"another machine by its IPv6 address", "http://[2001:db8::1]:5000", nil, nil, "http"},
		{"another machine by a mapped address", "http://[::ffff:192.0.2.1]:5000", nil, nil, "http"},
		{"another machine in the network", "http://10.0.0.1:5000", nil, nil, "http"},
		{"a link-local address", "http://169.254.1.1:5000", nil, nil, "http"},
		{"no address", "http://0.0.0.0:5000", nil, nil, "http"},
		{"another machine by name", "http://localhost.test", nil, nil, "http"},
		{"own proxy", "https://" + host, nil, proxy, "proxy"},
		{"own proxy to this machine", "http://localhost:5000", nil, proxy, "proxy"},
		{"own authority", "https://" + host, w.identity, nil, "authority"},
		{"not verified", "https://" + host, none.Unverified(), nil, "insecure"},
		{"verification skipped", "https://" + host, none.SkipVerification(), nil, skipped},
		{"verification skipped on this machine", "https://localhost:5000", none.SkipVerification(), nil, skipped},
		{"plain HTTP", "http://" + host, nil, nil, "http"},
		{"plain HTTP with an own authority", "http://" + host, w.identity, nil, "http"},
		{"all of it", "http://" + host, w.identity.Unverified(), proxy, "proxy"},
	}
}

func wantWithheld(t *testing.T, err error, by string) {
	t.Helper()
	var withheld *auth.WithheldError
	switch {
	case by == "":
		if err != nil {
			t.Errorf("error %v", err)
		}
	case !errors.As(err, &withheld) || withheld.By != by || strings.Contains(withheld.Hint(), "--ambient-credentials=anywhere") == (by == skipped):
		t.Errorf("error %v, want one about %s", err, by)
	}
}

// Credentials of the environment are not sent on a route that a manifest chose.
func TestRoutes(t *testing.T) {
	const host = "europe-docker.pkg.dev"
	w := newCloudWorld(t)
	asked := w.serve(t, "169.254.169.254:80", func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte(`{"access_token":"canary-google-token","expires_in":3600}`))
	})
	file := filepath.Join(t.TempDir(), "config.json")
	var logins []string
	for _, host := range []string{
		host, "localhost:5000", "[::1]:5000", "localhost.test", "127.9.9.9:5000", "[::ffff:127.0.0.1]:5000", "192.0.2.1:5000", "[2001:db8::1]:5000",
		"[::ffff:192.0.2.1]:5000", "10.0.0.1:5000", "169.254.1.1:5000", "0.0.0.0:5000",
	} {
		logins = append(logins, `"`+host+`": {"auth": "dTpwYXNz"}`)
	}
	config := `{"auths": {` + strings.Join(logins, ", ") + `}}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, anywhere := range []bool{false, true} {
		o := w.options()
		if anywhere {
			o.Reach = auth.ReachAnywhere
		}
		for _, v := range w.routes(t, host) {
			name := v.name
			by := v.by
			if anywhere && by == skipped {
				name += ", anywhere"
			} else if anywhere {
				name, by = name+", anywhere", ""
			}
			t.Run(name, func(t *testing.T) {
				u, err := url.Parse(v.url)
				if err != nil {
					t.Fatal(err)
				}
				to := auth.NewRoute(u, v.identity, v.proxy)
				user := auth.NewAmbient(auth.AmbientOptions{Getenv: o.Getenv, RegistryConfig: file, Reach: o.Reach})
				login, err := auth.LoginBy(t.Context(), user, to, "org/app")
				if err != nil || login.Credential.IsZero() != (by != "") {
					t.Errorf("login of the user: %v, %v", login.Source, err)
				}
				wantWithheld(t, login.Problem, by)
				rt := auth.NewRegistryTransport(auth.RegistryOptions{
					TransportOptions: auth.TransportOptions{Base: u, Identity: v.identity, Proxy: v.proxy, Dial: w.network.Dial},
					Logins:           user, Tokens: auth.NewTokens(o.Now),
				})
				wantWithheld(t, auth.WithheldBy(t.Context(), rt), by)
				if shown := auth.ShownBy(t.Context(), rt, "org/app"); shown.Credential.IsZero() != (by != "") {
					t.Errorf("shown %+v", shown)
				}
				if u.Host != host {
					return
				}
				at := func(host string) auth.Route {
					return auth.NewRoute(&url.URL{Scheme: u.Scheme, Host: host}, v.identity, v.proxy)
				}
				_, err = auth.MachineGoogleStorage(o, at("storage.googleapis.com"))
				wantWithheld(t, err, by)
				_, err = auth.MachineAWSStorage(o, at("s3.amazonaws.com"), "", "")
				wantWithheld(t, err, by)
				_, err = auth.MachineAzureStorage(o, at("account.blob.core.windows.net"), "")
				wantWithheld(t, err, by)
				_, err = auth.NewAzureStorage(o, at("account.blob.core.windows.net"), azureClient(t, map[string][]byte{"clientId": []byte("client")}))
				wantWithheld(t, err, by)
				logins, err := auth.NewCloud(o).Logins(t.Context(), "gcp", to)
				if err != nil {
					t.Fatal(err)
				}
				login, err = auth.LoginBy(t.Context(), logins, to, "org/app")
				if err != nil || login.Credential.IsZero() != (by != "") {
					t.Errorf("login of the machine: %v, %v", login.Source, err)
				}
				wantWithheld(t, login.Problem, by)
				if n := len(asked.Log.Drain()); (n == 0) != (by != "") {
					t.Errorf("%d requests for a token", n)
				}
			})
		}
	}
}

// A token that a registry handed out for the login of the user is not used again by a way that a manifest chose.
func TestRouteTokens(t *testing.T) {
	w := newCloudWorld(t)
	registry := w.serve(t, "registry.test:443", func(rw http.ResponseWriter, r *http.Request) {
		switch header := r.Header.Get("Authorization"); {
		case r.URL.Path == "/token" && header == "":
			_, _ = rw.Write([]byte(`{"token": "anonymous"}`))
		case r.URL.Path == "/token":
			_, _ = rw.Write([]byte(`{"token": "canary-token"}`))
		case header != "Bearer canary-token":
			rw.Header().Set("WWW-Authenticate", `Bearer realm="https://registry.test/token"`)
			rw.WriteHeader(http.StatusUnauthorized)
		}
	})
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"auths": {"registry.test": {"auth": "dTpwYXNz"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens := auth.NewTokens(w.options().Now)
	user := auth.NewAmbient(auth.AmbientOptions{Getenv: w.options().Getenv, RegistryConfig: file})
	get := func(id *auth.Identity, want int) {
		t.Helper()
		rt := auth.NewRegistryTransport(auth.RegistryOptions{
			TransportOptions: auth.TransportOptions{Base: &url.URL{Scheme: "https", Host: "registry.test"}, Identity: id, Dial: w.network.Dial},
			Logins:           user, Tokens: tokens,
		})
		wantGet(t, rt, "https://registry.test/v2/org/app/manifests/1", want)
	}
	get(nil, http.StatusOK)
	registry.Log.Drain()
	for range 2 {
		get(w.identity, http.StatusUnauthorized)
		for _, r := range registry.Log.Drain() {
			if strings.Contains(r.Header.Get("Authorization"), "canary") || strings.HasPrefix(r.Header.Get("Authorization"), "Basic") {
				t.Errorf("%s with %s", r.URI, r.Header.Get("Authorization"))
			}
		}
	}
	get(nil, http.StatusOK)
}

// The identity of a machine is for AWS's own hosts, over https.
func TestAWSStorageHosts(t *testing.T) {
	w := newCloudWorld(t)
	o := w.options()
	o.Getenv = func(name string) string {
		return map[string]string{"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "canary-secret", "AWS_SESSION_TOKEN": "canary-session"}[name]
	}
	for host, ok := range map[string]bool{
		"s3.amazonaws.com": true, "s3.eu-west-1.amazonaws.com": true, "s3-eu-west-1.amazonaws.com": true, "s3.dualstack.us-east-1.amazonaws.com": true,
		"s3-fips.us-gov-west-1.amazonaws.com": true, "s3.cn-north-1.amazonaws.com.cn": true, "charts.s3.eu-west-1.amazonaws.com": true,
		"bucket.vpce-1a2b3c.s3.us-east-1.vpce.amazonaws.com": true, "S3.amazonaws.com": false,
		"s3.test": false, "amazonaws.com": false, "s3.amazonaws.com.evil.test": false, "evils3.amazonaws.com": false,
		"abc.execute-api.eu-west-1.amazonaws.com": false, "lb.eu-west-1.elb.amazonaws.com": false, "x.lambda-url.us-east-1.on.aws": false,
		"vpce-1-2.vpce-svc-3.us-east-1.vpce.amazonaws.com": false, "s3.eu-west-1.elb.amazonaws.com": false,
	} {
		s, err := auth.MachineAWSStorage(o, auth.To(host), "", "")
		if err != nil {
			t.Fatal(err)
		}
		keys, err := s.Keys(t.Context())
		if ok && (err != nil || keys.Session != "canary-session") {
			t.Errorf("%s: %v", host, err)
		} else if !ok {
			wantStorageError(t, err, "'"+host+"' is not a host of the provider aws")
		}
	}
	for sts, ok := range map[string]bool{
		"https://sts.amazonaws.com": true, "https://sts.eu-west-1.amazonaws.com": true, "https://sts-fips.us-east-1.amazonaws.com": true,
		"https://vpce-1a.sts.us-east-1.vpce.amazonaws.com": true,
		"http://sts.amazonaws.com":                         false, "https://sts.test": false, "https://sts.amazonaws.com.test": false, "https://sts.amazonaws.com@sts.test": false,
		"https://sts.amazonaws.com?x=": false, "https://abc.execute-api.eu-west-1.amazonaws.com": false, "https://s3.amazonaws.com": false,
	} {
		s, err := auth.MachineAWSStorage(o, auth.To("s3.amazonaws.com"), "", sts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Keys(t.Context()); ok && err != nil {
			t.Errorf("%s: %v", sts, err)
		} else if !ok {
			wantStorageError(t, err, "spec.sts.endpoint: ")
		}
	}
}

// The identities that the SDK finds: the job's token at STS, and the credentials of a container.
func TestAWSStorageIdentities(t *testing.T) {
	const token = "canary-container-authorization-token"
	container := func(t *testing.T) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != token {
				t.Errorf("Authorization %q", r.Header.Get("Authorization"))
			}
			_, _ = rw.Write([]byte(`{"AccessKeyId": "ASIA", "SecretAccessKey": "container-secret", "Token": "container-session", "Expiration": "2099-01-01T00:00:00Z"}`))
		}
	}
	want := func(t *testing.T, s *auth.AWSStorage, session string) {
		t.Helper()
		keys, err := s.Keys(t.Context())
		if err != nil || keys.Session != session || keys.Expires.IsZero() {
			t.Errorf("session %q, %v", keys.Session, err)
		}
	}
	machine := func(t *testing.T, w *cloudWorld, region, sts string) *auth.AWSStorage {
		t.Helper()
		o := w.options()
		o.Getenv = os.Getenv
		s, err := auth.MachineAWSStorage(o, auth.To("s3.amazonaws.com"), region, sts)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Run("full URI with a token", func(t *testing.T) {
		w := newCloudWorld(t)
		w.serve(t, "169.254.170.23:80", container(t))
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/role")
		t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", token)
		want(t, machine(t, w, "", ""), "container-session")
	})
	t.Run("full URI with a token in a file", func(t *testing.T) {
		w := newCloudWorld(t)
		w.serve(t, "169.254.170.23:80", container(t))
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/role")
		t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file)
		want(t, machine(t, w, "", ""), "container-session")
	})
	t.Run("an error holds no token", func(t *testing.T) {
		for _, answer := range []string{`{"code": "Denied", "message": "no role for %s"}`, `{"message": "%s"}`, "%s", ""} {
			w := newCloudWorld(t)
			w.serve(t, "169.254.170.23:80", func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("X-Amzn-Errortype", r.Header.Get("Authorization"))
				rw.WriteHeader(http.StatusForbidden)
				_, _ = strings.NewReader(strings.ReplaceAll(answer, "%s", r.Header.Get("Authorization"))).WriteTo(rw)
			})
			t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/role")
			t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", token)
			_, err := machine(t, w, "", "").Keys(t.Context())
			if err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(answer, "%s") && !strings.Contains(err.Error(), "REDACTED") {
				t.Errorf("%q: error %v", answer, err)
			}
		}
	})
	t.Run("an error of STS holds no token", func(t *testing.T) {
		w := newCloudWorld(t)
		webIdentity(t)
		w.serve(t, "sts.us-east-1.amazonaws.com:443", func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(rw, "<ErrorResponse><Error><Code>Denied</Code><Message>"+r.FormValue("WebIdentityToken")+"</Message></Error></ErrorResponse>")
		})
		if _, err := machine(t, w, "", "").Keys(t.Context()); err == nil || strings.Contains(err.Error(), webIdentityToken) {
			t.Errorf("error %v", err)
		}
	})
	for region, host := range map[string]string{"": "sts.us-east-1.amazonaws.com", "eu-west-1": "sts.eu-west-1.amazonaws.com"} {
		t.Run("web identity in region "+region, func(t *testing.T) {
			w := newCloudWorld(t)
			webIdentity(t)
			w.serve(t, host+":443", stsServer(t))
			want(t, machine(t, w, region, ""), "role-session")
		})
	}
	t.Run("web identity at a named endpoint", func(t *testing.T) {
		w := newCloudWorld(t)
		webIdentity(t)
		w.serve(t, "sts-fips.us-west-2.amazonaws.com:443", stsServer(t))
		want(t, machine(t, w, "us-west-2", "https://sts-fips.us-west-2.amazonaws.com"), "role-session")
	})
}

func webIdentity(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(webIdentityToken), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/ci")
}

// A value that becomes part of an address cannot become another part of it.
func TestParts(t *testing.T) {
	for _, v := range []struct {
		part  auth.Part
		value string
		ok    bool
	}{
		{auth.RegionPart, "eu-west-1", true}, {auth.RegionPart, "charts.attacker.example/x?", false}, {auth.RegionPart, "a.b", false},
		{auth.RegionPart, "x@y", false}, {auth.RegionPart, "", false}, {auth.RegionPart, "a\n", false}, {auth.RegionPart, "-a", false},
		{auth.BucketPart, "charts", true}, {auth.BucketPart, "My_old.Bucket", true}, {auth.BucketPart, "$web", true},
		{auth.BucketPart, "..", false}, {auth.BucketPart, "a/b", false}, {auth.BucketPart, "a?b", false}, {auth.BucketPart, "a%2fb", false}, {auth.BucketPart, "a\\b", false},
		{auth.TenantPart, "contoso.onmicrosoft.com", true}, {auth.TenantPart, "a/../b", false}, {auth.TenantPart, "a#b", false},
		{auth.ClientPart, "00000000-0000-0000-0000-000000000000", true}, {auth.ClientPart, "a&b=c", false},
		{auth.OwnerPart, "my-org", true}, {auth.OwnerPart, "my_org", true}, {auth.OwnerPart, "a/b", false}, {auth.OwnerPart, "a?b", false},
		{auth.OwnerPart, "_org_", true}, {auth.OwnerPart, "-org", false}, {auth.BucketPart, "$", false}, {auth.BucketPart, "a$b", false}, {auth.TenantPart, "a.", false}, {auth.TenantPart, "é", false},
		{auth.RegionPart, strings.Repeat("a", 63), true}, {auth.RegionPart, strings.Repeat("a", 64), false},
		{auth.BucketPart, "$" + strings.Repeat("a", 255), true}, {auth.BucketPart, strings.Repeat("a", 256), false},
		{auth.TenantPart, strings.Repeat("a", 253), true}, {auth.TenantPart, strings.Repeat("a", 254), false},
		{auth.ClientPart, strings.Repeat("a", 128), true}, {auth.ClientPart, strings.Repeat("a", 129), false},
		{auth.OwnerPart, strings.Repeat("a", 100), true}, {auth.OwnerPart, strings.Repeat("a", 101), false},
	} {
		err := v.part.Check("spec.field", v.value)
		if (err == nil) != v.ok || err != nil && (!strings.HasPrefix(err.Error(), "spec.field is not ") || v.value != "" && strings.Contains(err.Error(), v.value)) {
			t.Errorf("%q: %v", v.value, err)
		}
	}
}

// TestSkippedProxy: a proxy of the environment that speaks TLS is not shown its password where no server is verified.
func TestSkippedProxy(t *testing.T) {
	w := newCloudWorld(t)
	for address, want := range map[string]string{"https://u:canary-proxy@proxy.test:443": "", "http://u:canary-proxy@proxy.test:443": "u"} {
		o := auth.TransportOptions{Identity: (*auth.Identity)(nil).SkipVerification(), Dial: w.network.Dial, Getenv: func(name string) string {
			return map[string]string{"HTTPS_PROXY": address}[name]
		}}
		u, err := auth.ProxyOf(o, "https://charts.test")
		if err != nil || u.User.Username() != want {
			t.Errorf("%s: %v, %v", address, u, err)
		}
	}
}
