package auth

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxDockerConfigBytes bounds one docker configuration. The largest Secret that Kubernetes keeps is 1 MiB, and no one
// logs in to that many registries.
const maxDockerConfigBytes = 1 << 20

// dockerHub is the one name that Docker Hub's several host names are reduced to.
const dockerHub = "docker.io"

// dockerHubLogin is the key under which docker login stores the login to Docker Hub, and the one passed to helpers.
const dockerHubLogin = "https://index.docker.io/v1/"

// dockerConfig holds the logins of a docker config.json, a containers auth.json or a kubernetes.io/dockerconfigjson
// Secret.
type dockerConfig struct {
	Redacted
	entries []dockerEntry
	store   string            // credsStore
	helpers map[string]string // registry -> credHelpers
}

// dockerEntry is one key of "auths", split into the parts that decide which repositories it applies to.
type dockerEntry struct {
	key    string
	host   string
	path   string
	scheme bool               // written as a URL: docker ignores the path of these
	login  func() dockerLogin // a function for the reason that Credential has one
}

// dockerLogin is the value of one key of "auths".
type dockerLogin struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

var (
	errDockerConfigSize = fmt.Errorf("larger than %d bytes", maxDockerConfigBytes)
	errDockerAuth       = errors.New("its auth field is not base64 of username:password")
)

// dockerJSONError reports that a docker configuration cannot be read. It has only the place and the kind of the fault:
// encoding/json quotes the input, which is a credential here.
func dockerJSONError(cause error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(cause, &syntax):
		return fmt.Errorf("invalid JSON at byte %d", syntax.Offset)
	case errors.As(cause, &kind):
		return fmt.Errorf("invalid docker config: a field at byte %d has the wrong type", kind.Offset)
	}
	return errors.New("invalid JSON")
}

// parseDockerConfig reads a docker configuration. An entry whose credential is malformed is only an error once it is
// requested: it may be for a registry that is not used.
func parseDockerConfig(data []byte) (*dockerConfig, error) {
	if len(data) > maxDockerConfigBytes {
		return nil, errDockerConfigSize
	}
	var file struct {
		Auths       map[string]dockerLogin `json:"auths"`
		CredsStore  string                 `json:"credsStore"`
		CredHelpers map[string]string      `json:"credHelpers"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, dockerJSONError(err)
	}
	c := &dockerConfig{store: file.CredsStore, helpers: make(map[string]string, len(file.CredHelpers))}
	for key, login := range file.Auths {
		e := splitDockerKey(key)
		e.login = func() dockerLogin { return login }
		c.entries = append(c.entries, e)
	}
	slices.SortFunc(c.entries, func(a, b dockerEntry) int { return strings.Compare(a.key, b.key) })
	for _, key := range slices.Sorted(maps.Keys(file.CredHelpers)) {
		c.helpers[splitDockerKey(key).host] = file.CredHelpers[key]
	}
	return c, nil
}

// splitDockerKey understands every form in which a registry is written as a key: host, host:port, host/namespace,
// https://host/, https://host/v1/.
func splitDockerKey(key string) dockerEntry {
	e := dockerEntry{key: key}
	rest := key
	for _, scheme := range []string{"https://", "http://", "oci://"} {
		if len(rest) > len(scheme) && strings.EqualFold(rest[:len(scheme)], scheme) {
			rest, e.scheme = rest[len(scheme):], true
			break
		}
	}
	host, path, _ := strings.Cut(rest, "/")
	e.host = RegistryHost(host)
	e.path = strings.Trim(path, "/")
	if e.path == "v1" || e.path == "v2" {
		e.path = ""
	}
	return e
}

// RegistryHost reduces the names of one registry to one: lower case, no default port, and docker.io for each of Docker
// Hub's names.
func RegistryHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ":443")
	switch host {
	case "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com":
		return dockerHub
	}
	return host
}

// Hosts lists the registries that the configuration has a login for, sorted.
func (c *dockerConfig) Hosts() []string {
	var hosts []string
	for _, e := range c.entries {
		hosts = append(hosts, e.host)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// knows reports whether the configuration names the host, with a login or with a helper for it.
func (c *dockerConfig) knows(host string) bool {
	_, own := c.helper(host)
	return own || len(c.of(host)) > 0
}

// find returns the entry that fits the repository best: the entry with the longest matching namespace, then the entry
// for the whole registry. Like docker, it ignores the path in a key that is written as a URL.
func (c *dockerConfig) find(host, repository string) (dockerEntry, bool) {
	host = RegistryHost(host)
	best, found := dockerEntry{}, false
	for _, e := range c.entries {
		if e.host != host || e.path != "" && !e.scheme && !underPath(repository, e.path) {
			continue
		}
		if !found || e.rank(repository) > best.rank(repository) {
			best, found = e, true
		}
	}
	return best, found
}

// rank orders the entries of one host: longer namespaces first, then the bare host, then its spellings as a URL.
func (e dockerEntry) rank(repository string) int {
	switch {
	case e.path != "" && underPath(repository, e.path):
		return 2 + len(e.path)
	case e.path == "" && !e.scheme:
		return 2
	case e.path == "":
		return 1
	}
	return 0
}

// of returns all entries of the host, regardless of their namespace.
func (c *dockerConfig) of(host string) []dockerEntry {
	host = RegistryHost(host)
	var found []dockerEntry
	for _, e := range c.entries {
		if e.host == host {
			found = append(found, e)
		}
	}
	return found
}

func underPath(repository, namespace string) bool {
	return repository == namespace || strings.HasPrefix(repository, namespace+"/")
}

// helper names the credential helper that is responsible for the host, and whether it was configured for this very
// host.
func (c *dockerConfig) helper(host string) (name string, own bool) {
	if name := c.helpers[RegistryHost(host)]; name != "" {
		return name, true
	}
	return c.store, false
}

// credential decodes the entry. The auth field wins over username and password, as in docker.
func (l dockerLogin) credential() (Credential, error) {
	decoded, err := l.decode()
	return newCredential(decoded), err
}

func (l dockerLogin) decode() (login, error) {
	d := login{username: l.Username, password: l.Password, identityToken: l.IdentityToken, registryToken: l.RegistryToken}
	if l.Auth == "" {
		return d, nil
	}
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(l.Auth), "="))
	if err != nil {
		return login{}, errDockerAuth
	}
	user, password, ok := strings.Cut(string(raw), ":")
	if !ok {
		return login{}, errDockerAuth
	}
	// Old versions of docker padded the password with NUL bytes.
	d.username, d.password = user, strings.Trim(password, "\x00")
	return d, nil
}
