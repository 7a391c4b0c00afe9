package conceal

import (
	"encoding/base64"
	"net/url"
	"reflect"
	"slices"
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

// TestEncoded expects that base64 of a value is replaced wherever it begins in a longer text.
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
		{`it is ""`, "", `it is ""`},
		{`it is "REDACTED"`, Hidden, `it is "REDACTED"`},
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
		{"aba", "abREDACTEDba", "aba"},
		{"pw@host", "REDACTED@host", "pw"},
		{"abba", "abREDACTEDba", ""},
		{"x", "REDACTEDx-REDACTED", "x"},
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
		if (v.Text(text) != text) != want {
			t.Errorf("%q concealed: %t, want %t", text, !want, want)
		}
	}
}

// TestAround: values of the least length are replaced, shorter ones are not.
func TestAround(t *testing.T) {
	for _, test := range []struct{ value, text, want string }{
		{"abcdef", "abcdef", "REDACTED"},
		{"abcde", "abcde", "abcde"},
		{"abcde", "YWJjZGU", "YWJjZGU"},
		{"  ab   ", "ab", "ab"},
		{"\ndefault\n", "default", "default"},
		{strings.Repeat("a", maxForms+1), strings.Repeat("a", maxForms+1), "REDACTED"},
		{"abcdefghij", "xabcdefghijx", "xREDACTEDx"}, // letters are looked for in words
		{"abcdefghi", "xabcdefghix", "xabcdefghix"},  // from this length on
		{"1234567890123456", "x1234567890123456x", "xREDACTEDx"},
		{"123456789012345", "x123456789012345x", "x123456789012345x"},
		{"123456789a", "x123456789ax", "xREDACTEDx"}, // which is not a number
		{"a234567890", "xa234567890x", "xREDACTEDx"},
		{"REDACT", "REDACT", "REDACT"}, // the mark hides nothing of itself
		{" padded-value\t", "is padded-value.", "is REDACTED."},
		{"a-b\u2028c", `"a-b\u2028c"`, `"REDACTED"`},
		{"a-<b>&c", `"a-\u003cb\u003e\u0026c"`, `"REDACTED"`},
		{"key\n" + strings.Repeat("k", minLine) + "\n" + strings.Repeat("l", minLine-1) + "\nw w " + strings.Repeat("m", minLine) + "\n",
			strings.Repeat("k", minLine) + " " + strings.Repeat("l", minLine-1) + " w w " + strings.Repeat("m", minLine),
			"REDACTED " + strings.Repeat("l", minLine-1) + " w w " + strings.Repeat("m", minLine)},
		{strings.Repeat("-&", maxForms/2), url.QueryEscape(strings.Repeat("-&", maxForms/2)), "REDACTED"},
		{strings.Repeat("-&", maxForms/2) + "-", url.QueryEscape(strings.Repeat("-&", maxForms/2)), url.QueryEscape(strings.Repeat("-&", maxForms/2))},
	} {
		v := New()
		v.Add("", "short", test.value, test.value) // a short value does not end the list
		if got := v.Text(test.text); got != test.want {
			t.Errorf("%q in %q: %q, want %q", test.value, test.text, got, test.want)
		}
	}
	v := New()
	v.Add("pass-word", "pass-word-longer", "pass-word-longest")
	if got := v.Text("pass-word-longest, pass-word-longer, pass-word"); got != "REDACTED, REDACTED, REDACTED" {
		t.Errorf("the longest value is not taken: %q", got)
	}
}

// TestPieces: the base64 of a text, and its part inside of a longer text.
func TestPieces(t *testing.T) {
	for text, want := range map[string][]string{
		"?>?>?>?": {"Pz4/Pj8+Pw", "Pz4/Pj8+P", "8+Pz4/Pj", "/Pj8+Pz4/", "Pz4_Pj8-Pw", "Pz4_Pj8-P", "8-Pz4_Pj", "_Pj8-Pz4_"},
		"abcde":   {"YWJjZGU", "YWJjZG", "FiY2Rl", "hYmNkZ", "YWJjZGU", "YWJjZG", "FiY2Rl", "hYmNkZ"},
		"abcd":    {"YWJjZA", "YWJjZA"},
	} {
		if got := encoded(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestTree(t *testing.T) {
	v := New()
	v.Add("hunter2")
	in := map[string]any{"hunter2": []any{"is hunter2", 1.0, nil, map[string]any{"a": true}}}
	if got := v.Tree(in); !reflect.DeepEqual(got, map[string]any{Hidden: []any{"is " + Hidden, 1.0, nil, map[string]any{"a": true}}}) {
		t.Errorf("%v", got)
	}
	if !reflect.DeepEqual(in, map[string]any{"hunter2": []any{"is hunter2", 1.0, nil, map[string]any{"a": true}}}) {
		t.Errorf("it was changed: %v", in)
	}
}

func TestForms(t *testing.T) {
	got := Forms([]string{"", "short", "abcdef", "last"})
	if !slices.Equal(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !slices.Contains([]string{"", "short", "last"}, s) }), []string{"", "short", "last"}) ||
		!slices.Contains(got, "abcdef") || !slices.Contains(got, base64.RawStdEncoding.EncodeToString([]byte("abcdef"))) {
		t.Errorf("%q", got)
	}
}

func TestMadeOf(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []string
		want   bool
	}{
		{"app", nil, false},
		{"app", []string{"", Hidden}, false},
		{Hidden + "-1", []string{Hidden}, false},
		{"app-x", []string{"", Hidden, "x"}, true},
		{"appx", []string{"x"}, false},
		{"xhunter2-longerx", []string{"hunter2-longer"}, true},
		{"xdefaultx", []string{"default"}, false},
	} {
		if got := MadeOf(test.name, test.values); got != test.want {
			t.Errorf("%q of %q: %t", test.name, test.values, got)
		}
	}
}

func TestSensitive(t *testing.T) {
	for name, want := range map[string]bool{"rootPassword": true, "API_TOKEN": true, "name": false, "": false} {
		if Sensitive(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
}

func TestDistinguishing(t *testing.T) {
	for value, want := range map[string]bool{"abc-de": true, "ab-de": false, "flux-system": false, "abcdef": false, "abcdefghij": true} {
		if Distinguishing(value) != want {
			t.Errorf("%q: %t", value, !want)
		}
	}
}

// TestWithinSeveral replaces the longest value first, and does not change the list of values.
func TestWithinSeveral(t *testing.T) {
	values := []string{"", "abc", Hidden, "abc def", "ab"}
	if got := Within("abc def, abc, REDACTED, 'ab' ab", values); got != "REDACTED, REDACTED, REDACTED, 'REDACTED' ab" {
		t.Errorf("%q", got)
	}
	if !slices.Equal(values, []string{"", "abc", Hidden, "abc def", "ab"}) {
		t.Errorf("the list is %q", values)
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
