package auth

import (
	"regexp"
	"strings"
	"testing"
)

func TestRedactText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"nothing to hide", `Get "http://repo.test/index.yaml": EOF`, `Get "http://repo.test/index.yaml": EOF`},
		{"password", "x http://carol:pa55@repo.test/a y", "x http://carol:REDACTED@repo.test/a y"},
		{"query", "x http://repo.test?token=pa55 y", "x http://repo.test?token=REDACTED y"},
		{"the colon after a URL stays", "oci://carol:pa55@repo.test?t=pa55: not used", "oci://carol:REDACTED@repo.test?t=REDACTED: not used"},
		{"several", "http://a:pa55@b.test, http://c:pa55@d.test;", "http://a:REDACTED@b.test, http://c:REDACTED@d.test;"},
		{"behind what has no scheme", "://a http://repo.test?token=pa55", "://a http://repo.test?token=REDACTED"},
		{"behind a second separator", "a://://http://carol:pa55@repo.test", "a://://http://carol:REDACTED@repo.test"},
		{"no scheme", "carol:pa55@repo.test", "carol:REDACTED@repo.test"},
		{"behind what ends a URL", "https://k<:pa55@repo.test, ':pa55@repo.test", "https://k<:REDACTED@repo.test, ':REDACTED@repo.test"},
		{"inside JSON", `{"url":"http://carol:pa55@repo.test?token=pa55"}`, `{"url":"http://carol:REDACTED@repo.test?token=REDACTED"}`},
		{"image", "ghcr.io/org/app:1.0@sha256:abc", "ghcr.io/org/app:1.0@sha256:abc"},
		{"not a URL at all", "http://carol:pa55@repo.test:port/%zz?token=pa55", "http://carol:REDACTED@repo.test:port/%zz?token=REDACTED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := RedactText(tt.text); got != tt.want {
				t.Errorf("RedactText(%q) = %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

// TestRedactLogins leaves URLs without a login as they are, with their queries.
func TestRedactLogins(t *testing.T) {
	for text, want := range map[string]string{
		"http://repo.test/a?b=c#d": "http://repo.test/a?b=c#d", "x http://carol:pa55@repo.test?b=pa55 y": "x http://carol:REDACTED@repo.test?b=REDACTED y",
		"carol:pa55@repo.test": "carol:REDACTED@repo.test", "http://t0ken@repo.test": "http://REDACTED@repo.test", "http://repo.test:x?a=pa55": "http://repo.test:x?a=REDACTED",
	} {
		if got := RedactLogins(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := RedactURL("http://git.test/x/info/refs?service=git-upload-pack&a=b"); got != "http://git.test/x/info/refs?service=git-upload-pack&a=REDACTED" {
		t.Error(got)
	}
}

// FuzzRedactText compares the scan with regular expressions.
func FuzzRedactText(f *testing.F) {
	for _, text := range []string{
		"a://b@c d:e@f", "://x a://u:p@h", "@x u:p@h", "::a:b@h a:@h a::@h", "1+x://u:p@h?t=p#f, é://x é1a://x://y", "a:b@host:c@h a@b:c@d u:p@sha256:x", "x:\u00a0y@z a://\x80 \"a:b@c\"'d:e@f'",
	} {
		f.Add(text)
	}
	urls := regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>\\]+`)
	logins := regexp.MustCompile(`[^\s"'/:@<>]*:([^\s"'/@<>]+)@[A-Za-z0-9.-]+`)
	f.Fuzz(func(t *testing.T, text string) {
		want := logins.ReplaceAllStringFunc(urls.ReplaceAllStringFunc(text, redactURL), func(match string) string {
			user, rest, _ := strings.Cut(match, ":")
			if host := rest[strings.LastIndexByte(rest, '@'):]; !strings.HasPrefix(host, "@sha") {
				return user + ":REDACTED" + host
			}
			return match
		})
		if got := RedactText(text); got != want {
			t.Errorf("RedactText(%q) = %q, want %q", text, got, want)
		}
	})
}

// TestRedactTextUnchanged holds that a text without a URL or a login is not copied: records of runs hold many long ones.
func TestRedactTextUnchanged(t *testing.T) {
	text := strings.Repeat("nothing to redact; ", 1000)
	if got := RedactText(text); got != text {
		t.Fatalf("got %.40q", got)
	}
	if allocations := testing.AllocsPerRun(10, func() { RedactText(text) }); allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// TestRedactTextLong has texts that a second pass for each of their parts would not get through.
func TestRedactTextLong(t *testing.T) {
	const n = 1 << 20
	for _, part := range []string{"a", "://", "a://", "a@", ":", "a:", ":b@", "a:b@", "+", "a://b:c@d "} {
		for _, end := range []string{"", "@", "://", "@h", "://h"} {
			if text := RedactText(strings.Repeat(part, n/len(part)) + end); len(text) == 0 {
				t.Errorf("%q: nothing is left", part)
			}
		}
	}
}
