package credential

import (
	"fmt"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

func TestGitSecret(t *testing.T) {
	encrypted, _, err := helmtest.NewSSHKey("passw0rd")
	if err != nil {
		t.Fatal(err)
	}
	const hosts = "h ssh-ed25519 AAAA"
	for _, v := range []struct {
		name, url string
		data      map[string]string
		want      string
	}{
		{"no identity", "ssh://h/x", map[string]string{"known_hosts": hosts}, "invalid 'ssh' auth option: 'identity' is required"},
		{"no known_hosts", "ssh://h/x", map[string]string{"identity": "x"}, "invalid 'ssh' auth option: 'known_hosts' is required"},
		{"bad identity", "ssh://h/x", map[string]string{"identity": "s3cret", "known_hosts": hosts}, "'identity' contains no readable private key"},
		{"encrypted", "ssh://h/x", map[string]string{"identity": string(encrypted), "known_hosts": hosts}, "'identity' is encrypted, and there is no 'password' to decrypt it with"},
		{"wrong passphrase", "ssh://h/x", map[string]string{"identity": string(encrypted), "known_hosts": hosts, "password": "s3cret"}, "'password' does not decrypt 'identity'"},
		{"passphrase", "ssh://h/x", map[string]string{"identity": string(encrypted), "known_hosts": hosts, "password": "passw0rd"}, ""},
		{"password alone", "https://h/x", map[string]string{"password": "s3cret"}, "invalid 'https' auth option: 'password' requires 'username' to be set"},
		{"token with a line break", "https://h/x", map[string]string{"bearerToken": "s3cret\nx"}, "'bearerToken' contains invalid characters, such as a line break"},
		{"bad CA", "https://h/x", map[string]string{"ca.crt": "s3cret"}, "failed to parse CA certificate"},
		{"bad CA of old", "https://h/x", map[string]string{"caFile": "s3cret"}, "failed to parse CA certificate"},
		{"half a pair", "https://h/x", map[string]string{"tls.crt": "s3cret"}, "'tls.crt' and 'tls.key' have to be set together"},
		{"nothing", "https://h/x", nil, ""},
	} {
		t.Run(v.name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, s := range v.data {
				data[k] = []byte(s)
			}
			l, err := gitLogin(v.url, "default/git", data, false)
			if v.want == "" {
				if err != nil {
					t.Error(err)
				} else if s := fmt.Sprintf("%v %+v %#v %s", l, l, *l, l); strings.Contains(s, "REDACTED") == false || strings.Contains(s, "passw0rd") {
					t.Error(s)
				}
				return
			}
			want := "secret 'default/git': " + v.want
			if err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
}

func TestGitHubAppSecret(t *testing.T) {
	g, err := helmtest.NewGitHub()
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]map[string]string{
		"app ID must be provided to use github app authentication":                              {"githubAppID": "x"},
		"must contain exactly one of 'githubAppInstallationOwner' or 'githubAppInstallationID'": {"githubAppInstallationID": ""},
		"'githubAppInstallationID' is not a number":                                             {"githubAppInstallationID": "../1"},
		"'githubAppInstallationOwner' is not the name of an account, of letters, digits, '-' and '_'": {
			"githubAppInstallationID": "", "githubAppInstallationOwner": "a/../../x?"},
		"private key must be provided to use github app authentication":                   {"githubAppPrivateKey": ""},
		"could not parse private key: 'githubAppPrivateKey' contains no readable RSA key": {"githubAppPrivateKey": "s3cret"},
		"'githubAppBaseURL' is not an https URL":                                          {"githubAppBaseURL": "http://api.test"},
	} {
		data := map[string][]byte{"githubAppID": []byte("1"), "githubAppInstallationID": []byte("2"), "githubAppPrivateKey": g.Key}
		for key, value := range change {
			data[key] = []byte(value)
		}
		_, err := gitLogin("https://git.test/x", "default/app", data, true)
		if err == nil || err.Error() != "secret 'default/app': "+want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
