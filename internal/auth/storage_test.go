package auth_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/helmsrc/helmsrc/internal/auth"
)

func (w *cloudWorld) options() auth.CloudOptions {
	return auth.CloudOptions{Dial: w.network.Dial, Getenv: func(string) string { return "" }, Identity: w.identity, Now: func() time.Time { return w.now }}
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
	tokens, err := auth.NewGoogleStorage(w.options(), "storage.googleapis.com", nil)
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
		tokens, err := auth.NewGoogleStorage(w.options(), host, nil)
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
		ambient, err := auth.AmbientAzureStorage(w.options(), host, "")
		if err != nil {
			t.Fatal(err)
		}
		named, err := auth.NewAzureStorage(w.options(), host, map[string][]byte{"clientId": []byte("client")})
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

// A Secret that holds nothing but the authority has the job's own identity log in there.
func TestAzureStorageAuthority(t *testing.T) {
	w := newCloudWorld(t)
	t.Setenv("AZURE_CLIENT_ID", "client")
	t.Setenv("AZURE_TENANT_ID", tenant)
	t.Setenv("AZURE_CLIENT_SECRET", "canary-client-secret")
	s := w.serve(t, "login.test:443", entra(t, "login.test", func(form url.Values) {
		if form.Get("client_secret") != "canary-client-secret" || !strings.Contains(form.Get("scope"), "https://storage.azure.com/.default") {
			t.Errorf("form %v", form)
		}
	}))
	for _, authority := range []string{"https://login.test/", "https://login.test"} {
		storage, err := auth.AmbientAzureStorage(w.options(), "a.blob.core.windows.net", authority)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := storage.GetToken(t.Context(), policy.TokenRequestOptions{}); err != nil {
			t.Error(err)
		}
	}
	if len(s.Log.All()) == 0 {
		t.Error("nobody logged in")
	}
}
