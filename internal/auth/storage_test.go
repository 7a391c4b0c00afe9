package auth_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
)

func (w *cloudWorld) options() auth.CloudOptions {
	return auth.CloudOptions{Dial: w.network.Dial, Getenv: func(string) string { return "" }, Now: func() time.Time { return w.now }}
}

// The identity of a machine at Google: a token that can only read objects, for Google's hosts, asked for once.
func TestGoogleStorageAmbient(t *testing.T) {
	w := newCloudWorld(t)
	s := w.serve(t, "169.254.169.254:80", func(rw http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("scopes"); got != "https://www.googleapis.com/auth/devstorage.read_only" {
			t.Errorf("scope %s", got)
		}
		fmt.Fprint(rw, `{"access_token":"canary-google-token","expires_in":3600,"token_type":"Bearer"}`)
	})
	tokens, err := auth.MachineGoogleStorage(w.options(), auth.To("storage.googleapis.com"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if token, err := tokens.Token(t.Context()); token != "canary-google-token" || err != nil {
			t.Errorf("%s, %v", token, err)
		}
	}
	wantRequests(t, s, 1)
	w.now = w.now.Add(2 * time.Hour)
	if _, err := tokens.Token(t.Context()); err != nil {
		t.Error(err)
	}
	wantRequests(t, s, 2)
	for _, host := range []string{"storage.test", "googleapis.com.test", "evilgoogleapis.com"} {
		tokens, err := auth.MachineGoogleStorage(w.options(), auth.To(host))
		if err != nil {
			t.Fatal(err)
		}
		_, err = tokens.Token(t.Context())
		wantStorageError(t, err, "'"+host+"' is not a host of the provider gcp")
	}
	wantRequests(t, s, 2)
}

func wantStorageError(t *testing.T, err error, want string) {
	t.Helper()
	var failed *auth.CloudError
	if !errors.As(err, &failed) || !failed.AuthFailure() || failed.Transient() || !strings.HasPrefix(err.Error(), "failed to get an access token: "+want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The identity of a machine at Azure, with and without a client ID, for Azure's hosts, and for object stores alone.
func TestAzureStorageAmbient(t *testing.T) {
	w := newCloudWorld(t)
	var asked []string
	w.serve(t, "169.254.169.254:80", func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata") != "true" {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		asked = append(asked, r.URL.Query().Get("resource")+" "+r.URL.Query().Get("client_id"))
		fmt.Fprintf(rw, `{"access_token": "canary-entra-token", "expires_in": "3600", "expires_on": "%d", "resource": "x", "token_type": "Bearer"}`, time.Now().Unix()+3600)
	})
	other := policy.TokenRequestOptions{Scopes: []string{"https://vault.azure.net/.default"}}
	for host, ok := range map[string]bool{"a.blob.core.windows.net": true, "a.z1.blob.storage.azure.net": true, "a.blob.test": false, "a.core.windows.net.test": false} {
		ambient, err := auth.MachineAzureStorage(w.options(), auth.To(host), "")
		if err != nil {
			t.Fatal(err)
		}
		named, err := auth.NewAzureStorage(w.options(), auth.To(host), azureClient(t, map[string][]byte{"clientId": []byte("client")}))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*auth.AzureStorage{ambient, named} {
			token, err := s.GetToken(t.Context(), other)
			if !ok {
				wantStorageError(t, err, "'"+host+"' is not a host of the provider azure")
				continue
			}
			if err != nil || token.Token != "canary-entra-token" {
				t.Errorf("%s: %v", host, err)
			}
		}
	}
	// The library shares tokens of the same identity.
	if want := []string{"https://storage.azure.com ", "https://storage.azure.com client"}; !slices.Equal(slices.Compact(slices.Sorted(slices.Values(asked))), want) {
		t.Errorf("asked for %q", asked)
	}
}

// The identity of an App Service is requested directly at the address in the environment: the manifest's proxy and
// authorities are not used. On a route that the manifest chose, it is not requested at all.
func TestAzureStorageAppService(t *testing.T) {
	w := newCloudWorld(t)
	t.Setenv("IDENTITY_ENDPOINT", "http://identity.test:8081/msi/token")
	t.Setenv("IDENTITY_HEADER", "canary-identity-header")
	t.Setenv("AZURE_CLIENT_ID", "app-service") // the library keeps tokens for the whole process, by client
	asked := w.serve(t, "identity.test:8081", func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Identity-Header") != "canary-identity-header" {
			t.Errorf("header %q", r.Header.Get("X-Identity-Header"))
		}
		fmt.Fprintf(rw, `{"access_token": "canary-app-service", "expires_on": "%d", "resource": "x", "token_type": "Bearer"}`, time.Now().Unix()+3600)
	})
	led := w.serve(t, "proxy.test:3128", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) })
	proxy, err := auth.NewProxy("default/proxy", map[string][]byte{"address": []byte("http://proxy.test:3128")})
	if err != nil {
		t.Fatal(err)
	}
	o := w.options()
	o.Getenv, o.Proxy, o.Identity = os.Getenv, proxy, w.identity.Unverified()
	wantAzureToken(t, o, auth.To("a.blob.core.windows.net"), "")
	wantRequests(t, asked, 1)
	route := auth.NewRoute(&url.URL{Scheme: "https", Host: "b.blob.core.windows.net"}, nil, proxy)
	var withheld *auth.WithheldError
	if _, err := auth.MachineAzureStorage(o, route, ""); !errors.As(err, &withheld) || withheld.By != "proxy" {
		t.Errorf("error %v", err)
	}
	wantRequests(t, asked, 1)
	wantRequests(t, led, 0)
}

// With a Secret that holds only the authority, the job's own identity logs in there: at Microsoft's authorities only.
func TestAzureStorageAuthority(t *testing.T) {
	to := auth.To("a.blob.core.windows.net")
	for name, env := range map[string]map[string]string{
		"client secret":   {"AZURE_CLIENT_ID": "client", "AZURE_TENANT_ID": tenant, "AZURE_CLIENT_SECRET": "canary-client-secret"},
		"federated token": {"AZURE_CLIENT_ID": "client", "AZURE_TENANT_ID": tenant, "AZURE_FEDERATED_TOKEN_FILE": "token"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloudWorld(t)
			for name, value := range env {
				if value == "token" {
					value = filepath.Join(t.TempDir(), value)
					if err := os.WriteFile(value, []byte("canary-federated-token"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				t.Setenv(name, value)
			}
			evil := w.serve(t, "login.test:443", entra(t, "login.test", func(url.Values) {}))
			for _, authority := range []string{
				"https://login.test/", "https://login.test", "http://login.microsoftonline.us/", "https://login.microsoftonline.us.test/",
				"https://login.microsoftonline.us@login.test/", "https://login.test/login.microsoftonline.us", "https://login.microsoftonline.us:8443/",
				"//login.microsoftonline.us/", "login.microsoftonline.us",
			} {
				_, err := auth.MachineAzureStorage(w.options(), to, authority)
				wantStorageError(t, err, "'authorityHost' of the Secret is not an authority of Microsoft")
			}
			wantRequests(t, evil, 0)
			known := w.serve(t, "login.microsoftonline.us:443", entra(t, "login.microsoftonline.us", func(form url.Values) {
				if form.Get("client_secret") != env["AZURE_CLIENT_SECRET"] || !strings.Contains(form.Get("scope"), "https://storage.azure.com/.default") {
					t.Errorf("form %v", form)
				}
			}))
			o := w.options()
			wantAzureToken(t, o, to, "https://login.microsoftonline.us/")
			if len(known.Log.All()) == 0 {
				t.Error("nobody logged in")
			}
			// Who wrote every manifest may name another one, but not in plain HTTP.
			o.Reach = auth.ReachAnywhere
			if _, err := auth.MachineAzureStorage(o, to, "http://login.test/"); err == nil {
				t.Error("plain HTTP is no authority")
			}
			wantAzureToken(t, o, to, "https://login.test/")
			if len(evil.Log.All()) == 0 {
				t.Error("nobody logged in")
			}
		})
	}
}

func wantAzureToken(t *testing.T, o auth.CloudOptions, to auth.Route, authority string) {
	t.Helper()
	storage, err := auth.MachineAzureStorage(o, to, authority)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storage.GetToken(t.Context(), policy.TokenRequestOptions{}); err != nil {
		t.Error(err)
	}
}

func azureClient(t *testing.T, data map[string][]byte) *auth.AzureClient {
	t.Helper()
	c, err := auth.ReadAzureClient(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The authority of a client secret in the same Secret may be any server, over https.
func TestAzureSecretAuthority(t *testing.T) {
	for authority, ok := range map[string]bool{"https://login.test/": true, "http://login.test/": false, "login.test": false, "https://u:p@login.test/": false, "https://login.test/?x=": false} {
		_, err := auth.ReadAzureClient(map[string][]byte{
			"tenantId": []byte(tenant), "clientId": []byte("client"), "clientSecret": []byte("canary"), "authorityHost": []byte(authority),
		})
		if (err == nil) != ok || err != nil && err.Error() != "'authorityHost' is not an https URL" {
			t.Errorf("%s: %v", authority, err)
		}
	}
	for key, value := range map[string]string{"tenantId": "x/../y?", "clientId": "a&b"} {
		data := map[string][]byte{"tenantId": []byte(tenant), "clientId": []byte("client"), "clientSecret": []byte("canary")}
		data[key] = []byte(value)
		var part *finding.Problem
		if _, err := auth.ReadAzureClient(data); !errors.As(err, &part) || !strings.HasPrefix(part.Text, "'"+key+"'") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// The key in a Secret is exchanged over the connections of the run, for a token that can only read objects.
// The host of the bucket may be any: the manifest brings the key.
func TestGoogleStorageKey(t *testing.T) {
	w := newCloudWorld(t)
	s := w.serve(t, "oauth2.googleapis.com:443", func(rw http.ResponseWriter, r *http.Request) {
		_, rest, _ := strings.Cut(r.FormValue("assertion"), ".")
		claims, _, _ := strings.Cut(rest, ".")
		if text, err := base64.RawURLEncoding.DecodeString(claims); err != nil || !strings.Contains(string(text), `"https://www.googleapis.com/auth/devstorage.read_only"`) {
			t.Errorf("claims %s, %v", text, err)
		}
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprint(rw, `{"access_token":"canary-google-token","expires_in":3600,"token_type":"Bearer"}`)
	})
	key, err := os.ReadFile(serviceAccount(t))
	if err != nil {
		t.Fatal(err)
	}
	read, err := auth.ReadGoogleKey(key)
	if err != nil {
		t.Fatal(err)
	}
	tokens := auth.NewGoogleStorage(w.options(), "storage.test", read)
	for range 2 {
		if token, err := tokens.Token(t.Context()); token != "canary-google-token" || err != nil {
			t.Errorf("%s, %v", token, err)
		}
	}
	wantRequests(t, s, 1)
}
