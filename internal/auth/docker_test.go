package auth

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func encoded(user string) string { return base64.StdEncoding.EncodeToString([]byte(user)) }

func TestDockerConfigFind(t *testing.T) {
	const config = `{"auths": {
		"ghcr.io": {"username": "bare", "password": "p"},
		"https://url.test/": {"username": "url", "password": "p"},
		"https://index.docker.io/v1/": {"username": "hub", "password": "p"},
		"quay.io/team": {"username": "team", "password": "p"},
		"quay.io/team/sub": {"username": "sub", "password": "p"},
		"both.test": {"username": "bare", "password": "p"},
		"https://both.test/v2/": {"username": "url", "password": "p"},
		"https://first.test/v2/": {"username": "url", "password": "p"},
		"first.test": {"username": "bare", "password": "p"},
		"https://third.test/some": {"username": "path", "password": "p"},
		"third.test": {"username": "bare", "password": "p"},
		"path.test/only": {"username": "path", "password": "p"},
		"https://docker.test/some/path": {"username": "dockerpath", "password": "p"},
		"UPPER.test": {"username": "upper", "password": "p"},
		"port.test:5000": {"username": "port", "password": "p"},
		"http://insecure.test:80": {"username": "http", "password": "p"}
	}}`
	c, err := parseDockerConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ host, repository, want string }{
		{"ghcr.io", "org/chart", "bare"},
		{"ghcr.io:443", "org/chart", "bare"},
		{"GHCR.io", "org/chart", "bare"},
		{"ghcr.io.evil.test", "org/chart", ""},
		{"url.test", "org/chart", "url"},
		{"docker.io", "org/chart", "hub"},
		{"registry-1.docker.io", "org/chart", "hub"},
		{"index.docker.io", "org/chart", "hub"},
		{"quay.io", "team/chart", "team"},
		{"quay.io", "team/sub/chart", "sub"},
		{"quay.io", "teams/chart", ""},
		{"quay.io", "other/chart", ""},
		{"both.test", "org/chart", "bare"},
		{"first.test", "org/chart", "bare"},
		{"third.test", "org/chart", "bare"},
		{"third.test", "some/chart", "path"},
		{"path.test", "other", ""},
		{"path.test", "only", "path"},
		{"docker.test", "other", "dockerpath"},
		{"upper.test", "x", "upper"},
		{"port.test:5000", "x", "port"},
		{"port.test", "x", ""},
		{"port.test:5001", "x", ""},
		{"missing.test", "x", ""},
	} {
		entry, ok := c.find(test.host, test.repository)
		username := ""
		if ok {
			username = entry.login().Username
		}
		if username != test.want || ok != (test.want != "") {
			t.Errorf("%s/%s: got %q, want %q", test.host, test.repository, username, test.want)
		}
	}
}

func TestDockerLogin(t *testing.T) {
	for _, test := range []struct {
		name  string
		entry dockerLogin
		want  login
		bad   bool
	}{
		{"auth", dockerLogin{Auth: encoded("me:pa:ss")}, login{username: "me", password: "pa:ss"}, false},
		{"auth without padding", dockerLogin{Auth: strings.TrimRight(encoded("me:secret"), "=")}, login{username: "me", password: "secret"}, false},
		{"auth wins", dockerLogin{Auth: encoded("me:secret"), Username: "you", Password: "other"}, login{username: "me", password: "secret"}, false},
		{"auth padded with NUL", dockerLogin{Auth: encoded("me:secret\x00\x00")}, login{username: "me", password: "secret"}, false},
		{"plain", dockerLogin{Username: "you", Password: "other"}, login{username: "you", password: "other"}, false},
		{"identity token", dockerLogin{Auth: encoded("me:"), IdentityToken: "tok"}, login{username: "me", identityToken: "tok"}, false},
		{"registry token", dockerLogin{RegistryToken: "tok"}, login{registryToken: "tok"}, false},
		{"nothing", dockerLogin{}, login{}, false},
		{"not base64", dockerLogin{Auth: "canary%"}, login{}, true},
		{"no colon", dockerLogin{Auth: encoded("canary")}, login{}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.entry.decode()
			if got != test.want || (err != nil) != test.bad {
				t.Errorf("got %+v, %v; want %+v", got, err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error shows the credential: %v", err)
			}
		})
	}
}

func TestDockerConfigMalformed(t *testing.T) {
	for _, bad := range []string{
		`{"auths": {"h": {"auth": "canary`,
		`{"auths": "canary"}`,
		`{"auths": {"h": {"auth": 1}}}`,
		`canary`,
		strings.Repeat("x", maxDockerConfigBytes+1),
	} {
		_, err := parseDockerConfig([]byte(bad))
		if err == nil {
			t.Errorf("%.40q is accepted", bad)
			continue
		}
		if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "'c'") {
			t.Errorf("the error shows the input: %v", err)
		}
	}
}

func TestLoginsPrintNothing(t *testing.T) {
	const canary = "canary-s3cret"
	config, err := parseDockerConfig([]byte(`{"auths": {"h": {"username": "u", "password": "` + canary + `"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	cred := BasicCredential("u", canary)
	sent := &secretSet{}
	sent.add(canary)
	for _, v := range []any{
		cred, &cred, []Credential{cred}, map[string]Credential{"k": cred}, struct{ hidden Credential }{cred},
		IdentityTokenCredential(canary), StaticLogin{Credential: cred}, struct{ l Logins }{StaticLogin{Credential: cred}},
		config, &secretLogins{config: config}, &registryTransport{options: RegistryOptions{Logins: StaticLogin{Credential: cred}}},
		sent, &Login{Credential: cred},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) {
				t.Errorf("%s of %T: %s", verb, v, text)
			}
		}
	}
	if b, err := json.Marshal(StaticLogin{Credential: cred}); err != nil || strings.Contains(string(b), canary) {
		t.Errorf("%s, %v", b, err)
	}
}

func FuzzParseDockerConfig(f *testing.F) {
	f.Add([]byte(`{"auths": {"https://h/": {"auth": "bWU6c2VjcmV0"}}, "credHelpers": {"x": "y"}}`), "h", "a/b")
	f.Add([]byte(`{"auths": {"h/a": {}, "h/a/b": {}, "h": {}}}`), "h", "a/b")
	f.Fuzz(func(t *testing.T, data []byte, host, repository string) {
		c, err := parseDockerConfig(data)
		if err != nil {
			return
		}
		entry, ok := c.find(host, repository)
		if ok && RegistryHost(host) != entry.host {
			t.Errorf("entry of %q for %q", entry.host, host)
		}
		if ok {
			_, _ = entry.login().decode()
		}
	})
}

// FuzzHelperName: the name of a helper chooses a program below a directory of the PATH, and no other.
func FuzzHelperName(f *testing.F) {
	for _, name := range []string{"desktop", "../x", "a/../../x", "", "-x", "x\x00", "x\n"} {
		f.Add(name)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, name string) {
		a := NewAmbient(AmbientOptions{Getenv: func(string) string { return dir }})
		if _, err := a.findHelper(name); errors.Is(err, errHelperMissing) &&
			(filepath.Dir(filepath.Join(dir, "docker-credential-"+name)) != dir || strings.ContainsAny(name, "\x00\n")) {
			t.Errorf("%q is looked for", name)
		} else if err == nil {
			t.Errorf("%q is found in an empty directory", name)
		}
	})
}

// TestBoundedBuffer: the output of a helper is kept up to the bound, and the rest is dropped.
func TestBoundedBuffer(t *testing.T) {
	var b boundedBuffer
	for _, test := range []struct {
		more, kept int
		full       bool
	}{{maxHelperBytes - 1, maxHelperBytes - 1, false}, {2, maxHelperBytes - 1, true}, {1, maxHelperBytes, true}, {1, maxHelperBytes, true}} {
		n, err := b.Write(make([]byte, test.more))
		if b.full != test.full || b.buffer.Len() != test.kept || (err == nil) != (n == test.more) {
			t.Errorf("%d more: %d written, %v; %d kept, full %v", test.more, n, err, b.buffer.Len(), b.full)
		}
	}
}
