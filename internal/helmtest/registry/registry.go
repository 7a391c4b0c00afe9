// Package registry serves OCI registries on loopback, filled with charts: the CNCF distribution and, as a second
// implementation, go-containerregistry's. It is for tests only, and apart from helmtest because of the weight of its
// imports.
package registry

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd" // its basic authentication
	_ "github.com/distribution/distribution/v3/registry/auth/token"    // its token authentication
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory" // its storage
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// Kind makes a registry with the charts of a directory (see [helmtest.ReadPublished]). With "ggcr" in its file `kind` it
// is go-containerregistry's, else the CNCF distribution. Credentials are basic or tokens; the server of these is started
// in the world, at the host of the realm.
func Kind(w *helmtest.World, name, dir string, c *helmtest.Config) (http.Handler, error) {
	return KindWith(Hooks{})(w, name, dir, c)
}

// Hooks put more into a registry than the charts of a directory.
type Hooks struct {
	// Change gets the charts before they are pushed, Add the registry when they are there. Both may be nil.
	Change func(charts []helmtest.Published, dir string) error
	Add    func(r *Registry, dir string) error
}

// KindWith is [Kind] with hooks.
func KindWith(hooks Hooks) helmtest.Kind {
	return func(w *helmtest.World, name, dir string, c *helmtest.Config) (http.Handler, error) {
		charts, err := helmtest.ReadPublished(dir)
		if err != nil {
			return nil, err
		}
		if hooks.Change != nil {
			if err := hooks.Change(charts, dir); err != nil {
				return nil, err
			}
		}
		r, err := New(c)
		if err != nil {
			return nil, err
		}
		for i := range charts {
			if err := r.Push(&charts[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", charts[i].Repository, err)
			}
		}
		if hooks.Add != nil {
			if err := hooks.Add(r, dir); err != nil {
				return nil, err
			}
		}
		err = r.startTokenServer(w, name)
		return r.Handler, err
	}
}

// Registry is a registry that can be filled whatever credentials it asks of others.
type Registry struct {
	http.Handler
	Tokens *TokenServer // nil unless it wants tokens

	config *helmtest.Config
}

// Host is what clients call the registry: its name, without a port that is the scheme's own.
func (r *Registry) Host() string {
	port := ":80"
	if r.config.TLS {
		port = ":443"
	}
	return strings.TrimSuffix(r.config.Addr, port)
}

// New returns an empty registry.
func New(c *helmtest.Config) (*Registry, error) {
	if c.Kind == "ggcr" {
		h := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)), ggcr.WithReferrersSupport(true))
		return &Registry{Handler: helmtest.BasicAuth(c.Auth.Basic, h), config: c}, nil
	}
	r := &Registry{config: c}
	config := &configuration.Configuration{
		Storage: configuration.Storage{
			"inmemory":    configuration.Parameters{},
			"maintenance": configuration.Parameters{"uploadpurging": map[any]any{"enabled": false}},
			"delete":      configuration.Parameters{"enabled": true},
		},
	}
	config.HTTP.Secret = "helmtest"
	var err error
	switch {
	case c.Auth.Basic != "":
		config.Auth, err = basicAuth(c.Auth.Basic)
	case c.Auth.Token != "":
		if r.Tokens, err = NewTokenServer(c); err == nil {
			config.Auth, err = r.Tokens.registryAuth()
		}
	}
	if err != nil {
		return nil, err
	}
	silence()
	r.Handler = handlers.NewApp(context.Background(), config)
	return r, nil
}

// silence turns off the log of the distribution, which has no other switch than the standard logger's.
var silence = sync.OnceFunc(func() {
	logrus.SetOutput(io.Discard)
	logrus.SetLevel(logrus.PanicLevel)
})

// basicAuth is the distribution's htpasswd authentication, which wants its users in a file.
func basicAuth(user string) (configuration.Auth, error) {
	name, password, _ := strings.Cut(user, ":")
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		return nil, err
	}
	file, err := tempFile("htpasswd", fmt.Appendf(nil, "%s:%s\n", name, hash))
	if err != nil {
		return nil, err
	}
	return configuration.Auth{"htpasswd": configuration.Parameters{
		"realm": "helmtest",
		"path":  file,
		// The dummy that unknown users are compared with takes a long time otherwise.
		"overrideDummyHash": hash,
	}}, nil
}

var tempDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "helmtest") })

func tempFile(pattern string, content []byte) (string, error) {
	dir, err := tempDir()
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, err = f.Write(content)
	return f.Name(), err
}

// Cleanup removes the files that registries of this process were given. Call it at the end of a TestMain.
func Cleanup() {
	if dir, err := tempDir(); err == nil {
		_ = os.RemoveAll(filepath.Clean(dir))
	}
}

// startTokenServer serves the realm: on the registry's own address, or else as a server of the world.
func (r *Registry) startTokenServer(w *helmtest.World, registry string) error {
	if r.Tokens == nil {
		return nil
	}
	u, err := url.Parse(r.Tokens.Realm)
	if err != nil {
		return err
	}
	addr := u.Host
	if u.Port() == "" {
		addr += map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	}
	for other, realm := range w.Realms {
		if realm == addr && other != registry {
			return fmt.Errorf("%s and %s have the same realm", other, registry)
		}
	}
	w.Realms[registry], w.Issued[registry] = addr, r.Tokens.Issued
	if addr == r.config.Addr {
		r.Handler = withTokens(u.Path, r.Tokens, r.Handler)
		return nil
	}
	name, _, _ := strings.Cut(u.Hostname(), ".")
	if s, running := w.Servers[name]; running {
		s.Use(r.Tokens) // the registry was replaced
		return nil
	}
	return w.Serve(name, &helmtest.Config{Addr: addr, TLS: u.Scheme == "https"}, r.Tokens)
}

func withTokens(path string, tokens, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			tokens.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
