package auth_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

const tenant = "11111111-2222-3333-4444-555555555555"

// entra speaks OpenID configuration and the token endpoint.
func entra(t *testing.T, host string, check func(url.Values)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		base := "https://" + host + "/" + tenant
		rw.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/common/discovery/instance":
			fmt.Fprintf(rw, `{"tenant_discovery_endpoint": "%s/v2.0/.well-known/openid-configuration", "api-version": "1.1",
				"metadata": [{"preferred_network": %q, "preferred_cache": %q, "aliases": [%q]}]}`, base, host, host, host)
		case "/" + tenant + "/v2.0/.well-known/openid-configuration":
			fmt.Fprintf(rw, `{"authorization_endpoint": "%s/oauth2/v2.0/authorize", "token_endpoint": "%s/oauth2/v2.0/token", "issuer": "%s/v2.0"}`, base, base, base)
		case "/" + tenant + "/oauth2/v2.0/token":
			if err := r.ParseForm(); err != nil {
				t.Error(err)
			}
			check(r.PostForm)
			fmt.Fprint(rw, `{"token_type": "Bearer", "expires_in": 3600, "access_token": "canary-entra-token"}`)
		default:
			t.Errorf("request for %s", r.URL)
			rw.WriteHeader(http.StatusNotFound)
		}
	}
}

// acr exchanges the token of Entra ID.
func acr(t *testing.T, host, refresh string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		if r.URL.Path != "/oauth2/exchange" || r.PostForm.Get("grant_type") != "access_token" || r.PostForm.Get("service") != host || r.PostForm.Get("access_token") != "canary-entra-token" {
			t.Errorf("%s %v", r.URL, r.PostForm)
		}
		fmt.Fprintf(rw, `{"refresh_token": %q}`, refresh)
	}
}

func jwt(t *testing.T, expires time.Time) string {
	t.Helper()
	claims, err := json.Marshal(map[string]int64{"exp": expires.Unix()})
	if err != nil {
		t.Fatal(err)
	}
	return "e30." + base64.RawURLEncoding.EncodeToString(claims) + ".sig"
}

func TestAzure(t *testing.T) {
	workload := func(t *testing.T) {
		t.Setenv("AZURE_CLIENT_ID", "client")
		t.Setenv("AZURE_TENANT_ID", tenant)
		t.Setenv("AZURE_FEDERATED_TOKEN_FILE", write(t, "canary-federated", t.TempDir(), "token"))
	}
	federated := func(form url.Values) {
		if form.Get("client_assertion") != "canary-federated" || form.Get("client_id") != "client" || !strings.Contains(form.Get("scope"), "https://containerregistry.azure.net/.default") {
			t.Errorf("form %v", form)
		}
	}
	t.Run("workload identity", func(t *testing.T) {
		for _, test := range []struct{ name, registry, authority, env string }{
			{"public", "reg.azurecr.io", "login.microsoftonline.com", ""},
			{"government", "reg.azurecr.us", "login.microsoftonline.us", ""},
			{"china", "reg.azurecr.cn", "login.chinacloudapi.cn", ""},
			{"AZURE_AUTHORITY_HOST", "reg.azurecr.io", "login.test", "https://login.test/"},
		} {
			t.Run(test.name, func(t *testing.T) {
				w := newCloudWorld(t)
				workload(t)
				if test.env != "" {
					t.Setenv("AZURE_AUTHORITY_HOST", test.env)
				}
				w.serve(t, test.authority+":443", entra(t, test.authority, federated))
				if test.authority == "login.microsoftonline.us" {
					// Microsoft's own list of clouds is kept at the first of them.
					w.serve(t, "login.microsoftonline.com:443", entra(t, test.authority, federated))
				}
				refresh := jwt(t, w.now.Add(3*time.Hour))
				s := w.serve(t, test.registry+":443", acr(t, test.registry, refresh))
				logins, err := w.cloud().Logins(t.Context(), "azure", auth.To(test.registry))
				if err != nil {
					t.Fatal(err)
				}
				wantRequests(t, s, 1)
				w.now = w.now.Add(2 * time.Hour)
				if _, err := auth.LoginAt(t.Context(), logins, test.registry, "x"); err != nil {
					t.Error(err)
				}
				wantRequests(t, s, 1)
				w.wantBasic(t, logins, s, test.registry, "00000000-0000-0000-0000-000000000000:"+refresh)
			})
		}
	})
	t.Run("client secret", func(t *testing.T) {
		w := newCloudWorld(t)
		t.Setenv("AZURE_CLIENT_ID", "client")
		t.Setenv("AZURE_TENANT_ID", tenant)
		t.Setenv("AZURE_CLIENT_SECRET", "canary-client-secret")
		w.serve(t, "login.microsoftonline.com:443", entra(t, "login.microsoftonline.com", func(form url.Values) {
			if form.Get("client_secret") != "canary-client-secret" {
				t.Errorf("form %v", form)
			}
		}))
		w.serve(t, "reg.azurecr.io:443", acr(t, "reg.azurecr.io", "opaque"))
		if _, err := w.cloud().Logins(t.Context(), "azure", auth.To("reg.azurecr.io")); err != nil {
			t.Error(err)
		}
	})
	t.Run("managed identity", func(t *testing.T) {
		w := newCloudWorld(t)
		w.serve(t, "169.254.169.254:80", func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Metadata") != "true" {
				rw.WriteHeader(http.StatusBadRequest)
				return
			}
			if r.URL.Path != "/metadata/identity/oauth2/token" || r.URL.Query().Get("resource") != "https://containerregistry.azure.net" {
				t.Errorf("%s", r.URL)
			}
			fmt.Fprintf(rw, `{"access_token": "canary-entra-token", "expires_in": "3600", "expires_on": "%d", "resource": "x", "token_type": "Bearer"}`, time.Now().Unix()+3600)
		})
		w.serve(t, "reg.azurecr.io:443", acr(t, "reg.azurecr.io", "opaque"))
		if _, err := w.cloud().Logins(t.Context(), "azure", auth.To("reg.azurecr.io")); err != nil {
			t.Error(err)
		}
	})
	t.Run("one of several managed identities", func(t *testing.T) {
		w := newCloudWorld(t)
		t.Setenv("AZURE_CLIENT_ID", "one-of-several")
		s := w.serve(t, "169.254.169.254:80", func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Metadata") != "true" {
				rw.WriteHeader(http.StatusBadRequest)
				return
			}
			if r.URL.Query().Get("client_id") != "one-of-several" {
				t.Errorf("%s", r.URL)
			}
			fmt.Fprintf(rw, `{"access_token": "canary-entra-token", "expires_in": "3600", "expires_on": "%d", "resource": "x", "token_type": "Bearer"}`, time.Now().Unix()+3600)
		})
		w.serve(t, "reg.azurecr.io:443", acr(t, "reg.azurecr.io", "opaque"))
		if _, err := w.cloud().Logins(t.Context(), "azure", auth.To("reg.azurecr.io")); err != nil {
			t.Error(err)
		}
		if len(s.Log.All()) == 0 {
			t.Error("nobody was asked")
		}
	})
	for _, test := range []struct {
		name      string
		code      int
		body      string
		want      string
		hint      string
		transient bool
	}{
		{"exchange is refused", 401, `{"errors":[{"code":"UNAUTHORIZED","message":"not allowed: canary-entra-token"}]}`, "token server 'https://reg.azurecr.io' answered 401 Unauthorized: not allowed: REDACTED", "", false},
		{"no permission", 403, `{}`, "403 Forbidden", "AcrPull", false},
		{"bad moment", 503, ``, "503 Service Unavailable", "", true},
		{"no token", 200, `{}`, "its answer contains no token", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newCloudWorld(t)
			workload(t)
			w.serve(t, "login.microsoftonline.com:443", entra(t, "login.microsoftonline.com", federated))
			w.serve(t, "reg.azurecr.io:443", status(test.code, "", test.body))
			_, err := w.cloud().Logins(t.Context(), "azure", auth.To("reg.azurecr.io"))
			wantCloudError(t, err, test.want, test.hint, test.transient)
		})
	}
}

// TestAzureRenewedInPlace renews the login of a registry while a request has the only place there. The exchange of tokens is
// at the same host, and takes the place.
func TestAzureRenewedInPlace(t *testing.T) {
	const host = "reg.azurecr.io"
	w := newCloudWorld(t)
	t.Setenv("AZURE_CLIENT_ID", "client")
	t.Setenv("AZURE_TENANT_ID", tenant)
	t.Setenv("AZURE_FEDERATED_TOKEN_FILE", write(t, "canary-federated", t.TempDir(), "token"))
	now := func() time.Time { return w.now }
	client := fetch.NewClient(fetch.Config{Dial: w.network.Dial, Now: now, PerHost: 1})
	w.serve(t, "login.microsoftonline.com:443", entra(t, "login.microsoftonline.com", func(url.Values) {}))
	exchange := acr(t, host, jwt(t, w.now.Add(time.Hour)))
	w.serve(t, host+":443", func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/oauth2/exchange" {
			exchange(rw, r)
		} else if _, _, ok := r.BasicAuth(); !ok {
			rw.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			rw.WriteHeader(http.StatusUnauthorized)
		}
	})
	cloud := auth.NewCloud(auth.CloudOptions{Dial: w.network.Dial, Getenv: os.Getenv, Now: now, Acquire: client.Acquire, Leave: fetch.LeaveHost})
	logins, err := cloud.Logins(t.Context(), "azure", auth.To(host))
	if err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(2 * time.Hour)
	registry := &url.URL{Scheme: "https", Host: host}
	rt := auth.NewRegistryTransport(auth.RegistryOptions{
		TransportOptions: auth.TransportOptions{Base: registry, Dial: w.network.Dial},
		Logins:           logins, Tokens: auth.NewTokens(now), Enter: fetch.EnterHost, Leave: fetch.LeaveHost,
	})
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			slot := client.NewSlot()
			defer slot.Free()
			if err := slot.Move(t.Context(), registry); err != nil {
				t.Error(err)
				return
			}
			req, err := http.NewRequestWithContext(fetch.WithSlot(t.Context(), slot), http.MethodGet, "https://"+host+"/v2/x/tags/list", nil)
			if err != nil {
				t.Error(err)
				return
			}
			answer, err := rt.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = answer.Body.Close() }()
			if answer.StatusCode != http.StatusOK {
				t.Errorf("status %d", answer.StatusCode)
			}
		})
	}
	group.Wait()
}
