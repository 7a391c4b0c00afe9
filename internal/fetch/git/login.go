package git

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"golang.org/x/crypto/ssh"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// Login is what one repository is talked to with. It prints as Redacted by every means; nil is anonymous.
type Login struct {
	// A function cannot be printed, see auth.Identity.
	secrets func() gitSecrets
}

type gitSecrets struct {
	username, password, bearer string

	tls *auth.Identity // authorities and client certificate

	signer     ssh.Signer
	knownHosts []byte

	app *githubApp // which is asked for the user and the password
}

// Format serves every verb of the fmt package.
func (l Login) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, fetch.Redacted) }

// MarshalText covers most encoders.
func (l Login) MarshalText() ([]byte, error) { return []byte(fetch.Redacted), nil }

// NewLogin reads the Secret of a GitRepository with this URL: for HTTP username and password or bearerToken, ca.crt,
// tls.crt and tls.key; for SSH identity and known_hosts, and in password the passphrase of an encrypted identity. No
// error holds anything from the values. The name is the Secret's, for the errors.
func NewLogin(rawURL, name string, data map[string][]byte) (*Login, error) {
	l, err := readLogin(rawURL, data)
	if err != nil {
		return nil, fmt.Errorf("secret '%s': %w", name, err)
	}
	return l, nil
}

func readLogin(rawURL string, data map[string][]byte) (*Login, error) {
	u, err := auth.ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	var s gitSecrets
	if u.Scheme == "ssh" {
		err = s.readSSH(data)
	} else {
		err = s.readHTTP(u.Scheme, data)
	}
	if err != nil {
		return nil, err
	}
	return &Login{func() gitSecrets { return s }}, nil
}

func (s *gitSecrets) readHTTP(scheme string, data map[string][]byte) error {
	s.username, s.password = string(data["username"]), string(data["password"])
	if token, found := data["bearerToken"]; found {
		s.username, s.password, s.bearer = "", "", string(token)
	}
	if s.username == "" && s.password != "" {
		return fmt.Errorf("invalid '%s' auth option: 'password' requires 'username' to be set", scheme)
	}
	if !headerValue(s.bearer) {
		return errors.New("'bearerToken' holds characters that no token has, such as a line break")
	}
	return s.readTLS(data)
}

// headerValue reports whether a text can be sent in a header.
func headerValue(text string) bool {
	for _, c := range []byte(text) {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

func (s *gitSecrets) readTLS(data map[string][]byte) error {
	get := func(key, legacy string) []byte {
		if value := data[key]; len(value) > 0 {
			return value
		}
		return data[legacy]
	}
	var err error
	s.tls, err = auth.NewTLS(get("ca.crt", "caFile"), get("tls.crt", "certFile"), get("tls.key", "keyFile"))
	return err
}

func (s *gitSecrets) readSSH(data map[string][]byte) error {
	for _, key := range []string{"identity", "known_hosts"} {
		if len(data[key]) == 0 {
			return fmt.Errorf("invalid 'ssh' auth option: '%s' is required", key)
		}
	}
	s.knownHosts = data["known_hosts"]
	var err error
	s.signer, err = ssh.ParsePrivateKey(data["identity"])
	var encrypted *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &encrypted) && len(data["password"]) == 0:
		return errors.New("'identity' is encrypted, and there is no 'password' to decrypt it with")
	case errors.As(err, &encrypted):
		s.signer, err = ssh.ParsePrivateKeyWithPassphrase(data["identity"], data["password"])
		if errors.Is(err, x509.IncorrectPasswordError) {
			return errors.New("'password' does not decrypt 'identity'")
		}
	}
	if err != nil {
		return errors.New("'identity' holds no private key that can be read")
	}
	return nil
}

func (l *Login) reveal() gitSecrets {
	if l == nil || l.secrets == nil {
		return gitSecrets{}
	}
	return l.secrets()
}

// withUserinfo fills in what the Secret leaves open from a URL.
func (l *Login) withUserinfo(u *url.Userinfo) *Login {
	s := l.reveal()
	if s.bearer != "" || u == nil {
		return l
	}
	if s.username == "" {
		s.username = u.Username()
	}
	if s.password == "" {
		s.password, _ = u.Password()
	}
	return &Login{func() gitSecrets { return s }}
}

// any reports whether there is something to log in with.
func (l *Login) any() bool {
	s := l.reveal()
	return s.username != "" || s.bearer != "" || s.tls.HasCertificate() || s.signer != nil || s.app != nil
}

func (l *Login) authorize(r *http.Request) {
	switch s := l.reveal(); {
	case s.bearer != "":
		r.Header.Set("Authorization", "Bearer "+s.bearer)
	case s.username != "" || s.password != "":
		r.SetBasicAuth(s.username, s.password)
	}
}

func (l *Login) scrub(text string) string {
	s := l.reveal()
	if s.signer == nil { // over SSH the user is no secret, and mostly "git"
		text = auth.NewBasic(s.username, s.password).Scrub(text)
	}
	return auth.NewBasic("", s.bearer).Scrub(text)
}

func (l *Login) requestHint(err error) string {
	var authority x509.UnknownAuthorityError
	var hinted interface{ Hint() string }
	switch {
	case fetch.CertificateHint(err) != "":
		return fetch.CertificateHint(err)
	case errors.As(err, &authority) && !l.reveal().tls.HasCA():
		return "if the server's certificate is from a private CA, put that CA into ca.crt of the Secret of spec.secretRef"
	case errors.As(err, &authority):
		return "the CA in ca.crt did not issue the server's certificate"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "the server speaks plain HTTP on this port: spec.url has to begin with http://"
	case errors.As(err, &hinted):
		return hinted.Hint()
	}
	return ""
}
