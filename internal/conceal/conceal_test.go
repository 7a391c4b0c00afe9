package conceal

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	v := New()
	v.Add("hunter2", "hunter2-patched/&?", "default", "true", "1", "20250101", "first line\nsecond line\n")
	v.Add("apps-team")
	v.Publish("apps-team")
	for text, want := range map[string]string{
		"it is hunter2":                       "it is REDACTED",
		"hunter2-patched/&?":                  "REDACTED",
		"nohunter2no":                         "nohunter2no", // a short word is looked for by itself
		"namespace default":                   "namespace default",
		"true or 1":                           "true or 1",
		"at 20250101":                         "at REDACTED",
		"sha256:ab2025010112":                 "sha256:ab2025010112",
		"in apps-team":                        "in apps-team",
		"first linesecond line":               "REDACTED",
		`first line\nsecond lin`:              `first line\nsecond lin`,
		`"first line\nsecond line\n"`:         `"REDACTED"`,
		url.QueryEscape("hunter2-patched/&?"): "REDACTED",
		url.PathEscape("hunter2-patched/&?"):  "REDACTED",
	} {
		if got := v.Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestEncoded looks for base64 of a value wherever it begins in a longer text.
func TestEncoded(t *testing.T) {
	v := New()
	v.Add("correct-horse")
	for _, before := range []string{"", "a", "ab", "abc", "password: "} {
		for _, after := range []string{"", "x", "xy"} {
			text := base64.StdEncoding.EncodeToString([]byte(before + "correct-horse" + after))
			got := v.Text(text)
			if !strings.Contains(got, Hidden) {
				t.Errorf("%q is shown in base64", before+"…"+after)
			}
		}
	}
}

func TestWithin(t *testing.T) {
	for _, test := range []struct{ text, value, want string }{
		{`invalid: "1" of 1`, "1", `invalid: "REDACTED" of 1`},
		{"abc and abcd", "abc", "REDACTED and abcd"},
		{"default value default", "default", "REDACTED value REDACTED"},
		{"xhunter2-longer", "hunter2-longer", "xREDACTED"},
		{"nothing", "", "nothing"},
		{"z", "z", "REDACTED"},
		{"", "", ""},
	} {
		if got := Within(test.text, []string{test.value}); got != test.want {
			t.Errorf("Within(%q, %q) = %q, want %q", test.text, test.value, got, test.want)
		}
	}
}

func TestParts(t *testing.T) {
	for _, test := range []struct{ field, shown, want string }{
		{"http://u:pw@host", "http://u:REDACTED@host", "pw"},
		{"plain", "plain", ""},
		{"hunt", "REDA", "hunt"},
		{"a-1-2-b", "a-REDACTED-REDACTED-b", "1-2 1 2"},
		{"a1 b2 c", "aREDACTED bREDACTED c", "1 b2 1 2"},
		{"a12c", "aREDACTEDREDACTEDc", "12"},
		{"other", "x-REDACTED", "other"},
	} {
		if got := strings.Join(Parts(test.field, test.shown), " "); got != test.want {
			t.Errorf("Parts(%q, %q) = %q, want %q", test.field, test.shown, got, test.want)
		}
	}
}

func TestData(t *testing.T) {
	v := New()
	v.AddLogin(map[string][]byte{
		"anything":          []byte("extra-value"),
		"address":           []byte("http://proxy.test"),
		".dockerconfigjson": []byte(`{"auths": {"registry.test": {"username": "ci", "password": "docker-login"}}}`),
		"values.yaml":       []byte("db:\n  rootPassword: deep-inside\n"),
	})
	for text, want := range map[string]bool{"extra-value": true, "http://proxy.test": false, "docker-login": true, "registry.test": false, "deep-inside": true} {
		if v.Holds(text) != want {
			t.Errorf("%q concealed: %t, want %t", text, !want, want)
		}
	}
}

func TestNil(t *testing.T) {
	var v *Values
	v.Add("hunter2")
	v.AddData(map[string][]byte{"a": []byte("hunter2")})
	v.Publish("x")
	if v.Text("hunter2") != "hunter2" || v.Tree("x") != "x" {
		t.Error("nil changes texts")
	}
}
