package auth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
)

func TestGoogle(t *testing.T) {
	const host = "europe-docker.pkg.dev"
	const user = "oauth2accesstoken:canary-google-token"
	tokenServer := func(check func(url.Values)) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			if err := r.ParseForm(); err != nil {
				t.Error(err)
			}
			check(r.Form)
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprint(rw, `{"access_token": "canary-google-token", "expires_in": 3600, "token_type": "Bearer", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}`)
		}
	}
	metadataServer := func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata-Flavor") != "Google" || r.URL.Path != "/computeMetadata/v1/instance/service-accounts/default/token" ||
			r.URL.Query().Get("scopes") != "https://www.googleapis.com/auth/devstorage.read_only" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		fmt.Fprint(rw, `{"access_token":"canary-google-token","expires_in":3600,"token_type":"Bearer"}`)
	}
	t.Run("metadata server", func(t *testing.T) {
		for _, registry := range []string{host, "gcr.io", "eu.gcr.io"} {
			w := newCloudWorld(t)
			w.serve(t, "169.254.169.254:80", metadataServer)
			logins, err := w.cloud().Logins(t.Context(), "gcp", auth.To(registry))
			if err != nil {
				t.Fatal(err)
			}
			w.wantBasic(t, logins, nil, registry, user)
		}
	})
	t.Run("GCE_METADATA_HOST", func(t *testing.T) {
		w := newCloudWorld(t)
		t.Setenv("GCE_METADATA_HOST", "meta.test:80")
		w.serve(t, "meta.test:80", metadataServer)
		if _, err := w.cloud().Logins(t.Context(), "gcp", auth.To(host)); err != nil {
			t.Error(err)
		}
	})
	t.Run("service account", func(t *testing.T) {
		w := newCloudWorld(t)
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", serviceAccount(t))
		w.serve(t, "oauth2.googleapis.com:443", tokenServer(func(form url.Values) {
			if form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || strings.Count(form.Get("assertion"), ".") != 2 {
				t.Errorf("form %v", form)
			}
		}))
		logins, err := w.cloud().Logins(t.Context(), "gcp", auth.To(host))
		if err != nil {
			t.Fatal(err)
		}
		w.wantBasic(t, logins, nil, host, user)
	})
	t.Run("workload identity federation", func(t *testing.T) {
		w := newCloudWorld(t)
		subject := write(t, "canary-subject", t.TempDir(), "subject")
		config, err := json.Marshal(map[string]any{
			"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/p",
			"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": "https://sts.googleapis.com/v1/token",
			"credential_source": map[string]string{"file": subject},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", write(t, string(config), t.TempDir(), "adc.json"))
		w.serve(t, "sts.googleapis.com:443", tokenServer(func(form url.Values) {
			if form.Get("subject_token") != "canary-subject" {
				t.Errorf("form %v", form)
			}
		}))
		if _, err := w.cloud().Logins(t.Context(), "gcp", auth.To(host)); err != nil {
			t.Error(err)
		}
	})
	t.Run("gcloud's own file", func(t *testing.T) {
		w := newCloudWorld(t)
		const adc = `{"type": "authorized_user", "client_id": "c", "client_secret": "canary-s", "refresh_token": "canary-refresh"}`
		home := os.Getenv("HOME")
		write(t, adc, home, ".config", "gcloud", "application_default_credentials.json")
		write(t, adc, home, "gcloud", "application_default_credentials.json") // on Windows
		w.serve(t, "oauth2.googleapis.com:443", tokenServer(func(form url.Values) {
			if form.Get("refresh_token") != "canary-refresh" {
				t.Errorf("form %v", form)
			}
		}))
		if _, err := w.cloud().Logins(t.Context(), "gcp", auth.To(host)); err != nil {
			t.Error(err)
		}
	})
	for _, test := range []struct {
		name, file string
		code       int
		want       string
		transient  bool
	}{
		{"named file is not there", "", 0, "GOOGLE_APPLICATION_CREDENTIALS: no such file", false},
		{"not JSON", "canary", 0, "not a file of application default credentials", false},
		{"of another type", `{"type": "canary"}`, 0, "not a file of application default credentials", false},
		{"refused", "KEY", 400, "invalid_grant", false},
		{"bad moment", "KEY", 503, "503", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newCloudWorld(t)
			file := filepath.Join(t.TempDir(), "adc.json")
			switch test.file {
			case "":
			case "KEY":
				file = serviceAccount(t)
			default:
				write(t, test.file, file)
			}
			t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
			w.serve(t, "oauth2.googleapis.com:443", status(test.code, "", `{"error":"invalid_grant"}`))
			_, err := w.cloud().Logins(t.Context(), "gcp", auth.To(host))
			wantCloudError(t, err, test.want, "", test.transient)
		})
	}
}

func serviceAccount(t *testing.T) string {
	t.Helper()
	key := testKey()
	block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	data, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "ci@project.iam.gserviceaccount.com", "private_key_id": "1",
		"private_key": string(block), "token_uri": "https://oauth2.googleapis.com/token",
	})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, string(data), t.TempDir(), "key.json")
}

var testKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})
