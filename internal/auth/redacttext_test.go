package auth

import "testing"

func TestRedactText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"nothing to hide", `Get "http://repo.test/index.yaml": EOF`, `Get "http://repo.test/index.yaml": EOF`},
		{"password", "x http://carol:pa55@repo.test/a y", "x http://carol:REDACTED@repo.test/a y"},
		{"query", "x http://repo.test?token=pa55 y", "x http://repo.test?token=REDACTED y"},
		{"the colon after a URL stays", "oci://carol:pa55@repo.test?t=pa55: not used", "oci://carol:REDACTED@repo.test?t=REDACTED: not used"},
		{"several", "http://a:pa55@b.test, http://c:pa55@d.test;", "http://a:REDACTED@b.test, http://c:REDACTED@d.test;"},
		{"no scheme", "carol:pa55@repo.test", "carol:REDACTED@repo.test"},
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
