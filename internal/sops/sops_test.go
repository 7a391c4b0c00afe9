package sops

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// The files of testdata were encrypted by the SOPS library: testdata/generate.

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func keysOf(t *testing.T, names ...string) *Keys {
	t.Helper()
	k := &Keys{}
	for _, name := range names {
		add := k.AddAge
		if strings.HasSuffix(name, ".asc") {
			add = k.AddPGP
		}
		if err := add(read(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func TestDocuments(t *testing.T) {
	for _, test := range []struct{ file, keys, want string }{
		{"secret.yaml", "age.agekey", "correct-horse-sops"},
		{"both.yaml", "age.agekey", "correct-horse-sops"},
		{"both.yaml", "other.agekey", "correct-horse-sops"},
		{"pgp.yaml", "pgp.asc", "correct-horse-sops"},
		{"shamir.yaml", "age.agekey other.agekey", "correct-horse-sops"},
		{"shamir.yaml", "third.agekey other.agekey", "correct-horse-sops"},
		{"shamir.yaml", "age.agekey other.agekey third.agekey", "correct-horse-sops"},
		{"maconly.yaml", "age.agekey", "correct-horse-sops"},
		{"unregex.yaml", "age.agekey", "correct-horse-sops"},
		{"suffix.yaml", "age.agekey", "data_enc:secret"},
		{"several.yaml", "age.agekey", "host:example.org"},
	} {
		t.Run(test.file+" "+test.keys, func(t *testing.T) {
			docs, err := keysOf(t, strings.Fields(test.keys)...).Documents(read(t, test.file))
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(docs)
			if !strings.Contains(got, test.want) || strings.Contains(got, "ENC[") || strings.Contains(got, "sops:") {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestTypes(t *testing.T) {
	docs, err := keysOf(t, "age.agekey").Documents(read(t, "types.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"text": "some words", "empty": "", "whole": int64(42), "half": 0.5, "yes": true, "when": "2024-11-01T12:31:15Z",
		"nothing": nil, "plain_unencrypted": "as it is", "word": "yes", "digits": "007",
		"list": []any{"one", int64(2), map[string]any{"deep": []any{true, "false"}}},
	}
	for k, v := range want {
		if got, ok := docs[0][k]; !ok && k != "yes" || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", v) && k != "yes" {
			t.Errorf("%s: got %#v, want %#v", k, got, v)
		}
	}
}

func TestText(t *testing.T) {
	k := keysOf(t, "age.agekey")
	for _, test := range []struct {
		file    string
		in, out Format
		want    string
	}{
		{"app.env", Dotenv, Dotenv, "TOKEN=correct-horse-sops\nLINES=a\\nb\n"},
		{"file.bin", Binary, Binary, "not a map\n\x00\x01"},
		{"app.env", Dotenv, JSON, "{\n\t\"LINES\": \"a\\nb\",\n\t\"TOKEN\": \"correct-horse-sops\"\n}"},
		{"types.json", JSON, JSON, "{\n\t\"list\": [\n\t\t1,\n\t\ttrue,\n\t\tnull,\n\t\t\"x\"\n\t],\n\t\"number\": 12.5,\n\t\"text\": \"a/b é \\u003cx\\u003e\"\n}"},
	} {
		t.Run(test.file+" as "+string(test.out), func(t *testing.T) {
			data := read(t, test.file)
			if f, ok := Detect(data); !ok || f != test.in && test.in != Binary {
				t.Errorf("detected %q, %v", f, ok)
			}
			got, err := k.Text(data, test.in, test.out)
			if err != nil || string(got) != test.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if _, err := k.Text(read(t, "secret.yaml"), YAML, Dotenv); err == nil {
		t.Error("a map in a dotenv file is accepted")
	}
}

func TestChanged(t *testing.T) {
	k := keysOf(t, "age.agekey")
	text := string(read(t, "unregex.yaml"))
	for name, changed := range map[string]string{
		"a value that is not encrypted": strings.Replace(text, "name: login", "name: other", 1),
		"a value that was removed":      text[:strings.Index(text, "    username:")] + text[strings.Index(text, "    password:"):],
		"no MAC":                        text[:strings.Index(text, "    mac:")] + text[strings.Index(text, "    unencrypted_regex"):],
	} {
		t.Run(name, func(t *testing.T) {
			var mac *finding.Problem
			if _, err := k.Documents([]byte(changed)); !errors.As(err, &mac) || !mac.Class.Integrity() {
				t.Errorf("got %v", err)
			}
		})
	}
	swapped := strings.NewReplacer("username:", "password:", "password:", "username:").Replace(text)
	if _, err := k.Documents([]byte(swapped)); err == nil || strings.Contains(err.Error(), "correct") {
		t.Errorf("values that were moved: %v", err)
	}
	only := strings.Replace(string(read(t, "maconly.yaml")), "name: login", "name: other", 1)
	if _, err := k.Documents([]byte(only)); err != nil {
		t.Errorf("mac_only_encrypted covers what is not encrypted: %v", err)
	}
}

func TestNoKey(t *testing.T) {
	for _, test := range []struct{ file, keys, recipient string }{
		{"secret.yaml", "other.agekey", "age1"},
		{"secret.yaml", "", "age1"},
		{"pgp.yaml", "age.agekey", "PGP key"},
		{"shamir.yaml", "age.agekey", "age1"},
	} {
		_, err := keysOf(t, strings.Fields(test.keys)...).Documents(read(t, test.file))
		var missing *KeyError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), test.recipient) || !strings.Contains(missing.Hint(), "SOPS_") {
			t.Errorf("%s with %q: %v", test.file, test.keys, err)
		}
	}
}

func TestHostile(t *testing.T) {
	k := keysOf(t, "age.agekey")
	var bomb bytes.Buffer
	bomb.WriteString("a0: &a0 [x, x]\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	meta := string(read(t, "maconly.yaml"))
	meta = meta[strings.Index(meta, "sops:"):]
	for name, text := range map[string]string{
		"aliases":      bomb.String() + meta,
		"empty":        "",
		"list":         "- 1",
		"no metadata":  "a: 1",
		"metadata":     "sops: 5",
		"deep":         strings.Repeat("a: {", 5000) + strings.Repeat("}", 5000),
		"large":        "a: " + strings.Repeat("x", MaxSize),
		"self":         "a: &a [*a]\n" + meta,
		"short nonce":  "stringData: {a: 'ENC[AES256_GCM,data:AAAA,iv:,tag:AAAA,type:str]'}\n" + meta,
		"unknown type": "stringData: {a: 'ENC[AES256_GCM,data:AAAA]'}\n" + meta,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := k.Documents([]byte(text)); err == nil {
				t.Error("accepted")
			}
		})
	}
}

// TestManyKeys limits the allocations of the YAML library: it makes a message for each pair of equal keys.
func TestManyKeys(t *testing.T) {
	text := []byte("sops:\n" + strings.Repeat("  mac: a\n", 1001))
	allocated := testing.AllocsPerRun(1, func() {
		if _, err := parse(text, YAML); err == nil {
			t.Error("accepted")
		}
	})
	if allocated > 100_000 {
		t.Errorf("allocates %v times", allocated)
	}
}

// TestExpressions refuses an expensive expression: a key is matched once, and the cost is counted first.
func TestExpressions(t *testing.T) {
	k := keysOf(t, "age.agekey")
	text := strings.Replace(string(read(t, "unregex.yaml")), "^(apiVersion|kind|metadata|type)$", "(((x?){10}){10}){10}y", 1)
	for length, refused := range map[int]bool{10: false, 1 << 20: true} {
		_, err := k.Documents([]byte("? " + strings.Repeat("x", length) + "\n: a\n" + text))
		if errors.Is(err, bound.ErrPattern) != refused {
			t.Errorf("a key of %d bytes: %.200v", length, err)
		}
	}
}

func TestKeysDoNotPrint(t *testing.T) {
	k := keysOf(t, "age.agekey", "pgp.asc")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, k); strings.Contains(got, "AGE-SECRET") || len(got) > 40 {
			t.Errorf("%s prints %s", verb, got)
		}
	}
	for _, bad := range []string{"AGE-SECRET-KEY-1HUNTER2", "hunter2", ""} {
		if err := k.AddAge([]byte(bad)); err == nil || strings.Contains(strings.ToLower(err.Error()), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
		if err := k.AddPGP([]byte(bad)); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestShamir(t *testing.T) {
	if _, err := combine([][]byte{{1, 2}, {3, 2}}); err == nil {
		t.Error("two shares of one place are accepted")
	}
	for a := 1; a < 256; a++ {
		if multiply(byte(a), inverse(byte(a))) != 1 {
			t.Fatalf("the inverse of %d is wrong", a)
		}
	}
}

// FuzzText decrypts whatever it is given: it must neither panic nor answer anything but text that the MAC covers.
func FuzzText(f *testing.F) {
	for _, name := range []string{"secret.yaml", "app.env", "types.json"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	k := &Keys{}
	b, err := os.ReadFile("testdata/age.agekey")
	if err != nil {
		f.Fatal(err)
	}
	if err := k.AddAge(b); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		format, ok := Detect(data)
		if !ok {
			format = YAML
		}
		_, _ = k.Text(data, format, JSON)
		_, _ = k.Documents(data)
	})
}

// TestFlatMetadata has the metadata of a dotenv file, whose values have no types.
func TestFlatMetadata(t *testing.T) {
	text := "A=x\nsops_mac_only_encrypted=true\nsops_shamir_threshold=2\nsops_lastmodified=2026-01-02T03:04:05Z\n" +
		"sops_key_groups__list_1__map_age__list_0__map_enc=one\\ntwo\\n\nsops_key_groups__list_0__map_pgp__list_0__map_fp=1234567890\n"
	trees, err := parse([]byte(text), Dotenv)
	if err != nil {
		t.Fatal(err)
	}
	m := trees[0].meta
	if !m.MACOnlyEncrypted || m.ShamirThreshold != 2 || m.LastModified != "2026-01-02T03:04:05Z" || len(m.KeyGroups) != 2 ||
		m.KeyGroups[0].PGP[0].Fingerprint != "1234567890" || m.KeyGroups[1].Age[0].Enc != "one\ntwo\n" {
		t.Errorf("got %+v", m)
	}
	for _, text := range []string{"sops_age__list_x__map_enc=a\n", "sops_age__list_1001__map_enc=a\n", "sops_age=a\nsops_age__list_0__map_enc=a\n"} {
		if _, err := parse([]byte(text), Dotenv); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
