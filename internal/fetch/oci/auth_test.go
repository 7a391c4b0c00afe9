package oci_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

func opaqueSecret(name string, data map[string][]byte) *manifest.Secret {
	return &manifest.Secret{Namespace: "default", Name: name, Type: "Opaque", Data: data}
}

// §12 case 59
func TestOCICredentials(t *testing.T) {
	const charts = "-- registry/charts --\ncharts/podinfo 6.7.1\n"
	const basicAuth = charts + "-- registry/auth.json --\n" + `{"basic": "alice:canary-basic"}`
	const tokenAuth = charts + "-- registry/auth.json --\n" + `{"token": "alice:canary-token", "identity": "canary-identity"}`
	const anonymousToken = charts + "-- registry/auth.json --\n" + `{"token": "alice:canary-token", "anonymous": true}`
	login := func(user, password string) auth.Logins {
		return auth.StaticLogin{Credential: auth.BasicCredential(user, password), Source: "Secret 'default/login'"}
	}
	for _, test := range []struct {
		name    string
		archive string
		logins  auth.Logins
		failure string
		hint    string
	}{
		{"case 59: no auth", charts, nil, "", ""},
		{"a login that nobody wants", charts, login("alice", "canary-basic"), "", ""},
		{"case 59: basic", basicAuth, login("alice", "canary-basic"), "", ""},
		{"case 59: basic, wrong password", basicAuth, login("alice", "canary-wrong"), "401 Unauthorized: authentication required", "does not accept the login from Secret 'default/login'"},
		{"basic, no login", basicAuth, nil, "401 Unauthorized: authentication required", "helm registry login registry.test"},
		{"token", tokenAuth, login("alice", "canary-token"), "", ""},
		{"token, wrong password", tokenAuth, login("alice", "canary-wrong"), "token server 'http://auth.test' answered 401 Unauthorized", "does not accept the login from Secret 'default/login'"},
		{"token, no login", tokenAuth, nil, "401 Unauthorized", "helm registry login registry.test"},
		{"token for everybody", anonymousToken, nil, "", ""},
		{"identity token", tokenAuth, auth.StaticLogin{Credential: auth.IdentityTokenCredential("canary-identity")}, "", ""},
	} {
		for _, kind := range []string{"distribution", "ggcr"} {
			if kind == "ggcr" && strings.Contains(test.archive, `"token"`) {
				continue // it has basic authentication only
			}
			t.Run(test.name+" "+kind, func(t *testing.T) {
				w := registries(t, test.archive+"\n-- registry/kind --\n"+kind+"\n")
				repo := openOCI(t, ociClient(t, w), "oci://registry.test/charts", oci.Options{Insecure: true, Logins: test.logins})
				_, _, err := pull(t, repo, "podinfo", "6.7.1")
				if leaks := w.Leaks(append(w.Canaries(), helmtest.Canary{Value: "canary-wrong", Addrs: []string{"registry.test:80", "auth.test:80"}})); len(leaks) > 0 {
					t.Error(leaks)
				}
				if test.failure == "" {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				if kind == "ggcr" {
					wantError(t, err, "401 Unauthorized")
				} else {
					wantError(t, err, test.failure)
				}
				wantHint(t, err, test.hint)
				if !fetch.AuthFailure(err) || fetch.Transient(err) || strings.Contains(err.Error(), "canary") {
					t.Errorf("%v", err)
				}
				_, err = repo.Tags(t.Context(), "podinfo")
				if !fetch.AuthFailure(err) {
					t.Errorf("tags: %v", err)
				}
			})
		}
	}
}

func TestOCIAmbientAndSecretLogins(t *testing.T) {
	w := registries(t, "-- registry/charts --\ncharts/podinfo 6.7.1\n-- registry/auth.json --\n"+`{"token": "alice:canary-token"}`)
	config := `{"auths": {"http://registry.test/": {"username": "alice", "password": "canary-token"}}}`
	secret := &manifest.Secret{Namespace: "default", Name: "docker", Type: "kubernetes.io/dockerconfigjson", Data: map[string][]byte{".dockerconfigjson": []byte(config)}}
	logins, err := auth.RegistrySecret(secret, "registry.test")
	if err != nil {
		t.Fatal(err)
	}
	repo := openOCI(t, ociClient(t, w), "oci://registry.test/charts", oci.Options{Insecure: true, Logins: logins})
	if _, _, err := pull(t, repo, "podinfo", "6.7.1"); err != nil {
		t.Error(err)
	}
}

// §12 case 60
func TestOCITLS(t *testing.T) {
	const charts = "-- registry/charts --\ncharts/podinfo 6.7.1\n-- registry/tls --\n-- registryb/charts --\ncharts/podinfo 6.7.1\n-- registryb/mtls --\n"
	w := registries(t, charts+"-- registryc/charts --\ncharts/podinfo 6.7.1\n")
	identity := func(files map[string][]byte) *auth.Identity {
		id, _, err := auth.FromSecrets(nil, opaqueSecret("tls", files))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	kit := w.Kit
	ca := identity(map[string][]byte{"ca.crt": kit.CA.Cert})
	pair := identity(map[string][]byte{"ca.crt": kit.CA.Cert, "tls.crt": kit.Client.Cert, "tls.key": kit.Client.Key})
	other := identity(map[string][]byte{"ca.crt": kit.CA.Cert, "tls.crt": kit.OtherClient.Cert, "tls.key": kit.OtherClient.Key})
	wrongCA := identity(map[string][]byte{"ca.crt": kit.Other.Cert})
	for _, test := range []struct {
		name, host string
		id         *auth.Identity
		insecure   bool
		failure    string
		hint       string
		auth       bool
	}{
		{"case 60: CA only", "registry.test", ca, false, "", "", false},
		{"case 60: CA and client pair", "registryb.test", pair, false, "", "", false},
		{"no CA", "registry.test", nil, false, "x509: certificate signed by unknown authority", "spec.certSecretRef", true},
		{"another CA", "registry.test", wrongCA, false, "x509: certificate signed by unknown authority", "the CA in ca.crt did not issue", true},
		{"case 60: no client certificate", "registryb.test", ca, false, "remote error: tls: ", "", true},
		{"case 60: wrong client CA", "registryb.test", other, false, "remote error: tls: ", "", true},
		{"plain HTTP to a TLS port", "registry.test:443", ca, true, "400 Bad Request", "remove it", false},
		{"TLS to a plain HTTP port", "registryc.test:80", ca, false, "tls: first record does not look like a TLS handshake", "spec.insecure: true", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			repo := openOCI(t, ociClient(t, w), "oci://"+test.host+"/charts", oci.Options{Identity: test.id, Insecure: test.insecure})
			_, archive, err := pull(t, repo, "podinfo", "6.7.1")
			if test.failure == "" {
				if err != nil || len(archive) == 0 {
					t.Error(err)
				}
				return
			}
			wantError(t, err, test.failure)
			if test.hint != "" {
				wantHint(t, err, test.hint)
			}
			if fetch.AuthFailure(err) != test.auth || fetch.Transient(err) {
				t.Errorf("auth failure %v, transient %v: %v", fetch.AuthFailure(err), fetch.Transient(err), err)
			}
		})
	}
	t.Run("case 60: invalid CA", func(t *testing.T) {
		_, _, err := auth.FromSecrets(nil, opaqueSecret("tls", map[string][]byte{"ca.crt": []byte("canary")}))
		wantError(t, err, "failed to construct Helm client's TLS config: failed to parse CA certificate")
	})
}

func TestOCITokenServerWithPrivateCA(t *testing.T) {
	w := registries(t, "-- registry/charts --\ncharts/podinfo 6.7.1\n-- registry/tls --\n-- registry/auth.json --\n"+`{"token": "alice:canary-token"}`)
	id, _, err := auth.FromSecrets(nil, opaqueSecret("tls", map[string][]byte{"ca.crt": w.Kit.CA.Cert}))
	if err != nil {
		t.Fatal(err)
	}
	repo := openOCI(t, ociClient(t, w), "oci://registry.test/charts", oci.Options{Identity: id, Logins: basic("alice:canary-token")})
	if _, _, err := pull(t, repo, "podinfo", "6.7.1"); err != nil {
		t.Error(err)
	}
}

// A registry whose blobs are in a store on another host, and a registry whose redirects are wrong.
func TestOCIRedirects(t *testing.T) {
	const charts = "-- registry/charts --\ncharts/podinfo 6.7.1\n-- registry/auth.json --\n" + `{"token": "alice:canary-token"}` + "\n-- repo/x.txt --\nhello\n"
	open := func(t *testing.T, redirect string) (*helmtest.World, *oci.Namespace) {
		w := registries(t, charts+"\n-- registry/faults.json --\n"+fmt.Sprintf(`{"/v2/charts/podinfo/blobs/*": {"status": 307, "redirect": %q}}`, redirect))
		return w, openOCI(t, ociClient(t, w), "oci://registry.test/charts", oci.Options{Insecure: true, Logins: basic("alice:canary-token")})
	}
	t.Run("blob store", func(t *testing.T) {
		w, repo := open(t, "http://repo.test/archive.tgz?X-Amz-Signature=canary-signature")
		m, err := repo.Pin(t.Context(), "podinfo", "6.7.1")
		if err != nil {
			t.Fatal(err)
		}
		// The store holds the same bytes as the registry.
		plainWorld := registries(t, "-- registry/charts --\ncharts/podinfo 6.7.1\n")
		_, archive, err := pull(t, openOCI(t, ociClient(t, plainWorld), "oci://registry.test/charts", plain), "podinfo", "6.7.1")
		if err != nil {
			t.Fatal(err)
		}
		w.Servers["repo"].Use(helmtest.Repository{"/archive.tgz": archive})
		var dst memory
		if err := repo.Archive(t.Context(), m, &dst, mebibyte); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(dst.Bytes(), archive) {
			t.Error("another archive")
		}
		if leaks := w.Leaks(w.Canaries()); len(leaks) > 0 {
			t.Error(leaks)
		}
		for _, r := range w.Servers["repo"].Log.All() {
			if r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
				t.Errorf("%s", r)
			}
		}
	})
	t.Run("blob store that repeats the signed URL", func(t *testing.T) {
		w, repo := open(t, "http://repo.test/archive.tgz?X-Amz-Signature=canary-signature")
		w.Servers["repo"].Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(rw, "expired: %s", r.URL)
		}))
		_, _, err := pull(t, repo, "podinfo", "6.7.1")
		wantError(t, err, "403 Forbidden: expired: /archive.tgz")
		var hinted interface{ Hint() string }
		if strings.Contains(err.Error(), "canary") || errors.As(err, &hinted) && hinted.Hint() != "" {
			t.Errorf("%v, hint %v", err, hinted)
		}
	})
	t.Run("blob store that sends us back", func(t *testing.T) {
		w, repo := open(t, "http://repo.test/archive.tgz")
		const secretPath = "/v2/charts/podinfo/tags/list"
		w.Servers["repo"].Use(http.RedirectHandler("http://registry.test"+secretPath, http.StatusTemporaryRedirect))
		_, _, err := pull(t, repo, "podinfo", "6.7.1")
		wantError(t, err, "401 Unauthorized")
		for _, r := range w.Servers["registry"].Log.All() {
			if r.URI == secretPath && r.Header.Get("Authorization") != "" {
				t.Errorf("%s", r)
			}
		}
	})
	for _, test := range []struct{ name, redirect, want string }{
		{"blob store refuses", "http://repo.test/missing?X-Amz-Signature=canary-signature", "404 Not Found"},
		{"blob store is not there", "http://nowhere.test/x?X-Amz-Signature=canary-signature", "nowhere.test"},
		{"other scheme", "file:///etc/passwd", `scheme "file" not supported`},
		{"loop", "http://registry.test/v2/charts/podinfo/blobs/sha256:00", "redirect loop"},
		{"wrong content", "http://repo.test/x.txt", "its size differs from its manifest"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, repo := open(t, test.redirect)
			_, _, err := pull(t, repo, "podinfo", "6.7.1")
			wantError(t, err, test.want)
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("%v", err)
			}
			if leaks := w.Leaks(w.Canaries()); len(leaks) > 0 {
				t.Error(leaks)
			}
		})
	}
}

func TestDockerHubIsOneHost(t *testing.T) {
	config := `{"auths": {"https://index.docker.io/v1/": {"username": "alice", "password": "canary-token"}}}`
	secret := &manifest.Secret{Namespace: "default", Name: "docker", Type: "kubernetes.io/dockerconfigjson", Data: map[string][]byte{".dockerconfigjson": []byte(config)}}
	for _, host := range []string{"docker.io", "registry-1.docker.io", "index.docker.io"} {
		t.Run(host, func(t *testing.T) {
			addr := host
			if host == "docker.io" {
				addr = "registry-1.docker.io"
			}
			w := registries(t, "-- registry/charts --\norg/podinfo 6.7.1\n-- registry/tls --\n-- registry/addr --\n"+addr+":443\n-- registry/auth.json --\n"+`{"token": "alice:canary-token"}`)
			id, _, err := auth.FromSecrets(nil, opaqueSecret("tls", map[string][]byte{"ca.crt": w.Kit.CA.Cert}))
			if err != nil {
				t.Fatal(err)
			}
			logins, err := auth.RegistrySecret(secret, host)
			if err != nil {
				t.Fatal(err)
			}
			m, _, err := pull(t, openOCI(t, ociClient(t, w), "oci://"+host+"/org", oci.Options{Identity: id, Logins: logins}), "podinfo", "6.7.1")
			if err != nil {
				t.Fatal(err)
			}
			if m.Ref != "oci://"+host+"/org/podinfo:6.7.1" {
				t.Errorf("ref %s", m.Ref)
			}
			anonymous := openOCI(t, ociClient(t, w), "oci://"+host+"/org", oci.Options{Identity: id})
			_, _, err = pull(t, anonymous, "podinfo", "6.7.1")
			wantError(t, err, "401 Unauthorized")
			wantHint(t, err, "Docker Hub gives the same answer to both")
		})
	}
}

func TestOCIForbidden(t *testing.T) {
	for _, test := range []struct {
		name, host string
		logins     auth.Logins
		hint       string
	}{
		{"with a login", "registry.test", basic("alice:canary"), "the login from Secret 'default/login' may lack the permission to read 'charts/podinfo'"},
		{"case 59: ECR", "123456789012.dkr.ecr.eu-west-1.amazonaws.com", basic("AWS:canary"), "ecr:BatchGetImage"},
		{"ACR", "x.azurecr.io", basic("x:canary"), "the role AcrPull"},
		{"Artifact Registry", "europe-docker.pkg.dev", basic("x:canary"), "artifactregistry.repositories.downloadArtifacts"},
		{"a login that could not be used", "registry.test", auth.StaticLogin{Problem: errors.New("docker-credential-x: not found on PATH")}, "docker-credential-x: not found on PATH"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := helmtest.NewWorld(nil)
			s, err := helmtest.Serve(w.Network, test.host+":80", nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, `{"errors":[{"code":"DENIED","message":"denied"}]}`)
			}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			repo := openOCI(t, ociClient(t, w), "oci://"+test.host+"/charts", oci.Options{Insecure: true, Logins: test.logins})
			_, _, err = pull(t, repo, "podinfo", "1.0.0")
			wantError(t, err, "403 Forbidden: denied")
			wantHint(t, err, test.hint)
		})
	}
}
