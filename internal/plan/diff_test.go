package plan

import (
	"strings"
	"testing"
)

func TestFiles(t *testing.T) {
	got := Files(
		map[string][]byte{"gone": []byte("a\n"), "same": []byte("s"), "image": {0, 1}, "text": []byte("1\n2\n")},
		map[string][]byte{"new": []byte("b\n"), "same": []byte("s"), "image": {0, 2}, "text": []byte("1\n3\n")})
	want := "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n" +
		"Binary files a/image and b/image differ\n" +
		"--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+b\n" +
		"--- a/text\n+++ b/text\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n"
	if got != want {
		t.Errorf("got:\n%s", got)
	}
	if got := Files(map[string][]byte{"a": []byte(strings.Repeat("x\n", maxLines+1))}, map[string][]byte{"a": []byte("y\n")}); !strings.Contains(got, "too long to be compared: 50001 and 1 lines") {
		t.Errorf("long: %.200q", got)
	}
	large := []byte(strings.Repeat("x", maxDiff) + "\n")
	if got := Files(nil, map[string][]byte{"a": []byte("1\n"), "b": large}); !strings.HasSuffix(got, "1 more files differ\n") {
		t.Errorf("a diff that is too large is not counted: %.100q", got)
	}
}
