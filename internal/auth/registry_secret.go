package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// keyDockerConfig is the key of a Secret of type typeDockerConfig.
const keyDockerConfig = ".dockerconfigjson"

// noLogin reports why a Secret has no login to a registry.
func noLogin(format string, args ...any) *finding.Problem {
	return &finding.Problem{Code: finding.NoRegistryLogin, Class: finding.Login, Text: fmt.Sprintf(format, args...)}
}

// RegistrySecret reads the login to a registry from the Secret of a HelmRepository, as source-controller does: a docker
// configuration with an entry for the host, or username and password. Neither is an anonymous login. Identity tokens
// work here as well.
func RegistrySecret(secret *manifest.Secret, host string) (Logins, error) {
	source := fmt.Sprintf("Secret '%s/%s'", secret.Namespace, secret.Name)
	if secret.Type == typeDockerConfig {
		return dockerSecret(secret, host, source)
	}
	user, password := string(secret.Data["username"]), string(secret.Data["password"])
	if (user == "") != (password == "") {
		return nil, noLogin("%s", incomplete(secret.Name))
	}
	login := StaticLogin{Credential: BasicCredential(user, password), Source: source}
	if _, ok := secret.Data[keyDockerConfig]; ok && user == "" {
		login.Problem = fmt.Errorf("%s contains a docker configuration, which is not used because its type is not %s", source, typeDockerConfig)
	}
	return login, nil
}

func incomplete(name string) string {
	return fmt.Sprintf("invalid '%s' secret data: required fields 'username' and 'password'", name)
}

func dockerSecret(secret *manifest.Secret, host, source string) (Logins, error) {
	data, ok := secret.Data[keyDockerConfig]
	if !ok {
		return nil, noLogin("unable to load Docker config from Secret '%s': '%s' not found in it", secret.Name, keyDockerConfig)
	}
	config, err := parseDockerConfig(data)
	if err != nil {
		return nil, noLogin("unable to load Docker config from Secret '%s': %v", secret.Name, err)
	}
	entries := config.of(host)
	if len(entries) == 0 {
		missing := noLogin("no auth config for '%s' in the docker-registry Secret '%s'", host, secret.Name)
		missing.Advice = otherHosts(config)
		return nil, missing
	}
	for _, e := range entries {
		if err := e.login().check(); err != nil {
			return nil, noLogin("%s: its entry for '%s': %v", incomplete(secret.Name), host, err)
		}
	}
	return &secretLogins{config: config, source: source, key: fingerprint("docker", string(data))}, nil
}

func otherHosts(c *dockerConfig) string {
	hosts := c.Hosts()
	const shown = 5
	switch {
	case len(hosts) == 0:
		return "the Secret has no login"
	case len(hosts) > shown:
		hosts = append(hosts[:shown:shown], "…")
	}
	return "the Secret contains logins for: " + printable(strings.Join(hosts, ", "))
}

var errIncomplete = errors.New("only one of them is there")

// check refuses half a login, with which a registry would be asked anonymously.
func (l dockerLogin) check() error {
	c, err := l.decode()
	if err != nil {
		return err
	}
	if (c.username == "") != (c.password == "") && c.identityToken == "" && c.registryToken == "" {
		return errIncomplete
	}
	return nil
}

// secretLogins are the logins in one Secret.
type secretLogins struct {
	config *dockerConfig
	source string
	key    string
}

// Key depends on the Secret's content.
func (s *secretLogins) Key() string { return s.key }

// login prefers the entry for the repository's namespace, but accepts any entry of the host: docker ignores the text
// after the host, and source-controller reads these files as docker does.
func (s *secretLogins) login(_ context.Context, on Route, repository string) (Login, error) {
	host := on.host()
	entry, ok := s.config.find(host, repository)
	if !ok {
		entries := s.config.of(host)
		if len(entries) == 0 {
			return Login{}, nil
		}
		entry = entries[0]
	}
	cred, err := entry.login().credential()
	return Login{Credential: cred, Source: s.source}, err
}
