package fetch

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// GitLogin is what one repository is talked to with. It prints as redactedSecret by every means; nil is anonymous.
type GitLogin struct {
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
func (l GitLogin) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redactedSecret) }

// MarshalText covers most encoders.
func (l GitLogin) MarshalText() ([]byte, error) { return []byte(redactedSecret), nil }

// NewGitLogin reads the Secret of a GitRepository with this URL: for HTTP username and password or bearerToken, ca.crt,
// tls.crt and tls.key; for SSH identity and known_hosts, and in password the passphrase of an encrypted identity. No
// error holds anything from the values. The name is the Secret's, for the errors.
func NewGitLogin(rawURL, name string, data map[string][]byte) (*GitLogin, error) {
	l, err := newGitLogin(rawURL, data)
	if err != nil {
		return nil, fmt.Errorf("secret '%s': %w", name, err)
	}
	return l, nil
}

func newGitLogin(rawURL string, data map[string][]byte) (*GitLogin, error) {
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
	return &GitLogin{func() gitSecrets { return s }}, nil
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

// headerValue tells whether a text can be sent in a header.
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

func (l *GitLogin) reveal() gitSecrets {
	if l == nil || l.secrets == nil {
		return gitSecrets{}
	}
	return l.secrets()
}

// withUserinfo fills in what the Secret leaves open from a URL.
func (l *GitLogin) withUserinfo(u *url.Userinfo) *GitLogin {
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
	return &GitLogin{func() gitSecrets { return s }}
}

// any tells whether there is something to log in with.
func (l *GitLogin) any() bool {
	s := l.reveal()
	return s.username != "" || s.bearer != "" || s.tls.HasCertificate() || s.signer != nil || s.app != nil
}

func (l *GitLogin) authorize(r *http.Request) {
	switch s := l.reveal(); {
	case s.bearer != "":
		r.Header.Set("Authorization", "Bearer "+s.bearer)
	case s.username != "" || s.password != "":
		r.SetBasicAuth(s.username, s.password)
	}
}

func (l *GitLogin) scrub(text string) string {
	s := l.reveal()
	if s.signer == nil { // over SSH the user is no secret, and mostly "git"
		text = auth.NewBasic(s.username, s.password).Scrub(text)
	}
	return auth.NewBasic("", s.bearer).Scrub(text)
}

func (l *GitLogin) requestHint(err error) string {
	var authority x509.UnknownAuthorityError
	var hinted interface{ Hint() string }
	switch {
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

// Proxy is what proxySecretRef names. It prints as redactedSecret.
type Proxy struct{ address func() *url.URL }

// Format serves every verb of the fmt package.
func (p Proxy) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redactedSecret) }

// maxProxyAddress is Flux's.
const maxProxyAddress = 2048

// NewProxy reads the Secret of a proxySecretRef. The name is the Secret's, for the errors, which are those of Flux.
func NewProxy(name string, data map[string][]byte) (*Proxy, error) {
	address, found := data["address"]
	switch {
	case !found:
		return nil, fmt.Errorf("secret '%s': key 'address' not found", name)
	case len(address) == 0:
		return nil, fmt.Errorf("secret '%s': proxy address is empty", name)
	case len(address) > maxProxyAddress:
		return nil, fmt.Errorf("secret '%s': proxy URL exceeds maximum length of %d characters", name, maxProxyAddress)
	}
	u, err := url.Parse(string(address))
	if err != nil {
		return nil, fmt.Errorf("secret '%s': failed to parse proxy address: it is no URL", name)
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		got := ""
		if u.Opaque == "" { // else it is rather a user's name
			got = fmt.Sprintf(", got '%s'", u.Scheme)
		}
		return nil, fmt.Errorf("secret '%s': proxy URL must use one of the supported schemes (http, https, socks5)%s", name, got)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("secret '%s': proxy URL has no host", name)
	}
	if username := string(data["username"]); username != "" {
		u.User = url.UserPassword(username, string(data["password"]))
	}
	return &Proxy{func() *url.URL { return u }}, nil
}

// Key is equal for equal proxies, and tells nothing about them. That of no proxy is empty.
func (p *Proxy) Key() string {
	if p == nil {
		return ""
	}
	return auth.NewBasic("proxy", p.address().String()).Key()
}

// Environment is an environment with this proxy in place of its own. Without a proxy it is the same.
func (p *Proxy) Environment(own func(string) string) func(string) string {
	if p == nil {
		return own
	}
	proxy := p.getenv()
	return func(name string) string {
		switch strings.ToUpper(name) {
		case "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY":
			return proxy(name)
		}
		return own(name)
	}
}

// getenv is an environment in which everything goes through this proxy, whatever NO_PROXY says: it was asked for by name.
func (p *Proxy) getenv() func(string) string {
	address := p.address().String()
	return func(name string) string {
		if name == "HTTP_PROXY" || name == "HTTPS_PROXY" {
			return address
		}
		return ""
	}
}
