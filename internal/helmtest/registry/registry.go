// Package registry serves OCI registries on loopback, filled with charts: the CNCF distribution and, as a second
// implementation, go-containerregistry's. It is for tests only, and separate from helmtest because of the weight of its
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

// Kind makes a registry with the charts of a directory (see [helmtest.ReadPublished]). With "ggcr" in its file `kind` it is
// go-containerregistry's, else the CNCF distribution. Credentials are basic or tokens; the token server is started in the
// world, at the host of the realm.
func Kind(w *helmtest.World, name, dir string, c *helmtest.Config) (http.Handler, error) {
	return KindWith(Hooks{})(w, name, dir, c)
}

// Hooks add more to a registry than the charts of a directory.
type Hooks struct {
	// Change is called with the charts before they are pushed, Add with the registry afterwards. Both may be nil.
	Change func(charts []helmtest.Published, dir string) error
	Add    func(r *Registry, dir string) error
}

// KindWith returns [Kind] with hooks.
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

// Registry is a registry that tests can fill regardless of the credentials that it requires.
type Registry struct {
	http.Handler
	Tokens *TokenServer // nil unless it requires tokens

	config *helmtest.Config
}

// Host returns the name of the registry for clients, without the default port of the scheme.
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

// silence turns off the log of the distribution, which only the standard logger can do.
var silence = sync.OnceFunc(func() {
	logrus.SetOutput(io.Discard)
	logrus.SetLevel(logrus.PanicLevel)
})

// basicAuth returns the distribution's htpasswd authentication, which reads its users from a file.
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
		// The default dummy hash, which unknown users are compared with, takes a long time.
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

// Cleanup removes the files of this process's registries. Call it at the end of a TestMain.
func Cleanup() {
	if dir, err := tempDir(); err == nil {
		_ = os.RemoveAll(filepath.Clean(dir))
	}
}

// startTokenServer serves the realm, on the registry's address or as a further server of the world.
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
