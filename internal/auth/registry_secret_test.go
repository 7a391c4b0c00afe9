package auth_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

func dockerSecret(config string) *manifest.Secret {
	return &manifest.Secret{
		Namespace: "apps", Name: "ghcr", Type: "kubernetes.io/dockerconfigjson",
		Data: map[string][]byte{".dockerconfigjson": []byte(config)},
	}
}

func opaque(pairs ...string) *manifest.Secret {
	s := &manifest.Secret{Namespace: "apps", Name: "login", Type: "Opaque", Data: map[string][]byte{}}
	for i := 0; i < len(pairs); i += 2 {
		s.Data[pairs[i]] = []byte(pairs[i+1])
	}
	return s
}

// §12 case 70
func TestRegistrySecret(t *testing.T) {
	for _, test := range []struct {
		name      string
		secret    *manifest.Secret
		host      string
		failure   string
		hint      string
		anonymous bool
	}{
		{"case 70: username and password", opaque("username", "u", "password", "canary"), "ghcr.io", "", "", false},
		{"case 70: username without password", opaque("username", "canary"), "ghcr.io", "invalid 'login' secret data: required fields 'username' and 'password'", "", false},
		{"case 70: password without username", opaque("password", "canary"), "ghcr.io", "invalid 'login' secret data: required fields 'username' and 'password'", "", false},
		{"case 70: both absent", opaque("token", "canary"), "ghcr.io", "", "", true},
		{"both empty", opaque("username", "", "password", ""), "ghcr.io", "", "", true},
		{"docker config", dockerSecret(user("u", "ghcr.io")), "ghcr.io", "", "", false},
		{"case 70: another host", dockerSecret(user("u", "quay.io", "b.test")), "ghcr.io", "no auth config for 'ghcr.io' in the docker-registry Secret 'ghcr'", "the Secret contains logins for: b.test, quay.io", false},
		{"no host", dockerSecret(`{}`), "ghcr.io", "no auth config for 'ghcr.io' in the docker-registry Secret 'ghcr'", "has no login", false},
		{"case 70: invalid JSON", dockerSecret(`{"auths": canary`), "ghcr.io", "unable to load Docker config from Secret 'ghcr': invalid JSON at byte", "", false},
		{"no key", &manifest.Secret{Namespace: "apps", Name: "ghcr", Type: "kubernetes.io/dockerconfigjson"}, "ghcr.io", "'.dockerconfigjson' not found", "", false},
		{"case 70: https://host", dockerSecret(user("u", "https://ghcr.io")), "ghcr.io", "", "", false},
		{"https://host/", dockerSecret(user("u", "https://ghcr.io/")), "ghcr.io", "", "", false},
		{"https://host/v1/", dockerSecret(user("u", "https://ghcr.io/v1/")), "ghcr.io", "", "", false},
		{"host/namespace", dockerSecret(user("u", "ghcr.io/org")), "ghcr.io", "", "", false},
		{"Docker Hub", dockerSecret(user("u", "https://index.docker.io/v1/")), "registry-1.docker.io", "", "", false},
		{"Docker Hub, the other way round", dockerSecret(user("u", "registry-1.docker.io")), "docker.io", "", "", false},
		{"half a login", dockerSecret(`{"auths": {"ghcr.io": {"username": "canary"}}}`), "ghcr.io", "required fields 'username' and 'password'", "", false},
		{"auth that is not base64", dockerSecret(`{"auths": {"ghcr.io": {"auth": "canary"}}}`), "ghcr.io", "its auth field is not base64", "", false},
		{"auth of another host that is not base64", dockerSecret(`{"auths": {"ghcr.io": {"auth": "` + "dTpw" + `"}, "x.test": {"auth": "canary"}}}`), "ghcr.io", "", "", false},
		{"identity token", dockerSecret(`{"auths": {"ghcr.io": {"identitytoken": "canary"}}}`), "ghcr.io", "", "", false},
		{"empty entry", dockerSecret(`{"auths": {"ghcr.io": {}}}`), "ghcr.io", "", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			logins, err := auth.RegistrySecret(test.secret, test.host)
			if test.failure != "" {
				var hinted interface{ Hint() string }
				if err == nil || !strings.Contains(err.Error(), test.failure) || strings.Contains(err.Error(), "canary") {
					t.Errorf("got error %v, want %q", err, test.failure)
				}
				if !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), test.hint) {
					t.Errorf("want hint %q: %v", test.hint, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := auth.LoginAt(t.Context(), logins, test.host, "org/chart")
			if err != nil || got.Credential.IsZero() != test.anonymous {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestRegistrySecretPrefersTheNamespace(t *testing.T) {
	logins, err := auth.RegistrySecret(dockerSecret(`{"auths": {"quay.io/a": {"username": "a", "password": "p"}, "quay.io": {"username": "all", "password": "p"}}}`), "quay.io")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := auth.LoginAt(t.Context(), logins, "quay.io", "a/chart")
	all, _ := auth.LoginAt(t.Context(), logins, "quay.io", "b/chart")
	if auth.StaticLogin(a).Key() == auth.StaticLogin(all).Key() {
		t.Error("both namespaces have the same login")
	}
}

func TestRegistrySecretOfTheWrongType(t *testing.T) {
	logins, err := auth.RegistrySecret(opaque(".dockerconfigjson", user("u", "ghcr.io")), "ghcr.io")
	if err != nil {
		t.Fatal(err)
	}
	got, err := auth.LoginAt(t.Context(), logins, "ghcr.io", "x")
	if err != nil || !got.Credential.IsZero() || got.Problem == nil || !strings.Contains(got.Problem.Error(), "its type is not kubernetes.io/dockerconfigjson") {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestLoginKeys(t *testing.T) {
	key := func(s *manifest.Secret) string {
		t.Helper()
		l, err := auth.RegistrySecret(s, "ghcr.io")
		if err != nil {
			t.Fatal(err)
		}
		return l.Key()
	}
	if key(opaque("username", "u", "password", "p")) != key(opaque("username", "u", "password", "p")) {
		t.Error("equal logins have different keys")
	}
	if key(opaque("username", "u", "password", "p")) == key(opaque("username", "u", "password", "q")) {
		t.Error("different logins have one key")
	}
	if key(dockerSecret(user("u", "ghcr.io"))) == key(dockerSecret(user("v", "ghcr.io"))) {
		t.Error("different docker configs have one key")
	}
}
