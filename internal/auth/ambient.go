package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/work"
)

// Logins finds the login to a registry for one repository. Without a login it returns the zero Login and no error. It is
// safe for concurrent use. Only this package can call login, with the route of the transport that sends the credential.
type Logins interface {
	login(ctx context.Context, on Route, repository string) (Login, error)
	// Key is equal for logins that always give the same answers. It cannot be turned back into them.
	Key() string
}

// Login is a credential with the place it was found in.
type Login struct {
	Credential Credential
	// Source names the place of the credential in messages: "Secret 'apps/ghcr'", a file name. It contains no secret.
	Source string
	// Problem is why a configured login could not be used although the request may go on without it. It is worth a
	// hint if the registry then refuses the request.
	Problem error
}

// StaticLogin gives the same login to whichever host it is bound to.
type StaticLogin Login

func (l StaticLogin) login(context.Context, Route, string) (Login, error) { return Login(l), nil }

// Key depends on the credential alone: its source makes no difference to a registry.
func (l StaticLogin) Key() string { return l.Credential.key() }

// AmbientOptions locates the user's own logins.
type AmbientOptions struct {
	Getenv func(string) string
	// RegistryConfig is the one file to read instead of the usual ones.
	RegistryConfig string
	Reach          Reach
	// HelperTimeout bounds one run of a credential helper. Zero means helperTimeout.
	HelperTimeout time.Duration
}

// Ambient finds the user's own registry logins: those of helm registry login, docker login and podman login, in this
// order, credential helpers included. Files are read once, on first use; helpers are run once per host.
type Ambient struct {
	opts    AmbientOptions
	load    sync.Once
	files   []ambientFile
	helpers work.Memo[helperKey, Credential]
}

type ambientFile struct {
	path   string
	config *dockerConfig
	err    error
}

// NewAmbient returns the logins of the user. It opens no file yet.
func NewAmbient(o AmbientOptions) *Ambient {
	if o.HelperTimeout <= 0 {
		o.HelperTimeout = helperTimeout
	}
	return &Ambient{opts: o}
}

// Key returns the same key for all repositories: there is one user.
func (a *Ambient) Key() string { return fingerprint("ambient", a.opts.RegistryConfig) }

// Known returns the entries of the user's files for a host: its logins, even those that cannot be used, and the names of
// the helpers that would run. It contains secrets, and must be hashed at once. No helper is run.
func (a *Ambient) Known(ctx context.Context, host string) []string {
	a.load.Do(func() { a.read(ctx) })
	var known []string
	for _, f := range a.files {
		if f.err != nil {
			known = append(known, "unreadable", f.path)
			continue
		}
		if name, _ := f.config.helper(host); name != "" {
			known = append(known, "helper", name)
		}
		for _, e := range f.config.of(host) {
			l := e.login()
			known = append(known, "login", e.key, l.Auth, l.Username, l.Password, l.IdentityToken, l.RegistryToken)
		}
	}
	return known
}

// login returns the first login that any of the files has for the host, if no manifest chose the route to it.
func (a *Ambient) login(ctx context.Context, on Route, repository string) (Login, error) {
	if on.withhold("", a.opts.Reach) != nil {
		problem := a.withheld(ctx, on)
		for _, f := range a.files {
			problem = errors.Join(problem, f.err)
		}
		return Login{Problem: problem}, nil
	}
	return a.find(ctx, on.host(), repository)
}

// withheld returns a *WithheldError if there seems to be a login for the host of a route that it does not take. No helper
// is run to find out.
func (a *Ambient) withheld(ctx context.Context, on Route) error {
	if on.withhold("", a.opts.Reach) == nil {
		return nil
	}
	a.load.Do(func() { a.read(ctx) })
	for _, f := range a.files {
		if f.err == nil && f.config.knows(on.host()) {
			return on.withhold("the login in "+f.path, a.opts.Reach)
		}
	}
	return nil
}

func (a *Ambient) find(ctx context.Context, host, repository string) (Login, error) {
	a.load.Do(func() { a.read(ctx) })
	var problem error
	for _, f := range a.files {
		if f.err != nil {
			problem = errors.Join(problem, f.err)
			continue
		}
		login, err := a.fromFile(ctx, f, host, repository)
		if err != nil {
			return Login{}, err
		}
		if !login.Credential.IsZero() {
			return login, nil
		}
		problem = errors.Join(problem, login.Problem)
	}
	return Login{Problem: problem}, nil
}

// fromFile asks in the order in which docker does: the helper for this host, the helper for all hosts, the file itself.
// A failing helper is an error only if it was configured for this very host; a credsStore that is left over from a
// desktop must not keep anyone from public charts.
func (a *Ambient) fromFile(ctx context.Context, f ambientFile, host, repository string) (Login, error) {
	var problem error
	if name, own := f.config.helper(host); name != "" {
		cred, err := a.askHelper(ctx, name, host)
		switch {
		case err != nil && own:
			return Login{}, fmt.Errorf("login for '%s' configured in %s: %w", RegistryHost(host), f.path, err)
		case err != nil:
			problem = fmt.Errorf("credential store of %s: %w", f.path, err)
		case !cred.IsZero():
			return Login{Credential: cred, Source: "docker-credential-" + name}, nil
		}
	}
	entry, ok := f.config.find(host, repository)
	if !ok {
		return Login{Problem: problem}, nil
	}
	cred, err := entry.login().credential()
	if err != nil {
		return Login{}, fmt.Errorf("login for '%s' in %s: %w", RegistryHost(host), f.path, err)
	}
	return Login{Credential: cred, Source: f.path, Problem: problem}, nil
}

func (a *Ambient) read(ctx context.Context) {
	for _, path := range a.paths() {
		config, err := readDockerConfig(ctx, path)
		if errors.Is(err, fs.ErrNotExist) && path != a.opts.RegistryConfig {
			continue
		}
		if err != nil {
			err = fmt.Errorf("cannot read the registry logins in %s: %w", path, err)
		}
		a.files = append(a.files, ambientFile{path: path, config: config, err: err})
	}
}

// paths lists the files that may have logins. A file that was named explicitly stands alone, as with helm's flag of the
// same name.
func (a *Ambient) paths() []string {
	if a.opts.RegistryConfig != "" {
		return []string{a.opts.RegistryConfig}
	}
	env := a.opts.Getenv
	home := homeDir(env)
	var paths []string
	add := func(elem ...string) {
		// A missing directory variable must not turn into a path relative to the working directory.
		if elem[0] != "" {
			paths = append(paths, filepath.Join(elem...))
		}
	}
	add(cmp.Or(env("HELM_REGISTRY_CONFIG"), under(helmConfigHome(env, home), "registry", "config.json")))
	add(cmp.Or(under(env("DOCKER_CONFIG"), "config.json"), under(home, ".docker", "config.json")))
	if file := env("REGISTRY_AUTH_FILE"); file != "" {
		add(file)
		return paths
	}
	add(env("XDG_RUNTIME_DIR"), "containers", "auth.json")
	add(cmp.Or(env("XDG_CONFIG_HOME"), under(home, ".config")), "containers", "auth.json")
	return paths
}

func helmConfigHome(env func(string) string, home string) string {
	if dir := env("HELM_CONFIG_HOME"); dir != "" {
		return dir
	}
	if dir := env("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "helm")
	}
	switch runtime.GOOS {
	case "windows":
		return under(env("APPDATA"), "helm")
	case "darwin":
		return under(home, "Library", "Preferences", "helm")
	}
	return under(home, ".config", "helm")
}

func homeDir(env func(string) string) string {
	if runtime.GOOS == "windows" {
		return env("USERPROFILE")
	}
	return env("HOME")
}

// under joins, unless there is no base.
func under(base string, elem ...string) string {
	if base == "" {
		return ""
	}
	return filepath.Join(append([]string{base}, elem...)...)
}

func readDockerConfig(ctx context.Context, path string) (*dockerConfig, error) {
	data, err := file.Read(ctx, path, maxDockerConfigBytes)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return &dockerConfig{}, nil
	}
	return parseDockerConfig(data)
}
