package helmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Config is the configuration of a server, from the configuration files of its directory.
type Config struct {
	Addr   string // `addr`, or else the server's name under .test, with the port of the scheme
	TLS    bool   // `tls` or `mtls` exists
	Cert   string // in `tls`: the host of the certificate, if it is another, or "expired"
	Mutual bool   // `mtls` exists: clients need a certificate
	Down   bool   // `down` exists: connections are refused
	Kind   string // `kind`: the implementation, if there are several
	Auth   Auth   // `auth.json`
	Faults Faults // `faults.json`
}

// Auth is an auth.json: the credentials that a client must send.
type Auth struct {
	Basic     string `json:"basic"`     // USER:PASSWORD for each request
	Token     string `json:"token"`     // USER:PASSWORD for the token server of a registry
	Realm     string `json:"realm"`     // URL of that server; default http(s)://auth.test/token
	Anonymous bool   `json:"anonymous"` // pulls need no login
	Push      bool   `json:"push"`      // the login also allows pushes
	Identity  string `json:"identity"`  // an accepted identity token
}

// Secrets returns the secret parts of an Auth.
func (a Auth) Secrets() []string {
	var list []string
	for _, user := range []string{a.Basic, a.Token} {
		if _, password, ok := strings.Cut(user, ":"); ok {
			list = append(list, password)
		}
	}
	if a.Identity != "" {
		list = append(list, a.Identity)
	}
	return list
}

// isConfiguration reports whether a file configures the server of a directory, and is not served itself.
func isConfiguration(file string) bool {
	switch file {
	case "charts", "signatures", "addr", "tls", "mtls", "down", "kind", "prefix", "auth.json", "faults.json":
		return true
	}
	return false
}

// ReadConfig reads the configuration files of a server's directory.
func ReadConfig(name, dir string) (*Config, error) {
	r := configReader{dir: dir}
	c := &Config{
		TLS:    r.exists("tls") || r.exists("mtls"),
		Cert:   r.word("tls"),
		Mutual: r.exists("mtls"),
		Down:   r.exists("down"),
		Kind:   r.word("kind"),
		Addr:   r.word("addr"),
	}
	r.json("auth.json", &c.Auth)
	r.json("faults.json", &c.Faults)
	if c.Addr == "" {
		c.Addr = name + domain(name) + ":" + c.port(name)
	}
	return c, r.err
}

// domain returns the domain of a kind of servers: the name of an Azure account is the first of at least three parts.
func domain(name string) string {
	if strings.HasPrefix(name, "azure") {
		return ".blob.test"
	}
	return ".test"
}

func (c *Config) port(name string) string {
	switch {
	case strings.HasPrefix(name, "proxy"):
		return "3128"
	case c.TLS:
		return "443"
	}
	return "80"
}

// configReader reads files of a directory, each of which may be missing, up to the first error.
type configReader struct {
	dir string
	err error
}

func (r *configReader) read(file string) []byte {
	b, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && r.err == nil {
		r.err = err
	}
	return b
}

func (r *configReader) exists(file string) bool {
	_, err := os.Stat(filepath.Join(r.dir, file))
	return err == nil
}

func (r *configReader) word(file string) string { return strings.TrimSpace(string(r.read(file))) }

func (r *configReader) json(file string, into any) {
	b := r.read(file)
	if b == nil {
		return
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil && r.err == nil {
		r.err = fmt.Errorf("%s: %w", file, err)
	}
}
