package manifest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

func secretDoc(name, rest string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata:\n  name: " + name + "\n" + rest + "\n"
}

func TestSecret(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	tests := []struct {
		name, rest string
		want       string // type and data
		err, hint  string
	}{
		{"nothing", "", "Opaque map[]", "", ""},
		{"data", "data: {a: " + b64([]byte("x")) + "}", "Opaque map[a:x]", "", ""},
		{"stringData wins", "data: {a: eA==, b: eQ==}\nstringData: {a: z, c: w}", "Opaque map[a:z b:y c:w]", "", ""},
		{"type", "type: example.com/x\ndata: null\nstringData: {a: null}", "example.com/x map[a:]", "", ""},
		{"base64 over lines", "data:\n  a: |\n    eA\n    ==\n", "Opaque map[a:x]", "", ""},
		{"TLS", "type: kubernetes.io/tls\nstringData: {tls.crt: a, tls.key: b}", "kubernetes.io/tls map[tls.crt:a tls.key:b]", "", ""},
		{"not base64", "data:\n  a: eA==\n  password: hunter2!", "",
			"f.yaml:7:3: Secret default/s: data[password]: not base64: illegal base64 data at input byte 7", "plain text belongs in stringData"},
		{"a number", "stringData:\n  pin: 1234", "", "f.yaml:6:3: Secret default/s: stringData[pin]: must be a string", "put the value in quotes"},
		{"a boolean", "stringData:\n  on: 'x'\n  answer: yes", "", "f.yaml:7:3: Secret default/s: stringData[answer]: must be a string", "put the value in quotes"},
		{"not a map", "data: [a]", "", "f.yaml:5:1: Secret default/s: data must be a map", ""},
		{"type is no string", "type: 5", "", "f.yaml:5:1: Secret default/s: type must be a string", ""},
		{"bad key", "stringData: {'a b': x}", "", "f.yaml:5:14: Secret default/s: data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')", ""},
		{"large", "stringData: {a: " + strings.Repeat("x", maxSecretSize+1) + "}", "", "f.yaml:1:1: Secret default/s: data: Too long: may not be more than 1048576 bytes", ""},
		{"half a TLS Secret", "type: kubernetes.io/tls\nstringData: {tls.crt: a}", "", "f.yaml:1:1: Secret default/s: data[tls.key]: Required value: a Secret of type kubernetes.io/tls has it", ""},
		{"docker config", "type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: 'no'}", "", "f.yaml:6:14: Secret default/s: data[.dockerconfigjson]: Invalid value: not JSON", ""},
		{"basic auth", "type: kubernetes.io/basic-auth\nstringData: {user: a}", "", "f.yaml:1:1: Secret default/s: data: Required value: a Secret of type kubernetes.io/basic-auth has a username or a password", ""},
		{"SOPS", "data: {a: 'ENC[AES256_GCM,data:x]'}\nsops: {mac: 'ENC[x]'}", "", `secrets "s" not found`, "the one at f.yaml:1:1 is encrypted with SOPS: decrypt it first"},
		{"twice the same key", "data: {a: eA==, a: eA==}", "", `f.yaml:5:17: duplicate key "a", first at line 5`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := NewSet("")
			// A malformed Secret without a reference to it is not an error.
			if err := s.Add("f.yaml", []byte(secretDoc("s", tt.rest))); err != nil {
				t.Fatal(err)
			}
			got, err := s.Secret("default", "s")
			if tt.err == "" {
				if err != nil {
					t.Fatal(err)
				}
				if text := fmt.Sprintf("%s %s", got.Type, got.Data); text != tt.want {
					t.Errorf("got %s, want %s", text, tt.want)
				}
				return
			}
			if fmt.Sprint(err) != tt.err {
				t.Errorf("error %v\n want %s", err, tt.err)
			}
			var hinted interface{ Hint() string }
			if errors.As(err, &hinted); hinted != nil && hinted.Hint() != tt.hint {
				t.Errorf("hint %q, want %q", hinted.Hint(), tt.hint)
			}
			if strings.Contains(fmt.Sprint(err), "hunter") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

func TestSecretErrors(t *testing.T) {
	s := NewSet("")
	text := secretDoc("a", "") + "---\n" + secretDoc("a", "") + "---\n" + secretDoc("b", "")
	if err := s.Add("f.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	if errs := s.duplicates(); len(errs) > 0 {
		t.Errorf("Secrets that nothing refers to are not judged: %v", errs)
	}
	if _, err := s.Secret("default", "a"); fmt.Sprint(err) != "Secret default/a is defined 2 times: f.yaml:1:1 and f.yaml:7:1" {
		t.Errorf("error %v", err)
	}
	if _, err := s.Secret("default", "nope"); fmt.Sprint(err) != `secrets "nope" not found` {
		t.Errorf("error %v", err)
	}
	if _, err := s.Secret("default", "b"); err != nil {
		t.Error(err)
	}
}

func TestSecretInList(t *testing.T) {
	s := NewSet("")
	text := "kind: SecretList\napiVersion: v1\nitems:\n- metadata: {name: s}\n  data: {a: '!'}\n- metadata: {name: t}\n  data: {a: eA==}\n"
	if err := s.Add("f.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Secret("default", "s"); err == nil || !strings.HasPrefix(err.Error(), "f.yaml:5:10:") {
		t.Errorf("error %v", err)
	}
	if got, err := s.Secret("default", "t"); err != nil || string(got.Data["a"]) != "x" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestSecretDoesNotPrintItself(t *testing.T) {
	s := Secret{Namespace: "n", Name: "x", Type: "Opaque", Data: map[string][]byte{"password": []byte("hunter2")}}
	wrapped := struct{ S *Secret }{&s}
	for _, v := range []any{s, &s, wrapped, []Secret{s}, map[string]Secret{"a": s}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			text := fmt.Sprintf(verb, v)
			if strings.Contains(text, "hunter2") || strings.Contains(text, "68756e746572") || strings.Contains(text, "104 117") {
				t.Errorf("%s of %T: %s", verb, v, text)
			}
		}
		text, err := json.Marshal(v)
		if err != nil || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "aHVudGVyMg") {
			t.Errorf("JSON of %T: %s, %v", v, text, err)
		}
	}
	if got, want := s.String(), "Secret n/x (Opaque) with keys [password]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestConfigMap(t *testing.T) {
	tests := []struct {
		name, text string
		want       map[string]string
		wantErr    string
	}{
		{"data", "data: {a: x, b: \"\", c: null}", map[string]string{"a": "x", "b": "", "c": ""}, ""},
		{"none", "", map[string]string{}, ""},
		{"binary data is left out", "data: {a: x}\nbinaryData: {b: eA==}", map[string]string{"a": "x"}, ""},
		{"a number", "data: {a: 1}", nil, "f.yaml:4:8: ConfigMap default/cm: data[a]: must be a string"},
		{"a list", "data: [a]", nil, "f.yaml:4:1: ConfigMap default/cm: data must be a map"},
		{"a bad key", "data: {a/b: x}", nil, `ConfigMap default/cm: data[a/b]: Invalid value: "a/b"`},
		{"SOPS", "data: {a: ENC}\nsops: {mac: x}", nil, `configmaps "cm" not found`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := NewSet("")
			if err := s.Add("f.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n"+tt.text)); err != nil {
				t.Fatal(err)
			}
			got, err := s.ConfigMap("default", "cm")
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error %v, want %q", err, tt.wantErr)
				}
				return
			}
			if err != nil || !maps.Equal(got.Data, tt.want) {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
	if _, err := NewSet("").ConfigMap("default", "cm"); err == nil || err.Error() != `configmaps "cm" not found` {
		t.Errorf("missing: %v", err)
	}
}
