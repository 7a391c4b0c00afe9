package auth

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/finding"
)

func mustURL(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestCheckRealm(t *testing.T) {
	const public, inside = "https://registry.test", "http://10.1.2.3:5000"
	for _, test := range []struct{ registry, realm, refused string }{
		{public, "https://auth.test/token", ""},
		{public, "https://auth.test:8443/token?x=y", ""},
		{public, "https://registry.test/token", ""},
		{public, "https://8.8.8.8/token", ""},
		{public, "http://auth.test/token", "it does not use https"},
		{public, "http://registry.test/token", "it does not use https"},
		{public, "ftp://auth.test/token", "only https"},
		{public, "file:///etc/passwd", "not a URL"},
		{public, "//auth.test/token", "only https"},
		{public, "/token", "not a URL"},
		{public, "https:opaque", "not a URL"},
		{public, "https://user:canary@auth.test/token", "contains credentials"},
		{public, "https://127.0.0.1/token", "loopback"},
		{public, "https://localhost/token", "loopback"},
		{public, "https://LOCALHOST./token", "loopback"},
		{public, "https://a.localhost:9/token", "loopback"},
		{public, "https://[::1]/token", "loopback"},
		{public, "https://[::ffff:127.0.0.1]/token", "loopback"},
		{public, "https://[fe80::1%25eth0]/token", "loopback"},
		{public, "https://[fd00::1]/token", "loopback"},
		{public, "https://[64:ff9b::7f00:1]/token", "loopback"},
		{public, "https://10.0.0.1/token", "loopback"},
		{public, "https://172.16.0.1/token", "loopback"},
		{public, "https://192.168.1.1/token", "loopback"},
		{public, "https://169.254.169.254/latest/meta-data", "loopback"},
		{public, "https://100.100.100.200/token", "loopback"},
		{public, "https://0.0.0.0/token", "loopback"},
		{inside, "http://10.1.2.3:5000/token", ""},
		{inside, "http://10.1.2.3:5001/token", ""},
		{inside, "https://10.1.2.3/token", ""},
		{inside, "http://10.1.2.4:5000/token", "loopback"},
		{inside, "http://127.0.0.1/token", "loopback"},
		{inside, "http://auth.test/token", ""},
		{"http://127.0.0.1:5000", "http://127.0.0.1:5001/token", ""},
		{"http://127.0.0.1:5000", "http://localhost:5001/token", "loopback"},
	} {
		_, err := checkRealm(test.realm, mustURL(t, test.registry), false)
		var refused *finding.Problem
		switch {
		case test.refused == "" && err != nil:
			t.Errorf("%s for %s: %v", test.realm, test.registry, err)
		case test.refused != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Text, test.refused)):
			t.Errorf("%s for %s: got %v, want %q", test.realm, test.registry, err, test.refused)
		case err != nil && strings.Contains(err.Error(), "canary"):
			t.Errorf("the error shows a password: %v", err)
		}
	}
}

// TestCheckRealmOfMachine is about logins of the environment, which are shown to a registry on this machine over plain HTTP.
func TestCheckRealmOfMachine(t *testing.T) {
	const local, named, far = "http://127.0.0.1:5000", "http://localhost:5000", "http://registry.test"
	for _, test := range []struct {
		registry, realm string
		refused         bool
	}{
		{local, "http://auth.test/token", true},
		{named, "http://auth.test/token", true},
		{local, "http://8.8.8.8/token", true},
		{local, "https://auth.test/token", false},
		{local, "http://127.0.0.1:5001/token", false},
		{named, "http://localhost:5001/token", false},
		{far, "http://auth.test/token", false}, // only with --ambient-credentials=anywhere
	} {
		var refused *finding.Problem
		if _, err := checkRealm(test.realm, mustURL(t, test.registry), true); errors.As(err, &refused) != test.refused {
			t.Errorf("%s for %s: %v", test.realm, test.registry, err)
		}
		if _, err := checkRealm(test.realm, mustURL(t, test.registry), false); err != nil {
			t.Errorf("%s for %s, without such a login: %v", test.realm, test.registry, err)
		}
	}
}

func TestIsInside(t *testing.T) {
	for addr, want := range map[string]bool{
		"8.8.8.8": false, "2606:4700::1111": false, "172.32.0.1": false, "100.128.0.1": false,
		"127.8.9.10": true, "::": true, "224.0.0.1": true, "255.255.255.255": true, "169.254.0.1": true,
	} {
		if got := isInside(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

func TestChallenges(t *testing.T) {
	for _, test := range []struct{ header, scheme, realm, service string }{
		{`Bearer realm="https://a.test/token",service="s"`, "bearer", "https://a.test/token", "s"},
		{`bearer Realm="https://a.test/token" , Service=s`, "bearer", "https://a.test/token", "s"},
		{`Basic realm="Registry"`, "basic", "Registry", ""},
		{`Basic`, "basic", "", ""},
		{`Basic realm="x", Bearer realm="https://a.test/token",service="s"`, "bearer", "https://a.test/token", "s"},
		{`Bearer realm="https://a.test/\"q\"",service="s,t"`, "bearer", `https://a.test/"q"`, "s,t"},
		{`Bearer`, "", "", ""},
		{`Bearer service="s"`, "", "", ""},
		{`Negotiate, Basic realm="x"`, "basic", "x", ""},
		{`Negotiate abc==, Bearer realm="https://a.test"`, "bearer", "https://a.test", ""},
		{`Bearer realm="unterminated`, "bearer", "unterminated", ""},
		{`Bearer realm="ends\`, "bearer", `ends\`, ""},
		{"Bearer realm\t=\ta\tservice = b", "bearer", "a", "b"},
		{`="x"`, "", "", ""},
		{`a="x", Basic realm="y"`, "", "", ""},
		{``, "", "", ""},
		{strings.Repeat(`Basic a=b, `, 1000), "basic", "", ""},
	} {
		c, _ := chooseChallenge(parseChallenges(map[string][]string{"Www-Authenticate": {test.header}}))
		if c.scheme != test.scheme || c.params["realm"] != test.realm || c.params["service"] != test.service {
			t.Errorf("%.60s: got %s %v", test.header, c.scheme, c.params)
		}
	}
}

// TestCutToken: the characters of a token are as in RFC 9110.
func TestCutToken(t *testing.T) {
	const all = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if token, rest := cutToken(all); token != all || rest != "" {
		t.Errorf("%q, %q", token, rest)
	}
	for c := range rune(256) {
		if token, rest := cutToken("a" + string(c)); (rest == "") != strings.ContainsRune(all, c) || token+rest != "a"+string(c) {
			t.Errorf("%q is cut into %q and %q", "a"+string(c), token, rest)
		}
	}
}

func FuzzChallenges(f *testing.F) {
	f.Add(`Bearer realm="https://a.test/token",service="s", Basic realm="x"`)
	f.Add(`Negotiate abc==, a = "b\"`)
	f.Fuzz(func(t *testing.T, header string) {
		all := parseChallengeHeader(header)
		if len(all) > maxChallenges {
			t.Errorf("%d challenges", len(all))
		}
		for _, c := range all {
			if c.scheme == "" || c.scheme != strings.ToLower(c.scheme) {
				t.Errorf("scheme %q", c.scheme)
			}
		}
	})
}

func TestScopes(t *testing.T) {
	for path, want := range map[string]string{
		"/v2/a/b/manifests/1.0":           "repository:a/b:pull",
		"/v2/a/blobs/sha256:00":           "repository:a:pull",
		"/v2/a/tags/list":                 "repository:a:pull",
		"/v2/a/manifests/b/tags/list":     "repository:a/manifests/b:pull",
		"/v2/a/tags/b/manifests/1":        "repository:a/tags/b:pull",
		"/v2/a/referrers/sha256:00":       "repository:a:pull",
		"/v2/":                            "",
		"/v2/_catalog":                    "",
		"/elsewhere/a/manifests/1":        "",
		"/v2/manifests/1":                 "",
		"/v2//manifests/1":                "",
		"/v2/a/blobs/uploads/manifests/1": "repository:a/blobs/uploads:pull",
	} {
		if got := pullScope(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	for _, test := range []struct{ needed, asked, want string }{
		{"repository:a:pull", "", "repository:a:pull"},
		{"repository:a:pull", "repository:a:pull", "repository:a:pull"},
		{"repository:a:pull", "repository:a:metadata_read", "repository:a:metadata_read repository:a:pull"},
		{"repository:a:pull", "repository:a:pull,push", "repository:a:pull"},
		{"repository:a:pull", "registry:catalog:*", "repository:a:pull"},
		{"", "repository:b:delete repository:c:pull", "repository:c:pull"},
		{"repository:a:pull", strings.Repeat("repository:a:pull ", maxChallenges-1) + "repository:b:pull", "repository:a:pull"},
		{"repository:a:pull", strings.Repeat("repository:a:pull ", maxChallenges-2) + "repository:b:pull", "repository:a:pull repository:b:pull"},
		{"", "nonsense", ""},
	} {
		if got := mergeScopes(test.needed, test.asked); got != test.want {
			t.Errorf("%q + %q: got %q, want %q", test.needed, test.asked, got, test.want)
		}
	}
}
