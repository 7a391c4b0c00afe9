package auth_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// logins makes an auths object in which each key has itself as the user's name.
func logins(keys ...string) string {
	var list []string
	for _, key := range keys {
		list = append(list, fmt.Sprintf(`%q: {"username": %q, "password": "canary"}`, key, key))
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func dockerCfg(config string) *manifest.Secret {
	return &manifest.Secret{
		Namespace: "apps", Name: "old", Type: "kubernetes.io/dockercfg", Data: map[string][]byte{".dockercfg": []byte(config)},
	}
}

// case R35
func TestPullSecrets(t *testing.T) {
	config := func(keys ...string) []*manifest.Secret {
		return []*manifest.Secret{dockerSecret(`{"auths": ` + logins(keys...) + `}`)}
	}
	for _, tt := range []struct {
		name             string
		secrets          []*manifest.Secret
		host, repository string
		want             string // the credential of this key, "" for none
		problem          string
	}{
		{"host", config("ghcr.io"), "ghcr.io", "org/app", "ghcr.io", ""},
		{"URL", config("https://ghcr.io/v2/"), "ghcr.io", "org/app", "https://ghcr.io/v2/", ""},
		{"URL without an end", config("https://ghcr.io/v1"), "ghcr.io", "org/app", "https://ghcr.io/v1", ""},
		{"path", config("ghcr.io/org"), "ghcr.io", "org/app", "ghcr.io/org", ""},
		{"the beginning of a path", config("ghcr.io/or"), "ghcr.io", "org/app", "ghcr.io/or", ""},
		{"another path", config("ghcr.io/other"), "ghcr.io", "org/app", "", "no login for 'ghcr.io' in Secret 'apps/ghcr', only for: ghcr.io/other"},
		{"the longest", config("ghcr.io", "ghcr.io/org/app", "ghcr.io/org"), "ghcr.io", "org/app", "ghcr.io/org/app", ""},
		{"port", config("r.test", "r.test:5000"), "r.test:5000", "app", "r.test:5000", ""},
		{"no port", config("r.test:5000"), "r.test", "app", "", "no login for 'r.test' in Secret 'apps/ghcr', only for: r.test:5000"},
		{"glob", config("*.example.com"), "r.example.com", "app", "*.example.com", ""},
		{"a glob is one label", config("*.example.com"), "a.r.example.com", "app", "", "no login for 'a.r.example.com' in Secret 'apps/ghcr', only for: *.example.com"},
		{"part of a label", config("r-*.example.com"), "r-1.example.com", "app", "r-*.example.com", ""},
		{"glob with a port", config("*.example.com:5000"), "r.example.com:5000", "app", "*.example.com:5000", ""},
		{"a glob is not for other ports", config("*.example.com"), "r.example.com:5000", "app", "", "no login for 'r.example.com:5000' in Secret 'apps/ghcr', only for: *.example.com"},
		{"a host before a glob", config("*.example.com", "r.example.com"), "r.example.com", "app", "r.example.com", ""},
		{"bad glob", config("[.example.com"), "r.example.com", "app", "", "no login for 'r.example.com' in Secret 'apps/ghcr', only for: [.example.com"},
		{"Docker Hub", config("https://index.docker.io/v1/"), "registry-1.docker.io", "org/app", "https://index.docker.io/v1/", ""},
		{"nothing in it", config(), "ghcr.io", "app", "", "no login for 'ghcr.io' in Secret 'apps/ghcr'"},
		{"dockercfg", []*manifest.Secret{dockerCfg(logins("ghcr.io"))}, "ghcr.io", "app", "ghcr.io", ""},
		{"the first of two", []*manifest.Secret{dockerCfg(logins("ghcr.io")), dockerSecret(`{"auths": ` + logins("https://ghcr.io") + `}`)}, "ghcr.io", "app", "ghcr.io", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, warnings, errs := auth.NewPullSecrets(tt.secrets)
			if errs != nil || p == nil || len(warnings) > 0 {
				t.Fatal(p, warnings, errs)
			}
			login, err := p.Login(t.Context(), tt.host, tt.repository)
			if err != nil {
				t.Fatal(err)
			}
			want := auth.StaticLogin{Credential: auth.BasicCredential(tt.want, "canary")}.Key()
			if tt.want == "" {
				want = auth.StaticLogin{}.Key()
			}
			if got := auth.StaticLogin(login).Key(); got != want {
				t.Errorf("another credential, from %s", login.Source)
			}
			if problem := fmt.Sprint(login.Problem); tt.problem != "" && problem != tt.problem {
				t.Errorf("problem %s\nwant %s", problem, tt.problem)
			}
			if text := fmt.Sprintf("%v %+v %#v %s", p, p, p, login); strings.Contains(text, "canary") {
				t.Errorf("it prints the password: %s", text)
			}
		})
	}
}

func TestPullSecretsRefused(t *testing.T) {
	for _, tt := range []struct {
		secret *manifest.Secret
		want   string
	}{
		{dockerSecret(`{"auths": ["canary"]}`), "Secret 'apps/ghcr': invalid docker config: a field at byte 11 has the wrong type"},
		{dockerCfg(`canary`), "Secret 'apps/old': invalid JSON at byte 1"},
		{dockerCfg(strings.Repeat(" ", 1<<20) + "{}"), "Secret 'apps/old': larger than 1048576 bytes"},
	} {
		_, _, errs := auth.NewPullSecrets([]*manifest.Secret{tt.secret})
		if len(errs) != 1 || errs[0].Error() != tt.want || errs[0].Secret != tt.secret {
			t.Errorf("got %v, want %s", errs, tt.want)
		}
	}
	for config, want := range map[string]string{
		`{"ghcr.io": {"auth": "canary!"}}`:    "Secret 'apps/old': its entry for 'ghcr.io': its auth field is not base64 of username:password",
		`{"ghcr.io": {"username": "canary"}}`: "Secret 'apps/old': its entry for 'ghcr.io': username and password are needed: only one of them is there",
	} {
		p, _, err := auth.NewPullSecrets([]*manifest.Secret{dockerCfg(config)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Login(t.Context(), "ghcr.io", "app"); fmt.Sprint(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
		// A fault in an entry matters only to requests for its registry.
		if _, err := p.Login(t.Context(), "quay.io", "app"); err != nil {
			t.Error(err)
		}
	}
}

func TestPullSecretsOfOtherTypes(t *testing.T) {
	p, warnings, err := auth.NewPullSecrets([]*manifest.Secret{opaque("username", "u", "password", "canary")})
	want := "Secret 'apps/login' of type Opaque cannot be used as a registry login: the type must be kubernetes.io/dockerconfigjson"
	if p != nil || err != nil || len(warnings) != 1 || warnings[0].Text != want {
		t.Errorf("%v, %v, %v", p, warnings, err)
	}
}
