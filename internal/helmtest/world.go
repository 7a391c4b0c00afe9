package helmtest

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// Kind makes the handler of one kind of server from a directory. It may start further servers in the world.
type Kind func(w *World, name, dir string, c *Config) (http.Handler, error)

// World holds the servers of one test.
type World struct {
	Network *Network
	Kit     *Kit
	Kinds   map[string]Kind // by the letters at the start of a server's name
	Servers map[string]*Server
	Configs map[string]*Config

	Realms map[string]string          // the address of the token server of a registry
	Issued map[string]func() []string // the tokens for a registry

	// SignGit, if it is not nil, signs the last commit of a Git repository, which has the files of a directory.
	SignGit func(g *Git, dir string) error
	// Files are the files for logins: Secrets that have the name of their file, and keys.
	Files map[string][]byte

	states  map[string]string // directories, by server
	commits map[string]int
	buckets map[string]*S3
	gcs     map[string]*GCS
	azure   map[string]*Azure
	ssh     map[string]*GitSSH
	github  map[string]*GitHub
}

// NewWorld returns a world without servers that supports Helm repositories ("repo"), proxies ("proxy"), Git servers ("git")
// and object stores: S3 ("bucket"), Google's ("gcs"), Azure's ("azure").
func NewWorld(kit *Kit) *World {
	return &World{
		Network: NewNetwork(),
		Kit:     kit,
		Kinds: map[string]Kind{
			"repo": repositoryKind, "proxy": proxyKind, "git": gitKind, "bucket": bucketKind, "gcs": gcsKind, "azure": azureKind,
		},
		Servers: map[string]*Server{},
		Configs: map[string]*Config{},
		Realms:  map[string]string{},
		Issued:  map[string]func() []string{},
		states:  map[string]string{},
		commits: map[string]int{},
		buckets: map[string]*S3{},
		gcs:     map[string]*GCS{},
		azure:   map[string]*Azure{},
		ssh:     map[string]*GitSSH{},
		github:  map[string]*GitHub{},
		Files:   map[string][]byte{},
	}
}

func repositoryKind(_ *World, _, dir string, c *Config) (http.Handler, error) {
	r, err := ReadRepository(dir)
	return BasicAuth(c.Auth.Basic, r), err
}

func proxyKind(w *World, _, _ string, c *Config) (http.Handler, error) {
	return Proxy(w.Network, c.Auth.Basic), nil
}

// Start starts a server with the files of a directory.
func (w *World) Start(name, dir string) error {
	c, err := ReadConfig(name, dir)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if c.Down {
		w.Network.Refuse(c.Addr)
		return nil
	}
	h, err := w.handler(name, dir, c)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return w.Serve(name, c, h)
}

// handler returns the handler of a server of this name, with the faults in front of it.
func (w *World) handler(name, dir string, c *Config) (http.Handler, error) {
	for kind, read := range w.Kinds {
		if strings.HasPrefix(name, kind) {
			h, err := read(w, name, dir, c)
			return c.Faults.Handler(h), err
		}
	}
	return nil, errors.New("no such kind of server")
}

// Serve starts a server with a given handler. It uses only the address and TLS of the configuration.
func (w *World) Serve(name string, c *Config, h http.Handler) error {
	var secure *tls.Config
	if c.TLS {
		host, _, err := net.SplitHostPort(c.Addr)
		if err != nil {
			return err
		}
		if secure, err = w.Kit.CA.ServerConfig(certificateHost(c.Cert, host), c.Mutual); err != nil {
			return err
		}
	}
	s, err := Serve(w.Network, c.Addr, secure, h)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	w.Servers[name], w.Configs[name] = s, c
	return nil
}

// certificateHost returns the host for which the authority issues a server's certificate.
func certificateHost(cert, host string) string {
	if cert == "expired" {
		return expired + host
	}
	return cmp.Or(cert, host)
}

// Replace gives a server, which may have been closed, the files of another directory: content, credentials and faults. Its
// address and TLS stay.
func (w *World) Replace(name, dir string) error {
	s, ok := w.Servers[name]
	if !ok {
		return fmt.Errorf("no server %s", name)
	}
	c, err := ReadConfig(name, dir)
	if err != nil {
		return err
	}
	old := w.Configs[name]
	c.Addr, c.TLS, c.Mutual, c.Kind = old.Addr, old.TLS, old.Mutual, old.Kind
	h, err := w.handler(name, dir, c)
	if err != nil {
		return err
	}
	s.Use(h)
	w.Configs[name] = c
	return nil
}

// Close stops every server.
func (w *World) Close() {
	for _, s := range w.Servers {
		s.Close()
	}
	for _, s := range w.buckets {
		s.Close()
	}
	for _, s := range w.gcs {
		s.Close()
	}
	for _, s := range w.ssh {
		s.Close()
	}
}
