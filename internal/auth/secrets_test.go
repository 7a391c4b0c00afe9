package auth

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// data is the values of a Secret.
type data map[string]string

func (d data) secret(name, kind string) *manifest.Secret {
	if d == nil {
		return nil
	}
	s := &manifest.Secret{Namespace: "default", Name: name, Type: kind, Data: map[string][]byte{}}
	for key, value := range d {
		s.Data[key] = []byte(value)
	}
	return s
}

func TestFromSecrets(t *testing.T) {
	kit, err := helmtest.NewKit()
	if err != nil {
		t.Fatal(err)
	}
	ca, cert, key := string(kit.CA.Cert), string(kit.Client.Cert), string(kit.Client.Key)
	otherKey := string(kit.OtherClient.Key)
	const tlsPrefix = "failed to construct Helm client's TLS config: "
	const methodPrefix = "failed to detect authentication methods: "
	for _, tt := range []struct {
		name                 string
		secret, cert         data
		secretType, certType string

		basic, ca, pair bool
		warnings        []string
		err             string
	}{
		{name: "nothing"},
		{name: "case 7: basic auth", secret: data{"username": "u", "password": "p"}, basic: true},
		{name: "case 7: no password", secret: data{"username": "u"},
			err: methodPrefix + "secret 'default/secret': malformed basic auth - has 'username' but missing 'password'"},
		{name: "no username", secret: data{"password": "p"},
			err: methodPrefix + "secret 'default/secret': malformed basic auth - has 'password' but missing 'username'"},
		{name: "half of a docker config secret", secret: data{"password": "p"}, secretType: typeDockerConfig,
			err: methodPrefix + "secret 'default/secret': malformed basic auth - has 'password' but missing 'username'"},
		{name: "empty values", secret: data{"username": "", "password": ""}},
		{name: "empty password", secret: data{"username": "u", "password": ""}},
		{name: "case 8: docker config", secret: data{".dockerconfigjson": "{}", "username": "u", "password": "p", "caFile": ca},
			secretType: typeDockerConfig, ca: true,
			warnings: []string{
				"credentials in secret 'default/secret' of type kubernetes.io/dockerconfigjson are for OCI registries and not used for an HTTP repository",
				"secret 'default/secret' has the legacy key 'caFile': use 'ca.crt'",
				"TLS settings in secret 'default/secret' in secretRef are deprecated: use certSecretRef",
			}},
		{name: "keys of other kinds", secret: data{"bearerToken": "x", "token": "x", "identity": "x", "known_hosts": "x"}},

		{name: "case 9: CA", cert: data{"ca.crt": ca}, ca: true},
		{name: "client certificate", cert: data{"tls.crt": cert, "tls.key": key}, certType: typeTLS, pair: true},
		{name: "both", cert: data{"tls.crt": cert, "tls.key": key, "ca.crt": ca}, certType: typeOpaque, ca: true, pair: true},
		{name: "empty CA", cert: data{"tls.crt": cert, "tls.key": key, "ca.crt": ""}, pair: true},
		{name: "legacy keys", cert: data{"certFile": cert, "keyFile": key, "caFile": ca}, ca: true, pair: true,
			warnings: []string{
				"secret 'default/cert' has the legacy key 'certFile': use 'tls.crt'",
				"secret 'default/cert' has the legacy key 'keyFile': use 'tls.key'",
				"secret 'default/cert' has the legacy key 'caFile': use 'ca.crt'",
			}},
		{name: "standard key first", cert: data{"caFile": "garbage", "ca.crt": ca}, ca: true},
		{name: "empty standard key", cert: data{"caFile": ca, "ca.crt": ""},
			err: tlsPrefix + "secret 'default/cert' must contain either 'ca.crt' or both 'tls.crt' and 'tls.key'"},
		{name: "other type", cert: data{"ca.crt": ca}, certType: "kubernetes.io/basic-auth", ca: true,
			warnings: []string{"secret 'default/cert' in certSecretRef should be of type Opaque or kubernetes.io/tls"}},
		{name: "no TLS keys", cert: data{"username": "u"},
			err: tlsPrefix + "secret 'default/cert' must contain either 'ca.crt' or both 'tls.crt' and 'tls.key'"},
		{name: "no private key", cert: data{"tls.crt": cert, "ca.crt": ca},
			err: tlsPrefix + "secret 'default/cert' contains 'tls.crt' but missing 'tls.key'"},
		{name: "no certificate", cert: data{"tls.key": key},
			err: tlsPrefix + "secret 'default/cert' contains 'tls.key' but missing 'tls.crt'"},
		{name: "case 10: CA is garbage", cert: data{"ca.crt": "garbage"}, err: tlsPrefix + "failed to parse CA certificate"},
		{name: "certificate is garbage", cert: data{"tls.crt": "garbage", "tls.key": key},
			err: tlsPrefix + "failed to parse TLS certificate and key: 'tls.crt' contains no PEM certificate"},
		{name: "certificate cannot be read", cert: data{"tls.crt": armor("CERTIFICATE", "x"), "tls.key": key},
			err: tlsPrefix + "failed to parse TLS certificate and key: 'tls.crt' contains an unreadable certificate"},
		{name: "key is garbage", cert: data{"tls.crt": cert, "tls.key": "garbage"},
			err: tlsPrefix + "failed to parse TLS certificate and key: 'tls.key' contains no PEM private key"},
		{name: "key is encrypted", cert: data{"tls.crt": cert, "tls.key": armor("ENCRYPTED PRIVATE KEY", "x")},
			err: tlsPrefix + "failed to parse TLS certificate and key: 'tls.key' is encrypted"},
		{name: "key of another certificate", cert: data{"tls.crt": cert, "tls.key": otherKey},
			err: tlsPrefix + "failed to parse TLS certificate and key: 'tls.key' is not the private key of 'tls.crt', or of a kind that is not supported"},

		{name: "case 9: deprecated TLS", secret: data{"caFile": ca, "username": "u", "password": "p"}, basic: true, ca: true,
			warnings: []string{
				"secret 'default/secret' has the legacy key 'caFile': use 'ca.crt'",
				"TLS settings in secret 'default/secret' in secretRef are deprecated: use certSecretRef",
			}},
		{name: "deprecated TLS beside certSecretRef", secret: data{"tls.crt": cert, "tls.key": key}, cert: data{"ca.crt": ca}, ca: true,
			warnings: []string{"TLS settings in secret 'default/secret' in secretRef are ignored: certSecretRef has its own"}},
		{name: "deprecated TLS is incomplete", secret: data{"tls.crt": cert, "username": "u", "password": "p"}, basic: true,
			warnings: []string{"TLS settings in secretRef are ignored: secret 'default/secret' contains 'tls.crt' but missing 'tls.key'"}},
		{name: "deprecated TLS is garbage", secret: data{"ca.crt": "garbage"}, err: methodPrefix + "failed to parse CA certificate"},

		{name: "GitHub App", secret: data{"githubAppID": "1", "githubAppPrivateKey": "x", "githubAppInstallationID": "1"}},
		{name: "GitHub App without key", secret: data{"githubAppID": "1"}},
		{name: "GitHub App without installation", secret: data{"githubAppID": "1", "githubAppPrivateKey": "x"},
			err: methodPrefix + "secret 'default/secret' must contain exactly one of 'githubAppInstallationOwner' or 'githubAppInstallationID'"},
		{name: "GitHub App with two installations", secret: data{"githubAppID": "1", "githubAppPrivateKey": "x", "githubAppInstallationID": "1", "githubAppInstallationOwner": "o"},
			err: methodPrefix + "secret 'default/secret' must contain exactly one of 'githubAppInstallationOwner' or 'githubAppInstallationID'"},

		{name: "certSecretRef is judged first", secret: data{"username": "u"}, cert: data{"ca.crt": "garbage"}, err: tlsPrefix + "failed to parse CA certificate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id, warnings, err := FromSecrets(tt.secret.secret("secret", tt.secretType), tt.cert.secret("cert", tt.certType))
			if tt.err != "" {
				var broken *SecretError
				if !errors.As(err, &broken) || err.Error() != tt.err {
					t.Fatalf("got error %v\nwant %s", err, tt.err)
				}
				if about := map[bool]string{true: "cert", false: "secret"}[broken.Certificates]; broken.Secret.Name != about {
					t.Errorf("the error about %s carries %s", about, broken.Secret.Name)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, w := range warnings {
				texts = append(texts, w.Text)
				if about := map[bool]string{true: "cert", false: "secret"}[w.Certificates]; w.Secret.Name != about {
					t.Errorf("a warning about %s carries %s: %s", about, w.Secret.Name, w.Text)
				}
			}
			if !slices.Equal(texts, tt.warnings) {
				t.Errorf("got warnings %q\nwant %q", texts, tt.warnings)
			}
			if _, _, basic := id.Basic(); basic != tt.basic || id.HasCA() != tt.ca || id.HasCertificate() != tt.pair {
				t.Errorf("basic %v, CA %v, certificate %v", basic, id.HasCA(), id.HasCertificate())
			}
		})
	}
}

func armor(kind, content string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(content)}))
}

// The authority is added to the system's: a public host stays reachable.
func TestCAIsAddedToSystemPool(t *testing.T) {
	kit, err := helmtest.NewKit()
	if err != nil {
		t.Fatal(err)
	}
	system, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	system.AppendCertsFromPEM(kit.CA.Cert)
	id, _, err := FromSecrets(nil, data{"ca.crt": string(kit.CA.Cert)}.secret("cert", ""))
	if err != nil {
		t.Fatal(err)
	}
	if !id.TLSConfig().RootCAs.Equal(system) {
		t.Error("the pool is not the system's and one more")
	}
	if new(Identity).TLSConfig().RootCAs != nil {
		t.Error("an identity without authority does not leave the pool to the system")
	}
}

// No message quotes a value of a Secret.
func FuzzFromSecret(f *testing.F) {
	kit, err := helmtest.NewKit()
	if err != nil {
		f.Fatal(err)
	}
	cert, key := kit.Client.Cert, kit.Client.Key
	f.Add([]byte("user"), []byte("password"), cert, key, kit.CA.Cert, uint8(0))
	f.Add([]byte("user"), []byte("password"), cert, kit.OtherClient.Key, kit.CA.Cert, uint8(1))
	f.Add([]byte(""), []byte(""), []byte(armor("CANARY CERTIFICATE", "canary")), []byte(armor("CANARY PRIVATE KEY", "x")), []byte("CA"), uint8(2))
	f.Add([]byte(""), []byte(""), cert, []byte(armor("CANARY", "canary")), []byte("-----BEGIN CERTIFICATE-----"), uint8(4))
	f.Add([]byte(""), []byte(""), append(slices.Clone(cert), key...), append([]byte("-----BEGIN X-----\nDEK-Info: x\n\n-----END X-----\n"), key...), []byte(nil), uint8(255))
	own := ownNames()
	f.Fuzz(func(t *testing.T, username, password, cert, key, ca []byte, missing uint8) {
		values := map[string][]byte{"username": username, "password": password, "tls.crt": cert, "tls.key": key, "ca.crt": ca}
		for i, name := range []string{"username", "password", "tls.crt", "tls.key", "ca.crt"} {
			if missing&(1<<i) != 0 {
				delete(values, name)
			}
		}
		s := &manifest.Secret{Namespace: "default", Name: "name", Data: values}
		for _, refs := range [][2]*manifest.Secret{{s, nil}, {nil, s}, {s, s}} {
			id, warnings, err := FromSecrets(refs[0], refs[1])
			if err == nil && id == nil {
				t.Fatal("neither an identity nor an error")
			}
			said := fmt.Sprint(warnings, err, id)
			for name, value := range values {
				for i := 0; i+minPiece <= len(said); i++ {
					piece := said[i : i+minPiece]
					if bytes.Contains(value, []byte(piece)) && !strings.Contains(own, piece) {
						t.Errorf("%q of %s is in %q", piece, name, said)
					}
				}
			}
			if id != nil && id.HasCertificate() {
				if _, err := tls.X509KeyPair(cert, key); err != nil {
					t.Errorf("accepted an invalid pair: %v", err)
				}
			}
		}
	})
}

// minPiece is the length from which a part of the input does not occur by chance.
const minPiece = 12

// ownNames returns the words of the messages themselves; finding these in the input means nothing.
func ownNames() string {
	var b strings.Builder
	for _, s := range []data{{}, {"username": ""}, {"password": ""}, {"tls.crt": "x"}, {"tls.key": "x"}, {"ca.crt": "x"}, {"tls.crt": "x", "tls.key": "x"}} {
		_, warnings, err := FromSecrets(s.secret("name", ""), nil)
		fmt.Fprint(&b, warnings, err, "REDACTED")
		_, warnings, err = FromSecrets(nil, s.secret("name", ""))
		fmt.Fprint(&b, warnings, err)
	}
	b.WriteString("'tls.crt' contains an unreadable certificate")
	b.WriteString("'tls.key' contains no PEM private key")
	b.WriteString("'tls.key' is encrypted")
	b.WriteString("'tls.key' is not the private key of 'tls.crt', or of a kind that is not supported")
	return b.String()
}
