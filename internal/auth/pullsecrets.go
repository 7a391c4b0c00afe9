package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// The older type of Secrets with a docker configuration, and its key.
const (
	typeDockerCfg = "kubernetes.io/dockercfg"
	keyDockerCfg  = ".dockercfg"
)

// PullSecrets are the logins in Secrets for pulling images, read as the kubelet reads them: a key is a host, whose
// labels may contain globs, optionally with the beginning of a repository's name. It prints as REDACTED.
type PullSecrets struct {
	Redacted
	entries []pullEntry
	names   []string // of the Secrets
	key     string
}

type pullEntry struct {
	host, path string
	source     string
	login      func() dockerLogin // a function for the reason that Credential has one
}

// NewPullSecrets reads the Secrets in their order. Secrets of a type without a docker configuration are skipped and
// reported; if there are no others, the result is nil. It is nil as well if there are errors, one for each Secret that
// cannot be read.
func NewPullSecrets(secrets []*manifest.Secret) (*PullSecrets, []SecretWarning, []*SecretError) {
	p := &PullSecrets{}
	var warnings []SecretWarning
	var errs []*SecretError
	parts := []string{"pull"}
	for _, secret := range secrets {
		name := secret.Namespace + "/" + secret.Name
		logins, data, err := pullLogins(secret)
		switch {
		case err != nil:
			errs = append(errs, &SecretError{Secret: secret, Err: noLogin("Secret '%s': %v", name, err)})
			continue
		case data == nil:
			warnings = append(warnings, SecretWarning{Secret: secret, Text: fmt.Sprintf("Secret '%s' of type %s cannot be used as a registry login: the type must be %s",
				name, printable(secret.Type), typeDockerConfig)})
			continue
		}
		p.names = append(p.names, name)
		parts = append(parts, secret.Type, string(data))
		p.add(name, logins)
	}
	if errs != nil || p.names == nil {
		return nil, warnings, errs
	}
	// Of keys with the same beginning, the longest comes first; of equal keys, the first Secret's.
	slices.SortStableFunc(p.entries, func(a, b pullEntry) int {
		return cmp.Compare(b.host+"/"+b.path, a.host+"/"+a.path)
	})
	p.key = fingerprint(parts...)
	return p, warnings, nil
}

// pullLogins are the logins in a Secret by their keys, and the text that they are in, nil for another type of Secret.
func pullLogins(secret *manifest.Secret) (map[string]dockerLogin, []byte, error) {
	var file struct {
		Auths map[string]dockerLogin `json:"auths"`
	}
	var into any
	var data []byte
	switch secret.Type {
	case typeDockerConfig:
		data, into = secret.Data[keyDockerConfig], &file
	case typeDockerCfg:
		data, into = secret.Data[keyDockerCfg], &file.Auths
	default:
		return nil, nil, nil
	}
	if len(data) > maxDockerConfigBytes {
		return nil, nil, errDockerConfigSize
	}
	if err := json.Unmarshal(data, into); err != nil {
		return nil, nil, dockerJSONError(err)
	}
	return file.Auths, data, nil
}

func (p *PullSecrets) add(secret string, logins map[string]dockerLogin) {
	for _, key := range slices.Sorted(maps.Keys(logins)) {
		login := logins[key]
		host, path := splitPullKey(key)
		p.entries = append(p.entries, pullEntry{
			host: host, path: path, source: "Secret '" + secret + "'",
			login: func() dockerLogin { return login },
		})
	}
}

// splitPullKey splits a key, without its scheme and the API version that docker writes behind the host.
func splitPullKey(key string) (host, repository string) {
	for _, scheme := range []string{"https://", "http://"} {
		key = strings.TrimPrefix(key, scheme)
	}
	host, repository, _ = strings.Cut(key, "/")
	for _, version := range []string{"v1", "v2"} {
		if first, rest, _ := strings.Cut(repository, "/"); first == version {
			return RegistryHost(host), rest
		}
	}
	return RegistryHost(host), repository
}

// Key depends on the content of the Secrets.
func (p *PullSecrets) Key() string { return p.key }

func (p *PullSecrets) login(ctx context.Context, on Route, repository string) (Login, error) {
	return p.Login(ctx, on.host(), repository)
}

// Login returns the login of the first key that fits. Without a fitting key it returns no error: the repository may be public.
func (p *PullSecrets) Login(_ context.Context, host, repository string) (Login, error) {
	for _, e := range p.entries {
		if !e.fits(RegistryHost(host), repository) {
			continue
		}
		login := Login{Source: e.source}
		var err error
		if login.Credential, err = e.login().credential(); err == nil {
			err = e.login().check()
		}
		if errors.Is(err, errIncomplete) {
			err = fmt.Errorf("username and password are needed: %w", err)
		}
		if err != nil {
			return Login{}, noLogin("%s: its entry for '%s': %v", e.source, printable(e.host), err)
		}
		return login, nil
	}
	return Login{Problem: p.noEntry(host)}, nil
}

func (e pullEntry) fits(host, repository string) bool {
	return strings.HasPrefix(repository, e.path) && globHost(e.host, host)
}

// globHost matches a host with a pattern that may have globs in its labels, such as *.example.com. The ports must be equal.
func globHost(glob, host string) bool {
	if glob == host {
		return true
	}
	glob, globPort, _ := strings.Cut(glob, ":")
	host, port, _ := strings.Cut(host, ":")
	globs, labels := strings.Split(glob, "."), strings.Split(host, ".")
	if globPort != port || len(globs) != len(labels) {
		return false
	}
	for i := range globs {
		if ok, err := path.Match(globs[i], labels[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// noEntry returns the error for a hint, in case the registry then requires a login.
func (p *PullSecrets) noEntry(host string) error {
	var hosts []string
	for _, e := range p.entries {
		hosts = append(hosts, path.Join(e.host, e.path))
	}
	slices.Sort(hosts)
	text := fmt.Sprintf("no login for '%s' in Secret '%s'", host, strings.Join(p.names, "', '"))
	if hosts = slices.Compact(hosts); len(hosts) > 0 {
		text += ", only for: " + printable(strings.Join(hosts[:min(len(hosts), maxShownHosts)], ", "))
	}
	return errors.New(text)
}

const maxShownHosts = 5
