package auth_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// cloudWorld is a network in which a test puts up the servers of a cloud under their real names.
type cloudWorld struct {
	network  *helmtest.Network
	ca       *helmtest.CA
	identity *auth.Identity
	now      time.Time
}

// newCloudWorld also clears the process's environment of whatever the clouds' libraries would find in it.
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
	ca, err := helmtest.NewCA("cloud")
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := auth.FromSecrets(nil, &manifest.Secret{Name: "ca", Type: "Opaque", Data: map[string][]byte{"ca.crt": ca.Cert}})
	if err != nil {
		t.Fatal(err)
	}
	return &cloudWorld{network: helmtest.NewNetwork(), ca: ca, identity: id, now: time.Now()}
}

// serve puts up a server, with TLS if the port is 443.
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
	return auth.NewCloud(auth.CloudOptions{Dial: w.network.Dial, Getenv: os.Getenv, Identity: w.identity, Now: func() time.Time { return w.now }})
}

// wantBasic pulls from a registry that wants a user and a password. The server, if there is one, becomes that registry.
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
		Registry: &url.URL{Scheme: "https", Host: host}, Identity: w.identity, Logins: logins,
		Tokens: auth.NewTokens(func() time.Time { return w.now }), Dial: w.network.Dial,
	})
	wantGet(t, rt, "https://"+host+"/v2/charts/podinfo/manifests/1.0.0", 200)
}

const webIdentityToken = "canary-web-identity-token-that-is-long-enough-to-look-like-one"

// ecrServer speaks GetAuthorizationToken of both registries.
func ecrServer(t *testing.T, region, service, key, secret, session string) http.HandlerFunc {
	target := map[string]string{"ecr": "AmazonEC2ContainerRegistry_V20150921", "ecr-public": "SpencerFrontendService"}[service]
	return func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if got := r.Header.Get("X-Amz-Target"); got != target+".GetAuthorizationToken" {
			t.Errorf("target %q", got)
		}
		if got := r.Header.Get("X-Amz-Security-Token"); got != session {
			t.Errorf("session token %q, want %q", got, session)
		}
		if err := checkSignature(r, body, region, service, aws.Credentials{AccessKeyID: key, SecretAccessKey: secret, SessionToken: session}); err != nil {
			t.Error(err)
		}
		data := fmt.Sprintf(`{"authorizationToken": %q, "expiresAt": %d}`,
			base64.StdEncoding.EncodeToString([]byte("AWS:canary-ecr-password")), time.Now().Add(12*time.Hour).Unix())
		if service == "ecr" {
			data = "[" + data + "]"
		}
		rw.Header().Set("Content-Type", "application/x-amz-json-1.1")
		fmt.Fprintf(rw, `{"authorizationData": %s}`, data)
	}
}

// checkSignature signs the request again, as AWS does.
func checkSignature(r *http.Request, body []byte, region, service string, c aws.Credentials) error {
	_, list, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	list, signature, _ := strings.Cut(list, ", Signature=")
	again, err := http.NewRequest(http.MethodPost, "https://"+r.Host+r.URL.Path, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	for _, name := range strings.Split(list, ";") {
		if name != "host" && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return err
	}
	if err := v4.NewSigner().SignHTTP(context.Background(), c, again, sha256Hex(body), service, region, at); err != nil {
		return err
	}
	if _, want, _ := strings.Cut(again.Header.Get("Authorization"), "Signature="); want != signature {
		return fmt.Errorf("wrong signature: %s, want %s", r.Header.Get("Authorization"), again.Header.Get("Authorization"))
	}
	return nil
}

func stsServer(t *testing.T) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		if r.Form.Get("Action") != "AssumeRoleWithWebIdentity" || r.Form.Get("WebIdentityToken") != webIdentityToken || r.Form.Get("RoleArn") != "arn:aws:iam::123456789012:role/ci" {
			t.Errorf("form %v", r.Form)
		}
		fmt.Fprintf(rw, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
			<AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/ci/x</Arn><AssumedRoleId>X:x</AssumedRoleId></AssumedRoleUser>
			<Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey><SessionToken>role-session</SessionToken><Expiration>%s</Expiration></Credentials>
			</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}
}

func TestAWS(t *testing.T) {
	const private = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"
	envKeys := func(t *testing.T) {
		t.Setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "env-secret")
	}
	t.Run("environment keys", func(t *testing.T) {
		w := newCloudWorld(t)
		envKeys(t)
		s := w.serve(t, "api.ecr.eu-west-1.amazonaws.com:443", ecrServer(t, "eu-west-1", "ecr", "AKIAENV", "env-secret", ""))
		c := w.cloud()
		logins, err := c.Logins(t.Context(), "aws", private)
		if err != nil {
			t.Fatal(err)
		}
		w.wantBasic(t, logins, nil, private, "AWS:canary-ecr-password")
		if _, err := c.Logins(t.Context(), "aws", private); err != nil {
			t.Error(err)
		}
		wantRequests(t, s, 1)
		t.Run("renewed when its time is over", func(t *testing.T) {
			w.now = w.now.Add(12 * time.Hour)
			if _, err := logins.Login(t.Context(), private, "x"); err != nil {
				t.Error(err)
			}
			wantRequests(t, s, 2)
		})
	})
	t.Run("web identity", func(t *testing.T) {
		w := newCloudWorld(t)
		file := write(t, webIdentityToken, t.TempDir(), "token")
		t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/ci")
		t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
		w.serve(t, "sts.eu-west-1.amazonaws.com:443", stsServer(t))
		w.serve(t, "api.ecr.eu-west-1.amazonaws.com:443", ecrServer(t, "eu-west-1", "ecr", "ASIAROLE", "role-secret", "role-session"))
		logins, err := w.cloud().Logins(t.Context(), "aws", private)
		if err != nil {
			t.Fatal(err)
		}
		w.wantBasic(t, logins, nil, private, "AWS:canary-ecr-password")
	})
	t.Run("instance metadata", func(t *testing.T) {
		w := newCloudWorld(t)
		t.Setenv("HTTP_PROXY", "http://proxy.test:1") // which does not lead to it
		w.serve(t, "169.254.169.254:80", func(rw http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
				rw.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
				fmt.Fprint(rw, "imds-token")
			case r.Header.Get("X-Aws-Ec2-Metadata-Token") != "imds-token":
				rw.WriteHeader(http.StatusUnauthorized)
			case strings.TrimSuffix(r.URL.Path, "/") == "/latest/meta-data/iam/security-credentials":
				fmt.Fprint(rw, "node-role")
			case r.URL.Path == "/latest/meta-data/iam/security-credentials/node-role":
				fmt.Fprintf(rw, `{"Code":"Success","AccessKeyId":"ASIANODE","SecretAccessKey":"node-secret","Token":"node-session","Expiration":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
			default:
				rw.WriteHeader(http.StatusNotFound)
			}
		})
		w.serve(t, "api.ecr.eu-west-1.amazonaws.com:443", ecrServer(t, "eu-west-1", "ecr", "ASIANODE", "node-secret", "node-session"))
		if _, err := w.cloud().Logins(t.Context(), "aws", private); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("registries of other kinds", func(t *testing.T) {
		for _, test := range []struct{ host, server, region, service string }{
			{"public.ecr.aws", "api.ecr-public.us-east-1.amazonaws.com", "us-east-1", "ecr-public"},
			{"123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn", "api.ecr.cn-north-1.amazonaws.com.cn", "cn-north-1", "ecr"},
			{"123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com", "api.ecr-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1", "ecr"},
			{"123456789012.dkr-ecr.eu-west-1.on.aws", "api.ecr.eu-west-1.amazonaws.com", "eu-west-1", "ecr"},
		} {
			t.Run(test.host, func(t *testing.T) {
				w := newCloudWorld(t)
				envKeys(t)
				w.serve(t, test.server+":443", ecrServer(t, test.region, test.service, "AKIAENV", "env-secret", ""))
				if _, err := w.cloud().Logins(t.Context(), "aws", test.host); err != nil {
					t.Error(err)
				}
			})
		}
	})
	t.Run("AWS_ENDPOINT_URL_ECR", func(t *testing.T) {
		w := newCloudWorld(t)
		envKeys(t)
		t.Setenv("AWS_ENDPOINT_URL_ECR", "http://ecr.test:8000")
		w.serve(t, "ecr.test:8000", func(rw http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(rw, `{"authorizationData": [{"authorizationToken": %q, "expiresAt": %d}]}`, base64.StdEncoding.EncodeToString([]byte("AWS:x")), time.Now().Unix()+3600)
		})
		if _, err := w.cloud().Logins(t.Context(), "aws", private); err != nil {
			t.Error(err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		w := newCloudWorld(t)
		envKeys(t)
		w.serve(t, "api.ecr.eu-west-1.amazonaws.com:443", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
			rw.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(rw, `{"__type":"AccessDeniedException","message":"User is not authorized to perform: ecr:GetAuthorizationToken"}`)
		})
		_, err := w.cloud().Logins(t.Context(), "aws", private)
		wantCloudError(t, err, "AccessDeniedException: User is not authorized to perform: ecr:GetAuthorizationToken", "ecr:GetAuthorizationToken", false)
	})
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
			_, err := c.Logins(t.Context(), test.provider, test.host)
			wantCloudError(t, err, test.want, test.hint, false)
			if _, again := c.Logins(t.Context(), test.provider, test.host); again != err {
				t.Errorf("the failure is not remembered: %v", again)
			}
		})
	}
}

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
				logins, err := w.cloud().Logins(t.Context(), "azure", test.registry)
				if err != nil {
					t.Fatal(err)
				}
				wantRequests(t, s, 1)
				w.now = w.now.Add(2 * time.Hour)
				if _, err := logins.Login(t.Context(), test.registry, "x"); err != nil {
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
		if _, err := w.cloud().Logins(t.Context(), "azure", "reg.azurecr.io"); err != nil {
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
		if _, err := w.cloud().Logins(t.Context(), "azure", "reg.azurecr.io"); err != nil {
			t.Error(err)
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
		{"no token", 200, `{}`, "its answer holds no token", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newCloudWorld(t)
			workload(t)
			w.serve(t, "login.microsoftonline.com:443", entra(t, "login.microsoftonline.com", federated))
			w.serve(t, "reg.azurecr.io:443", status(test.code, "", test.body))
			_, err := w.cloud().Logins(t.Context(), "azure", "reg.azurecr.io")
			wantCloudError(t, err, test.want, test.hint, test.transient)
		})
	}
}

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
			r.URL.Query().Get("scopes") != "https://www.googleapis.com/auth/cloud-platform" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		fmt.Fprint(rw, `{"access_token":"canary-google-token","expires_in":3600,"token_type":"Bearer"}`)
	}
	t.Run("metadata server", func(t *testing.T) {
		for _, registry := range []string{host, "gcr.io", "eu.gcr.io"} {
			w := newCloudWorld(t)
			w.serve(t, "169.254.169.254:80", metadataServer)
			logins, err := w.cloud().Logins(t.Context(), "gcp", registry)
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
		if _, err := w.cloud().Logins(t.Context(), "gcp", host); err != nil {
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
		logins, err := w.cloud().Logins(t.Context(), "gcp", host)
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
		if _, err := w.cloud().Logins(t.Context(), "gcp", host); err != nil {
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
		if _, err := w.cloud().Logins(t.Context(), "gcp", host); err != nil {
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
			_, err := w.cloud().Logins(t.Context(), "gcp", host)
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

func TestCloudsAreAskedOnce(t *testing.T) {
	w := newCloudWorld(t)
	s := w.serve(t, "169.254.169.254:80", func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(rw, `{"access_token":"x","expires_in":3600}`)
	})
	c := w.cloud()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := c.Logins(t.Context(), "gcp", "gcr.io"); err != nil {
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

func sha256Hex(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

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
		{"anything else", errors.New("x"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := (&auth.CloudError{Err: fmt.Errorf("wrapped: %w", test.err)}).Transient(); got != test.want {
				t.Errorf("%v", got)
			}
		})
	}
}
