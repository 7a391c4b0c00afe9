package update

import (
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/policy"
)

// TestTagOf expects the tag of a field: the port of a registry or a digest is not a tag.
func TestTagOf(t *testing.T) {
	for _, test := range []struct {
		old  string
		part policy.Part
		want string
	}{
		{"registry.example.org:5000/app", policy.Whole, ""},
		{"registry.example.org:5000/app:1.2", policy.Whole, "1.2"},
		{"app:1.2@sha256:0123", policy.Whole, "1.2"},
		{"app@sha256:0123", policy.Whole, ""},
		{"1.2", policy.Tag, "1.2"},
		{"app:1.2", policy.Name, ""},
	} {
		if got := tagOf(test.old, test.part); got != test.want {
			t.Errorf("%s, %s: %q, want %q", test.old, test.part, got, test.want)
		}
	}
}

// TestIsDigest knows the digests that a field may keep.
func TestIsDigest(t *testing.T) {
	sum := strings.Repeat("0", 64)
	for text, want := range map[string]bool{"sha256:" + sum: true, "sha256:" + sum[1:]: false, "sha512:" + sum: false, sum: false, "": false} {
		if isDigest(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
