package auth

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func TestRedactURL(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{"", ""},
		{"https://h/index.yaml", "https://h/index.yaml"},
		{"https://h:8443/a@b/index.yaml", "https://h:8443/a@b/index.yaml"},
		{"https://user:secret@h/index.yaml", "https://user:REDACTED@h/index.yaml"},
		{"https://user:se@cret@h/index.yaml", "https://user:REDACTED@h/index.yaml"},
		{"https://secret@h/index.yaml", "https://REDACTED@h/index.yaml"},
		{"https://secret:@h/index.yaml", "https://REDACTED@h/index.yaml"},
		{"https://secret:x-oauth-basic@h/x", "https://REDACTED@h/x"},
		{"https://@h/x", "https://REDACTED@h/x"},
		{"@h/x", "REDACTED@h/x"},
		{"ssh://git@h/x", "ssh://git@h/x"},
		{"ssh://deploy@h/x", "ssh://deploy@h/x"},
		{"git@h:org/repo", "git@h:org/repo"},
		{"oci://user:secret@h/x", "oci://user:REDACTED@h/x"},
		{"https://h/?token=secret&x=secret2", "https://h/?token=REDACTED&x=REDACTED"},
		{"https://h/?secret", "https://h/?REDACTED"},
		{"https://h/?a=&b", "https://h/?a=REDACTED&REDACTED"},
		{"https://h/?a=secret;b=secret", "https://h/?a=REDACTED"},
		{"https://h/#secret", "https://h/#REDACTED"},
		{"https://h/?a=secret#secret", "https://h/?a=REDACTED#REDACTED"},
		{"//user:secret@h/x", "//user:REDACTED@h/x"},
		// These do not parse, or not as their writer meant them.
		{"https://user:se/cret@h/x", "https://REDACTED@h/x"},
		{"https://user:se?cret@h/x?q=secret", "https://REDACTED@h/x?q=REDACTED"},
		{"https://user:se#cret@h/x", "https://REDACTED@h/x"},
		{"https://user:12#secret@h/x", "https://REDACTED@h/x"},
		{"https://user:secret@h:port/x", "https://user:REDACTED@h:port/x"},
		{"https://user:%zzsecret@h/x", "https://user:REDACTED@h/x"},
		{" https://user:secret@h/x", " https://user:REDACTED@h/x"},
		{"user:secret@h/x", "user:REDACTED@h/x"},
		{"https://user:secret@", "https://user:REDACTED@"},
		{"http://[::1:secret@h/x", "http://[:REDACTED@h/x"},
	} {
		if got := RedactURL(tt.raw); got != tt.want {
			t.Errorf("RedactURL(%q) = %q, want %q", tt.raw, got, tt.want)
		}
	}
}

// Of a URL that parses, the password, query and fragment are redacted, with any characters in them.
func FuzzRedactURL(f *testing.F) {
	f.Add("user", "pass", "h", "/a", "q=1", "frag")
	f.Add("", "p/w?x#@:", "h:1", "", "a&b=%zz", "")
	f.Fuzz(func(t *testing.T, user, password, host, path, query, fragment string) {
		const mark = "CANARY"
		u := url.URL{Scheme: "https", User: url.UserPassword(user, mark+password), Host: host, Path: "/" + path,
			RawQuery: "token=" + mark + url.QueryEscape(query), Fragment: mark + fragment}
		for _, raw := range []string{u.String(), u.Redacted()} {
			if strings.Contains(user+host+path, mark) {
				return
			}
			if got := RedactURL(raw); strings.Contains(got, mark) {
				t.Errorf("RedactURL(%q) = %q", raw, got)
			}
		}
	})
}

func TestParseURLErrorHoldsNoSecret(t *testing.T) {
	for _, raw := range []string{
		"https://user:secret@h:port/x",
		"https://user:secret/x@h/x",
		"https://user:secret%zz@h/x",
		"https://user:sec ret@h/x\x7f",
		"https://h/\x7f?token=secret",
		"://secret@h",
		"https://user:secret@[::1/x",
	} {
		_, err := ParseURL(raw)
		if err == nil {
			t.Errorf("ParseURL(%q) did not fail", raw)
			continue
		}
		var urlErr *url.Error
		if !errors.As(err, &urlErr) {
			t.Errorf("ParseURL(%q): %T is no *url.Error", raw, err)
		}
		if strings.Contains(err.Error(), "sec") {
			t.Errorf("ParseURL(%q): %v", raw, err)
		}
	}
	// The reason stays where it can hold nothing, because users know it.
	_, err := ParseURL("127.0.0.1:8080")
	if want := `parse "127.0.0.1:8080": first path segment in URL cannot contain colon`; err == nil || err.Error() != want {
		t.Errorf("case 12: got %v, want %s", err, want)
	}
}

func TestScrubURL(t *testing.T) {
	u, err := url.Parse("https://user:pa%20ssword@h/x?sig=a%2Fbc&plain")
	if err != nil {
		t.Fatal(err)
	}
	text := ScrubURL("asked for sig=a%2Fbc, a/bc, plain with pa ssword, pa%20ssword, dXNlcjpwYSBzc3dvcmQ=", u)
	for _, secret := range []string{"bc", "plain", "ssword", "dXNl"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is left in %q", secret, text)
		}
	}
}
