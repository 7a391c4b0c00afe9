package credential

import (
	"crypto/x509"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
)

// gitLogin reads the Secret of a GitRepository with this URL: for HTTP username and password or bearerToken, ca.crt,
// tls.crt and tls.key; for SSH identity and known_hosts, and in password the passphrase of an encrypted identity; and
// the keys of a GitHub App, if app is true. No error quotes a value. The name is the Secret's, for the errors.
func gitLogin(rawURL, name string, data map[string][]byte, app bool) (*git.Login, error) {
	k, err := readGit(rawURL, data)
	if err == nil && app {
		k.App, err = readGitHubApp(data)
	}
	if err != nil {
		return nil, fmt.Errorf("secret '%s': %w", name, err)
	}
	return git.NewLogin(k), nil
}

func readGit(rawURL string, data map[string][]byte) (git.Keys, error) {
	u, err := auth.ParseURL(rawURL)
	switch {
	case err != nil:
		return git.Keys{}, err
	case u.Scheme == "ssh":
		return readSSH(data)
	}
	return readHTTP(u.Scheme, data)
}

func readHTTP(scheme string, data map[string][]byte) (k git.Keys, err error) {
	k.Username, k.Password = string(data["username"]), string(data["password"])
	if token, found := data["bearerToken"]; found {
		k = git.Keys{Bearer: string(token)}
	}
	if k.Username == "" && k.Password != "" {
		return k, fmt.Errorf("invalid '%s' auth option: 'password' requires 'username' to be set", scheme)
	}
	if !git.HeaderValue(k.Bearer) {
		return k, errors.New("'bearerToken' contains invalid characters, such as a line break")
	}
	get := func(key, legacy string) []byte {
		if value := data[key]; len(value) > 0 {
			return value
		}
		return data[legacy]
	}
	k.TLS, err = auth.NewTLS(get("ca.crt", "caFile"), get("tls.crt", "certFile"), get("tls.key", "keyFile"))
	return k, err
}

func readSSH(data map[string][]byte) (k git.Keys, err error) {
	for _, key := range []string{"identity", "known_hosts"} {
		if len(data[key]) == 0 {
			return k, fmt.Errorf("invalid 'ssh' auth option: '%s' is required", key)
		}
	}
	k.KnownHosts = data["known_hosts"]
	k.Signer, err = ssh.ParsePrivateKey(data["identity"])
	var encrypted *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &encrypted) && len(data["password"]) == 0:
		return k, errors.New("'identity' is encrypted, and there is no 'password' to decrypt it with")
	case errors.As(err, &encrypted):
		k.Signer, err = ssh.ParsePrivateKeyWithPassphrase(data["identity"], data["password"])
		if errors.Is(err, x509.IncorrectPasswordError) {
			return k, errors.New("'password' does not decrypt 'identity'")
		}
	}
	if err != nil {
		return k, errors.New("'identity' contains no readable private key")
	}
	return k, nil
}
